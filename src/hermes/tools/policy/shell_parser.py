"""Parses a shell command with the bash grammar into the simple commands it consists of.

What the shell would insert later (variables, substitutions) is not guessed: a word is known, a pattern, or unknown.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import msgspec

from hermes.tools.policy.shell_scan import (
    MAKES_TEMPORARY,
    Node,
    ScriptScan,
    node_text,
    scan_script,
)
from hermes.tools.policy.shell_words import (
    Operator,
    Redirect,
    ShellCommand,
    ShellScript,
    Word,
    backslashed,
    braced,
    escaped,
    joined,
    word_set,
)
from hermes.tools.policy.unicode_escapes import escape, unescape

MAX_SCRIPT_CHARS = 30_000
MAX_COMMANDS = 300
_MAX_NODE_DEPTH = 60
_MANY_PROGRAMS = 200
"""Starting more programs than this counts as flooding the machine."""
_SPLIT_WORD = r"[^\s\\]\\\n[^\s\\]"
"""A word that continues on the next line: the grammar sees two words where bash sees one."""
_ALWAYS_TRUE = ("true", ":", "[ 1 ]", "((1))", "1")
_PLAIN_NODES = word_set("word number variable_name regex test_operator")
_DESCRIPTOR = r"(>&|<&|>&-|<&-) (\d+-?|-)"

NEW_TEMPORARY_FILE = "/tmp/made-by-mktemp"  # noqa: S108 - a name that is judged, not used
"""Stands for a new temporary file or folder."""


class Unreadable(Exception):
    """The command can't be understood; the message says why."""


def read_script(text: str, variables: Mapping[str, str]) -> ShellScript:
    """Parses a command. `variables` are those whose values are certain. Raises Unreadable."""
    if len(text) > MAX_SCRIPT_CHARS:
        raise Unreadable("it is too long to analyze")
    if re.search(_SPLIT_WORD, text):
        raise Unreadable("it breaks a word over two lines")
    root = _parser().parse(escape(text)).root_node
    if root.has_error:
        raise Unreadable("Hermes can't parse it as a shell command")
    scan = scan_script(root, text)
    reader = _Reader(_certain_variables(variables, scan, text), scan)
    reader.walk(root)
    return ShellScript(
        tuple(reader.commands),
        frozenset(reader.functions),
        reader.bomb,
        reader.flood,
        scan.evaluates,
        scan.temporary,
        scan.kinds,
    )


@cache
def _parser() -> Any:
    import tree_sitter
    import tree_sitter_bash

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))


def _certain_variables(
    variables: Mapping[str, str], scan: ScriptScan, text: str
) -> dict[str, str]:
    """The given variables that nothing in the text can change."""
    certain: dict[str, str] = {}
    moves = scan.names & {"cd", "pushd", "popd", "source", ".", "eval"}
    for name, value in variables.items():
        mentions = len(re.findall(rf"\b{name}\b", text))
        uses = len(re.findall(rf"\$\{{?{name}\b", text))
        if mentions <= uses and not (name == "PWD" and moves):
            certain[name] = value
    return certain


class _Draft(msgspec.Struct):
    """A command that is being parsed."""

    words: list[Word] = msgspec.field(default_factory=list)
    assignments: list[tuple[str, Word]] = msgspec.field(default_factory=list)
    redirects: list[Redirect] = msgspec.field(default_factory=list)
    given: Word | None = None


