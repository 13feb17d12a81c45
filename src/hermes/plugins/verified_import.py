"""Imports Python from exactly the bytes that the user approved.

A folder is read once and hashed, and its modules are built from what was read. Later changes on disk, and Python's
compiled files, are ignored.
"""

import sys
from collections.abc import Callable, Mapping
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path, PurePosixPath
from types import CodeType, ModuleType
from typing import Any

from hermes.errors import HermesError
from hermes.plugins.plugin_registry import hash_of
from hermes.text.translation import translator

t = translator(__name__)


class _Sealed(MetaPathFinder, InspectLoader):
    """Finds and builds the modules next to the file `entry`, as parts of a package called `name`."""

    def __init__(
        self, name: str, folder: Path, entry: str, sources: Mapping[str, bytes]
    ) -> None:
        self._name = name
        self._folder = folder
        self._entry = entry
        self._sources = sources

    # pyrefly: ignore[missing-override-decorator]
    def find_spec(
        self, fullname: str, path: Any = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        del path, target
        file = self._file(fullname)
        if not file:
            return (
                ModuleSpec(fullname, None, is_package=True)
                if self._is_folder(fullname)
                else None
            )
        spec = spec_from_loader(
            fullname,
            self,
            origin=str(self._folder / file),
            is_package=self.is_package(fullname),
        )
        if spec is not None:
            spec.has_location = True
        return spec

    # pyrefly: ignore[missing-override-decorator]
    def is_package(self, fullname: str) -> bool:
        return fullname == self._name or self._file(fullname).endswith("/__init__.py")

    def get_source(self, fullname: str) -> str:
        return self._sources[self._file(fullname)].decode()

    # pyrefly: ignore[missing-override-decorator]
    def get_code(self, fullname: str) -> CodeType:
        file = self._file(fullname)
        return compile(
            self._sources[file], str(self._folder / file), "exec", dont_inherit=True
        )

    def _file(self, fullname: str) -> str:
        """Returns the file of a module; empty if it is not in the folder."""
        if fullname == self._name:
            return self._entry
        if not self._is_ours(fullname):
            return ""
        stem = self._stem(fullname)
        return next(
            (
                file
                for file in (f"{stem}.py", f"{stem}/__init__.py")
                if file in self._sources
            ),
            "",
        )

    def _is_folder(self, fullname: str) -> bool:
        """Returns whether a module is a folder without a file of its own."""
        return self._is_ours(fullname) and any(
            file.startswith(f"{self._stem(fullname)}/") for file in self._sources
        )

    def _is_ours(self, fullname: str) -> bool:
        return fullname.startswith(f"{self._name}.")

    def _stem(self, fullname: str) -> str:
        parts = fullname.removeprefix(f"{self._name}.").split(".")
        return PurePosixPath(self._entry).parent.joinpath(*parts).as_posix()


def read(folder: Path, mark: str) -> dict[str, bytes]:
    """Reads every file of a folder by name, if the folder still matches `mark`."""
    files: dict[str, bytes] = {}
    if hash_of(folder, keep=files) != mark:
        raise HermesError(
            t.later("{folder} changed while it was being loaded.", folder=folder),
            hint=t.later("Review it, and enable it again."),
        )
    return files


def load(
    folder: Path,
    entry: str,
    files: Mapping[str, bytes],
    name: str,
    prepare: Callable[[ModuleType], None] | None = None,
) -> ModuleType:
    """Loads the module in the file `entry` from what was read. Raises what its code raises.

    `prepare` receives the module before any of its code runs.
    """
    sources = {file: content for file, content in files.items() if file.endswith(".py")}
    finder = _Sealed(name, folder, entry, sources)
    unload(name)
    spec = finder.find_spec(name) if entry in sources else None
    if spec is None:
        raise HermesError(t.later("{file} is not a Python file.", file=folder / entry))
    module = module_from_spec(spec)
    if prepare is not None:
        prepare(module)
    sys.meta_path[:] = [finder, *sys.meta_path]
    sys.modules[name] = module
    try:
        finder.exec_module(module)
    except BaseException:
        unload(name)
        raise
    return module


def unload(name: str) -> None:
    """Unloads a module and its parts."""
    for known in [
        one for one in list(sys.modules) if one == name or one.startswith(f"{name}.")
    ]:
        del sys.modules[known]
    sys.meta_path[:] = [
        one for one in sys.meta_path if getattr(one, "_name", "") != name
    ]
