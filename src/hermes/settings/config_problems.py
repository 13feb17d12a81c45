"""Finds every problem of a config.yaml, with line numbers. Slow and thorough: runs only when the
fast path fails.

It composes the YAML nodes with their marks (ruamel.yaml) and compares them with the types.
"""

import re
import typing
from collections.abc import Iterator

import msgspec
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.reader import ReaderError

from hermes.settings import secrets
from hermes.settings.key_shapes import is_secret_value
from hermes.settings.parse import SettingProblem
from hermes.settings.redaction import has_credentials
from hermes.settings.sections import Settings
from hermes.settings.setting_keys import (
    as_section,
    example_of,
    kind,
    nearest,
    table_of,
    unwrap,
)
from hermes.settings.yaml_read import TOO_DEEP, parse_yaml
from hermes.text.translation import Later, translator

t = translator(__name__)


MAX_SHOWN_PROBLEMS = 20  # in one file

_STANDARD_TAGS = {
    "str",
    "int",
    "float",
    "bool",
    "null",
    "map",
    "seq",
    "timestamp",
    "merge",
    "value",
}


def compose(text: str) -> list[Node]:
    """Returns the root node of each document. Raises ruamel's errors."""
    return [
        node
        for node in YAML(typ="safe", pure=True).compose_all(text)
        if node is not None
    ]


def diagnose(text: str) -> list[SettingProblem]:
    """Returns every problem of `text`, in order of lines."""
    try:
        documents = compose(text)
    except YAMLError as error:
        return _first(_tabs(text)) or [_syntax(error, text)]
    except RecursionError:
        return [SettingProblem(1, "", TOO_DEEP)]
    if not documents:
        return []
    walk = _Walk()
    walk.visit(documents[0], Settings, ())
    for document in documents[1:]:
        line = document.start_mark.line + 1
        walk.problems.append(
            SettingProblem(
                line,
                "",
                t.later("a second document starts here"),
                t.later("keep one, without a `---` line"),
            )
        )
    return _first(sorted(walk.problems, key=lambda problem: problem.line), walk.more)


def _first(problems: list[SettingProblem], more: int = 0) -> list[SettingProblem]:
    """Returns as many problems as a person reads at once, and how many more there are."""
    more += max(0, len(problems) - MAX_SHOWN_PROBLEMS)
    rest = (
        [
            SettingProblem(
                0,
                "",
                t.later("and {count:,} more", count=more),
                t.later("correct these first"),
            )
        ]
        if more
        else []
    )
    return problems[:MAX_SHOWN_PROBLEMS] + rest


def _tabs(text: str) -> list[SettingProblem]:
    lines = (
        number
        for number, line in enumerate(text.split("\n"), 1)
        if re.match(r"[ ]*\t[ \t]*[^\s#]", line)
    )
    return [
        SettingProblem(
            number, "", t.later("a tab in the indentation"), t.later("use spaces")
        )
        for number in lines
    ]


