"""Parses config.yaml into validated data. Good files take a fast path; only the others are diagnosed."""

import re
from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Struct

from hermes.errors import translated
from hermes.primitives.untyped import object_of
from hermes.settings.key_shapes import is_secret_value
from hermes.settings.redaction import has_credentials
from hermes.settings.sections import Settings
from hermes.settings.yaml_read import TOO_DEEP, parse_yaml, too_deep
from hermes.text.translation import LaterWords, translator

t = translator(__name__)

_INDENT = r"[ ]*(?:-[ ]+)*"
_NO_KEY = frozenset("#{[-&*!|>%@`?")  # characters that no plain key starts with
_FLOW_KEY = r"""[{,]\s*["']?([^\s:,{}\[\]"']+)["']?\s*:"""
# What the fast reader accepts silently: tabs, tags, aliases (which it expands), several documents.
_DOUBTFUL = r"(?m)^[ ]*\t|^(?:---|\.\.\.|%|[ ]*\?[ ])|(?:^|[\s\[,:{-])[*!][^\s]|[^\x09\x0a\x0d\x20-\x7e\xa0-\U0010ffff]"


class SettingProblem(Struct, frozen=True):
    """A problem of a file: where, which key, what, and what to do."""

    line: int
    key: str
    text: str | LaterWords
    hint: str | LaterWords = ""

    def where(self, name: str) -> str:
        """Returns `config.yaml:3: store.size: unknown key`."""
        return self._at(name, str(self.text))

    def _at(self, name: str, text: str) -> str:
        place = f"{name}:{self.line}" if self.line else name
        return ": ".join(part for part in (place, self.key, text) if part)

    def render(self, name: str) -> str:
        """Returns the same with what to do: `...; did you mean ...?`"""
        return self.where(name) + (f"; {self.hint}" if self.hint else "")

    def shown_where(self, name: str) -> str:
        """The same as `where` for a person."""
        return self._at(name, translated(self.text))

    def shown(self, name: str) -> str:
        """The same as `render` for a person."""
        hint = translated(self.hint)
        return self.shown_where(name) + (f"; {hint}" if hint else "")


class SettingProblems(LaterWords):
    """The problems of a file, one on each line, as the words of an error."""

    __slots__ = ("_name", "_problems")

    def __init__(self, name: str, problems: Sequence[SettingProblem]) -> None:
        self._name = name
        self._problems = problems

    # pyrefly: ignore[missing-override-decorator]
    def shown(self) -> str:
        return "\n".join(f"  {one.shown(self._name)}" for one in self._problems)

    def __str__(self) -> str:
        return "\n".join(f"  {one.render(self._name)}" for one in self._problems)


def parse_config(text: str) -> tuple[dict[str, object], list[SettingProblem]]:
    """Returns the data of a config.yaml, or all of its problems."""
    text = text.removeprefix("\ufeff")
    if not text:
        return {}, []
    line = too_deep(text)
    if line:
        return {}, [
            SettingProblem(line, "", TOO_DEEP, t.later("remove some of the levels"))
        ]
    if not _doubtful(text):
        data = _read(text)
        if isinstance(data, dict):
            return data, []
    from hermes.settings.config_problems import diagnose

    problems = diagnose(text)
    if problems:
        return {}, problems
    data = _read(text)
    if isinstance(data, dict):
        return (data, [])
    return ({}, [data])


def _read(text: str) -> dict[str, object] | SettingProblem:
    try:
        data = parse_yaml(text)
        sections = drop_empty({} if data is None else data)
        settings_from(sections)
    except ValueError as error:
        place = re.search(r" at byte \d+ line (\d+) column \d+$", str(error))
        line = int(place[1]) if place else 0
        return SettingProblem(
            line,
            "",
            _cause(str(error)[: place.start() if place else None]),
        )
    return sections


def _cause(text: str) -> str:
    return text.removeprefix("YAML parse error: ")  # not translated


def settings_from(data: Mapping[str, object]) -> Settings:
    """Converts the data of a config.yaml. Raises msgspec.ValidationError.

    Each section is converted separately: msgspec would first resolve the types of all of them, which takes longer than
    everything else.
    """
    types = {one.encode_name: one for one in msgspec.structs.fields(Settings)}
    try:
        given = {
            types[key].name: msgspec.convert(value, types[key].type)
            for key, value in data.items()
        }
    except (KeyError, msgspec.ValidationError):
        return msgspec.convert(data, Settings)  # its error names the place
    return Settings(**given)


def drop_empty(data: object, section: type[Struct] = Settings) -> dict[str, object]:
    """Removes empty sections from `data`, such as one whose lines are all commented out."""
    if not isinstance(data, dict):
        raise msgspec.ValidationError(
            t.logged("expected `section:` lines at the top level")
        )
    kept = dict(data)
    for field in msgspec.structs.fields(section):
        nested, value = field.type, kept.get(field.encode_name, ...)
        if isinstance(nested, type) and issubclass(nested, Struct) and value is not ...:
            if value is None:
                del kept[field.encode_name]
            elif isinstance(value, dict):
                kept[field.encode_name] = drop_empty(value, nested)
    return kept


def _doubtful(text: str) -> bool:
    text = "\n".join(
        line for line in text.split("\n") if not line.lstrip(" ").startswith("#")
    )
    if re.search(_DOUBTFUL, text) or is_secret_value(text):
        return True
    if has_credentials(text):
        return True
    if "{" in text:
        flow = re.findall(_FLOW_KEY, text)
        if len(flow) != len(set(flow)):
            return True
    return _repeats_a_key(text)


def _repeats_a_key(text: str) -> bool:
    """Returns whether a block mapping seems to hold a key twice. Errs on the side of yes."""
    open_blocks: list[tuple[int, set[str]]] = []
    for line in text.split("\n"):
        indent, key = _key_of(line)
        if not key:
            continue
        column = len(indent)
        while open_blocks and (
            open_blocks[-1][0] > column
            or ("-" in indent and open_blocks[-1][0] > indent.index("-"))
        ):
            open_blocks.pop()
        if not open_blocks or open_blocks[-1][0] < column:
            open_blocks.append((column, set()))
        if key in open_blocks[-1][1]:
            return True
        open_blocks[-1][1].add(key)
    return False


def _key_of(line: str) -> tuple[str, str]:
    """Returns a line's indentation, with its dashes, and the key it starts with, if any."""
    found = re.match(_INDENT, line)
    indent = found[0] if found else ""
    rest = line[len(indent) :]
    if rest[:1] in {'"', "'"}:
        key, quote, after = rest[1:].partition(rest[0])
        colon, after = (
            after.lstrip(" ")[:1] == ":" and bool(quote),
            after.lstrip(" ")[1:],
        )
    else:
        key, mark, after = rest.partition(":")
        key, colon = (
            key.rstrip(" "),
            bool(mark) and rest[:1] not in _NO_KEY and "#" not in key,
        )
    return indent, key if colon and (not after or after[0].isspace()) else ""


def overlay(
    data: Mapping[str, object], path: tuple[str, ...], value: object
) -> dict[str, object]:
    """Returns `data` with `value` at `path`."""
    if len(path) == 1:
        return {**data, path[0]: value}
    nested = object_of(data.get(path[0]))
    return {**data, path[0]: overlay(nested, path[1:], value)}
