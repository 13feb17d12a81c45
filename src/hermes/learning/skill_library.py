"""The skills of one home and those bundled with Hermes: the index, and reading and changing a skill."""

import contextlib
import shutil
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path

import msgspec

from hermes.core.ports import Clock
from hermes.core.prompt import SKILLS_HEAD
from hermes.errors import SettingsError
from hermes.learning import skill_folders
from hermes.learning.change import (
    AppliedChange,
    LearningError,
    LearningNotFound,
    Provenance,
    SkillChange,
    SkillFileChange,
)
from hermes.learning.history import LearningHistory
from hermes.learning.scan import scan, scan_files
from hermes.learning.skill import (
    MAIN,
    Skill,
    files_diff,
    parse,
    problems,
    read_files,
    require_name,
    safe_path,
    tree_hash,
)
from hermes.learning.skill_folders import (
    Archived,
    list_skill_folders,
    own_folder,
    read_head,
)
from hermes.learning.skill_records import SkillRecord, SkillRecords
from hermes.primitives.files import make_private_folder
from hermes.settings import atomic
from hermes.text.translation import translator

t = translator(__name__)

BUNDLED = Path(__file__).parent / "bundled"
STAGING = ".staging"
_MAX_SKILL_FILE_BYTES = 200_000
_MAX_SKILL_FILES = 50
_MAX_INDEXED_SKILLS = 80
_INDEX_DESCRIPTION_CHARS = 75  # characters of a description


