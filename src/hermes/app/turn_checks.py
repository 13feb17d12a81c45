"""Checks a turn that changed files by the project's rules, before it counts as done.

The commands of the rules run in the sandbox, after the user has agreed to them once. When one fails, the model is told
and may try again, a limited number of times. The result is a row of the log, which every surface shows below the answer.
"""

import asyncio
import logging
import shlex
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from hermes.app.answer_claims import claimed_files, unchanged_claims
from hermes.core.calls import writable
from hermes.core.fence import fenced
from hermes.core.ports import Approver, Keeper, PolicyDecision, ToolContext
from hermes.core.turn import Runtime, Turn
from hermes.errors import ToolFailed, in_sentences
from hermes.primitives.tasks import running
from hermes.schema.events import (
    ApprovalRequested,
    RuleCheck,
    TurnChecked,
    TurnEnded,
)
from hermes.schema.messages import AssistantMessage, UserMessage
from hermes.schema.tool_spec import ToolResult
from hermes.settings.tools import LanguageServerSettings
from hermes.text.translation import translator
from hermes.tools.escapes import shown
from hermes.tools.process.long_output import OutputFolder
from hermes.tools.process.session_commands import Surroundings
from hermes.tools.process.terminal_tool import TerminalTool
from hermes.tools.project_rules import (
    FILES_PLACEHOLDER,
    ProjectRules,
    project_rules,
)
from hermes.tools.project_trust import checks_place, is_trusted, trust
from hermes.tools.shadow import ShadowFailed, Shadows

t = translator(__name__)

log = logging.getLogger("hermes.app")

MAX_REPAIRS = 2
"""How often the model may try to repair what a check found."""
_CHECK_TIMEOUT_S = 600
_MAX_SHOWN_CHARS = 2_000
_MAX_TOLD_CHARS = 6_000
_MAX_NAMED_FILES = 5
_MAX_LINTED_FILES = 200
_WRITING_TOOLS = frozenset(("write_file", "edit_file", "apply_patch"))
_NO_SANDBOX = t.logged(
    "there is no sandbox here, and the project's commands run only in one"
)
_NOT_AGREED = t.logged("you did not allow it")
_NOBODY = t.logged("nobody could be asked; allow it with: hermes project trust")


class CheckPolicy(Protocol):
    """Judges a command by the session's policy as it is at that moment: the mode may change in a turn."""

    def check(self, command: str, folder: Path) -> PolicyDecision: ...


class CheckDeps(msgspec.Struct, frozen=True):
    """What checks need: the policy of the session, who is asked, what was saved, and how commands run."""

    policy: "CheckPolicy"
    approvals: Approver
    keeper: Keeper
    shadows: Shadows
    surroundings: Surroundings
    refused: set[tuple[str, str]]
    """Sessions, and the versions of rules that their user did not agree to."""
    lsp: LanguageServerSettings = LanguageServerSettings()


class CheckedRuntime:
    """Runs turns with another runtime and checks them. Implements `Runtime`."""

    def __init__(
        self, inner: Runtime, checks: "TurnChecks", *, repairs: int = MAX_REPAIRS
    ) -> None:
        self._inner = inner
        self._checks = checks
        self._repairs = repairs
        self.name = inner.name

    async def run(self, turn: Turn) -> TurnEnded:
        """Runs the turn, checks it, and lets the model repair what the checks found."""
        found: TurnChecked | None = None
        for attempt in range(self._repairs + 1):
            ended = await self._inner.run(turn)
            if ended.reason != "done":
                await self._checks.skip(turn, ended)
                return ended
            again = found is not None and bool(found.checks)
            async with running(self._checks.check(turn, again=again)) as check:
                async with running(turn.interrupted.wait()) as stop:
                    await asyncio.wait(
                        {check, stop}, return_when=asyncio.FIRST_COMPLETED
                    )
                if not check.done():
                    break
                found = check.result()
            told = repair_text(found) if found is not None else ""
            if (
                attempt == 0 and self._repairs
            ):  # a second look at the same errors helps nobody
                told = "\n\n".join(filter(None, (told, self._checks.diagnostics)))
            if not told or attempt == self._repairs:
                return ended
            await turn.journal.record(UserMessage(text=told, origin="hermes"))
        return TurnEnded(reason="interrupted", usage=turn.budget.used)


