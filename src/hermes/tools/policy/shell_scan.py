"""Scans a whole script before its words are parsed.

A variable's value is certain only if nothing in the whole script can change it, and quoted text is harmless only if
bash does not evaluate it.
"""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, TypeAlias

import msgspec

from hermes.tools.policy.shell_words import word_set
from hermes.tools.policy.unicode_escapes import unescape

Node: TypeAlias = Any  # tree_sitter.Node; the library is loaded on first use

_SETS_VARIABLES = word_set(
    "read mapfile readarray getopts source . eval unset let coproc alias hash enable shopt fc bind complete compopt vared"
    " zmodload autoload"
)
"""Builtins that can set a variable without an assignment, or change what words mean."""
_RUNS_BUILTIN = word_set("command builtin time exec coproc noglob")
"""Builtins that run one of their arguments as a builtin of this shell."""
_NOT_PLAIN = "?"
"""Stands for a program whose name is not a literal word."""
_EVALUATES_SUBSCRIPT = word_set(
    "let test [ unset printf read mapfile readarray getopts wait trap eval declare typeset local export readonly"
)
"""Builtins that evaluate a subscript in their arguments."""
_ARITHMETIC_NODES = word_set(
    "test_command arithmetic_expansion c_style_for_statement subscript array"
)
_TEXT_NODES = word_set("raw_string ansi_c_string string word regex")
_ASSIGNS_IN_ARITHMETIC = r"\+\+|--|(?<![=!<>])=(?!=)"
_RUNS_IN_SUBSCRIPT = r"\w\[[^\]]*(\$\(|`|\$\{|<\(|>\()"
_EXPANDS_AS_PROMPT = r"\$\{!?[\w@*\[\]]+@[PAKa]"
_SETS_BY_OPTION = (
    r"\bprintf\b[^;|&]*\s-\w*v",
    r"\bwait\b[^;|&]*\s-\w*p",
    r"\btrap\b[^\n]*(=|\bread|\beval|\bunset|\bprintf|\.\s)[^\n]*\s(EXIT|DEBUG|ERR|RETURN|SIG\w+|[A-Z]+\d*|\d+)",
    r"\b(declare|typeset|local)\b[^;|&]*\s[-+]\w*n",
    r"\$\{[\w\[\]]+:?=|\{\w+\}[<>]",
)
"""Options, expansions and redirections that set a variable, or make it an alias of another."""
MAKES_TEMPORARY = r"\"?\$\(mktemp( -d)?( (-t )?(/tmp/)?[\w.-]*X{3,}[\w.-]*)?\)\"?"


class ScriptScan(msgspec.Struct, frozen=True):
    """What a script contains, anywhere in it."""

    kinds: frozenset[str]
    """The kinds of its syntax nodes."""
    names: frozenset[str]
    """The programs that it names literally."""
    assigned: dict[str, int]
    """How often each variable is assigned."""
    is_steady: bool
    """Whether variables change only through assignments."""
    temporary: frozenset[str]
    """Variables that hold only what mktemp has made."""
    evaluates: bool
    """Whether bash may evaluate a quoted command."""

    def is_certain(self, name: str) -> bool:
        """Whether a variable has one value in the whole script."""
        return self.is_steady and self.assigned.get(name, 0) == 1


def scan_script(root: Node, text: str) -> ScriptScan:
    """Looks at every node of a script."""
    nodes = list(_named_nodes(root))
    kinds = frozenset(node.type for node in nodes)
    names = frozenset(name for node in nodes for name in _program_names(node))
    assigned, temporary = _assignments(nodes)
    is_steady = _is_steady(names, text)
    if not is_steady or "function_definition" in kinds:
        temporary = set()
    evaluates = (
        names & _EVALUATES_SUBSCRIPT or kinds & _ARITHMETIC_NODES or "((" in text
    )
    runs_in_quotes = bool(evaluates) and any(
        re.search(_RUNS_IN_SUBSCRIPT, node_text(node).replace("\\", ""))
        for node in nodes
        if node.type in _TEXT_NODES
    )
    return ScriptScan(
        kinds,
        names,
        dict(assigned),
        is_steady=is_steady,
        temporary=frozenset(name for name in temporary if assigned[name] == 1),
        evaluates=runs_in_quotes or bool(re.search(_EXPANDS_AS_PROMPT, text)),
    )


def _named_nodes(root: Node) -> Iterator[Node]:
    """Every named node. Not recursive, because the nesting is not limited yet."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node.is_named:
            yield node
        waiting.extend(node.children)


def _assignments(nodes: list[Node]) -> tuple[Counter[str], set[str]]:
    """How often each variable is assigned, and those that are assigned a new temporary file."""
    assigned: Counter[str] = Counter()
    temporary: set[str] = set()
    for node in nodes:
        if node.type == "for_statement":  # a new value each time
            assigned[node_text(node.child_by_field_name("variable"))] += 2
        elif node.type == "variable_assignment":
            name = node_text(node.child_by_field_name("name")).partition("[")[0]
            value = node_text(node.child_by_field_name("value"))
            assigned[name] += 1
            if re.fullmatch(MAKES_TEMPORARY, value):
                temporary.add(name)
    return assigned, temporary


def _program_names(node: Node) -> Iterator[str]:
    """The programs that a node runs: its own, and the one that a builtin such as `command` runs."""
    if node.type in ("declaration_command", "unset_command"):
        yield node_text(node.children[0])
    if node.type != "command":
        return
    own = node.child_by_field_name("name")
    name = _without_quotes(own)
    yield name
    if own is not None and not re.fullmatch(r"[\w./+:@%,\[!-]+", name):
        yield _NOT_PLAIN
    if name in _RUNS_BUILTIN:
        for argument in map(_without_quotes, node.children_by_field_name("argument")):
            yield argument
            if not re.fullmatch(r"[\w./+:@%,=-]+", argument):
                yield _NOT_PLAIN


def _without_quotes(node: Node) -> str:
    return re.sub(r"[\\'\"]", "", node_text(node))


def _is_steady(names: frozenset[str], text: str) -> bool:
    if names & _SETS_VARIABLES or _NOT_PLAIN in names:
        return False
    if any(re.search(pattern, text) for pattern in _SETS_BY_OPTION):
        return False
    sums = text.split("((")[1:]
    return not any(re.search(_ASSIGNS_IN_ARITHMETIC, part) for part in sums)


def node_text(node: Node) -> str:
    """The text of a node; empty for None."""
    return unescape(node.text) if node is not None else ""
