"""A shell command as the commands it is made of. Parsed whole, with the bash grammar; nothing is matched as text.

What the shell would still put in (variables, substitutions) is not guessed: a word is known, a pattern, or unknown.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, TypeAlias

import msgspec

from hermes.tools.policy.shell_scan import (
    MAKES_TEMPORARY,
    Node,
    ScriptScan,
    node_text,
    scan_script,
)
from hermes.tools.policy.shell_words import Word, backslashed, braced, escaped, joined
from hermes.tools.policy.unicode_escapes import escape, unescape

MAX_TEXT = 30_000
MAX_COMMANDS = 300
_MANY = 200
"""More programs than this at once are a flood."""
_MAX_DEPTH = 60
_SPLIT_WORD = r"[^\s\\]\\\n[^\s\\]"
"""A word continued on the next line: the grammar would see two words where bash sees one."""

Operator: TypeAlias = Literal["<", ">", ">>"]

NEW_TEMPORARY_FILE = "/tmp/made-by-mktemp"  # noqa: S108 - a name that is judged, not used
"""What stands for a new temporary file or folder."""


class Unreadable(Exception):
    """The command can't be understood; the text says why."""


class Redirect(msgspec.Struct, frozen=True):
    """A file that is read, written or appended to."""

    operator: Operator
    target: Word


class ShellCommand(msgspec.Struct, frozen=True):
    """One simple command: its words, what is assigned before it, its files, and what it gets as input."""

    words: tuple[Word, ...]
    assignments: tuple[tuple[str, Word], ...] = ()
    redirects: tuple[Redirect, ...] = ()
    given: Word | None = None
    """Text it gets as input: a here-document or here-string."""
    upstream: tuple["ShellCommand", ...] = ()
    """What feeds its input in a pipeline, the nearest last."""


class ShellScript(msgspec.Struct, frozen=True):
    """Everything a text would run, wherever in it that stands."""

    commands: tuple[ShellCommand, ...]
    functions: frozenset[str] = frozenset()
    bomb: bool = False
    """A function starts itself more than once, or beside itself."""
    flood: bool = False
    """It starts programs side by side without end."""
    evaluates: bool = False
    """Bash may run a command that stands in quotes, such as one in a subscript."""
    temporary: frozenset[str] = frozenset()
    """Variables that hold nothing but a new temporary file or folder."""
    kinds: frozenset[str] = frozenset()
    """The kinds of nodes it is made of."""


def read_script(text: str, variables: Mapping[str, str]) -> ShellScript:
    """Takes a command apart. `variables` are those whose values are certain. Raises Unreadable."""
    if len(text) > MAX_TEXT:
        raise Unreadable("it is too long to be read whole")
    if re.search(_SPLIT_WORD, text):
        raise Unreadable("a word in it is broken over two lines")
    root = _parser().parse(escape(text)).root_node
    if root.has_error:
        raise Unreadable("it is not a shell command that can be understood")
    scan = scan_script(root, text)
    reader = _Reader(_certain(variables, scan, text), scan)
    reader.walk(root, ())
    return ShellScript(
        tuple(reader.commands),
        frozenset(reader.functions),
        reader.bomb,
        reader.flood,
        scan.evaluates,
        scan.temporary,
        scan.kinds,
    )


def _certain(
    variables: Mapping[str, str], scan: ScriptScan, text: str
) -> dict[str, str]:
    """Those of the shell's own variables that nothing in the text can change."""
    known = dict(variables)
    if scan.names & {"cd", "pushd", "popd", "source", ".", "eval"}:
        known.pop("PWD", None)
    for name in list(known):
        if len(re.findall(rf"\b{name}\b", text)) > len(
            re.findall(rf"\$\{{?{name}\b", text)
        ):
            known.pop(name)
    return known


def _make_parser() -> Callable[[], Any]:
    made: list[Any] = []

    def parser() -> Any:
        if not made:
            import tree_sitter
            import tree_sitter_bash

            made.append(
                tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))
            )
        return made[0]

    return parser


_parser = _make_parser()