class SkillLibrary:
    """Finds, reads and changes skills."""

    def __init__(
        self,
        folder: Path,
        records: SkillRecords,
        history: LearningHistory,
        clock: Clock,
        bundled: Path = BUNDLED,
    ) -> None:
        self._folder = folder
        self._history = history
        self._clock = clock
        self._bundled = bundled
        self.records = records

    def all(self) -> list[Skill]:
        """Returns every skill by name. The user's own takes precedence over a bundled one."""
        records = self.records.all()
        found: dict[str, Skill] = {}
        for folder in list_skill_folders(self._folder):
            skill = read_head(folder, records, None)
            found.setdefault(skill.name, skill)
        for skill in self._bundled_skills:
            record = records.get(skill.name, SkillRecord())
            found.setdefault(
                skill.name,
                msgspec.structs.replace(
                    skill, enabled=record.enabled, pinned=record.pinned
                ),
            )
        return [found[name] for name in sorted(found)]

    @cached_property
    def _bundled_skills(self) -> list[Skill]:
        """Returns the bundled skills, read once: every new session has them in its prompt."""
        return [
            read_head(folder, {}, "bundled")
            for folder in list_skill_folders(self._bundled)
        ]

    def find(self, name: str) -> Skill:
        """Returns a skill. Raises LearningNotFound with the nearest name if there is none."""
        skills = {skill.name: skill for skill in self.all()}
        if name in skills:
            return skills[name]
        import difflib

        near = difflib.get_close_matches(name, list(skills), 1)
        raise LearningNotFound(
            t.later("There is no skill {name!r}.", name=name),
            hint=t.later("Did you mean {near}?", near=near[0])
            if near
            else t.later("See the list of skills."),
        )

    def index(self) -> str:
        """Returns the part of the system prompt that lists the skills; empty if there are none."""
        offered = [skill for skill in self.all() if skill.offered]
        if not offered:
            return ""
        lines = [
            f"- {skill.name}: {_short(skill.description)}"
            for skill in offered[:_MAX_INDEXED_SKILLS]
        ]
        more = len(offered) - _MAX_INDEXED_SKILLS
        lines += (
            [f"({more} more: see skills_list)"] if more > 0 else []
        )  # not translated
        head = f"{SKILLS_HEAD} Before such a task, read its skill with skill_view and follow it."  # not translated
        return "\n".join([head, *lines])

    def listing(self) -> str:
        """Returns all enabled skills, one per line."""
        lines = [
            f"{skill.name}: {skill.description}"
            for skill in self.all()
            if skill.offered
        ]
        return "\n".join(lines) or "no skills yet"  # not translated

    def view(self, name: str, file: str = "") -> str:
        """Returns the text of a skill or of one of its files, unless it looks injected."""
        skill = self.find(name)
        if not skill.offered:
            raise LearningError(
                t.later(
                    "The skill {name} is not offered: {problem}.",
                    name=name,
                    problem=skill.problem or t.later("the user has disabled it"),
                )
            )
        files = read_files(skill.folder)
        path = safe_path(file) if file else MAIN
        if path not in files:
            known = ", ".join(sorted(files))
            raise LearningError(
                t.later("The skill {name} has no file {path!r}.", name=name, path=path),
                hint=t.later("It has: {known}", known=known),
            )
        text = files[path][:_MAX_SKILL_FILE_BYTES].decode("utf-8", "replace")
        if skill.origin != "bundled" and (why := scan(text)):
            raise LearningError(
                t.later(
                    "{path} of the skill {name} is not shown: it seems to contain injected instructions ({why}).",
                    path=path,
                    name=name,
                    why=why,
                ),
                hint=t.later("Tell the user to run: hermes skills check"),
            )
        others = sorted(set(files) - {MAIN})
        about = f"read them with skill_view; commands find them in {skill.folder}"  # not translated
        more = (
            f"\n\n[files of this skill: {', '.join(others)}; {about}]"  # not translated
            if others and path == MAIN
            else ""
        )
        return f"{parse(text).body.strip() if path == MAIN else text}{more}"

    def is_users(self, name: str) -> bool:
        """Returns whether the user wrote, changed, pinned or installed a skill; changes to it are
        only proposed.
        """
        try:
            skill = self.find(name)
        except LearningError:
            return False
        if skill.origin != "agent" or skill.pinned:
            return True
        return not self.is_as_written(name)

    def is_as_written(self, name: str) -> bool:
        """Returns whether a skill's files are as Hermes last wrote them. Unreadable files count as
        changed.
        """
        try:
            return tree_hash(self._current(name)) == self.records.get(name).hash
        except LearningError:
            return False

    def text_of(self, name: str, path: str) -> str | None:
        """Returns a file of a skill; None if it does not exist."""
        with contextlib.suppress(LearningError):
            data = read_files(self.find(name).folder).get(path)
            return None if data is None else data.decode("utf-8", "replace")
        return None

    def preview(self, change: SkillChange) -> str:
        """Returns the diff that a change would make. Raises LearningError if it cannot be made."""
        return self._diff(change, *self._plan(change))

    def apply(
        self, change: SkillChange, origin: Provenance, title: str = ""
    ) -> AppliedChange:
        """Makes the change as a whole."""
        with self.locked():
            self._history.commit_manual_edits()
            before, after = self._plan(change)
            diff = self._diff(change, before, after)
            if change.retire:
                skill_folders.archive(self._folder, change.name)
            else:
                self._write(change.name, before, after)
                self._record_owner(change.name, before, after, origin)
            return AppliedChange(
                self._history.commit(title or change.title, origin) if diff else "",
                diff,
            )

    def install(
        self, name: str, files: Mapping[str, bytes], source: str
    ) -> AppliedChange:
        """Replaces a skill by files from a source."""
        with self.locked():
            self._history.commit_manual_edits()
            before = self._current(name)
            self._write(require_name(name), before, files)
            record = SkillRecord(
                "installed", tree_hash(files), source, self._clock.now()
            )
            self.records.change(name, lambda _: record)
            kept = self._history.commit(
                f"skill {name}: install from {source}", Provenance("user")
            )
        return AppliedChange(kept, "")

    def archived(self) -> list[Archived]:
        """Returns the retired skills, newest first."""
        return skill_folders.archived(self._folder)

    def restore(self, name: str) -> Skill:
        """Restores a retired skill. Its time without use starts again."""
        with self.locked():
            self._history.commit_manual_edits()
            skill = skill_folders.restore(self._folder, name)
            self.records.change(
                skill,
                lambda record: msgspec.structs.replace(
                    record, created=self._clock.now()
                ),
            )
            self._history.commit(f"skill {skill}: restore", Provenance("user"))
        return self.find(skill)

    def set(
        self, name: str, *, enabled: bool | None = None, pinned: bool | None = None
    ) -> Skill:
        """Enables, disables or pins a skill. Only the user can change a pinned one."""
        self.find(name)

        def change(record: SkillRecord) -> SkillRecord:
            wanted = record.enabled if enabled is None else enabled
            return msgspec.structs.replace(
                record,
                enabled=wanted,
                pinned=record.pinned if pinned is None else pinned,
            )

        self.records.change(name, change)
        return self.find(name)

    def untouched(self) -> frozenset[str]:
        """Returns the skills that Hermes wrote and nobody else has changed."""
        records = self.records.all()
        own = (name for name, record in records.items() if record.origin == "agent")
        return frozenset(filter(self.is_as_written, own))

    def rewritten(self, name: str) -> None:
        """Records that the user restored a skill to a version by Hermes, so that Hermes owns it again."""
        digest = tree_hash(self._current(name))
        self.records.change(
            name, lambda record: msgspec.structs.replace(record, hash=digest)
        )

    def _plan(self, change: SkillChange) -> tuple[dict[str, bytes], dict[str, bytes]]:
        """Returns the skill's files before and after. Merges edits made since the change was prepared."""
        require_name(change.name)
        before = self._current(change.name)
        if change.retire:
            if not own_folder(self._folder, change.name).is_dir():
                raise LearningNotFound(
                    t.later("There is no skill {name!r} of yours.", name=change.name),
                    hint=t.later("Nothing was changed."),
                )
            return before, {}
        start = before or self._bundled_files(change.name)
        after = {**start}
        for file in change.files:
            path = safe_path(file.path)
            data = self._merged(change.name, file, start.get(path))
            if data is None:
                after.pop(path, None)
            else:
                after[path] = data
        _require_fit(change.name, after)
        return before, after

    def _merged(
        self, name: str, file: SkillFileChange, current: bytes | None
    ) -> bytes | None:
        before = None if file.before is None else file.before.encode()
        if current == before:
            return None if file.after is None else file.after.encode()
        if current is not None and file.before is not None and file.after is not None:
            merged = self._history.merge(
                current.decode("utf-8", "replace"), file.before, file.after
            )
            if merged is not None:
                return merged.encode()
        raise LearningError(
            t.later(
                "{path} of the skill {name} changed after this change was prepared.",
                path=file.path,
                name=name,
            ),
            hint=t.later(
                "Nothing was changed. Read the file again, then repeat the change."
            ),
        )

    def _diff(
        self,
        change: SkillChange,
        before: Mapping[str, bytes],
        after: Mapping[str, bytes],
    ) -> str:
        base = before or ({} if change.retire else self._bundled_files(change.name))
        return files_diff(change.name, base, after)

    def _current(self, name: str) -> dict[str, bytes]:
        folder = own_folder(self._folder, name)
        return read_files(folder) if folder.is_dir() else {}

    def _bundled_files(self, name: str) -> dict[str, bytes]:
        folder = self._bundled / name
        if (folder / MAIN).is_file():
            return read_files(folder)
        return {}

    def _write(
        self, name: str, before: Mapping[str, bytes], after: Mapping[str, bytes]
    ) -> None:
        """Writes the files. A new skill appears as a whole; SKILL.md changes last, since it names
        the others.
        """
        folder = own_folder(self._folder, name)
        if folder.is_symlink():
            raise LearningError(
                t.later("The skill {name} is a link.", name=name),
                hint=t.later("Nothing was changed."),
            )
        if folder.is_dir():
            _put_files(
                folder,
                {
                    path: data
                    for path, data in after.items()
                    if before.get(path) != data
                },
            )
            for path in set(before) - set(after):
                (folder / path).unlink(missing_ok=True)
            return
        stage = self._folder / STAGING / name
        shutil.rmtree(stage, ignore_errors=True)  # left by a killed process
        _put_files(stage, after)
        stage.rename(folder)

    def _record_owner(
        self,
        name: str,
        before: Mapping[str, bytes],
        after: Mapping[str, bytes],
        origin: Provenance,
    ) -> None:
        """Records who owns a skill after a change."""
        digest, now = tree_hash(after), self._clock.now()
        if not before:
            kind = "user" if origin.by == "user" else "agent"
            self.records.change(name, lambda record: msgspec.structs.replace(
                record, origin=kind, hash=digest, created=now, source=origin.session
            ))  # fmt: skip
        elif self.records.get(name).hash == tree_hash(before):
            self.records.change(
                name, lambda record: msgspec.structs.replace(record, hash=digest)
            )

    def change_between(
        self, path: str, before: str | None, after: str | None
    ) -> SkillChange | None:
        """Returns the change of one file below `skills/`; None if it belongs to no skill."""
        file = self._folder.parent / path
        for folder in file.parents:
            if folder == self._folder or not folder.is_relative_to(self._folder):
                return None
            if (folder / MAIN).is_file():
                inside = file.relative_to(folder).as_posix()
                return SkillChange(
                    folder.name, (SkillFileChange(inside, before, after),)
                )
        return None

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Locks the folder for this caller."""
        make_private_folder(self._folder)
        try:
            with atomic.locked(self._folder / "skills"):
                yield
        except SettingsError as error:
            raise LearningError(error.words, hint=error.hint_words) from error


def _put_files(folder: Path, files: Mapping[str, bytes]) -> None:
    for path in sorted(files, key=lambda path: path == MAIN):
        target = folder / path
        make_private_folder(target.parent)
        atomic.replace(target, files[path])


def _require_fit(name: str, files: Mapping[str, bytes]) -> None:
    if MAIN not in files:
        raise LearningError(
            t.later("A skill needs its SKILL.md."),
            hint=t.later("Nothing was changed. Retire the skill instead."),
        )
    if wrong := problems(files[MAIN].decode("utf-8", "replace"), name):
        raise LearningError(
            t.later("SKILL.md is not valid: {wrong}.", wrong="; ".join(wrong)),
            hint=t.later("Nothing was changed."),
        )
    if len(files) > _MAX_SKILL_FILES or any(
        len(data) > _MAX_SKILL_FILE_BYTES for data in files.values()
    ):
        raise LearningError(
            t.later(
                "The skill is too large: at most {max_skill_files} files of {kilobytes} kB.",
                max_skill_files=_MAX_SKILL_FILES,
                kilobytes=_MAX_SKILL_FILE_BYTES // 1000,
            ),
            hint=t.later("Nothing was changed."),
        )
    dangers = [finding for finding in scan_files(files) if finding.level == "danger"]
    if dangers:
        raise LearningError(
            t.later("The skill was not saved: {dangers}.", dangers=dangers[0]),
            hint=t.later("Nothing was changed."),
        )


def _short(text: str) -> str:
    return (
        text
        if len(text) <= _INDEX_DESCRIPTION_CHARS
        else f"{text[:_INDEX_DESCRIPTION_CHARS].rsplit(' ', 1)[0]} …"
    )
