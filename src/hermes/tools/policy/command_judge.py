"""Judges a command by what every program in it does, wherever it occurs and whatever starts it."""

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from hermes.text.translation import translator
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
from hermes.tools.policy.environment_variables import variable_effect
from hermes.tools.policy.file_effects import (
    empty_files,
    read_files,
    replace_files,
    write_files,
)
from hermes.tools.policy.file_programs import FILE_JUDGES, judge_files
from hermes.tools.policy.git_program import judge_git
from hermes.tools.policy.inline_code import judge_code
from hermes.tools.policy.interpreters import (
    judge_database,
    judge_interpreter,
    judge_python,
)
from hermes.tools.policy.never_allowed import never_allowed, write_never_allowed
from hermes.tools.policy.paths import PathContext, is_device, is_stream
from hermes.tools.policy.pipelines import (
    is_without_end,
    printed,
    prints_nothing,
    program_name,
)
from hermes.tools.policy.program_call import ProgramCall, operands
from hermes.tools.policy.program_runners import (
    judge_eval,
    judge_find,
    judge_runner,
    judge_shell,
    judge_source,
    judge_xargs,
    runner_name,
)
from hermes.tools.policy.program_table import has_trait, program
from hermes.tools.policy.rules import RuleBook
from hermes.tools.policy.shell_parser import NEW_TEMPORARY_FILE, Unreadable, read_script
from hermes.tools.policy.shell_words import (
    Redirect,
    ShellCommand,
    ShellScript,
    Word,
    word_set,
)
from hermes.tools.policy.table_judge import (
    judge_build,
    judge_by_table,
    judge_commands,
    judge_fetch,
    judge_key_value_store,
    judge_npm,
    judge_path,
    option_effects,
)

t = translator(__name__)

_MAX_DEPTH = 6
_TOO_DEEP = unclear("it is nested too deeply")
_GRAMMAR_WORDS = word_set("! { } then do done fi esac elif else in if while until for")
"""Shell keywords. One in the place of a program means that bash and our parser read the command differently."""
_LANGUAGES = {
    ".py": "python",
    ".js": "node",
    ".mjs": "node",
    ".cjs": "node",
    ".ts": "node",
    ".rb": "ruby",
    ".pl": "perl",
}


class Judgement(msgspec.Struct, frozen=True):
    """The overall effect of a command, and the files it names."""

    effect: Effect
    paths: tuple[Path, ...] = ()
    programs: frozenset[str] = frozenset()
    """The names of the programs it runs."""
    effects: tuple[Effect, ...] = ()
    """All effects that were found; `effect` is the worst of them."""


def judge_command(
    text: str, context: PathContext, book: RuleBook | None = None
) -> Judgement:
    """Judges a command from its parts, under the user's rules."""
    shared = _Shared(book or RuleBook())
    found = CommandJudge(context, shared).judge_script_text(text)
    effect = worst(found)
    reaches = {one.reach for one in found if one.level == Level.WORK}
    if effect.level == Level.WORK and len(reaches) > 1:
        effect = asks(
            "it combines commands that need different access; run them separately",
            effect.reach,
        )
    if effect.level == Level.READ and not all(
        has_trait(name, "inert") for name in shared.programs
    ):
        # A look-up keeps its network access only if no program beside it runs code of the project.
        effect = msgspec.structs.replace(effect, reach="workspace")
    return Judgement(
        effect, tuple(shared.paths), frozenset(shared.programs), (*found, effect)
    )


class _Shared(msgspec.Struct):
    """State shared by all judges of one command."""

    book: RuleBook
    paths: dict[Path, None] = msgspec.field(default_factory=dict)
    """The files it names."""
    programs: set[str] = msgspec.field(default_factory=set)
    """The programs it runs."""
    contents: dict[Path, Word] = msgspec.field(default_factory=dict)
    """What it writes to files, where that is known."""


