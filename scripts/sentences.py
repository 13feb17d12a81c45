"""Find the sentences to translate: the calls of `t(...)` in Python and on the page, the policy's reasons, and the command
table.
"""

import ast
import functools
import json
import re
import string
from collections.abc import Iterator
from pathlib import Path

import msgspec

from hermes.commands.command import HELP_CONTEXT
from hermes.commands.table import EXAMPLES, TOPICS, commands_of, every_command
from hermes.settings import Settings
from hermes.settings.setting_keys import about_section, all_keys, as_section
from hermes.text.po_file import PoKey

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "hermes"
PAGE = SOURCE / "surfaces" / "dashboard" / "static"
PAGE_CONTEXT = "page"
POLICY = SOURCE / "tools" / "policy"
_REASON_MAKERS = frozenset(("asks", "forbidden", "unclear", "Unreadable"))
"""Functions with which the policy makes reasons: the first argument is the sentence."""

_COMMENT = re.compile(r"^\s*(?://|\*|/\*).*$", re.MULTILINE)
_CALL = re.compile(
    r"""(?<![\w.])t\(\s*("(?:[^"\\]|\\.)*")(?:\s*,\s*("(?:[^"\\]|\\.)*"))?"""
)


@functools.cache
def placeholders(text: str) -> frozenset[str]:
    """The placeholders of a sentence, with their formats: `count:,`."""
    return frozenset(
        f"{name}:{form}" if form else name
        for _, name, form, _ in string.Formatter().parse(text)
        if name is not None
    )


@functools.cache
def syntax_tree(source: str) -> ast.Module:
    """The syntax tree of a module, cached because several searches walk it."""
    return ast.parse(source)


@functools.cache
def calls_of(source: str) -> list[ast.Call]:
    """All calls in a module."""
    return [
        node for node in ast.walk(syntax_tree(source)) if isinstance(node, ast.Call)
    ]


def every_sentence() -> list[PoKey]:
    """Return all sentences, in a stable order."""
    found = [*_in_python(), *_of_commands(), *_of_settings(), *_on_the_page()]
    return sorted(dict.fromkeys(found))


def _in_python() -> Iterator[PoKey]:
    for path in sorted(SOURCE.rglob("*.py")):
        text = path.read_text("utf-8")
        if "translator(__name__)" in text or POLICY in path.parents:
            yield from python_sentences(text, context_of(path))
        if POLICY in path.parents:
            yield from policy_reasons(text, context_of(path))


def context_of(path: Path) -> str:
    """The context of a module's sentences."""
    module = path.relative_to(SOURCE).with_suffix("").as_posix()
    return module.replace("/", ".").removesuffix(".__init__")


def policy_reasons(source: str, context: str) -> Iterator[PoKey]:
    """The reasons in one module of the policy. Raises ValueError for one with values that does not use `t.logged`."""
    for node in calls_of(source):
        if not isinstance(node.func, ast.Name):
            continue
        if node.func.id not in _REASON_MAKERS or not node.args:
            continue
        match node.args[0]:
            case ast.Constant(value=str(text)):
                yield PoKey(context, text)
            case ast.JoinedStr():
                raise ValueError(
                    f"{context}:{node.lineno}: a reason with values is made with t.logged"
                )
            case _:
                pass


def python_sentences(source: str, context: str) -> Iterator[PoKey]:
    """The sentences of one module. Raises ValueError for a call whose sentence is not a literal."""
    for node in calls_of(source):
        if is_translated(node):
            texts = [one.value for one in node.args if isinstance(one, ast.Constant)]
            if len(texts) != len(node.args) or not texts:
                raise ValueError(
                    f"{context}:{node.lineno}: t() needs a text that is written out"
                )
            yield PoKey(context, *map(str, texts))


def is_translated(node: ast.Call) -> bool:
    """Whether a call is one of `t`, `t.later`, `t.logged` or `to_translate`."""
    called = node.func
    if isinstance(called, ast.Attribute) and called.attr in ("later", "logged"):
        called = called.value
    return isinstance(called, ast.Name) and called.id in ("t", "to_translate")


def _of_commands() -> Iterator[PoKey]:
    for topic in TOPICS:
        yield PoKey("command group", topic.group)
        for text in (topic.summary, *topic.groups.values()):
            yield PoKey("command table", text)
    for _, what in EXAMPLES:
        yield PoKey("command table", what)
    of_topics = (one for topic in TOPICS for one in commands_of(topic))
    for one in (*every_command(), *of_topics):
        if one.slash or one.name:
            yield PoKey(one.translation_context, one.summary_text)
        if one.group:
            yield PoKey("command group", one.group)
        for parameter in one.parameters:
            if parameter.arg.help:
                yield PoKey(HELP_CONTEXT, parameter.arg.help)


def _of_settings() -> Iterator[PoKey]:
    for key in all_keys():
        if key.description:
            yield PoKey("settings", key.description)
    for field in msgspec.structs.fields(Settings):
        section = as_section(field.type)
        if section is not None:
            yield PoKey("settings", about_section(section))


def _on_the_page() -> Iterator[PoKey]:
    for path in sorted(PAGE.rglob("*.js")):
        if "vendor" not in path.parts:
            yield from javascript_sentences(path.read_text("utf-8"))


def javascript_sentences(source: str) -> Iterator[PoKey]:
    for found in _CALL.finditer(_COMMENT.sub("", source)):
        texts = [json.loads(one) for one in found.groups() if one]
        yield PoKey(PAGE_CONTEXT, *texts)
