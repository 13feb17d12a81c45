"""What the user approved: for each name, the hash of exactly that folder, in a file of the home."""

import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from hermes.errors import HermesError
from hermes.settings import Home, atomic
from hermes.text.translation import translator

t = translator(__name__)


class Pin(msgspec.Struct, omit_defaults=True):
    """A hash, and when the user approved it (Unix seconds)."""

    hash: str
    since: float
    has_vetoes: bool = False
    """Whether the plugin may veto tool calls; known once it was loaded."""


class FolderPins:
    """The pins of one file. `what` is the user's word for the things in it."""

    def __init__(self, home: Home, file: str, what: str) -> None:
        self._home = home
        self._file: Path = home.root / file
        self._what = what

    def every(self) -> dict[str, Pin]:
        """Returns all pins by name. Raises HermesError if the file can't be read; then nothing counts as approved."""
        try:
            return msgspec.json.decode(
                self._file.read_bytes(), type=dict[str, dict[str, Pin]]
            ).get("enabled", {})
        except FileNotFoundError:
            return {}
        except (OSError, msgspec.MsgspecError) as error:
            raise HermesError(
                t.later(
                    "The list of enabled {what} can't be read: {file} ({error}).",
                    what=self._what,
                    file=self._file,
                    error=error,
                ),
                hint=t.later(
                    "Remove the file; then all {what} are off, and can be enabled again.",
                    what=self._what,
                ),
            ) from error

    def set(self, name: str, mark: str) -> None:
        """Pins a folder with this hash."""

        def pinned(before: Pin | None) -> Pin:
            had_vetoes = before is not None and before.has_vetoes
            return Pin(mark, time.time(), had_vetoes)

        self._change(name, pinned)

    def remove(self, name: str) -> bool:
        """Removes a pin. Returns False if there was none."""
        return self._change(name, lambda _: None)

    def note_vetoes(self, name: str, *, has_vetoes: bool) -> None:
        """Stores whether a pinned folder may veto tool calls. Writes only on a change."""
        pin = self.every().get(name)
        if pin is not None and pin.has_vetoes != has_vetoes:
            self._change(
                name,
                lambda now: now and Pin(now.hash, now.since, has_vetoes=has_vetoes),
            )

    def _change(self, name: str, change: Callable[[Pin | None], Pin | None]) -> bool:
        self._home.ensure()
        with atomic.locked(self._file) as target:
            pins = self.every()
            had = pins.pop(name, None)
            if (pin := change(had)) is not None:
                pins[name] = pin
            atomic.replace(
                target, msgspec.json.encode({"enabled": pins}).decode(), mode=0o600
            )
        return had is not None
