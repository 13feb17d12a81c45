"""Notes that are read during a session: AGENTS.md and the like in a sub-folder when the session works there. After a
compaction, these notes, changed notes and the skills in use are read again."""

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from hermes.app.project_notes import read_project_files
from hermes.core.arguments import BadArguments, parse_arguments
from hermes.core.history import ConversationHistory
from hermes.core.prompt import ProjectFile, project_part
from hermes.errors import HermesError
from hermes.primitives.lazy_pattern import lazy_pattern
from hermes.schema.messages import AssistantMessage, Message, UserMessage
from hermes.tools.sensitive import is_build_folder

_MAX_FOLDERS = 4  # whose notes are read at once
_FOREIGN_FOLDERS = frozenset(("site-packages", "vendor", "third_party"))
"""Folders of other people's packages, beside those of builds: the notes in them are not the project's."""
_MAX_SKILLS = 3
_MAX_SKILL_CHARS = 8_000
_MARKED = lazy_pattern(r'<project-notes file="([^"]+)">')
_CALLED_SKILL = lazy_pattern(r'<skill name="([\w-]+)">')
_CHANGED = "The project's notes have changed since this session began. They say now:"  # not translated


class FolderNotes:
    """Reads notes for the sessions of one home. `view_skill` returns the text of a skill."""

    def __init__(self, hermes_home: Path, view_skill: Callable[[str], str]) -> None:
        self._home = hermes_home
        self._view_skill = view_skill

    def for_paths(
        self, history: ConversationHistory, cwd: Path, paths: Sequence[Path]
    ) -> list[UserMessage]:
        """The notes of the folders of these files, unless the model has them already."""
        known: set[str] | None = None
        found: list[ProjectFile] = []
        for folder in _folders(paths, cwd):
            files = [_named(file, folder, cwd) for file in self._read(folder)]
            if (
                files and known is None
            ):  # most folders have none: a long history is not searched for them
                known = set(_noted(history.messages))
            found += [file for file in files if file.name not in (known or ())]
            if len(found) >= _MAX_FOLDERS:
                break
        if found:
            return [_message(project_part(tuple(found)))]
        return []

    def after_compaction(
        self, history: ConversationHistory, before: Sequence[Message], cwd: Path
    ) -> list[UserMessage]:
        """What the model needs to read again of what a compaction removed."""
        stays = {_identity(one) for one in history.messages}
        gone = [one for one in before if _identity(one) not in stays]
        lost = set(_noted(gone)) - set(_noted(history.messages))
        wanted = dict.fromkeys((cwd / name).parent for name in sorted(lost))
        inside = {cwd, *_folders(list(wanted), cwd)}  # a message may name any path
        folders = [folder for folder in wanted if folder in inside]
        files = [
            _named(file, folder, cwd)
            for folder in folders[:_MAX_FOLDERS]
            for file in self._read(folder)
        ]
        texts = [project_part(tuple(files))] if files else []
        texts += [*self._changed(history, cwd), *self._skills(gone)]
        return [_message("\n\n".join(texts))] if texts else []

    def _read(self, folder: Path) -> tuple[ProjectFile, ...]:
        return read_project_files(folder, self._home)

    def _changed(self, history: ConversationHistory, cwd: Path) -> Iterator[str]:
        """The notes of the working directory, if they are not those in the prompt."""
        now = project_part(self._read(cwd))
        if now and history.prompt and now not in history.prompt.system:
            yield f"{_CHANGED}\n{now}"

    def _skills(self, gone: Sequence[Message]) -> Iterator[str]:
        names = list(dict.fromkeys(_used_skills(gone)))[-_MAX_SKILLS:]
        for name in names:
            try:
                text = self._view_skill(name)[:_MAX_SKILL_CHARS]
            except HermesError:
                continue  # it is gone, or may not be read any more
            body = text.replace("</skill", "<\\/skill")
            yield f'<skill name="{name}">\nIt is in use in this conversation.\n\n{body}\n</skill>'  # not translated


def _identity(message: Message) -> tuple[str, ...]:
    """What stays of a message that was only counted anew."""
    calls = message.tool_calls if isinstance(message, AssistantMessage) else ()
    return (type(message).__name__, message.text, *(call.id for call in calls))


def _message(text: str) -> UserMessage:
    return UserMessage(text=text, origin="hermes")


def _named(file: ProjectFile, folder: Path, cwd: Path) -> ProjectFile:
    """The notes with their path from the working directory."""
    if folder == cwd:
        return file
    name = (folder.relative_to(cwd) / file.name).as_posix()
    return msgspec.structs.replace(file, name=name.replace('"', "'"))


def _folders(paths: Sequence[Path], cwd: Path) -> list[Path]:
    """The project's folders between the working directory and these files, outermost first. Links lead nowhere else."""
    found: dict[Path, None] = {}
    root = Path(os.path.realpath(cwd))
    for path in paths:
        real = Path(os.path.realpath(path))
        if not real.is_relative_to(root):
            continue
        relative = real.relative_to(root)
        place = cwd
        for part in relative.parts if real.is_dir() else relative.parts[:-1]:
            if _is_foreign(part):
                break
            place = place / part
            found[place] = None
    return list(found)


def _is_foreign(folder: str) -> bool:
    return (
        folder in _FOREIGN_FOLDERS or folder.startswith(".") or is_build_folder(folder)
    )


def _noted(messages: Sequence[Message]) -> Iterator[str]:
    """The files of notes that Hermes has put into the conversation."""
    for one in messages:
        if isinstance(one, UserMessage) and one.origin == "hermes":
            yield from _MARKED.findall(one.text)


def _used_skills(messages: Sequence[Message]) -> Iterator[str]:
    for one in messages:
        if isinstance(one, UserMessage):
            yield from _CALLED_SKILL.findall(one.text)
        elif isinstance(one, AssistantMessage):
            for call in one.tool_calls:
                if call.name == "skill_view" and (name := _argument(call.arguments)):
                    yield name


def _argument(arguments: str) -> str:
    try:
        found = parse_arguments(arguments)
    except BadArguments:
        return ""
    if isinstance(found, dict):
        return str(found.get("name", ""))
    return ""