class CommandJudge:
    """Judges one script. Text that the script passes to a shell gets its own judge, one level deeper."""

    def __init__(
        self,
        context: PathContext,
        shared: _Shared,
        depth: int = 0,
        functions: frozenset[str] = frozenset(),
    ) -> None:
        self.context = context
        self._shared = shared
        self._depth = depth
        self._functions = functions
        self._temporary: frozenset[str] = frozenset()

    def judge_script_text(
        self, text: str, temporary: frozenset[str] = frozenset()
    ) -> list[Effect]:
        """Judges shell code. `temporary` are the variables that already hold new temporary files."""
        if self._depth > _MAX_DEPTH:
            return [_TOO_DEEP]
        variables = {
            "HOME": str(self.context.home),
            "PWD": str(self.context.folders[0]),
            **dict.fromkeys(temporary, NEW_TEMPORARY_FILE),
        }
        try:
            return self._script(read_script(text, variables))
        except Unreadable as error:
            return [unclear(str(error))]

    def _script(self, script: ShellScript) -> list[Effect]:
        if script.bomb:
            return [forbidden("it starts endless copies of itself")]
        self._functions |= script.functions
        self._temporary = script.temporary
        if script.evaluates:
            return [unclear("bash may run a command that it quotes")]
        found = (
            [asks("it starts programs without stopping")] if script.flood else [READ]
        )
        for command in script.commands:
            for redirect in command.redirects:
                found += self._redirect(command, redirect)
            for name, value in command.assignments:
                found.append(variable_effect(name, value, self.context))
            found += self.judge_one(command)
        return found

    def judge_one(self, command: ShellCommand) -> list[Effect]:
        """Judges one program with its arguments."""
        words = command.words
        if not words:
            return []
        if (
            not words[0].plain
            or not words[0].text.isascii()
            or not words[0].text.strip()
        ):
            return [unclear("which program it runs can't be known before it runs")]
        name = program_name(words[0])
        if name in _GRAMMAR_WORDS:
            return [unclear("Hermes can't parse it as a shell command")]
        self._shared.programs.add(name)
        never = never_allowed(name, words, self.context)
        found = [never] if never is not None else []
        ruled = self._ruled(name, words)
        if ruled is None:
            return found + self._program(name, command)
        if ruled.level is Level.WORK:  # no rule can allow what is never allowed
            inside = self._program(name, command)
            found += [effect for effect in inside if effect.level is Level.FORBID]
        return [*found, ruled]

    def _program(self, name: str, command: ShellCommand) -> list[Effect]:
        """Judges a program by its entry in the table."""
        runner = runner_name(command.words)
        entry = program(runner or name)
        call = ProgramCall(self, runner or name, entry, command)
        if entry.runs is not None:
            return judge_runner(call, entry.runs)
        if entry.judge == "cd":
            return [self._changed_folder(call)]
        if entry.judge in JUDGES:
            return JUDGES[entry.judge](call)
        if entry.judge in FILE_JUDGES:
            return FILE_JUDGES[entry.judge](call) + option_effects(call)
        if entry.changes_files:
            return judge_files(call) + option_effects(call)
        return judge_path(call) if "/" in name else judge_by_table(call)

    def _ruled(self, name: str, words: Sequence[Word]) -> Effect | None:
        """The effect that the user's rules assign to a program; None if they don't. Records the files it names."""
        paths = [
            path for word in words if word.plain for path in self.context.paths(word)
        ]
        self._shared.paths.update(dict.fromkeys(paths))
        found = self._shared.book.for_call(name, words, paths, self.context.home)
        if found is None:
            return None
        title, rule = found
        if title == "forbid":
            return forbidden(
                t.logged("your rules forbid it: {rule}", rule=rule.describe())
            )
        if title == "ask":
            return asks(t.logged("your rules say to ask: {rule}", rule=rule.describe()))
        if not all(word.known for word in words) or self._needs_person(paths):
            return None
        return Effect(
            Level.WORK, BY_RULE, "network" if title == "network" else rule.reach
        )

    def _needs_person(self, paths: list[Path]) -> bool:
        """Whether these files need a person's approval even if a rule allows the program."""
        guard, workspace = self.context.guard, self.context.workspace
        files = [path for path in paths if not is_stream(str(path))]
        return bool(
            guard.secret(files, workspace) or guard.protected_reason(files, workspace)
        )

    def defines(self, name: str) -> bool:
        """Whether the script defines a function of this name. Its body is judged at the definition."""
        return name in self._functions

    def written_script(self, file: Word) -> list[Effect]:
        """The effects of running a file that this command wrote earlier; empty if it did not."""
        for path in self.context.paths(file):
            content = self._shared.contents.get(path)
            if content is None:
                continue
            if not content.known:
                return [unclear("it runs a file that it writes itself")]
            is_python = content.text.startswith("#!/usr/bin/env python")
            language = _LANGUAGES.get(path.suffix, "python" if is_python else "")
            if language:
                return [judge_code(language, content.text)]
            return self.judge_text(content.text)
        return []

    def judge_text(self, text: str) -> list[Effect]:
        """Judges shell code that is passed to a program to run."""
        return self._deeper().judge_script_text(text)

    def judge_in_same_shell(self, text: str) -> list[Effect]:
        """Judges code that this same shell runs, so it knows the temporary files created so far."""
        return self._deeper().judge_script_text(text, self._temporary)

    def judge_words(
        self, command: ShellCommand, words: tuple[Word, ...]
    ) -> list[Effect]:
        """Judges a command with its words replaced by others."""
        if self._depth > _MAX_DEPTH:
            return [_TOO_DEEP]
        return self._deeper().judge_one(msgspec.structs.replace(command, words=words))

    def _deeper(self) -> "CommandJudge":
        return CommandJudge(
            self.context, self._shared, self._depth + 1, self._functions
        )

    def _changed_folder(self, call: ProgramCall) -> Effect:
        """`cd`: from here on, the command may be in the new folder or the old one."""
        target = next(iter(operands(call.words)), Word(str(self.context.home)))
        if target.text != "-" and target.known:
            for path in self.context.paths(target):
                self.context = self.context.after_cd(path)
        return READ

    def _redirect(self, command: ShellCommand, redirect: Redirect) -> list[Effect]:
        target = redirect.target
        if target.text.startswith(("/dev/tcp/", "/dev/udp/")):
            return [asks("it opens a connection to another machine", "network")]
        if redirect.operator == "<":
            devices = [EFFECTS["devices"]] if is_device(target.text) else []
            return [read_files([target], self.context), *devices]
        if is_stream(target.text):
            return []
        never = write_never_allowed(target, self.context)
        return [never or self._output(command, redirect.operator, target)]

    def note_written(self, files: Sequence[Word], content: Word | None) -> None:
        """Records what is written to files, because the same command may run them later."""
        for file in files:
            for path in self.context.paths(file):
                self._shared.contents[path] = content or Word("", known=False)

    def _output(self, command: ShellCommand, operator: str, target: Word) -> Effect:
        self.note_written([target], printed((command,)) if operator == ">" else None)
        if operator == ">>":
            return write_files([target], self.context)
        if is_without_end(command):
            return asks("it writes without stopping")
        if prints_nothing(command):
            return empty_files([target], self.context)
        return replace_files([target], self.context)


JUDGES: dict[str, Callable[[ProgramCall], list[Effect]]] = {
    "build": judge_build,
    "commands": judge_commands,
    "database": judge_database,
    "eval": judge_eval,
    "fetch": judge_fetch,
    "find": judge_find,
    "git": judge_git,
    "interpreter": judge_interpreter,
    "key-value-store": judge_key_value_store,
    "npm": judge_npm,
    "python": judge_python,
    "shell": judge_shell,
    "source": judge_source,
    "xargs": judge_xargs,
}
"""Judges for programs that the table can't fully describe, by the name in their `judge` field."""