class _Reader:
    """Walks the tree once and collects the commands in order."""

    def __init__(self, variables: dict[str, str], scan: ScriptScan) -> None:
        self.variables = variables
        self._scan = scan
        self.commands: list[ShellCommand] = []
        self.functions: set[str] = set()
        self.bomb = False
        self.flood = False
        self._depth = 0
        self._certain = True
        """Whether what is read now surely runs, in this shell: only then is an assignment believed."""

    def walk(self, node: Node, upstream: tuple[ShellCommand, ...]) -> None:
        """Collects what runs at `node` and below; `upstream` feeds its input."""
        self._depth += 1
        if self._depth > _MAX_DEPTH or len(self.commands) > MAX_COMMANDS:
            raise Unreadable("it is nested too deeply, or too long")
        visit = getattr(self, f"visit_{node.type}", None)
        if visit is not None:
            visit(node, upstream)
        else:
            self._others(node, upstream)
        self._depth -= 1

    def _others(self, node: Node, upstream: tuple[ShellCommand, ...]) -> None:
        certain = self._certain
        if node.type not in ("program", "list"):
            self._certain = False
        for child in node.children:
            if child.type in ("||", "&&"):
                self._certain = False
            if child.is_named:
                before, self._certain = (
                    self._certain,
                    self._certain and not _is_beside(child),
                )
                self.walk(child, upstream)
                self._certain = before
        self._certain = certain

    def visit_comment(self, node: Node, upstream: tuple[ShellCommand, ...]) -> None:
        pass

    def visit_command(self, node: Node, upstream: tuple[ShellCommand, ...]) -> None:
        self._add(node, (), None, upstream)

    def _add(
        self,
        node: Node | None,
        outer: tuple[Redirect, ...],
        given: Word | None,
        upstream: tuple[ShellCommand, ...],
    ) -> None:
        words: list[Word] = []
        assignments: list[tuple[str, Word]] = []
        redirects = list(outer)
        end = node.start_byte if node is not None else 0
        for child in node.children if node is not None else ():
            if (
                words
                and child.start_byte == end
                and child.type != "herestring_redirect"
            ):
                words[-1] = Word(
                    words[-1].text, known=False
                )  # one word for bash, two for the grammar
            words += _lost(node, end, child.start_byte)
            end = child.end_byte
            if child.type == "variable_assignment":
                assignments.append(self._assigned(child, believe=False))
            elif child.type == "file_redirect":
                redirects += self._file(child, words)
            elif child.type == "herestring_redirect":
                given = self.word(child.named_children[-1])
            elif child.is_named:
                words += braced(
                    self.word(
                        child.named_children[0]
                        if child.type == "command_name"
                        else child
                    )
                )
        if node is not None:
            words += _lost(node, end, node.end_byte)
        self.commands.append(
            ShellCommand(
                tuple(words), tuple(assignments), tuple(redirects), given, upstream
            )
        )

    def visit_command_substitution(
        self, node: Node, upstream: tuple[ShellCommand, ...]
    ) -> None:
        if node.text.startswith(b"`") and b"\\`" in node.text:
            raise Unreadable("it has backticks within backticks")
        self._others(node, upstream)

    def visit_process_substitution(
        self, node: Node, upstream: tuple[ShellCommand, ...]
    ) -> None:
        """What runs in `>( )` is fed by a program that can't be told from here."""
        writes = node.text.startswith(b">")
        self._others(
            node, (ShellCommand((Word("?", known=False),)),) if writes else upstream
        )

    def visit_variable_assignment(
        self, node: Node, upstream: tuple[ShellCommand, ...]
    ) -> None:
        name, value = self._assigned(node, believe=self._certain)
        self.commands.append(ShellCommand((), ((name, value),), upstream=upstream))

    def _assigned(self, node: Node, *, believe: bool) -> tuple[str, Word]:
        target = node.child_by_field_name("name")
        name = node_text(target)
        value = node.child_by_field_name("value")
        word = self.word(value) if value is not None else Word("")
        if (
            value is not None
            and re.fullmatch(MAKES_TEMPORARY, node_text(value))
            and "mktemp" not in self.functions
        ):
            word = Word(NEW_TEMPORARY_FILE)
        appended = any(child.type == "+=" for child in node.children)
        if believe and word.plain and not appended and self._scan.is_certain(name):
            self.variables[name] = word.text
        else:
            self.variables.pop(name, None)
        return name, word

    def visit_declaration_command(
        self, node: Node, upstream: tuple[ShellCommand, ...]
    ) -> None:
        words = [Word(node_text(node.children[0]))]
        assignments: list[tuple[str, Word]] = []
        for child in node.children[1:]:
            if child.type == "variable_assignment":
                assignments.append(self._assigned(child, believe=self._certain))
            elif child.is_named:
                words.append(self.word(child))
        self.commands.append(
            ShellCommand(tuple(words), tuple(assignments), upstream=upstream)
        )

    def visit_unset_command(
        self, node: Node, upstream: tuple[ShellCommand, ...]
    ) -> None:
        words = [
            Word(node_text(node.children[0])),
            *(self.word(child) for child in node.named_children),
        ]
        for word in words[1:]:
            self.variables.pop(word.text, None)
        self.commands.append(ShellCommand(tuple(words), upstream=upstream))

    def visit_for_statement(
        self, node: Node, upstream: tuple[ShellCommand, ...]
    ) -> None:
        variable = node.child_by_field_name("variable")
        if variable is not None:
            self.variables.pop(node_text(variable), None)
        ranges = re.findall(r"\{(\d+)\.\.(\d+)\}|seq (?:1 )?()(\d+)", node_text(node))
        self._note_flood(
            node, is_endless=any(int(one[1] or one[3]) > _MANY for one in ranges)
        )
        self._others(node, upstream)

    def visit_c_style_for_statement(
        self, node: Node, upstream: tuple[ShellCommand, ...]
    ) -> None:
        condition = node.child_by_field_name("condition")
        limit = (
            [int(number) for number in re.findall(r"\d+", node_text(condition))]
            if condition is not None
            else []
        )
        self._note_flood(node, is_endless=not limit or max(limit) > _MANY)
        self._others(node, upstream)

    def _note_flood(self, node: Node, *, is_endless: bool) -> None:
        """Starting a program beside the shell, over and over."""
        beside = any(
            child.type == "&" for child in _below(node.child_by_field_name("body"))
        )
        self.flood = self.flood or (is_endless and beside)

    def visit_while_statement(
        self, node: Node, upstream: tuple[ShellCommand, ...]
    ) -> None:
        endless = node_text(node.child_by_field_name("condition")).strip() in (
            "true",
            ":",
            "[ 1 ]",
            "((1))",
            "1",
        )
        self._note_flood(node, is_endless=endless)
        self._others(node, upstream)

    def visit_function_definition(
        self, node: Node, upstream: tuple[ShellCommand, ...]
    ) -> None:
        name = node_text(node.child_by_field_name("name"))
        self.functions.add(name)
        before = len(self.commands)
        self._others(node, upstream)
        own = sum(
            bool(one.words) and one.words[0].text == name
            for one in self.commands[before:]
        )
        piped = any(
            one.upstream
            for one in self.commands[before:]
            if one.words and one.words[0].text == name
        )
        beside = any(child.type == "&" for child in _below(node))
        self.bomb = self.bomb or own > 1 or (own > 0 and (piped or beside))

    def visit_pipeline(self, node: Node, upstream: tuple[ShellCommand, ...]) -> None:
        certain, self._certain = self._certain, False
        fed = upstream
        for child in node.named_children:
            before = len(self.commands)
            self.walk(child, fed)
            fed = (*fed, *(one for one in self.commands[before:] if one.words))
        self._certain = certain

    def visit_redirected_statement(
        self, node: Node, upstream: tuple[ShellCommand, ...]
    ) -> None:
        body = node.child_by_field_name("body")
        redirects: list[Redirect] = []
        given: Word | None = None
        rest: list[Node] = []
        more: list[Word] = []
        for child in node.children_by_field_name("redirect"):
            if child.type == "file_redirect":
                redirects += self._file(child, more)
            elif child.type == "herestring_redirect":
                given = self.word(child.named_children[-1])
            else:
                given = self._heredoc(child, redirects, rest, more)
        _require_nothing_lost(node)
        before = len(self.commands)
        if body is None or body.type == "command":
            self._add(body, tuple(redirects), given, upstream)
            self._lengthen(more)
        elif more:
            raise Unreadable("words stand where only a file can")
        else:
            self.walk(body, upstream)
            self._spread(before, tuple(redirects), given)
        fed = (*upstream, *self.commands[before:])
        for child in rest:
            self.walk(child, fed if child.type == "pipeline" else upstream)

    def _spread(
        self, before: int, redirects: tuple[Redirect, ...], given: Word | None
    ) -> None:
        """Files and input of a group count for every command in it."""
        for place in range(before, len(self.commands)):
            one = self.commands[place]
            self.commands[place] = msgspec.structs.replace(
                one, redirects=one.redirects + redirects, given=one.given or given
            )

    def _heredoc(
        self, node: Node, redirects: list[Redirect], rest: list[Node], more: list[Word]
    ) -> Word:
        """The text of a here-document; what stands behind it on its first line is put into `redirects` and `rest`."""
        quoted, body = False, Word("")
        for child in node.named_children:
            if child.type == "heredoc_start":
                quoted = any(sign in node_text(child) for sign in "'\"\\")
            elif child.type == "heredoc_body":
                inner = [
                    one
                    for one in child.named_children
                    if not quoted and one.type != "heredoc_content"
                ]
                body = Word(node_text(child), known=not inner)
                if not quoted and re.search(r"(?<!\\)`", body.text):
                    raise Unreadable("a here-document in it runs commands in backticks")
                for one in inner:
                    self.walk(one, ())
            elif child.type == "file_redirect":
                redirects += self._file(child, more)
            elif child.type != "heredoc_end":
                rest.append(child)
        return body

    def _lengthen(self, more: list[Word]) -> None:
        """Words behind a redirection belong to the command before it."""
        if more:
            one = self.commands[-1]
            self.commands[-1] = msgspec.structs.replace(one, words=(*one.words, *more))

    def _file(self, node: Node, more: list[Word]) -> list[Redirect]:
        """The file of a redirection; descriptors are none. What follows it goes into `more`."""
        found: list[Redirect] = []
        signs = [child.type for child in node.children if not child.is_named]
        sign = next((one for one in signs if "<" in one or ">" in one), ">")
        for place, child in enumerate(node.children_by_field_name("destination")):
            word = self.word(child)
            if place:
                more += braced(word)
                continue
            if sign in (">&", "<&", ">&-", "<&-") and re.fullmatch(
                r"\d+-?|-", word.text
            ):
                continue
            found.append(
                Redirect(
                    "<" if sign in ("<", "<&") else ">>" if ">>" in sign else ">", word
                )
            )
        return found

    def word(self, node: Node) -> Word:  # noqa: PLR0911 - a line for each kind of node
        """What a node says as a word. Commands inside substitutions are collected."""
        kind = node.type
        if kind in ("word", "number", "variable_name", "regex", "test_operator"):
            return backslashed(node_text(node))
        if kind == "raw_string":
            return Word(node_text(node)[1:-1], tilde=False)
        if kind == "ansi_c_string":
            return escaped(node_text(node)[2:-1])
        if kind == "string":
            return self._string(node)
        if kind == "concatenation":
            return joined([self.word(child) for child in node.children])
        if kind == "simple_expansion":
            return self._variable(node, quoted=False)
        if (
            kind == "expansion"
            and len(node.named_children) == 1
            and re.fullmatch(r"\$\{\w+\}", node_text(node))
        ):
            return self._variable(node, quoted=False)
        certain, self._certain = self._certain, False
        self.walk(node, ())
        self._certain = certain
        if kind in ("arithmetic_expansion", "special_variable_name"):
            return Word("0", known=False)
        return Word(node_text(node), known=False)

    def _variable(self, node: Node, *, quoted: bool) -> Word:
        value = self.variables.get(node_text(node).strip("${}"))
        if value is None or (not quoted and re.search(r"[\s*?\[]", value)):
            return Word(node_text(node), known=False)
        return Word(value, tilde=False)

    def _string(self, node: Node) -> Word:
        """A word in double quotes. Blanks between expansions belong to it, though the grammar has no node for them."""
        parts: list[Word] = []
        end = node.start_byte + 1
        for child in node.children:
            if child.type == '"':
                continue
            if child.start_byte > end:
                parts.append(Word(_between(node, end, child.start_byte)))
            end = child.end_byte
            if child.type == "string_content":
                parts.append(
                    Word(
                        re.sub(
                            r'\\(["$`\\\n])',
                            lambda sign: sign[1].strip("\n"),
                            node_text(child),
                        )
                    )
                )
            elif child.type in ("simple_expansion", "expansion"):
                plain = re.fullmatch(r"\$\w+|\$\{\w+\}", node_text(child))
                parts.append(
                    self._variable(child, quoted=True) if plain else self.word(child)
                )
            else:
                parts.append(
                    self.word(child) if child.is_named else Word(node_text(child))
                )
        if node.end_byte - 1 > end:
            parts.append(Word(_between(node, end, node.end_byte - 1)))
        whole = joined(parts)
        return Word(whole.text, known=whole.known, tilde=False)


def _between(node: Node, start: int, end: int) -> str:
    return unescape(node.text[start - node.start_byte : end - node.start_byte])


def _lost(node: Node, start: int, end: int) -> Iterator[Word]:
    """Words between two children that the grammar has dropped, such as a lone dash before a here-document."""
    for text in _between(node, start, end).replace("\\\n", " ").split():
        yield Word(text, known=bool(re.fullmatch(r"-", text)))


def _require_nothing_lost(node: Node) -> None:
    end = node.start_byte
    for child in node.children:
        if _between(node, end, child.start_byte).replace("\\\n", " ").strip() not in (
            "",
            "-",
        ):
            raise Unreadable("a part of it can't be understood")
        end = child.end_byte


def _is_beside(node: Node) -> bool:
    """Whether something runs beside this shell, so that what it assigns is lost."""
    return node.next_sibling is not None and node.next_sibling.type == "&"


def _below(node: Node) -> Iterator[Node]:
    for child in node.children:
        yield child
        yield from _below(child)
