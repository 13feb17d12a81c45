"""One skill: a folder with a `SKILL.md`. Its front matter says what the skill is for, its body how
to do it.
"""

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Literal, TypeAlias

import msgspec

from hermes.learning.change import LearningError, text_diff
from hermes.settings.yaml_read import parse_yaml
from hermes.text.translation import translator

t = translator(__name__)

MAIN = "SKILL.md"
MAX_BODY_CHARS = 40_000
MAX_DESCRIPTION_CHARS = 1_024
_NAME = r"[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?"
_PART = r"[A-Za-z0-9_][A-Za-z0-9_. +@-]{0,99}"
_MAX_FOLDER_DEPTH = 5

Origin: TypeAlias = Literal["user", "agent", "installed", "bundled"]


class Skill(msgspec.Struct, frozen=True):
    """A skill in the index."""

    name: str
    description: str
    folder: Path
    origin: Origin = "user"
    enabled: bool = True
    pinned: bool = False
    problem: str = ""
    """Why it is not offered; empty if it is."""

    @property
    def offered(self) -> bool:
        """Whether the model and the user can use it."""
        return self.enabled and not self.problem


class SkillHead(msgspec.Struct, frozen=True):
    """A parsed SKILL.md."""

    fields: dict[str, object]
    body: str

    def field(self, name: str) -> str:
        """Returns a field of the front matter as one line."""
        value = self.fields.get(name, "")
        return (
            " ".join(str(value).split()) if isinstance(value, str | int | float) else ""
        )


def parse(text: str) -> SkillHead:
    """Parses a SKILL.md. Front matter that is not valid YAML is read line by line."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    if not text.startswith("---\n"):
        return SkillHead({}, text)
    front, mark, body = text[4:].partition("\n---")
    if not mark:
        return SkillHead({}, text)
    body = body.partition("\n")[2]
    try:
        fields = parse_yaml(front)
    except ValueError:
        fields = None
    if not isinstance(fields, dict):
        lines = (
            line.partition(":")
            for line in front.split("\n")
            if ":" in line and not line[:1].isspace()
        )
        fields = {name.strip(): value.strip().strip("\"'") for name, _, value in lines}
    return SkillHead({str(name): value for name, value in fields.items()}, body)


def problems(text: str, folder_name: str = "") -> list[str]:
    """Returns what is wrong with a SKILL.md; empty if it follows the format."""
    head = parse(text)
    if not head.fields:
        return [
            t.logged(
                "SKILL.md has no front matter: it must start with `---`, name, description, `---`"
            )
        ]
    found: list[str] = []
    name, description = head.field("name"), head.field("description")
    if not is_name(name):
        found.append(
            t.logged(
                "the name {name} is not lower-case letters, digits and single hyphens (at most 64)",
                name=repr(name),
            )
        )
    elif folder_name and name != folder_name:
        found.append(
            t.logged(
                "the name {name} is not that of its folder, {folder}",
                name=repr(name),
                folder=repr(folder_name),
            )
        )
    if not description:
        found.append(
            t.logged(
                "the description is missing: say what the skill does and when to use it"
            )
        )
    elif len(description) > MAX_DESCRIPTION_CHARS:
        found.append(
            t.logged(
                "the description has {count:,} characters; at most {limit:,}",
                count=len(description),
                limit=MAX_DESCRIPTION_CHARS,
            )
        )
    if not head.body.strip():
        found.append(t.logged("there is no text below the front matter"))
    if len(head.body) > MAX_BODY_CHARS:
        found.append(
            t.logged(
                "the text has {count:,} characters; at most {limit:,}. Move details into files",
                count=len(head.body),
                limit=MAX_BODY_CHARS,
            )
        )
    return found


def is_name(name: str) -> bool:
    """Returns whether this is a valid name of a skill."""
    return re.fullmatch(_NAME, name) is not None and "--" not in name


def require_name(name: str) -> str:
    """Returns the name. Raises LearningError if it is not valid."""
    if not is_name(name):
        hint = t.later("Use lower-case letters, digits and hyphens, at most 64.")
        raise LearningError(
            t.later("{name!r} can't be the name of a skill.", name=name), hint=hint
        )
    return name


def safe_path(path: str) -> str:
    """Returns a relative path inside a skill. Raises LearningError for anything that could lead outside."""
    parts = PurePosixPath(path).parts
    plain = (
        "/".join(parts) == path.removeprefix("./")
        and 0 < len(parts) <= _MAX_FOLDER_DEPTH
    )
    if not plain or not all(
        re.fullmatch(_PART, part) and part != ".." for part in parts
    ):
        raise LearningError(
            t.later("{path!r} can't be the name of a file in a skill.", path=path),
            hint=t.later("Use a plain relative path such as scripts/run.py."),
        )
    return "/".join(parts)


def read_files(
    folder: Path, *, most_bytes: int = 20_000_000, most_files: int = 500
) -> dict[str, bytes]:
    """Reads all files of a skill. Raises LearningError for a link or a skill that is too large."""
    found: dict[str, bytes] = {}
    size = 0
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if any(part.startswith(".") for part in PurePosixPath(name).parts):
            continue  # .git, .DS_Store and temporary files
        if path.is_symlink():
            raise LearningError(
                t.later("{name} is a link.", name=name),
                hint=t.later("A skill may contain only regular files."),
            )
        if not path.is_file():
            continue
        size += path.stat().st_size
        if size > most_bytes or len(found) >= most_files:
            raise LearningError(
                t.later("{name} is larger than a skill may be.", name=folder.name),
                hint=t.later(
                    "At most {most_files} files and 20 MB.", most_files=most_files
                ),
            )
        found[safe_path(name)] = path.read_bytes()
    return found


def files_diff(
    name: str, before: Mapping[str, bytes], after: Mapping[str, bytes]
) -> str:
    """Returns the diff of two sets of files; of binary files only that they differ."""
    parts: list[str] = []
    for path in sorted({*before, *after}):
        old, new = before.get(path, b""), after.get(path, b"")
        if (path in before) == (path in after) and old == new:
            continue
        place = f"skills/{name}/{path}"
        if b"\0" in old or b"\0" in new:
            parts.append(t.logged("Binary file {place} differs", place=place))
        else:
            parts.append(
                text_diff(
                    place,
                    old.decode("utf-8", "replace"),
                    new.decode("utf-8", "replace"),
                )
            )
    return "\n".join(part for part in parts if part)


def tree_hash(files: Mapping[str, bytes]) -> str:
    """Returns a hash over all files of a skill."""
    total = hashlib.sha256()
    for name, data in sorted(files.items()):
        total.update(f"{name}\0{len(data)}\0".encode())
        total.update(data)
    return total.hexdigest()
