"""Judges a command by what each of the programs in it does, wherever it stands, and whatever runs it."""

import re
from collections.abc import Callable
from pathlib import Path

import msgspec

from hermes.tools.policy.inline_code import INTERPRETERS, PYTHON, judge_code
from hermes.tools.policy.effects import (
    BY_RULE,
    EFFECTS,
    READ,
    Effect,
    Level,
    asks,
    forbidden,
    unclear,
    worst,
)
from hermes.tools.policy.fetching import judge_fetch
from hermes.tools.policy.file_programs import (
    HANDLERS,
    OUTPUT_OPTIONS,
    emptied,
    operands,
    overwritten,
    written,
)
from hermes.tools.policy.never_allowed import floor, write_floor
from hermes.tools.policy.git_program import judge_git
from hermes.tools.policy.shell_parser import (
    MADE,
    ShellCommand,
    ShellScript,
    Unreadable,
    read_script,
)
from hermes.tools.policy.interpreters import (
    judge_database,
    judge_interpreter,
    judge_python,
)
from hermes.tools.policy.judging import Judging
from hermes.tools.policy.table_judge import added_by_options, judge_known
from hermes.tools.policy.pipelines import is_without_end, printed, prints_nothing
from hermes.tools.policy.paths import (
    EXPOSING_NAME,
    PathContext,
    is_device,
    is_stream,
    secret_reason,
)
from hermes.tools.policy.rules import RuleBook
from hermes.tools.policy.program_runners import (
    judge_evaluated,
    judge_find,
    judge_shell,
    judge_wrapped,
    judge_xargs,
)
from hermes.tools.policy.environment_variables import assigned
from hermes.tools.policy.shell_words import Word
from hermes.tools.policy.wrappers import SHELLS, program_name, wrapper_of

_MAX_DEPTH = 6
_TEXT_ONLY = frozenset(
    (
        "echo",
        "printf",
        ":",
        "true",
        "false",
        "test",
        "[",
        "expr",
        "seq",
        "sleep",
        "exit",
        "return",
        "let",
    )
)
_PATTERN_FIRST = frozenset(
    ("grep", "egrep", "fgrep", "zgrep", "rg", "ag", "ack", "jq", "fd", "fdfind", "yq")
)
_RESERVED = frozenset(
    (
        "!",
        "{",
        "}",
        "then",
        "do",
        "done",
        "fi",
        "esac",
        "elif",
        "else",
        "in",
        "if",
        "while",
        "until",
        "for",
    )
)
"""Words of the grammar that can't be programs: where one is, the grammar has read something else than bash would."""

_INERT = frozenset(
    (
        *(
            "curl",
            "wget",
            "http",
            "https",
            "xh",
            "ping",
            "ping6",
            "npm",
            "pip",
            "pip3",
            "redis-cli",
            "pg_isready",
        ),
        *(
            "echo",
            "printf",
            "cat",
            "head",
            "tail",
            "wc",
            "grep",
            "jq",
            "cut",
            "tr",
            "uniq",
            "sleep",
            "seq",
            "true",
        ),
        *(
            "false",
            "test",
            "[",
            ":",
            "break",
            "continue",
            "exit",
            "column",
            "timeout",
            "date",
            "cd",
            "nl",
            "rev",
        ),
    )
)
"""Programs that look something up, and those that only filter what it says: none of them runs code of the project."""


_LANGUAGES = {
    ".py": "python",
    ".js": "node",
    ".mjs": "node",
    ".cjs": "node",
    ".ts": "node",
    ".rb": "ruby",
    ".pl": "perl",
}
FETCHERS = frozenset(("curl", "wget", "http", "https", "xh", "ping", "ping6"))
_JUDGES: dict[str, Callable[[Judging, str, ShellCommand], list[Effect]]] = {
    "sh": judge_shell,
    **dict.fromkeys(("eval", "trap", "source", "."), judge_evaluated),
    **dict.fromkeys(("xargs", "parallel"), judge_xargs),
    **dict.fromkeys(("find", "gfind"), judge_find),
    "python": judge_python,
    **dict.fromkeys(("sqlite3", "duckdb", "litecli"), judge_database),
}