class TurnChecks:
    """The checks of one session's turns."""

    def __init__(self, deps: CheckDeps) -> None:
        self._deps = deps
        self.diagnostics = ""
        """What language servers found in the files of the last turn that was checked, for the model."""

    async def skip(self, turn: Turn, ended: TurnEnded) -> None:
        """Says that a turn was not checked, if it changed files and there are rules."""
        rules = project_rules(turn.cwd)
        if not rules.checks or not await self._changed(turn):
            return
        why = t.logged("the turn ended before ({reason})", reason=ended.reason)
        checks = tuple(_not_run(command, why) for command in rules.checks)
        await turn.journal.record(_report(checks, (), (), 0))

    async def check(self, turn: Turn, *, again: bool = False) -> TurnChecked | None:
        """Checks a turn that has answered. Returns what was recorded; None if there was nothing to say.

        With `again`, a check has failed in this turn. It runs also if the files are as they were before the turn.
        """
        rules = await asyncio.to_thread(project_rules, turn.cwd)
        answer = _last_answer(turn)
        self.diagnostics = await self._diagnose(turn)
        if not (rules.checks or rules.protect or claimed_files(answer)):
            return None
        changed = await self._changed(turn)
        if changed is None:
            return None
        unchanged = unchanged_claims(answer, changed, turn.history.messages, turn.cwd)
        touched = [path for path in changed if rules.protects(path, turn.cwd)]
        checks: tuple[RuleCheck, ...] = ()
        if rules.checks and (changed or again):
            checks = await self._run_all(turn, rules, changed)
        if not (checks or touched or unchanged):
            return None
        names = tuple(_relative(path, turn.cwd) for path in touched)
        row = _report(checks, names, unchanged, len(changed))
        await turn.journal.record(row)
        return row

    async def run_command(self, session: str, cwd: Path, command: str) -> RuleCheck:
        """Runs a command that the user named themselves, in the sandbox and under the session's policy."""
        output = OutputFolder(self._deps.surroundings.readable[0])
        terminal = TerminalTool(
            output, self._deps.surroundings.environment, self._deps.surroundings
        )
        try:
            sandbox = await asyncio.to_thread(lambda: terminal.sandbox)
            if sandbox.kind == "none":
                return _not_run(command, _NO_SANDBOX)
            context = ToolContext(f"verify-{session}", session, cwd, lambda _: None)
            return await self._run(terminal, context, command)
        finally:
            await terminal.close()

    async def _diagnose(self, turn: Turn) -> str:
        """The errors that language servers find in the files that the turn changed; empty if there are none."""
        if not _wrote(turn):
            return ""
        from hermes.app.language_checks import TIMEOUT_S, language_checks

        changed = await self._changed(turn) or ()
        root, environ = turn.cwd.resolve(), self._deps.surroundings.environment
        checks = await asyncio.to_thread(
            lambda: [*language_checks(self._deps.lsp, changed, root, environ)]
        )
        if not checks:
            return ""
        output = OutputFolder(self._deps.surroundings.readable[0])
        terminal = TerminalTool(output, environ, self._deps.surroundings)
        found: list[str] = []
        try:
            sandbox = await asyncio.to_thread(lambda: terminal.sandbox)
            for check in checks if sandbox.kind != "none" else ():
                arguments = {
                    "command": f"cd {shlex.quote(str(root))} && {check.command}",
                    "timeout": TIMEOUT_S + 5,
                }
                result = await terminal.terminal.run(arguments, self._context(turn))
                body, _, notes = result.text.rpartition("[")
                if not result.ok and "exit code 1" in notes:
                    text = writable(body.strip())[:_MAX_TOLD_CHARS]
                    found.append(fenced(text, check.server))
        except ToolFailed as error:
            log.info("a language server could not be asked: %s", error)
        finally:
            await terminal.close()
        if not found:
            return ""
        head = (  # not translated
            "Language servers report errors in the files you changed. Repair those that your changes caused."
        )
        return "\n\n".join((head, *found))

    async def _changed(self, turn: Turn) -> tuple[Path, ...] | None:
        """The files that a turn changed; None if that can't be told."""
        shadow = self._deps.shadows.at(turn.cwd)
        try:
            return await asyncio.to_thread(shadow.changed, turn.id)
        except (ShadowFailed, OSError) as error:
            log.warning("what turn %s changed is not known: %s", turn.id, error)
            return None

    async def _run_all(
        self, turn: Turn, rules: ProjectRules, changed: Sequence[Path]
    ) -> tuple[RuleCheck, ...]:
        output = OutputFolder(self._deps.surroundings.readable[0])
        terminal = TerminalTool(
            output, self._deps.surroundings.environment, self._deps.surroundings
        )
        try:
            refusal = await self._refusal(turn, rules, terminal)
            if refusal:
                return tuple(_not_run(command, refusal) for command in rules.checks)
            context = self._context(turn)
            await self._deps.keeper.keep(context, ())
            commands = [_with_files(one, changed, turn.cwd) for one in rules.checks]
            return tuple([await self._run(terminal, context, one) for one in commands])
        finally:
            await terminal.close()

    async def _refusal(
        self, turn: Turn, rules: ProjectRules, terminal: TerminalTool
    ) -> str:
        """Why the commands of the rules may not run; empty if they may."""
        sandbox = await asyncio.to_thread(lambda: terminal.sandbox)
        if sandbox.kind == "none":
            return _NO_SANDBOX
        home, place = self._deps.surroundings.hermes_home, checks_place(turn.cwd)
        if await asyncio.to_thread(is_trusted, home, place, rules.digest):
            return ""
        version = (turn.session, rules.digest)
        if version in self._deps.refused:
            return _NOT_AGREED
        answer = await self._deps.approvals.ask(_question(turn, rules))
        if answer.by == "nobody":
            return _NOBODY
        if answer.answer == "deny":
            self._deps.refused.add(version)
            return _NOT_AGREED
        await asyncio.to_thread(trust, home, {place: rules.digest})
        return ""

    async def _run(
        self, terminal: TerminalTool, context: ToolContext, command: str
    ) -> RuleCheck:
        decision: PolicyDecision = await asyncio.to_thread(
            self._deps.policy.check, command, context.cwd
        )
        if decision.verdict == "forbid":
            return _not_run(command, decision.reason)
        began = time.monotonic()
        arguments = {"command": f"cd {shlex.quote(str(context.cwd))} && {command}"}
        try:
            result = await terminal.terminal.run(
                {**arguments, "timeout": _CHECK_TIMEOUT_S}, context
            )
        except ToolFailed as error:
            result = ToolResult(text=in_sentences(error), ok=False)
        return _checked(command, result, time.monotonic() - began)

    def _context(self, turn: Turn) -> ToolContext:
        return ToolContext(
            f"check-{turn.id}", turn.session, turn.cwd, lambda _: None, turn=turn.id
        )


