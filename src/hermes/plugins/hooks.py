"""Hooks on disk: folders of `hooks/` in the home with a HOOK.yaml and a handler.py. Runs none of
them.

A hook is off until the user trusts its exact content; one that has changed since is off again.
"""

import re
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import Meta

from hermes.errors import HermesError, NotFound
from hermes.plugins.manifest import NAME, ManifestError
from hermes.plugins.pins import FolderPins, Pin
from hermes.plugins.plugin_registry import hash_of
from hermes.settings import Home
from hermes.settings.yaml_read import parse_yaml
from hermes.text.translation import translator

t = translator(__name__)

MANIFEST, HANDLER = "HOOK.yaml", "handler.py"
EVENTS = (
    "gateway:startup", "session:start", "session:end", "session:reset",
    "agent:start", "agent:step", "agent:end", "command:*",
)  # fmt: skip
"""The events a hook can subscribe to. `command:*` stands for every command, `command:new` for one."""
_MAX_MANIFEST_BYTES = 64 * 1024  # bytes of a manifest

State: TypeAlias = Literal["off", "trusted", "changed", "broken"]


class HookManifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of HOOK.yaml."""

    name: str
    events: Annotated[tuple[str, ...], Meta(min_length=1)]
    description: str = ""
    timeout: Annotated[float, Meta(gt=0, le=300)] = 10.0


class Hook(msgspec.Struct, frozen=True):
    """A hook on disk. `hash` covers every byte of its folder."""

    name: str
    folder: Path
    state: State
    hash: str = ""
    manifest: HookManifest | None = None
    problem: str = ""

    def subscribes_to(self, event_type: str) -> bool:
        """Returns whether it subscribes to an event."""
        wanted = self.manifest.events if self.manifest else ()
        return any(
            one in {event_type, "*"}
            or (one[-1:] == "*" and event_type.startswith(one[:-1]))
            for one in wanted
        )


class Hooks:
    """The hooks of a home."""

    def __init__(self, home: Home) -> None:
        self._folder = home.hooks
        self._pins = FolderPins(home, "hooks.json", "hooks")

    def every(self) -> list[Hook]:
        """Returns all hooks by name."""
        if not self._folder.is_dir():
            return []
        pins = self._pins.every()
        return [
            _read_hook(folder, pins)
            for folder in sorted(self._folder.iterdir())
            if (folder / MANIFEST).exists()
        ]

    def find(self, name: str) -> Hook:
        """Returns a hook. Raises NotFound if there is none of that name."""
        found = {hook.name: hook for hook in self.every()}
        if name in found:
            return found[name]
        known = (
            t.later("There are: {names}.", names=", ".join(found))
            if found
            else t.later("There are none in {folder}.", folder=self._folder)
        )
        raise NotFound(t.later("There is no hook {name!r}.", name=name), hint=known)

    def trust(self, name: str, expected: str = "") -> Hook:
        """Trusts a hook's current content; with `expected`, only if that is the content the user was shown."""
        hook = self.find(name)
        if hook.problem:
            raise HermesError(
                t.later(
                    "The hook {name} can't be used: {problem}.",
                    name=name,
                    problem=hook.problem,
                ),
                hint=t.later("Nothing was changed."),
            )
        if expected not in {"", hook.hash}:
            raise HermesError(
                t.later("The hook {name} has changed in the meantime.", name=name),
                hint=t.later("It is off. Review it again."),
            )
        self._pins.set(name, hook.hash)
        return self.find(name)

    def untrust(self, name: str) -> bool:
        """Stops trusting a hook. Returns False if it was not trusted."""
        return self._pins.remove(name)


def _read_hook(folder: Path, pins: dict[str, Pin]) -> Hook:
    name = folder.name
    try:
        manifest, mark = _read(folder), hash_of(folder)
    except (ManifestError, OSError) as error:
        return Hook(name, folder, "broken", problem=str(error))
    pin = pins.get(name)
    state: State = "changed"
    if pin is None:
        state = "off"
    elif pin.hash == mark:
        state = "trusted"
    return Hook(name, folder, state, mark, manifest)


def _read(folder: Path) -> HookManifest:
    if not re.fullmatch(NAME, folder.name):
        raise ManifestError(
            t.later("its name may have only lower-case letters, digits, - and _")
        )
    content = (folder / MANIFEST).read_bytes()[: _MAX_MANIFEST_BYTES + 1]
    if len(content) > _MAX_MANIFEST_BYTES:
        raise ManifestError(
            t.later("its {manifest} is larger than 64 KiB", manifest=MANIFEST)
        )
    try:
        manifest = msgspec.convert(parse_yaml(content.decode()), HookManifest)
    except (ValueError, msgspec.ValidationError) as error:
        raise ManifestError(
            t.later(
                "its {manifest} can't be used: {error}", manifest=MANIFEST, error=error
            )
        ) from error
    if manifest.name != folder.name:
        raise ManifestError(
            t.later(
                "its {manifest} calls it {name!r}, its folder is {folder!r}",
                manifest=MANIFEST,
                name=manifest.name,
                folder=folder.name,
            )
        )
    for event in manifest.events:
        if not _is_known(event):
            raise ManifestError(
                t.later(
                    "there is no event {event!r}; there are {events}",
                    event=event,
                    events=", ".join(EVENTS),
                )
            )
    if not (folder / HANDLER).is_file():
        raise ManifestError(t.later("it has no {handler}", handler=HANDLER))
    return manifest


def _is_known(event: str) -> bool:
    groups = {one.partition(":")[0] for one in EVENTS}
    return (
        event in {*EVENTS, "*"}
        or event.startswith("command:")
        or (event[-2:] == ":*" and event[:-2] in groups)
    )
