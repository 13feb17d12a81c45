"""The folders of skills, their front matter, and the archive of retired skills."""

import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from hermes.learning.change import LearningError, LearningNotFound
from hermes.learning.scan import scan
from hermes.learning.skill import MAIN, Origin, Skill, parse, require_name
from hermes.learning.skill_records import SkillRecord
from hermes.primitives.files import make_private_folder
from hermes.text.translation import translator

t = translator(__name__)

ARCHIVE = ".archive"
_FRONT_MATTER_BYTES = 16_384


class Archived(msgspec.Struct, frozen=True):
    """A skill in the archive. `name` is its folder there, with a number if there are several."""

    name: str
    skill: str
    description: str
    when: float


def list_skill_folders(root: Path) -> Iterator[Path]:
    """Returns the folders with a SKILL.md: directly below, or one level deeper in a category."""
    if not root.is_dir():
        return
    for folder in sorted(root.iterdir()):
        if folder.name.startswith(".") or not folder.is_dir():
            continue
        if (folder / MAIN).is_file():
            yield folder
        else:
            yield from (
                inner for inner in sorted(folder.iterdir()) if (inner / MAIN).is_file()
            )


def own_folder(root: Path, name: str) -> Path:
    """Returns the folder of the user's skill of that name, or the folder where it would be created."""
    direct = root / name
    if (direct / MAIN).is_file() or direct.is_symlink():
        return direct
    return next(
        (folder for folder in list_skill_folders(root) if folder.name == name), direct
    )


def read_head(
    folder: Path, records: Mapping[str, SkillRecord], origin: Origin | None
) -> Skill:
    """Reads the front matter of a skill for the index."""
    try:
        with (folder / MAIN).open("rb") as file:
            head = parse(file.read(_FRONT_MATTER_BYTES).decode("utf-8", "replace"))
    except OSError as error:
        return Skill(
            folder.name,
            "",
            folder,
            origin or "user",
            problem=t.logged("it can't be read ({strerror})", strerror=error.strerror),
        )
    record = records.get(folder.name, SkillRecord())
    description = head.field("description")
    wrong = "" if description else t.logged("its SKILL.md has no description")
    if not origin and (why := scan(f"{folder.name}\n{description}")):
        wrong = t.logged(
            "its description looks like an injected instruction ({why})", why=why
        )
    return Skill(
        folder.name,
        description,
        folder,
        origin or record.origin,
        record.enabled,
        pinned=record.pinned,
        problem=wrong,
    )


def archive(root: Path, name: str) -> None:
    """Moves a skill to the archive. `restore` or the history can bring it back."""
    make_private_folder(root / ARCHIVE)
    place, number = root / ARCHIVE / name, 1
    while place.exists():
        number += 1
        place = root / ARCHIVE / f"{name}-{number}"
    own_folder(root, name).rename(place)
    os.utime(place)  # when it was retired


def archived(root: Path) -> list[Archived]:
    """Returns the archived skills, newest first."""
    found: list[Archived] = []
    for folder in list_skill_folders(root / ARCHIVE):
        with (folder / MAIN).open("rb") as file:
            head = parse(file.read(_FRONT_MATTER_BYTES).decode("utf-8", "replace"))
        skill = head.field("name") or folder.name
        found.append(
            Archived(
                folder.name, skill, head.field("description"), folder.stat().st_mtime
            )
        )
    return sorted(found, key=lambda one: -one.when)


def restore(root: Path, name: str) -> str:
    """Restores a retired skill by its folder, or the newest of that name. Returns its name."""
    known = archived(root)
    found = next((one for one in known if one.name == name), None) or next(
        (one for one in known if one.skill == name), None
    )
    if found is None:
        raise LearningNotFound(
            t.later("There is no skill {name!r} in the archive.", name=name),
            hint=t.later("See: hermes skills list --archived"),
        )
    target = own_folder(root, require_name(found.skill))
    if target.exists():
        raise LearningError(
            t.later("A skill {skill} already exists.", skill=found.skill),
            hint=t.later(
                "Nothing was changed. Retire or rename the existing skill first."
            ),
        )
    shutil.move(root / ARCHIVE / found.name, target)
    return found.skill