class Judgement(msgspec.Struct, frozen=True):
    """What a command does, all in all, and the files it names."""

    finding: Effect
    paths: tuple[Path, ...] = ()
    programs: frozenset[str] = frozenset()
    """The names of the programs it runs."""
    findings: tuple[Effect, ...] = ()
    """Everything that was found, of which `finding` is the worst."""


def judge_command(
    text: str, site: PathContext, book: RuleBook | None = None
) -> Judgement:
    """Judges a command from its parts, under the user's rules."""
    judge = CommandJudge(site, _Shared(book or RuleBook()))
    found = judge.text(text)
    finding = worst(found)
    mixed = {one.reach for one in found if one.level == Level.WORK}
    if finding.level == Level.WORK and len(mixed) > 1:
        finding = asks(
            "it joins what may reach further with other work; each could run alone",
            finding.reach,
        )
    if (
        finding.level == Level.READ
        and finding.reach != "workspace"
        and judge.shared.programs - _INERT
    ):
        finding = msgspec.structs.replace(
            finding, reach="workspace"
        )  # no other program gets the network with it
    return Judgement(
        finding,
        tuple(judge.shared.paths),
        frozenset(judge.shared.programs),
        findings=(*found, finding),
    )


class _Shared(msgspec.Struct):
    """What all the judges of one command have in common."""

    book: RuleBook
    paths: dict[Path, None] = msgspec.field(default_factory=dict)
    """The files it names."""
    programs: set[str] = msgspec.field(default_factory=set)
    """The programs it runs."""
    contents: dict[Path, Word] = msgspec.field(default_factory=dict)
    """What it writes to files, as far as that can be seen."""