class _Reader:
    """Walks the syntax tree once and collects the commands in order."""

    def __init__(self, variables: dict[str, str], scan: ScriptScan) -> None:
        self.variables = variables
        self._scan = scan
        self.commands: list[ShellCommand] = []
        self.functions: set[str] = set()
        self.bomb = False
        self.flood = False
        self._depth = 0
        self._upstream: tuple[ShellCommand, ...] = ()
        """The commands that feed the input of the node being parsed."""
        self._certain = True
        """Whether the node being parsed certainly runs, and in this shell. Only then does an assignment count."""

    def walk(self, node: Node) -> None:
        """Collects the commands at `node` and below."""
        self._depth += 1
        if self._depth > _MAX_NODE_DEPTH or len(self.commands) > MAX_COMMANDS:
            raise Unreadable("it is nested too deeply, or too long")
        visit = getattr(self, f"visit_{node.type}", self._children)
        visit(node)
        self._depth -= 1

    def _walk_with(self, node: Node, upstream: tuple[ShellCommand, ...]) -> None:
        before, self._upstream = self._upstream, upstream
        self.walk(node)
        self._upstream = before

    def _children(self, node: Node) -> None:
        certain = self._certain
        if node.type not in ("program", "list"):
            self._certain = False
        for child in node.children:
            if child.type in ("||", "&&"):
                self._certain = False
            if child.is_named:
                before = self._certain
                self._certain = before and not _is_in_background(child)
                self.walk(child)
                self._certain = before
        self._certain = certain

    def visit_comment(self, node: Node) -> None:
        pass

    def visit_command(self, node: Node) -> None:
        self._add(node, _Draft())

    def _add(self, node: Node, draft: _Draft, following: tuple[Word, ...] = ()) -> None:
        """Adds a command. `following`: its words after redirections."""
        end = node.start_byte
        for child in node.children:
            touches = child.start_byte == end and child.type != "herestring_redirect"
            if draft.words and touches:  # bash sees one word, the grammar two
                draft.words[-1] = Word(draft.words[-1].text, known=False)
            draft.words += _dropped_words(node, end, child.start_byte)
            end = child.end_byte
            self._add_part(child, draft)
        draft.words += _dropped_words(node, end, node.end_byte)
        draft.words += following
        self._append(draft)

    def _add_part(self, child: Node, draft: _Draft) -> None:
        if child.type == "variable_assignment":
            draft.assignments.append(self._assignment(child, counts=False))
        elif child.type == "file_redirect":
            self._add_redirect(child, draft.redirects, draft.words)
        elif child.type == "herestring_redirect":
            draft.given = self.word(child.named_children[-1])
        elif child.type == "command_name":
            draft.words += braced(self.word(child.named_children[0]))
        elif child.is_named:
            draft.words += braced(self.word(child))

    def _append(self, draft: _Draft) -> None:
        self.commands.append(
            ShellCommand(
                tuple(draft.words),
                tuple(draft.assignments),
                tuple(draft.redirects),
                draft.given,
                self._upstream,
            )
        )

    def visit_command_substitution(self, node: Node) -> None:
        if node.text.startswith(b"`") and b"\\`" in node.text:
            raise Unreadable("it has backticks within backticks")
        self._children(node)

    def visit_process_substitution(self, node: Node) -> None:
        """Commands in `>( )` get their input from a program that is unknown here."""
        before = self._upstream
        if node.text.startswith(b">"):
            self._upstream = (ShellCommand((Word("?", known=False),)),)
        self._children(node)
        self._upstream = before

    def visit_variable_assignment(self, node: Node) -> None:
        assignment = self._assignment(node, counts=self._certain)
        self._append(_Draft(assignments=[assignment]))

    def _assignment(self, node: Node, *, counts: bool) -> tuple[str, Word]:
        """The name and the value of an assignment. `counts`: later words may use the value."""
        target = node.child_by_field_name("name")
        name = node_text(target)
        if target.type == "subscript":  # bash runs commands inside it
            self._substituted(target)
        value = node.child_by_field_name("value")
        word = self.word(value) if value is not None else Word("")
        is_temporary = re.fullmatch(MAKES_TEMPORARY, node_text(value))
        if is_temporary and "mktemp" not in self.functions:
            word = Word(NEW_TEMPORARY_FILE)
        appends = any(child.type == "+=" for child in node.children)
        if counts and word.plain and not appends and self._scan.is_certain(name):
            self.variables[name] = word.text
        else:
            self.variables.pop(name, None)
        return name, word

    def visit_declaration_command(self, node: Node) -> None:
        draft = _Draft(words=[Word(node_text(node.children[0]))])
        for child in node.children[1:]:
            if child.type == "variable_assignment":
                draft.assignments.append(self._assignment(child, counts=self._certain))
            elif child.is_named:
                draft.words.append(self.word(child))
        self._append(draft)

    def visit_unset_command(self, node: Node) -> None:
        names = [self.word(child) for child in node.named_children]
        for word in names:
            self.variables.pop(word.text, None)
        self._append(_Draft(words=[Word(node_text(node.children[0])), *names]))

    def visit_for_statement(self, node: Node) -> None:
        self.variables.pop(node_text(node.child_by_field_name("variable")), None)
        ends = re.findall(r"\{\d+\.\.(\d+)\}|seq (?:1 )?(\d+)", node_text(node))
        numbers = [_number(brace or sequence) for brace, sequence in ends]
        self._visit_loop(node, is_endless=max(numbers, default=0) > _MANY_PROGRAMS)

    def visit_c_style_for_statement(self, node: Node) -> None:
        condition = node_text(node.child_by_field_name("condition"))
        numbers = [_number(digits) for digits in re.findall(r"\d+", condition)]
        endless = not numbers or max(numbers) > _MANY_PROGRAMS
        self._visit_loop(node, is_endless=endless)

    def visit_while_statement(self, node: Node) -> None:
        condition = node_text(node.child_by_field_name("condition")).strip()
        self._visit_loop(node, is_endless=condition in _ALWAYS_TRUE)

    def _visit_loop(self, node: Node, *, is_endless: bool) -> None:
        """Notes a loop that starts programs in the background over and over."""
        if is_endless and _starts_in_background(node.child_by_field_name("body")):
            self.flood = True
        self._children(node)

    def visit_function_definition(self, node: Node) -> None:
        name = node_text(node.child_by_field_name("name"))
        self.functions.add(name)
        before = len(self.commands)
        self._children(node)
        inner = [one for one in self.commands[before:] if one.words]
        calls = [one for one in inner if one.words[0].text == name]
        piped = any(one.upstream for one in calls)
        multiplies = piped or _starts_in_background(node)
        if len(calls) > 1 or (calls and multiplies):
            self.bomb = True

    def visit_pipeline(self, node: Node) -> None:
        certain, self._certain = self._certain, False
        upstream = self._upstream
        for child in node.named_children:
            before = len(self.commands)
            self._walk_with(child, upstream)
            upstream += tuple(one for one in self.commands[before:] if one.words)
        self._certain = certain

    def visit_redirected_statement(self, node: Node) -> None:
        body = node.child_by_field_name("body")
        draft = _Draft()
        piped: list[Node] = []
        following: list[Word] = []
        for child in node.children_by_field_name("redirect"):
            if child.type == "file_redirect":
                self._add_redirect(child, draft.redirects, following)
            elif child.type == "herestring_redirect":
                draft.given = self.word(child.named_children[-1])
            else:
                self._add_heredoc(child, draft, following, piped)
        _require_nothing_dropped(node)
        before = len(self.commands)
        if body is None:
            draft.words += following
            self._append(draft)
        elif body.type == "command":
            self._add(body, draft, tuple(following))
        elif following:
            raise Unreadable("it has several words where only a file name may be")
        else:
            self.walk(body)
            self._redirect_all(before, draft)
        fed = (*self._upstream, *self.commands[before:])
        for child in piped:
            self._walk_with(child, fed if child.type == "pipeline" else self._upstream)

    def _redirect_all(self, before: int, draft: _Draft) -> None:
        """Applies the redirections of a group to every command in it."""
        for place, one in enumerate(self.commands[before:], before):
            self.commands[place] = msgspec.structs.replace(
                one,
                redirects=(*one.redirects, *draft.redirects),
                given=one.given or draft.given,
            )

    def _add_heredoc(
        self, node: Node, draft: _Draft, following: list[Word], piped: list[Node]
    ) -> None:
        """Adds a here-document. The rest of its first line goes into `following` and `piped`."""
        is_quoted = False
        draft.given = Word("")
        for child in node.named_children:
            if child.type == "heredoc_start":
                is_quoted = bool(re.search(r"['\"\\]", node_text(child)))
            elif child.type == "heredoc_body":
                draft.given = self._heredoc_text(child, is_quoted=is_quoted)
            elif child.type == "file_redirect":
                self._add_redirect(child, draft.redirects, following)
            elif child.type != "heredoc_end":
                piped.append(child)

    def _heredoc_text(self, node: Node, *, is_quoted: bool) -> Word:
        text = node_text(node)
        if is_quoted:
            return Word(text)
        if re.search(r"(?<!\\)`", text):
            raise Unreadable("it has a here-document that runs commands in backticks")
        parts = [one for one in node.named_children if one.type != "heredoc_content"]
        for part in parts:
            self._walk_with(part, ())
        return Word(text, known=not parts)

    def _add_redirect(
        self, node: Node, redirects: list[Redirect], following: list[Word]
    ) -> None:
        """Adds the file of a redirection, unless it is a descriptor. Words after it go into `following`."""
        signs = [child.type for child in node.children if not child.is_named]
        sign = next((one for one in signs if "<" in one or ">" in one), ">")
        targets = [self.word(one) for one in node.children_by_field_name("destination")]
        for word in targets[1:]:
            following += braced(word)
        for word in targets[:1]:
            if re.fullmatch(_DESCRIPTOR, f"{sign} {word.text}"):
                continue
            operator: Operator = ">>" if ">>" in sign else ">"
            redirects.append(Redirect("<" if sign in ("<", "<&") else operator, word))

    def word(self, node: Node) -> Word:  # noqa: PLR0911 - a line for each kind of node
        """Converts a node to a word. Collects the commands in its substitutions."""
        kind, text = node.type, node_text(node)
        if kind in _PLAIN_NODES:
            return backslashed(text)
        if kind == "raw_string":
            return Word(text[1:-1], tilde=False)
        if kind == "ansi_c_string":
            return escaped(text[2:-1])
        if kind == "string":
            return self._string(node)
        if kind == "concatenation":
            whole = joined([self.word(child) for child in node.children])
            has_brackets = any(child.text in (b"[", b"[[") for child in node.children)
            return msgspec.structs.replace(whole, pattern=whole.pattern or has_brackets)
        is_variable = kind == "expansion" and re.fullmatch(r"\$\{\w+\}", text)
        if kind == "simple_expansion" or (
            is_variable and len(node.named_children) == 1
        ):
            return self._variable(text, is_quoted=False)
        return self._substituted(node)

    def _substituted(self, node: Node) -> Word:
        """An expansion or substitution, as an unknown word. Collects the commands in it."""
        certain, self._certain = self._certain, False
        self._walk_with(node, ())
        self._certain = certain
        if node.type in ("arithmetic_expansion", "special_variable_name"):
            return Word("0", known=False)
        return Word(node_text(node), known=False)

    def _variable(self, text: str, *, is_quoted: bool) -> Word:
        value = self.variables.get(text.strip("${}"))
        splits = value is not None and re.search(r"[\s*?\[]", value)
        if value is None or (splits and not is_quoted):
            return Word(text, known=False)
        return Word(value, tilde=False)

    def _string(self, node: Node) -> Word:
        """A word in double quotes. It includes the blanks between expansions, for which the grammar has no node."""
        parts: list[Word] = []
        end = node.start_byte + 1
        for child in node.children:
            if child.type == '"':
                continue
            parts.append(Word(_text_between(node, end, child.start_byte)))
            parts.append(self._string_part(child))
            end = child.end_byte
        parts.append(Word(_text_between(node, end, node.end_byte - 1)))
        whole = joined(parts)
        return Word(whole.text, known=whole.known, tilde=False)

    def _string_part(self, node: Node) -> Word:
        text = node_text(node)
        if node.type == "string_content":
            unquoted = r'\\(["$`\\\n])'
            return Word(re.sub(unquoted, lambda sign: sign[1].strip("\n"), text))
        if re.fullmatch(r"\$\w+|\$\{\w+\}", text) and "expansion" in node.type:
            return self._variable(text, is_quoted=True)
        return self.word(node) if node.is_named else Word(text)


def _number(digits: str) -> int:
    """Parses a number, which may have more digits than Python converts."""
    return int(digits[:9])


def _text_between(node: Node, start: int, end: int) -> str:
    return unescape(
        node.text[start - node.start_byte : max(start, end) - node.start_byte]
    )


def _dropped_words(node: Node, start: int, end: int) -> Iterator[Word]:
    """Words between two children that the grammar drops, such as a lone dash before a here-document."""
    for text in _text_between(node, start, end).replace("\\\n", " ").split():
        yield Word(text, known=text == "-")


def _require_nothing_dropped(node: Node) -> None:
    end = node.start_byte
    for child in node.children:
        if any(not word.known for word in _dropped_words(node, end, child.start_byte)):
            raise Unreadable("Hermes can't parse a part of it")
        end = child.end_byte


def _is_in_background(node: Node) -> bool:
    """Whether a node runs in the background, so that its assignments are lost."""
    return node.next_sibling is not None and node.next_sibling.type == "&"


def _starts_in_background(node: Node) -> bool:
    """Whether anything below a node runs in the background."""
    return any(
        child.type == "&" or _starts_in_background(child) for child in node.children
    )
