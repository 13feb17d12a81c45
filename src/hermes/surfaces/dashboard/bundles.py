"""Joins the modules of the page into a few files, so that a browser asks for few.

There is no build step: the files in `static` are what is edited, and a bundle is made when a page first needs it.
`main.js` holds the frame and the chat; each other view that is imported on demand has its own bundle. In a bundle,
every module is a function that returns its exports; `modules` maps paths to these functions, so a module in two
bundles runs once. An import from a module that only re-exports is resolved to the modules that define the names;
otherwise a bundle would contain everything that the module re-exports. This relies on how the modules are written,
and refuses anything else: one statement per import or export, at the start of a line; no import cycle; exports that
are never assigned again.
"""

import posixpath
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

MAIN = "main"
ENTRY = "app/main.js"
_IN_MAIN = (ENTRY, "views/chat.js")
_VENDORED = "vendor/"
_FROM = re.compile(
    r'^(import|export) (?:\* as (?P<whole>\w+)|(?P<default>\w+)|\{(?P<names>[^}]*)\}) from "(?P<path>[^"]+)";$',
    re.MULTILINE,
)
_LIST = re.compile(r"^export \{([^}]*)\};$", re.MULTILINE)
_DECLARATION = re.compile(
    r"^export (default )?((?:async )?function\*? |class |const )(\w+)", re.MULTILINE
)
_DYNAMIC = re.compile(r'\bimport\("(\.[^"]+\.js)"\)')
_LEFT_OVER = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)
_COMMENT = re.compile(r"^[ \t]*(?:/\*\*(?:[^*]|\*(?!/))*\*/|// [^\n]*)\n", re.MULTILINE)


class BundleError(ValueError):
    """A module is written in a way that can't be joined with others."""


class _Module(NamedTuple):
    """A module as it stands in a bundle. `exports` maps what others import to the name in the body."""

    path: str
    body: str
    imports: tuple[str, ...]
    on_demand: tuple[str, ...]
    exports: dict[str, str]