class CommandJudge:
    """Judges one script; what it makes a shell run is judged by another one, a level deeper."""

    def __init__(
        self,
        site: PathContext,
        shared: _Shared,
        depth: int = 0,
        functions: frozenset[str] = frozenset(),
    ) -> None:
        self.site = site
        self.shared = shared
        self._depth = depth
        self._functions = functions
        self._made: frozenset[str] = frozenset()

    def text(self, text: str, made: frozenset[str] = frozenset()) -> list[Effect]:
        """All findings of a shell text. `made`: variables that hold new temporary files already."""
        if self.is_deep:
            return [unclear("it is nested too deeply")]
        try:
            own = {"HOME": str(self.site.home), "PWD": str(self.site.folders[0])}
            script = read_script(text, own | dict.fromkeys(made, MADE))
        except Unreadable as error:
            return [unclear(str(error))]
        return self.script(script)

    def script(self, script: ShellScript) -> list[Effect]:
        if script.bomb:
            return [Effect(Level.FORBID, "it starts copies of itself without end")]
        self._functions |= script.functions
        self._made = script.made
        if script.evaluates:
            return [unclear("bash may run a command in it that stands in quotes")]
        found = [asks("it starts programs without end")] if script.flood else [READ]
        for command in script.commands:
            found += self._files(command)
            found += [
                assigned(name, word, self.site) for name, word in command.assignments
            ]
            found += self.command(command)
        return found

    def command(self, command: ShellCommand) -> list[Effect]:
        """What one program does with its arguments."""
        words = command.words
        if not words:
            return []
        if (
            not words[0].plain
            or not words[0].text.isascii()
            or not words[0].text.strip()
        ):
            return [unclear("which program it runs is only known when it runs")]
        name = program_name(words[0])
        if name in _RESERVED:
            return [unclear("it is not a shell command that can be understood")]
        self.shared.programs.add(name)
        least = floor(name, words, self.site)
        found = [least] if least is not None else []
        ruled = self._ruled(name, words)
        if ruled is not None:
            return [*found, ruled]
        wrapper = wrapper_of(words)
        if wrapper:
            return found + judge_wrapped(self, command, wrapper)
        return found + self._program(name, command)

    def _ruled(self, name: str, words: tuple[Word, ...]) -> Effect | None:
        """What the user's rules say of a program. Notes the files it names."""
        book = self.shared.book
        paths = [path for word in words if word.plain for path in self.site.paths(word)]
        self.shared.paths.update(dict.fromkeys(paths))
        ruled = book.for_program(name, words)
        about = (
            book.for_paths(tuple(paths), self.site.home)
            if ruled is None or ruled[0] not in ("forbid", "ask")
            else None
        )
        title, rule = (
            about
            if about is not None and about[0] in ("forbid", "ask")
            else ruled or (None, None)
        )
        if title is None or rule is None:
            return None
        if title == "forbid":
            return forbidden(f"your rules forbid it: {rule.describe()}")
        if title == "ask":
            return asks(f"your rules say to ask: {rule.describe()}")
        if not all(word.known for word in words) or self._is_delicate(paths):
            return None
        return Effect(
            Level.WORK, BY_RULE, "network" if title == "network" else rule.reach
        )

    def _is_delicate(self, paths: list[Path]) -> bool:
        """Whether these files need a person whatever a rule about a program says."""
        guard, workspace = self.site.guard, self.site.workspace
        ordinary = [path for path in paths if not is_stream(str(path))]
        return bool(
            guard.secret(ordinary, workspace) or guard.delicate(ordinary, workspace)
        )

    def _program(self, name: str, command: ShellCommand) -> list[Effect]:
        """What a program does that runs nothing else, or whatever it runs."""
        words = command.words
        if name in ("cd", "pushd"):
            return [self._moved(words)]
        if name == "git":
            finding, texts = judge_git(words, self.site)
            return [
                finding,
                self.named(words, name),
                *(one for text in texts for one in self.deeper(text)),
            ]
        if name in FETCHERS:
            return [judge_fetch(name, words, self.site), self.named(words, name)]
        if name in ("tee", "sponge"):
            copied = self._copied(command)
            if copied:
                return copied
        if name in HANDLERS:
            return [HANDLERS[name](words, self.site), *added_by_options(name, words)]
        judged_by = _JUDGES.get(
            "python" if re.fullmatch(PYTHON, name) else "sh" if name in SHELLS else name
        )
        if judged_by is None:
            judged_by = judge_interpreter if name in INTERPRETERS else judge_known
        return judged_by(self, name, command)

    def _copied(self, command: ShellCommand) -> list[Effect]:
        """What `tee` makes of its input, where that can be told: a file without end, or an empty one."""
        files = operands(command.words)
        content = printed(command.upstream) if command.upstream else command.given
        self._note(files, content)
        if is_without_end(command):
            return [asks("it writes without end")]
        blank = content is not None and content.known and not content.text.strip()
        if blank or (command.upstream and prints_nothing(command.upstream[-1])):
            return [emptied(word, self.site) for word in files]
        return []

    @property
    def is_deep(self) -> bool:
        """Whether it is nested deeper than anybody writes."""
        return self._depth > _MAX_DEPTH

    def defines(self, name: str) -> bool:
        """Whether a function of this name is defined; what it does is judged where it is."""
        return name in self._functions

    def fresh(self, file: Word) -> list[Effect]:
        """What running a file does that the command itself has just written; nothing if it has not."""
        for path in self.site.paths(file):
            content = self.shared.contents.get(path)
            if content is not None and not content.known:
                return [unclear("it runs a file that it writes itself")]
            if content is not None:
                language = _LANGUAGES.get(
                    path.suffix,
                    "python"
                    if content.text.startswith("#!/usr/bin/env python")
                    else "",
                )
                return (
                    [judge_code(language, content.text)]
                    if language
                    else self.deeper(content.text)
                )
        return []

    def deeper(self, text: str) -> list[Effect]:
        """Judges a shell text that a program is given to run."""
        return self._inner().text(text)

    def evaluated(self, text: str) -> list[Effect]:
        """Judges a text that this same shell runs: it knows the temporary files that were made."""
        return self._inner().text(text, self._made)

    def again(self, command: ShellCommand, words: tuple[Word, ...]) -> list[Effect]:
        """Judges other words in the place of a command's own."""
        if self.is_deep:
            return [unclear("it is nested too deeply")]
        return self._inner().command(msgspec.structs.replace(command, words=words))

    def _inner(self) -> "CommandJudge":
        return CommandJudge(self.site, self.shared, self._depth + 1, self._functions)

    def _moved(self, words: tuple[Word, ...]) -> Effect:
        target = next(iter(operands(words, frozenset())), Word(str(self.site.home)))
        if target.text != "-" and target.known:
            for path in self.site.paths(target):
                self.site = self.site.moved(path)
        return READ

    def named(self, words: tuple[Word, ...], name: str) -> Effect:
        """What the files among the arguments of any program mean: secrets, and outputs that go elsewhere."""
        skip = 1 if name in _PATTERN_FIRST else 0
        for place, word in enumerate(words[1:], 1):
            before = words[place - 1].text
            if name == "printenv" and re.search(EXPOSING_NAME, word.text):
                return EFFECTS["secrets"]
            if name in _TEXT_ONLY and word.known:
                continue
            if name == "git" and (
                before
                in (
                    "-m",
                    "--message",
                    "-F",
                    "--grep",
                    "--author",
                    "--format",
                    "-S",
                    "-G",
                )
                or word.text.startswith(
                    ("-m", "--message=", "--grep=", "--format=", "--pretty=")
                )
            ):
                continue
            if skip and not word.text.startswith("-"):
                skip -= 1
                continue
            reason = secret_reason(self.site, word)
            if reason:
                return asks(reason)
            option, sign, value = word.text.partition("=")
            target = (
                Word(value)
                if sign and option in OUTPUT_OPTIONS
                else word
                if before in OUTPUT_OPTIONS
                else None
            )
            if re.match(r"-o[~/.]", word.text):
                target = Word(word.text[2:], word.known)
            if (
                target is not None
                and not target.text.startswith("-")
                and name not in ("grep", "ps", "git", "rg", "ls")
            ):
                outcome = written([target], self.site)
                if outcome.level > Level.WORK:
                    return outcome
        return READ

    def _files(self, command: ShellCommand) -> list[Effect]:
        """What its redirections do."""
        found: list[Effect] = []
        for one in command.redirects:
            text = one.target.text
            if text.startswith(("/dev/tcp/", "/dev/udp/")):
                found.append(
                    asks("it opens a connection to another machine", "network")
                )
            elif one.operator == "<":
                found += [
                    asks(reason)
                    for reason in [secret_reason(self.site, one.target)]
                    if reason
                ]
                found += [EFFECTS["devices"]] if is_device(text) else []
            elif not is_stream(text):
                least = write_floor(one.target, self.site)
                found += (
                    [least]
                    if least is not None
                    else [self._output(command, one.operator, one.target)]
                )
        return found

    def _note(self, files: list[Word], content: Word | None) -> None:
        """Notes what is written to files: they may be run later in the same command."""
        for file in files:
            for path in self.site.paths(file):
                self.shared.contents[path] = content or Word("", known=False)

    def _output(self, command: ShellCommand, operator: str, target: Word) -> Effect:
        self._note([target], printed((command,)) if operator == ">" else None)
        if operator == ">>":
            return written([target], self.site)
        if is_without_end(command):
            return asks("it writes without end")
        return (
            emptied(target, self.site)
            if prints_nothing(command)
            else overwritten(target, self.site)
        )
