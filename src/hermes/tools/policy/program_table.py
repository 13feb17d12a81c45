"""The table of known programs: the entries of `programs.yaml`, each parsed when it is first needed."""

import re
from collections.abc import Iterable
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from hermes.settings.yaml_read import parse_yaml

PYTHON = r"(python|pypy)(\d(\.\d+)?)?"
"""The names of the Python interpreter."""

_MAX_CACHED_PROGRAMS = 4096

Phrase: TypeAlias = tuple[str, ...]
Operands: TypeAlias = Literal["read", "write", "remove", "empty", "text"]


class ProgramRunner(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where in its words a program names the other program that it runs."""

    values: str = ""
    skip: int = 0
    transparent: bool = False
    fetches: bool = False
    shell_text: bool = False
    splits: str = ""


class Program(msgspec.Struct, frozen=True, forbid_unknown_fields=True, dict=True):
    """One entry. The head of `programs.yaml` explains the fields."""

    effect: str = "unknown"
    subcommands: dict[str, str] = {}
    options: dict[str, str] = {}
    arguments: dict[str, str] = {}
    values: str = ""
    text_options: str = ""
    operands: Operands = "read"
    skip: int = 0
    target: Literal["", "write", "replace"] = ""
    outputs: str = ""
    reads_with: str = ""
    judge: str = ""
    code: str | None = None
    in_place: bool = False
    request_options: tuple[str, ...] = ()
    stays_with: str = ""
    safe_options: str | None = None
    bundled: bool = False
    runs: ProgramRunner | None = None
    sources: str = ""
    installs: dict[str, str] = {}
    traits: str = ""

    def has_trait(self, trait: str) -> bool:
        """Whether it has this trait."""
        return trait in self.traits.split()

    @property
    def is_known(self) -> bool:
        """Whether the table says what it does."""
        described = self.subcommands or self.judge or self.changes_files
        return self.effect != "unknown" or bool(described)

    @property
    def changes_files(self) -> bool:
        """Whether its operands or options name files that it changes."""
        changes = self.operands in ("write", "remove", "empty")
        return changes or bool(self.target or self.outputs)

    @cached_property
    def phrases(self) -> dict[Phrase, str]:
        """The effect of each subcommand, which is a phrase of one or more words."""
        return {
            tuple(phrase.split("+")): effect
            for effect, phrases in self.subcommands.items()
            for phrase in phrases.split()
        }


UNKNOWN = Program()


@lru_cache(maxsize=_MAX_CACHED_PROGRAMS)
def program(name: str) -> Program:
    """The entry of a program, or of a program with a subcommand; `UNKNOWN` if there is none."""
    texts, effects = _table()
    if re.fullmatch(PYTHON, name):
        name = "python"
    elif name.startswith(("mkfs", "newfs")):
        name = "mkfs"
    if name in texts:
        return msgspec.convert(_only_value(texts[name]), Program)
    return Program(effect=effects[name]) if name in effects else UNKNOWN


def has_trait(name: str, *traits: str) -> bool:
    """Whether a program has one of these traits."""
    return any(program(name).has_trait(trait) for trait in traits)


@cache
def _table() -> tuple[dict[str, str], dict[str, str]]:
    """The unparsed entries by name, and the effects of programs that have only an effect."""
    text = Path(__file__).with_name("programs.yaml").read_text(encoding="utf-8")
    entries: dict[str, str] = {}
    for block in re.split(r"\n(?=[^\s#])", text)[1:]:
        names = re.split(r":(?: |$)", block.partition("\n")[0])[0].strip("'")
        entries.update(dict.fromkeys(names.split(", "), block))
    return entries, _effects(_only_value(entries.pop("effects")))


def _effects(lists: object) -> dict[str, str]:
    by_effect = msgspec.convert(lists, dict[str, str])
    return {
        name: effect for effect, names in by_effect.items() for name in names.split()
    }


def _only_value(block: str) -> object:
    data = msgspec.convert(parse_yaml(block), dict[str, object])
    return next(iter(data.values()))


def all_names() -> Iterable[str]:
    """The names of all programs in the table."""
    texts, effects = _table()
    return (*texts, *effects)
