"""What a patch would do to files. Everything is computed before anything is written."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from hermes.errors import ToolFailed
from hermes.text.formats import count
from hermes.tools.files.batch_write import FileWrite
from hermes.tools.files.diff import deleted_file_diff, edit_diff, new_file_diff
from hermes.tools.files.edit_match import Edit
from hermes.tools.files.file_content import (
    UNCHANGED,
    Content,
    decoded,
    encoded,
    read_content,
    recoded,
    suggestion,
    unreadable,
)
from hermes.tools.files.patch_match import apply_hunks
from hermes.tools.files.patch_parse import FilePatch, read_patch
from hermes.tools.tool import resolved

_MAX_PATCHED_FILES = 200
_MAX_RESULT_DIFF_CHARACTERS = 12_000
"""Characters of diff in a result."""

ReadContent: TypeAlias = Callable[[Path], Content | None]


def deletes_files(arguments: Mapping[str, Any]) -> bool:
    """Whether a call deletes files, as far as its patch can be read."""
    patch = arguments.get("patch")
    try:
        return isinstance(patch, str) and any(
            file.kind == "delete" for file in read_patch(patch)
        )
    except ToolFailed:
        return True


class PatchStep(msgspec.Struct, frozen=True):
    """What a section of a patch does to a file."""

    name: str
    """The path of the file; both paths if it is moved."""
    content: str | None = None
    """The whole content of a new file."""
    edit: Edit | None = None
    """The changes to an existing file. Without these and `content`, nothing changes in it."""
    is_deleted: bool = False
    removed: bytes = b""
    """What was in a file that is deleted."""
    is_moved: bool = False
    lines: int = 0
    """The number of lines of a file that is created or deleted."""

    def done(self) -> str:
        """Says what was done, for the model, which knows the content of files it created."""
        if self.content is not None:
            return f"Created {self.name}: {count(self.lines, 'line')}."
        if self.is_deleted:
            return f"Deleted {self.name}."
        word = "Moved" if self.is_moved else "Edited"
        return (
            f"{word} {self.name}:\n{edit_diff(self.edit)}"
            if self.edit is not None
            else f"{word} {self.name}."
        )

    def planned(self) -> str:
        """Says what would be done, in one line."""
        size = f" ({self.lines:,} line{'' if self.lines == 1 else 's'})"
        if self.content is not None:
            return f"Create {self.name}{size}"
        if self.is_deleted:
            return f"Delete {self.name}{size}"
        return f"{'Move' if self.is_moved else 'Edit'} {self.name}"

    def diff(self) -> str:
        """Returns the whole diff, also of a deleted file; empty for one that is only moved."""
        if self.is_deleted:
            return f"--- a/{self.name}\n+++ /dev/null\n{deleted_file_diff(self.removed)}".rstrip(
                "\n"
            )
        if self.content is not None:
            return f"--- /dev/null\n+++ b/{self.name}\n{new_file_diff(self.content)}".rstrip(
                "\n"
            )
        if self.edit is None:
            return ""
        before, _, after = (
            self.name.partition(" -> ") if self.is_moved else (self.name, "", "")
        )
        return f"--- a/{before}\n+++ b/{after or before}\n{edit_diff(self.edit, whole=True)}"


class PatchPlan(msgspec.Struct, frozen=True):
    """What a patch would do: the resulting files, and the steps."""

    changes: tuple[FileWrite, ...]
    steps: tuple[PatchStep, ...]

    @property
    def report(self) -> str:
        """Says what was done, with the diffs as far as they fit."""
        shown: list[str] = []
        size = 0
        for told in (step.done() for step in self.steps):
            size += len(told)
            shown.append(
                told
                if size <= _MAX_RESULT_DIFF_CHARACTERS
                else told.split("\n", 1)[0].removesuffix(":") + " (diff left out)"
            )
        return "\n".join(shown)

    @property
    def preview(self) -> str:
        """Returns what a person needs to decide: every file, then all changes."""
        diffs = [diff for step in self.steps if (diff := step.diff())]
        return "\n".join([*(step.planned() for step in self.steps), *diffs])


def plan_patch(patch: str, cwd: Path, read: ReadContent = read_content) -> PatchPlan:
    """Computes what a patch does to the files of a folder, without writing. Raises ToolFailed if it does not fit."""
    files = read_patch(patch)
    if len(files) > _MAX_PATCHED_FILES:
        raise ToolFailed(
            f"A patch can't change more than {_MAX_PATCHED_FILES} files.",
            hint=f"{UNCHANGED} Split it.",
        )
    work = _Work(cwd, read)
    for file in files:
        work.take_in(file)
    changes = tuple(work.changes())
    if not changes:
        raise ToolFailed(
            "The patch changes nothing: the files are already as it wants them."
        )
    return PatchPlan(changes, tuple(work.steps))


class _Draft(msgspec.Struct):
    """A file on disk, and its content after the sections applied so far; None for no file."""

    name: str
    before: Content | None
    after: bytes | None
    mode: int | None = None


class _Work:
    """The files of a patch while its sections are applied one by one."""

    def __init__(self, cwd: Path, read: ReadContent) -> None:
        self._cwd = cwd
        self._read = read
        self._drafts: dict[Path, _Draft] = {}
        self.steps: list[PatchStep] = []

    def take_in(self, file: FilePatch) -> None:
        """Applies one section."""
        draft = self._draft(file.path)
        if file.kind == "add":
            self._require_free(draft)
            draft.after = encoded(file.content)
            self.steps.append(
                PatchStep(
                    file.path, content=file.content, lines=_line_count(draft.after)
                )
            )
            return
        if draft.after is None:
            path = resolved(file.path, self._cwd)
            raise ToolFailed(
                f"{file.path} does not exist.",
                hint=f"{UNCHANGED} {suggestion(path)}".strip(),
            )
        if file.kind == "delete":
            self.steps.append(
                PatchStep(
                    file.path,
                    is_deleted=True,
                    removed=draft.after,
                    lines=_line_count(draft.after),
                )
            )
            draft.after = None
            return
        self._update(file, draft, draft.after)

    def changes(self) -> list[FileWrite]:
        """Returns every file that changes."""
        return [
            FileWrite(
                name=draft.name,
                path=path,
                before=draft.before,
                after=draft.after,
                mode=draft.mode,
            )
            for path, draft in self._drafts.items()
            if draft.after != (None if draft.before is None else draft.before.data)
        ]

    def _update(self, file: FilePatch, draft: _Draft, data: bytes) -> None:
        before = decoded(file.path, data)
        edit = apply_hunks(file.path, before, file.hunks)
        after = recoded(file.path, before, edit.after)
        name = file.path
        if file.new_path:
            target = self._draft(file.new_path)
            if target is not draft:
                self._require_free(target)
                target.mode = draft.mode if draft.before is None else draft.before.mode
                draft.after, draft = None, target
                name = f"{file.path} -> {file.new_path}"
        draft.after = after
        self.steps.append(
            PatchStep(
                name, edit=edit if file.hunks else None, is_moved=name != file.path
            )
        )

    def _require_free(self, draft: _Draft) -> None:
        if draft.after is not None:
            raise ToolFailed(
                f"{draft.name} exists already.",
                hint=f"{UNCHANGED} Use `*** Update File`, or delete it in the patch.",
            )

    def _draft(self, name: str) -> _Draft:
        path = resolved(name, self._cwd)
        if path not in self._drafts:
            try:
                content = self._read(path)
            except OSError as error:
                raise unreadable(name, path, error) from error
            if content is not None and not content.is_whole:
                raise ToolFailed(
                    f"{name} is too large to be patched.",
                    hint=f"{UNCHANGED} Use terminal.",
                )
            self._drafts[path] = _Draft(
                name, content, None if content is None else content.data
            )
        return self._drafts[path]


def _line_count(data: bytes) -> int:
    return data.count(b"\n") + (bool(data) and not data.endswith(b"\n"))