def repair_text(found: TurnChecked) -> str:
    """What the model is told about checks that failed; empty if there is nothing to repair."""
    failed = [one for one in found.checks if one.outcome == "failed"]
    if not failed and not found.protected:
        return ""
    parts = ["Hermes checked your changes by the project's rules."]  # not translated
    for one in failed:
        parts.append(f"`{one.command}` failed ({one.detail}):")
        parts.append(fenced(one.output or "(no output)", one.command))
    if found.protected:
        names = ", ".join(found.protected[:_MAX_NAMED_FILES])
        parts.append(
            f"These files are protected and must not change: {names}."
        )  # not translated
    parts.append(  # not translated
        "Repair this if your changes caused it. If they did not, or you can't, tell the user plainly what fails."
    )
    return "\n\n".join(parts)


def _question(turn: Turn, rules: ProjectRules) -> ApprovalRequested:
    commands = "\n".join(map(shown, rules.checks))
    return ApprovalRequested(
        call_id=f"check-{turn.id}",
        name="verify",
        arguments=msgspec.json.encode({"commands": rules.checks}).decode(),
        summary=f"Run in the sandbox after each turn that changes files:\n{commands}",  # not translated
        reason=t.logged(
            "from the project's rules; you are asked again only if they change"
        ),
        shape=f"verify {checks_place(turn.cwd)} {rules.digest}",
        binding=rules.digest,
        memorable=False,
    )


