"""Python that runs from exactly the bytes that were agreed to: a folder is read once, hashed, and its modules are made
of what was read. What changes on disk meanwhile, and what Python compiled before, has no part in it."""

import sys
from collections.abc import Callable, Mapping
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from hermes.errors import HermesError
from hermes.plugins.catalogue import hash_of


class _Sealed(MetaPathFinder, InspectLoader):
    """Finds and makes the modules of one folder, as parts of a package that is called `name`."""

    def __init__(self, name: str, folder: Path, entry: str, sources: Mapping[str, bytes]) -> None:
        self._name = name
        self._folder = folder
        self._entry = entry
        self._sources = sources

    # pyrefly: ignore[missing-override-decorator]
    def find_spec(self, fullname: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        del path, target
        file = self._file(fullname)
        if not file:
            return None
        spec = spec_from_loader(fullname, self, origin=str(self._folder / file), is_package=self.is_package(fullname))
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
        return compile(self._sources[file], str(self._folder / file), "exec", dont_inherit=True)

    def _file(self, fullname: str) -> str:
        """The file of a module; empty if it is none of ours."""
        if fullname == self._name:
            return self._entry
        if not fullname.startswith(f"{self._name}."):
            return ""
        stem = fullname.removeprefix(f"{self._name}.").replace(".", "/")
        return next((file for file in (f"{stem}.py", f"{stem}/__init__.py") if file in self._sources), "")


def load(folder: Path, entry: str, mark: str, name: str, prepare: Callable[[ModuleType], None]) -> ModuleType:
    """The module in the file `entry`, if the folder is still what `mark` says. Raises whatever its code raises.

    `prepare` is given the module before any of its code has run.
    """
    sources: dict[str, bytes] = {}
    if hash_of(folder, keep=sources) != mark:
        raise HermesError(f"{folder} changed while it was being loaded.", hint="Look at it, and agree to it again.")
    finder = _Sealed(name, folder, entry, sources)
    for known in [one for one in list(sys.modules) if one == name or one.startswith(f"{name}.")]:
        del sys.modules[known]
    sys.meta_path[:] = [finder, *(one for one in sys.meta_path if getattr(one, "_name", "") != name)]
    spec = finder.find_spec(name)
    if spec is None or entry not in sources:
        raise HermesError(f"{folder / entry} is no Python file.")
    module = module_from_spec(spec)
    prepare(module)
    sys.modules[name] = module
    finder.exec_module(module)
    return module