class ModuleBundles:
    """The bundles of one state of the files. `sources` maps a path below `static` to its text."""

    def __init__(self, sources: Mapping[str, str], files: str) -> None:
        """`files` is the address under which bundles of this state are found."""
        self._files = files
        texts = {
            path: text
            for path, text in sources.items()
            if path.endswith(".js") and path.startswith(("app/", "views/"))
        }
        self._collections = {
            path: found
            for path, text in texts.items()
            if (found := _passed_on(path, text))
        }
        self._modules = {
            path: _read_module(path, _import_directly(path, text, self._collections))
            for path, text in texts.items()
        }
        self._main = self._closure(*_IN_MAIN)
        on_demand = {
            path for module in self._modules.values() for path in module.on_demand
        }
        self._entries = {
            posixpath.basename(path).removesuffix(".js"): path
            for path in sorted(on_demand - set(self._main))
        }

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all bundles."""
        return (MAIN, *self._entries)

    @property
    def vendored(self) -> list[str]:
        """The library files that `main.js` imports."""
        return self._vendored(self._main)

    def bundle(self, name: str) -> str:
        """The text of a bundle; a KeyError when there is none."""
        if name == MAIN:
            body = self._join(self._main)
            return (
                f"{self._imports(self._main)}const modules = {{}};\nexport {{ modules }};\n"
                f"{body}"
            )
        entry = self._entries[name]
        own = [path for path in self._closure(entry) if path not in set(self._main)]
        imports = f'import {{ modules }} from "{self._address(MAIN)}";\n'
        return (
            f"{imports}{self._imports(own)}{self._join(own)}{self._reexported(entry)}"
        )

    def stand_in(self, path: str) -> str | None:
        """A module under its own path: the exports of the one in a bundle, so that it is never there twice."""
        if path not in self._modules:
            return None
        imports = f'import {{ modules }} from "{self._address(MAIN)}";\n'
        if path in self._collections:
            return "".join(
                f'export {{ {own} as {given} }} from "/static/{source}";\n'
                for given, (source, own) in self._collections[path].items()
            )
        if path not in self._main:
            holders = self._holders(path)
            if not holders:
                return None
            imports += f'import "{self._address(holders[0])}";\n'
        return f"{imports}{self._reexported(path)}"

    def _holders(self, path: str) -> list[str]:
        return [
            name
            for name, entry in self._entries.items()
            if path in self._closure(entry)
        ]

    def _address(self, name: str) -> str:
        return f"{self._files}/{name}.js"

    def _closure(self, *entries: str) -> list[str]:
        """The modules that these need, each after those it imports."""
        found: list[str] = []
        open_: list[str] = []

        def visit(path: str) -> None:
            if path in found or path.startswith(_VENDORED):
                return
            if path in open_:
                cycle = " -> ".join([*open_[open_.index(path) :], path])
                raise BundleError(f"modules import each other: {cycle}")
            if path not in self._modules:
                raise BundleError(f"{open_[-1] if open_ else 'the page'}: no {path}")
            open_.append(path)
            for one in self._modules[path].imports:
                visit(one)
            found.append(open_.pop())

        for entry in entries:
            visit(entry)
        # The entry runs last, once everything else is there.
        return [path for path in found if path != ENTRY] + [
            path for path in found if path == ENTRY
        ]

    def _vendored(self, paths: list[str]) -> list[str]:
        imports = (one for path in paths for one in self._modules[path].imports)
        return [*dict.fromkeys(one for one in imports if one.startswith(_VENDORED))]

    def _imports(self, paths: list[str]) -> str:
        return "".join(
            f'import * as {_library_name(path)} from "/static/{path}";\n'
            for path in self._vendored(paths)
        )

    def _join(self, paths: list[str]) -> str:
        return "".join(self._wrapped(self._modules[path]) for path in paths)

    def _wrapped(self, module: _Module) -> str:
        body = _DYNAMIC.sub(self._rewrite_import(module.path), module.body)
        exports = ", ".join(
            name if name == own else f"{name}: {own}"
            for name, own in module.exports.items()
        )
        return f'modules["{module.path}"] ??= (() => {{\n{body}\nreturn {{ {exports} }};\n}})();\n'

    def _rewrite_import(self, importer: str) -> Callable[[re.Match[str]], str]:
        names = {path: name for name, path in self._entries.items()}

        def rewrite(found: re.Match[str]) -> str:
            path = _resolve(importer, found[1])
            if path in names:
                return f'import("{self._address(names[path])}")'
            return f'Promise.resolve(modules["{path}"])'

        return rewrite

    def _reexported(self, path: str) -> str:
        """Statements that export what a module exports."""
        exports = self._modules[path].exports
        names = [name for name in exports if name != "default"]
        lines = [f'export const {{ {", ".join(names)} }} = modules["{path}"];\n']
        if "default" in exports:
            lines.append(f'export default modules["{path}"].default;\n')
        return "".join(lines if names else lines[1:])


def _passed_on(path: str, text: str) -> dict[str, tuple[str, str]]:
    """Where a module that only passes on what others export has each name from; {} for another module."""
    statements = [*_FROM.finditer(text)]
    is_only_that = not _COMMENT.sub("", _FROM.sub("", text)).strip()
    if not is_only_that or any(found[1] == "import" for found in statements):
        return {}
    return {
        given: (_resolve(path, found["path"]), name)
        for found in statements
        for name, given in _pairs(found["names"] or "").items()
    }


def _import_directly(
    path: str, text: str, collections: Mapping[str, Mapping[str, tuple[str, str]]]
) -> str:
    """A module that imports from where each name is made: a collection would bring all that it passes on."""

    def split(found: re.Match[str]) -> str:
        passed = collections.get(_resolve(path, found["path"]))
        if passed is None or found[1] == "export" or found["names"] is None:
            return found[0]
        lines: dict[str, list[str]] = {}
        for name, given in _pairs(found["names"]).items():
            if name not in passed:
                raise BundleError(f"{path}: no {name} in {found['path']}")
            source, own = passed[name]
            lines.setdefault(source, []).append(f"{own} as {given}")
        return "\n".join(
            f'import {{ {", ".join(names)} }} from "/static/{source}";'
            for source, names in lines.items()
        )

    return _FROM.sub(split, text)


def _read_module(path: str, text: str) -> _Module:
    """A module, with its imports as constants and its exports as a list."""
    imports: list[str] = []
    exports: dict[str, str] = {}

    def take_from(found: re.Match[str]) -> str:
        source = _resolve(path, found["path"])
        imports.append(source)
        is_library = source.startswith(_VENDORED)
        namespace = _library_name(source) if is_library else f'modules["{source}"]'
        if found["whole"]:
            return f"const {found['whole']} = {namespace};"
        if found["default"]:
            return f"const {found['default']} = {namespace}.default;"
        pairs = _pairs(found["names"])
        if found[1] == "export":
            own = {name: f"from{len(exports)}_{name}" for name in pairs}
            exports.update({given: own[name] for name, given in pairs.items()})
            pairs = own
        inner = ", ".join(
            name if name == given else f"{name}: {given}"
            for name, given in pairs.items()
        )
        return f"const {{ {inner} }} = {namespace};"

    def take_declaration(found: re.Match[str]) -> str:
        exports["default" if found[1] else found[3]] = found[3]
        return f"{found[2]}{found[3]}"

    def take_list(found: re.Match[str]) -> str:
        exports.update({given: name for name, given in _pairs(found[1]).items()})
        return ""

    body = _DECLARATION.sub(
        take_declaration, _LIST.sub(take_list, _FROM.sub(take_from, text))
    )
    if left := _LEFT_OVER.search(body):
        raise BundleError(f"{path}: can't be bundled: {left[0]}")
    body = _COMMENT.sub("", body)
    on_demand = tuple(_resolve(path, one) for one in _DYNAMIC.findall(body))
    return _Module(path, body, tuple(imports), on_demand, exports)


def _pairs(names: str) -> dict[str, str]:
    """`a, b as c` as {"a": "a", "b": "c"}."""
    words = (one.split() for one in names.split(",") if one.strip())
    return {one[0]: one[-1] for one in words}


def _resolve(importer: str, address: str) -> str:
    if address.startswith("/static/"):
        return address.removeprefix("/static/")
    return posixpath.normpath(posixpath.join(posixpath.dirname(importer), address))


def _library_name(path: str) -> str:
    return "library_" + re.sub(r"\W", "_", path.removeprefix(_VENDORED))