def _with_files(command: str, changed: Sequence[Path], cwd: Path) -> str:
    if FILES_PLACEHOLDER not in command:
        return command
    existing = [_relative(path, cwd) for path in changed if path.is_file()]
    named = [f"./{one}" if one.startswith("-") else one for one in existing]
    listed = " ".join(map(shlex.quote, named[:_MAX_LINTED_FILES])) or "."
    return command.replace(FILES_PLACEHOLDER, listed)


def _relative(path: Path, cwd: Path) -> str:
    root = cwd.resolve()
    if path.is_relative_to(root):
        return str(path.relative_to(root))
    return str(path)


def _not_run(command: str, why: str) -> RuleCheck:
    return RuleCheck(command=command, outcome="not_run", detail=why)


def _checked(command: str, result: ToolResult, seconds: float) -> RuleCheck:
    body, _, notes = result.text.rpartition("[")
    if result.ok:
        return RuleCheck(command=command, outcome="passed", detail=f"{seconds:.1f} s")
    how = notes.partition("]")[0].partition(";")[0] or t.logged("it failed")
    output = writable(body.strip())
    if len(output) > _MAX_TOLD_CHARS:
        output = f"[...]\n{output[-_MAX_TOLD_CHARS:]}"
    return RuleCheck(
        command=command,
        outcome="failed",
        detail=f"{how}, {seconds:.1f} s",
        output=output,
    )


def _check_in_words(check: RuleCheck) -> str:
    command, detail = _one_line(check.command), _one_line(check.detail)
    match check.outcome:
        case "passed":
            return t.logged("Verified: {command} ({detail}).", command=command, detail=detail)  # fmt: skip
        case "failed":
            return t.logged("Check failed: {command} ({detail}).", command=command, detail=detail)  # fmt: skip
        case _:
            return t.logged(
                "Not verified: {command} was not run, because {reason}.",
                command=command,
                reason=detail,
            )


def _report(
    checks: tuple[RuleCheck, ...],
    touched: tuple[str, ...],
    unchanged: tuple[str, ...],
    changed: int,
) -> TurnChecked:
    parts = list(map(_check_in_words, checks))
    if touched:
        parts.append(
            t.logged(
                "Protected by the project, but changed: {names} ({count} file).",
                "Protected by the project, but changed: {names} ({count} files).",
                count=len(touched),
                names=", ".join(map(shown, touched[:_MAX_NAMED_FILES])),
            )
        )
    if unchanged:
        names = ", ".join(unchanged[:_MAX_NAMED_FILES])
        parts.append(
            t.logged(
                "The answer claims changes to {names}, but nothing changed there.",
                names=names,
            )
        )
    ok = (
        not touched and not unchanged and all(one.outcome == "passed" for one in checks)
    )
    return TurnChecked(
        ok=ok,
        detail="\n".join(parts),
        checks=checks,
        changed=changed,
        protected=touched,
        unchanged=unchanged,
    )


def _one_line(text: str) -> str:
    return " ".join(shown(text).split())


def _wrote(turn: Turn) -> bool:
    """Whether the turn called a tool that may have written files, so that looking for changes is worth it."""
    for message in reversed(turn.history.messages):
        if isinstance(message, UserMessage) and message.origin == "user":
            return False
        if isinstance(message, AssistantMessage):
            names = {call.name for call in message.tool_calls}
            if names & _WRITING_TOOLS:
                return True
    return False


def _last_answer(turn: Turn) -> str:
    last = turn.history.messages[-1] if turn.history.messages else None
    return last.text if isinstance(last, AssistantMessage) else ""
