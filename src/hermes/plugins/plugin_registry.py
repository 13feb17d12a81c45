"""The plugins of a home, and which are enabled: each with a hash of exactly what the user approved."""

import hashlib
import os
import re
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from hermes.errors import HermesError, NotFound
from hermes.plugins.manifest import (
    NAME,
    Manifest,
    ManifestError,
    is_plugin,
    read_manifest,
)
from hermes.plugins.pins import FolderPins, Pin
from hermes.settings import Home
from hermes.text.translation import translator

t = translator(__name__)

State: TypeAlias = Literal["off", "enabled", "changed", "broken"]

BUNDLED = Path(__file__).parent / "bundled"
_MAX_PLUGIN_FILES = 5000
_MAX_PLUGIN_BYTES = 64 * 1024 * 1024
_UNCHANGED = t.later("Nothing was changed.")


class Plugin(msgspec.Struct, frozen=True):
    """A plugin on disk. `hash` covers every byte of its folder."""

    name: str
    folder: Path
    state: State
    hash: str = ""
    manifest: Manifest | None = None
    problem: str = ""
    bundled: bool = False


class PluginRegistry:
    """Finds plugins in the home, bundled ones, and those of packages (entry point `hermes.plugins`).

    Plugins in the home take precedence. Bundled ones are trusted like Hermes itself: once enabled, they stay enabled
    when an update changes them.
    """

    def __init__(self, home: Home, bundled: Path = BUNDLED) -> None:
        self._bundled = bundled
        self._places = (home.plugins, bundled)
        self._pins = FolderPins(home, "plugins.json", "plugins")

    def every(self) -> list[Plugin]:
        """Returns all plugins by name. Runs none of them."""
        pins = self._pins.every()
        found: dict[str, Plugin] = {}
        folders = (sorted(one.iterdir()) for one in self._places if one.is_dir())
        for place in (*folders, dict.fromkeys(_of_packages())):
            here: dict[str, list[Plugin]] = {}
            for folder in filter(is_plugin, place):
                bundled = folder.parent == self._bundled
                plugin = _read_plugin(folder, pins, bundled=bundled)
                here.setdefault(plugin.name, []).append(plugin)
            for name, same in here.items():
                found.setdefault(name, same[0] if len(same) == 1 else _unclear(same))
        return [found[name] for name in sorted(found)]

    def vetoing(self) -> set[str]:
        """Returns the names of approved plugins that had vetoes when they were last loaded."""
        return {name for name, pin in self._pins.every().items() if pin.has_vetoes}

    def note_vetoes(self, name: str, *, has_vetoes: bool) -> None:
        """Stores whether an enabled plugin may veto tool calls."""
        self._pins.note_vetoes(name, has_vetoes=has_vetoes)

    def find(self, name: str) -> Plugin:
        """Returns a plugin. Raises NotFound if there is none of that name."""
        for plugin in self.every():
            if plugin.name == name:
                return plugin
        known = ", ".join(plugin.name for plugin in self.every())
        raise NotFound(
            t.later("There is no plugin {name!r}.", name=name),
            hint=t.later("There are: {known}.", known=known)
            if known
            else t.later("There are none."),
        )

    def enable(self, name: str, expected: str = "") -> Plugin:
        """Enables a plugin's current content; with `expected`, only if that is the content the user was shown."""
        plugin = self.find(name)
        if plugin.problem:
            raise HermesError(
                t.later(
                    "The plugin {name} can't be used: {problem}.",
                    name=name,
                    problem=plugin.problem,
                ),
                hint=_UNCHANGED,
            )
        if expected not in {"", plugin.hash}:
            raise HermesError(
                t.later("The plugin {name} has changed in the meantime.", name=name),
                hint=t.later("{unchanged} Review it again.", unchanged=_UNCHANGED),
            )
        self._pins.set(name, plugin.hash)
        return self.find(name)

    def disable(self, name: str) -> bool:
        """Disables a plugin. Returns False if it was not enabled."""
        return self._pins.remove(name)


def _unclear(same: list[Plugin]) -> Plugin:
    """Returns a placeholder for plugins with the same name. None of them runs: it is unclear which one was approved."""
    folders = ", ".join(plugin.folder.name for plugin in same)
    problem = t.logged(
        "several folders have a plugin of this name ({folders}): keep one",
        folders=folders,
    )
    return Plugin(same[0].name, same[0].folder, "broken", problem=problem)


def _of_packages() -> list[Path]:
    """Yields the plugin folders of installed packages, without importing them."""
    from importlib.metadata import entry_points
    from importlib.util import find_spec

    found: list[Path] = []
    for entry in entry_points(group="hermes.plugins"):
        top = entry.module.partition(".")[0]
        spec = find_spec(top)
        found += (
            [Path(place) for place in (spec.submodule_search_locations or ())]
            if spec
            else []
        )
    return found


def _read_plugin(folder: Path, pins: dict[str, Pin], *, bundled: bool) -> Plugin:
    if not re.fullmatch(NAME, folder.name):
        return Plugin(
            folder.name,
            folder,
            "broken",
            problem=t.logged(
                "its name may have only lower-case letters, digits, - and _"
            ),
        )
    try:
        manifest, mark = read_manifest(folder), hash_of(folder)
    except (ManifestError, OSError) as error:
        return Plugin(folder.name, folder, "broken", problem=str(error))
    pin = pins.get(manifest.name)
    state: State = "changed"
    if pin is None:
        state = "off"
    elif bundled or pin.hash == mark:
        state = "enabled"
    return Plugin(manifest.name, folder, state, mark, manifest, bundled=bundled)


def hash_of(folder: Path, *, keep: dict[str, bytes] | None = None) -> str:
    """Hashes every name and byte in a folder. Rejects links: their target can change unseen.

    Stores what was read in `keep`, by file name.
    """
    whole = hashlib.sha256()
    files = size = 0
    for path in files_of(folder):
        if path.is_symlink() or not path.is_file():
            raise ManifestError(
                t.later(
                    "{relative_to} is not a plain file",
                    relative_to=path.relative_to(folder),
                )
            )
        content = path.read_bytes()
        files, size = files + 1, size + len(content)
        if files > _MAX_PLUGIN_FILES or size > _MAX_PLUGIN_BYTES:
            raise ManifestError(
                t.later("it is too large: more than 64 MiB or 5,000 files")
            )
        name = path.relative_to(folder).as_posix().encode(errors="surrogateescape")
        whole.update(b"%d %d\n" % (len(name), len(content)) + name + content)
        if keep is not None:
            keep[path.relative_to(folder).as_posix()] = content
    return whole.hexdigest()


def files_of(folder: Path) -> list[Path]:
    """Returns every file and link in a folder by name; for bundled plugins without Python's compiled files."""
    found: list[Path] = []
    ours = folder.is_relative_to(BUNDLED)
    for top, folders, names in os.walk(folder, followlinks=False):
        if ours and "__pycache__" in folders:
            folders.remove("__pycache__")
        links = [name for name in folders if Path(top, name).is_symlink()]
        found += [Path(top, name) for name in (*names, *links)]
    return sorted(found)
