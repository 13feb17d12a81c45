"""A whole command seen at once: what stands in it anywhere, before it is read word by word.

A variable is believed only if nothing anywhere in the text can give it another value, and text in quotes is not
believed to be only text where bash would evaluate it.
"""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, TypeAlias

import msgspec

from hermes.tools.policy.unicode_escapes import unpacked

Node: TypeAlias = Any  # tree_sitter.Node; the library is loaded on first use

_SETTERS = frozenset(
    (
        *(
            "read",
            "mapfile",
            "readarray",
            "getopts",
            "source",
            ".",
            "eval",
            "unset",
            "let",
            "coproc",
        ),
        *(
            "alias",
            "hash",
            "enable",
            "shopt",
            "fc",
            "bind",
            "complete",
            "compopt",
            "vared",
            "zmodload",
            "autoload",
        ),
    )
)
"""Builtins that can give a variable a value that is not written as an assignment, or make words mean something else."""
_PASSES_ON = frozenset(("command", "builtin", "time", "exec", "coproc", "noglob"))
"""They run another word of theirs as a builtin of this shell."""
_HIDDEN = "?"
"""Stands for a program whose name is not plain."""
_DECLARES = frozenset(("declare", "typeset", "local", "export", "readonly"))
_EVALUATES = frozenset(
    (
        *(
            "let",
            "test",
            "[",
            "unset",
            "printf",
            "read",
            "mapfile",
            "readarray",
            "getopts",
            "wait",
            "trap",
            "eval",
        ),
        *_DECLARES,
    )
)
"""Builtins that evaluate a subscript in their arguments."""
_ARITHMETIC = frozenset(
    (
        "test_command",
        "arithmetic_expansion",
        "c_style_for_statement",
        "subscript",
        "array",
    )
)
_CALCULATED = r"\+\+|--|(?<![=!<>])=(?!=)"
_SUBSCRIPT = r"\w\[[^\]]*(\$\(|`|\$\{|<\(|>\()"
_PROMPT = r"\$\{!?[\w@*\[\]]+@[PAKa]"
_SETTING = (
    r"\bprintf\b[^;|&]*\s-\w*v",
    r"\bwait\b[^;|&]*\s-\w*p",
    r"\btrap\b[^\n]*(=|\bread|\beval|\bunset|\bprintf|\.\s)[^\n]*\s(EXIT|DEBUG|ERR|RETURN|SIG\w+|[A-Z]+\d*|\d+)",
    r"\b(declare|typeset|local)\b[^;|&]*\s[-+]\w*n",
)
"""Options with which a builtin sets a variable, or makes it another name for one."""
_ALIKE = r"\$\{[\w\[\]]+:?=|\{\w+\}[<>]"
"""Expansions and redirections that assign."""


MAKES_TEMPORARY = r"\"?\$\(mktemp( -d)?( (-t )?(/tmp/)?[\w.-]*X{3,}[\w.-]*)?\)\"?"


class Outline(msgspec.Struct, frozen=True):
    """What stands in a text, wherever."""

    kinds: frozenset[str]
    """The kinds of its nodes."""
    names: frozenset[str]
    """The programs it names in plain words."""
    assigned: dict[str, int]
    """How often each variable is assigned."""
    is_steady: bool
    """Whether variables change only by assignments."""
    made: frozenset[str]
    """Variables that hold only what mktemp has made."""
    evaluates: bool
    """Whether bash may evaluate a command that stands in quotes."""

    def is_believable(self, name: str) -> bool:
        """Whether a variable has one value in the whole text."""
        return self.is_steady and self.assigned.get(name, 0) == 1


def outline(root: Node, text: str) -> Outline:
    """Looks over a whole tree."""
    kinds: set[str] = set()
    names: set[str] = set()
    assigned: Counter[str] = Counter()
    made: set[str] = set()
    quoted = False
    for node in _all(root):
        kind = node.type
        kinds.add(kind)
        if kind == "command":
            names.update(_called(node))
        elif kind in ("declaration_command", "unset_command"):
            names.add(_text(node.children[0]))
        elif kind == "variable_assignment":
            name = _text(node.child_by_field_name("name")).partition("[")[0]
            assigned[name] += 1
            if re.fullmatch(MAKES_TEMPORARY, _text(node.child_by_field_name("value"))):
                made.add(name)
        elif kind == "for_statement":
            assigned[_text(node.child_by_field_name("variable"))] += 2
        elif kind in ("raw_string", "ansi_c_string", "string", "word", "regex"):
            quoted = quoted or bool(
                re.search(_SUBSCRIPT, _text(node).replace("\\", ""))
            )
    is_steady = _is_steady(kinds, names, text)
    kept = {
        name
        for name in made
        if is_steady and assigned[name] == 1 and "function_definition" not in kinds
    }
    return Outline(
        frozenset(kinds),
        frozenset(names),
        dict(assigned),
        is_steady=is_steady,
        made=frozenset(kept),
        evaluates=(
            quoted and bool(names & _EVALUATES or kinds & _ARITHMETIC or "((" in text)
        )
        or bool(re.search(_PROMPT, text)),
    )


def _called(command: Node) -> Iterator[str]:
    """The names a command runs: its own, and what a wrapper of the shell itself passes on."""
    own = command.child_by_field_name("name")
    name = _bare(own)
    yield name
    if own is not None and not re.fullmatch(r"[\w./+:@%,\[!-]+", name):
        yield _HIDDEN
    if name in _PASSES_ON:
        for child in command.children_by_field_name("argument"):
            yield _bare(child)
            if not re.fullmatch(r"[\w./+:@%,=-]+", _bare(child)):
                yield _HIDDEN


def _bare(node: Node) -> str:
    return re.sub(r"[\\'\"]", "", _text(node))


def _is_steady(kinds: set[str], names: set[str], text: str) -> bool:
    if names & _SETTERS or _HIDDEN in names or re.search(_ALIKE, text):
        return False
    if any(re.search(pattern, text) for pattern in _SETTING):
        return False
    calculates = "((" in text or "c_style_for_statement" in kinds
    return not (
        calculates
        and any(re.search(_CALCULATED, part) for part in text.split("((")[1:])
    )


def _all(node: Node) -> Iterator[Node]:
    """Every named node; a cursor, as nesting has no bound here."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if one.is_named:
            yield one
        waiting.extend(one.children)


def _text(node: Node) -> str:
    return unpacked(node.text) if node is not None else ""
