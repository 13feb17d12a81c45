"""`read_file`, `write_file`, `edit_file`: the files of the user, as text.

What a call shows or writes is remembered; an edit of a file that changed meanwhile is refused.
"""

import os
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from hermes.core.ports import ToolContext
from hermes.errors import ToolFailed
from hermes.tools.diff import edit_diff
from hermes.tools.edit import plan_edit
from hermes.tools.reading import MAX_LINES, open_regular, read_window
from hermes.tools.seen import Seen, Stamp, digest_of
from hermes.tools.tool import resolved, tool
from hermes.tools.writing import replace_file

_EDITABLE = 10_000_000
_UNCHANGED = "Nothing was changed."


class Files:
    """The file tools of one session."""

    def __init__(self) -> None:
        self._seen = Seen()

    @tool("read_file", effect="read", paths=("path",))
    def read_file(
        self,
        context: ToolContext,
        path: Annotated[str, Meta(description="Absolute, or relative to the working directory.")],
        offset: Annotated[int, Meta(ge=1, description="First line.")] = 1,
        limit: Annotated[int, Meta(ge=1, le=MAX_LINES, description="Number of lines.")] = MAX_LINES,
    ) -> str:
        """Reads a text file, at most 2000 lines or 50 KB at once. The first line of the result is a header with the
        range shown; the rest is the text itself."""
        file = resolved(path, context.cwd)
        try:
            window = read_window(file, offset, limit)
        except OSError as error:
            raise unreadable(path, file, error) from error
        self._seen.note(file, window.stamp)
        if not window.text:
            return f"[{path}: empty file]"
        note = "; not UTF-8, some bytes are shown as \ufffd" if "\ufffd" in window.text else ""
        header = f"[{path}: lines {window.first}-{window.last} of {window.total}{note}]"
        more = window.total - window.last
        notes = [window.cut] if window.cut else []
        if more:
            notes.append(f"{more} more lines: read_file with offset={window.last + 1}")
        footer = f"[{'; '.join(notes)}]" if notes else ""
        return f"{header}\n{window.text}{'' if window.text.endswith(chr(10)) or not footer else chr(10)}{footer}"

    @tool("write_file", effect="files", paths=("path",))
    def write_file(self, context: ToolContext, path: str, content: str) -> str:
        """Creates a file, or replaces all of it; missing directories are made. To change part of a file use
        edit_file."""
        file = resolved(path, context.cwd)
        data = _encoded(content)
        try:
            old = _current(file)
            if old is not None:
                self._check_current(path, file, old[1])
            self._seen.note(file, replace_file(file, data))
        except OSError as error:
            raise _unwritable(path, error) from error
        size = f"{_line_count(data):,} lines, {len(data):,} bytes"
        return (
            f"Created {path}: {size}." if old is None else f"Replaced {path}: {size} (before: {old[1].size:,} bytes)."
        )

    @tool("edit_file", effect="files", paths=("path",))
    def edit_file(
        self,
        context: ToolContext,
        path: str,
        old_text: Annotated[
            str, Meta(description="Text to replace, copied exactly, with enough lines around it to be unique.")
        ],
        new_text: str,
        replace_all: Annotated[bool, Meta(description="Replace every occurrence.")] = False,
    ) -> str:
        """Replaces text in a file and shows the diff. The text must occur exactly once, unless replace_all."""
        file = resolved(path, context.cwd)
        try:
            data, stamp = _editable(path, file)
            self._check_current(path, file, stamp)
            edit = plan_edit(_decoded(path, data), old_text, new_text, replace_all=replace_all)
            after = _encoded(edit.after)
            if not stamp.matches(Stamp.of(file.stat())):
                raise ToolFailed(f"{path} changed while it was edited.", hint=f"{_UNCHANGED} Read it again.")
            self._seen.note(file, replace_file(file, after))
        except OSError as error:
            raise _unwritable(path, error) from error
        places = f", {len(edit.replacements)} places" if len(edit.replacements) > 1 else ""
        how = f" ({edit.how})" if edit.how else ""
        return f"Edited {path}{places}{how}:\n{edit_diff(edit)}"

    def _check_current(self, path: str, file: Path, now: Stamp) -> None:
        if not self._seen.is_current(file, now):
            raise ToolFailed(f"{path} changed since you read it.", hint=f"{_UNCHANGED} Read it again first.")


def unreadable(path: str, file: Path, error: OSError) -> ToolFailed:
    """Why a file can't be read, and what may have been meant."""
    if isinstance(error, IsADirectoryError):
        return ToolFailed(f"{path} is a directory.", hint="Use list_files.")
    if isinstance(error, FileNotFoundError):
        return ToolFailed(f"{path} does not exist.", hint=_suggestion(file))
    return ToolFailed(f"{path} can't be read: {(error.strerror or str(error)).lower()}.")


def _suggestion(file: Path) -> str:
    """The nearest names in the nearest folder that exists."""
    from difflib import get_close_matches

    folder, missing = file.parent, file.name
    while not folder.is_dir() and folder != folder.parent:
        folder, missing = folder.parent, folder.name
    try:
        names = os.listdir(folder)  # noqa: PTH208 - names are what is compared
    except OSError:
        return ""
    folded = {name.casefold(): name for name in names[:5000]}
    near = [folded[name] for name in get_close_matches(missing.casefold(), folded, 3, 0.6)]
    if near:
        return f"In {folder} there is: {', '.join(near)}."
    return f"{folder} has no {missing}." if folder != file.parent else ""


def _current(file: Path) -> tuple[bytes, Stamp] | None:
    """What is in the file now, with its stamp; None if there is none."""
    try:
        with open_regular(file) as handle:
            status = os.fstat(handle.fileno())
            data = handle.read(_EDITABLE + 1)
    except FileNotFoundError:
        return None
    return data, Stamp.of(status, digest_of(data) if len(data) <= _EDITABLE else None)


def _editable(path: str, file: Path) -> tuple[bytes, Stamp]:
    current = _current(file)
    if current is None:
        raise ToolFailed(f"{path} does not exist.", hint=_suggestion(file) or "Use write_file to create it.")
    if len(current[0]) > _EDITABLE:
        raise ToolFailed(f"{path} is larger than {_EDITABLE:,} bytes.", hint=f"{_UNCHANGED} Use terminal.")
    return current


def _decoded(path: str, data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ToolFailed(f"{path} is not UTF-8 text (byte {error.start}).", hint=_UNCHANGED) from error


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise ToolFailed("The text holds half a character (a lone surrogate).", hint=_UNCHANGED) from error


def _line_count(data: bytes) -> int:
    return data.count(b"\n") + (bool(data) and not data.endswith(b"\n"))


def _unwritable(path: str, error: OSError) -> ToolFailed:
    return ToolFailed(f"{path} can't be written: {(error.strerror or str(error)).lower()}.", hint=_UNCHANGED)
