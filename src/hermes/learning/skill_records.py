"""Records about skills: where each came from, whether it is enabled, and how often it was used."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

from hermes.errors import SettingsError
from hermes.learning.change import LearningError
from hermes.primitives.files import make_private_folder
from hermes.settings import atomic
from hermes.text.translation import translator

t = translator(__name__)

_T = TypeVar("_T")


class SkillRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where a skill came from, and the user's choices for it."""

    origin: Literal["user", "agent", "installed"] = "user"
    hash: str = ""
    """The hash of its files as Hermes last wrote them; if it differs, the user changed them."""
    source: str = ""
    created: float = 0.0
    enabled: bool = True
    pinned: bool = False


class SkillUse(msgspec.Struct, frozen=True, omit_defaults=True):
    """How often the model read a skill and the user called it, and when last."""

    views: int = 0
    commands: int = 0
    last: float = 0.0


class SkillRecords:
    """The records, in two small files of the home's `learning` folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()

    def all(self) -> dict[str, SkillRecord]:
        """Returns every record by the skill's name."""
        return _read(self._folder / "skills.json", dict[str, SkillRecord])

    def get(self, name: str) -> SkillRecord:
        """Returns a skill's record. A skill without one is the user's own."""
        return self.all().get(name, SkillRecord())

    def change(
        self, name: str, change: Callable[[SkillRecord], SkillRecord | None]
    ) -> None:
        """Changes one record; None removes it."""
        self._update(
            self._folder / "skills.json",
            dict[str, SkillRecord],
            name,
            change,
            SkillRecord(),
        )

    def uses(self) -> dict[str, SkillUse]:
        """Returns how each skill was used."""
        return _read(self._folder / "usage.json", dict[str, SkillUse])

    def used(self, name: str, kind: Literal["view", "command"], now: float) -> None:
        """Counts one use."""

        def count(use: SkillUse) -> SkillUse:
            return SkillUse(
                use.views + (kind == "view"),
                use.commands + (kind == "command"),
                max(now, use.last),
            )

        self._update(
            self._folder / "usage.json", dict[str, SkillUse], name, count, SkillUse()
        )

    def _update(
        self,
        path: Path,
        kind: type[dict[str, _T]],
        name: str,
        change: Callable[[_T], _T | None],
        default: _T,
    ) -> None:
        make_private_folder(self._folder)
        try:
            with self._lock, atomic.locked(path) as target:
                entries = _read(target, kind)
                changed = change(entries.get(name, default))
                entries.pop(name, None)
                if changed is not None:
                    entries[name] = changed
                atomic.replace(
                    target,
                    msgspec.json.format(
                        msgspec.json.encode(entries), indent=1
                    ).decode(),
                )
        except SettingsError as error:
            raise LearningError(error.words, hint=error.hint_words) from error


def _read(path: Path, kind: type[dict[str, _T]]) -> dict[str, _T]:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.MsgspecError) as error:
        raise LearningError(
            t.later("{path} can't be read ({error}).", path=path, error=error),
            hint=t.later("Move the file away; the skills themselves are safe."),
        ) from error