def _syntax(error: YAMLError, text: str) -> SettingProblem:
    if isinstance(error, MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        words = ", ".join(part for part in (error.context, error.problem) if part)
        return SettingProblem(
            mark.line + 1 if mark else 0,
            "",
            t.later("not valid YAML: {error}", error=words),
        )
    before = text[: error.position] if isinstance(error, ReaderError) else ""
    return SettingProblem(
        before.count("\n") + 1,
        "",
        t.later("not valid YAML: {error}", error=str(error).splitlines()[0]),
    )


class _Walk:
    """One pass over the nodes that collects problems."""

    def __init__(self) -> None:
        self.problems: list[SettingProblem] = []
        self.more = 0  # beyond those shown
        self._seen: set[int] = set()

    def visit(
        self,
        node: Node,
        annotation: object,
        path: tuple[str, ...],
        key: Node | None = None,
    ) -> None:
        place = key or node  # the marks of an empty or aliased value are elsewhere
        if id(node) in self._seen:
            self._add(
                place,
                path,
                t.later("anchors and aliases (& and *) are not supported"),
                t.later("write the value out"),
            )
            return
        self._seen.add(id(node))
        tag = str(node.tag)
        if tag.removeprefix("tag:yaml.org,2002:") not in _STANDARD_TAGS:
            self._add(
                place,
                path,
                t.later(
                    "the tag {tag} is not supported",
                    tag=tag.replace("tag:yaml.org,2002:", "!!"),
                ),
                t.later("remove it"),
            )
        elif isinstance(node, MappingNode) and (
            as_section(annotation) or table_of(annotation) is not None
        ):
            self._visit_mapping(node, annotation, path)
        else:
            self._visit_leaf(node, annotation, path, place)

    def _visit_mapping(
        self, node: MappingNode, annotation: object, path: tuple[str, ...]
    ) -> None:
        section = as_section(annotation)
        fields = (
            {field.encode_name: field.type for field in msgspec.structs.fields(section)}
            if section
            else {}
        )
        first: dict[str, int] = {}
        for key_node, value_node in node.value:
            name = key_node.value if isinstance(key_node, ScalarNode) else ""
            here = (*path, name)
            if not name or not isinstance(_scalar(key_node), str):
                self._add(key_node, path, t.later("a key must be a word"))
            elif name in first:
                self._add(
                    key_node,
                    here,
                    t.later("duplicate key, first on line {line}", line=first[name]),
                    t.later("keep one of them"),
                )
            elif section is None:
                self.visit(value_node, table_of(annotation), here, key_node)
            elif name in fields:
                self.visit(value_node, fields[name], here, key_node)
            else:
                self._unknown(key_node, here)
            first.setdefault(name, key_node.start_mark.line + 1)

    def _unknown(self, node: Node, path: tuple[str, ...]) -> None:
        if secrets.is_secret_name(path[-1]):
            self._secret(node, path)
        elif path[-1] == "<<":
            self._add(
                node,
                path,
                t.later("merge keys are not supported"),
                t.later("write the values out"),
            )
        elif (
            len(self.problems) >= MAX_SHOWN_PROBLEMS
        ):  # finding the nearest name is slow
            self.more += 1
        else:
            near = nearest(".".join(path))
            hint = t.later("see `hermes config show` for all keys")
            if near:
                hint = t.later("did you mean {near}?", near=near)
            self._add(node, path, t.later("unknown key"), hint)

    def _secret(self, node: Node, path: tuple[str, ...]) -> None:
        name = secrets.variable_for(path[-1], getattr(node, "value", ""))
        to_env = t.later(
            "put it into .env with `hermes config set {name}` and remove this line",
            name=name,
        )
        text = t.later("a secret does not belong in config.yaml")
        self._add(node, path, text, to_env)

    def _visit_leaf(
        self, node: Node, annotation: object, path: tuple[str, ...], place: Node
    ) -> None:
        for scalar in _scalars(node):
            if is_secret_value(scalar.value) or (
                path
                and secrets.is_secret_name(path[-1])
                and scalar.value
                and not scalar.value.startswith("$")
                and not secrets.names_variable(scalar.value)
                and unwrap(annotation)[0] is str
            ):
                self._secret(scalar, path)
                return
            if has_credentials(scalar.value):
                hint = secrets.credentials_hint(".".join(path))
                self._add(scalar, path, secrets.CREDENTIALS, hint)
                return
        value = _value(node)
        if value is None and as_section(annotation):
            return
        try:
            msgspec.convert(value, type=typing.cast("type", annotation))
        except msgspec.ValidationError:
            text, hint = _mistyped(node, value, annotation)
            self._add(place, path, text, hint)

    def _add(
        self,
        node: Node,
        path: tuple[str, ...],
        text: str | Later,
        hint: str | Later = "",
    ) -> None:
        if len(self.problems) >= MAX_SHOWN_PROBLEMS:
            self.more += 1
            return
        key = ".".join(path)
        self.problems.append(
            SettingProblem(
                node.start_mark.line + 1,
                key if key.isprintable() else ascii(key),
                text,
                hint,
            )
        )


def _mistyped(
    node: Node, value: object, annotation: object
) -> tuple[Later, str | Later]:
    """Describes a value of the wrong type, and what to do."""
    if annotation is Settings:
        return t.later(
            "expected `section:` lines at the top level, got {value}",
            value=_name(value),
        ), ""
    example = example_of(annotation)
    hint: str | Later = ""
    if value is None:
        hint = t.later("give it a value or remove the line")
    elif example:
        hint = t.later("such as {example}", example=example)
    if (
        isinstance(value, str)
        and isinstance(node, ScalarNode)
        and node.style in {"'", '"'}
    ):
        try:
            msgspec.convert(parse_yaml(value), type=typing.cast("type", annotation))
            hint = t.later("remove the quotes")
        except (
            ValueError
        ):  # not a quoted number or word, so the quotes are not the problem
            pass
    text = t.later(
        "expected {kind}, got {value}", kind=kind(annotation), value=_name(value)
    )
    return text, hint


def _scalars(node: Node, depth: int = 0) -> Iterator[ScalarNode]:
    if isinstance(node, ScalarNode):
        yield node
    elif isinstance(node, SequenceNode) and depth < 64:
        for item in node.value:
            yield from _scalars(item, depth + 1)
    elif isinstance(node, MappingNode) and depth < 64:
        for pair in node.value:
            yield from _scalars(pair[1], depth + 1)


def _value(node: Node) -> object:
    if isinstance(node, ScalarNode):
        return _scalar(node)
    if isinstance(node, SequenceNode):
        return [_value(item) for item in node.value]
    return {str(_value(key)): _value(value) for key, value in node.value}


def _scalar(node: Node) -> object:
    """Reads a scalar as the fast reader does, so that both agree."""
    if not isinstance(node, ScalarNode):
        return None
    if node.style is not None or str(node.tag).endswith(":str"):
        return node.value
    try:
        data = parse_yaml(f"v: {node.value}")
    except ValueError:
        return node.value
    return data["v"] if isinstance(data, dict) else node.value


def _name(value: object) -> str | Later:
    names: dict[type, str | Later] = {
        str: t.later("text"),
        list: t.later("a list"),
        dict: t.later("keys below it"),
        bool: str(value).lower(),
        type(None): t.later("nothing"),
    }
    return names.get(type(value), str(value))
