"""`CodexRuntime` runs a turn of a session with codex and records it as Hermes does.

`CodexEngine` is created once per process by `app` and keeps each session's codex between turns. The log, the
approvals, the caps and the prompt remain those of Hermes.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import msgspec

from hermes.children.helper_programs import add_workspace
from hermes.codex.approvals import CodexApprovals
from hermes.codex.approver import CodexApprover, CommandPolicy
from hermes.codex.binary import require_codex
from hermes.codex.client import CodexLaunch
from hermes.codex.elicitation import OWN_SERVER
from hermes.codex.environment import (
    child_environment,
    codex_home,
    named_variables,
    path_of_commands,
    permission_profile,
    server_names,
)
from hermes.codex.failures import BACK, CodexGone, explain
from hermes.codex.handover import handover, instructions, knowledge
from hermes.codex.projector import CodexInput, Projector
from hermes.codex.session import CodexSession, Setup, TurnOpening
from hermes.codex.tool_lending import Lender, LendingContext
from hermes.codex.turn import CodexTimeouts, CodexTurnDeps, TurnResult
from hermes.core.budget import BudgetSpent, request_tokens
from hermes.core.ports import Approver, Keeper, ToolContext
from hermes.core.turn import GO_ON, Turn, calls_made
from hermes.schema.event_base import Event
from hermes.schema.events import CodexThread, TurnEnded
from hermes.schema.messages import Message, ToolFinished, Usage, UserMessage
from hermes.schema.model import ModelRequest
from hermes.settings.sections import CodexSettings
from hermes.text.translation import translator

t = translator(__name__)

ARGUMENTS = (
    "app-server",
    *(
        "-c",
        "features.unbounded_connection_retries=false",
    ),  # otherwise a turn never fails while the model can't be reached
    *(
        "-c",
        "shell_environment_policy.ignore_default_excludes=false",
    ),  # commands must not see codex's own keys
)


_MAX_ASIDE_CALLS = 16  # model calls of a turn outside the sessions
_RESTRICTED: Mapping[str, Any] = {
    "default_permissions": ":read-only",
    "web_search": "disabled",
    "features": {
        "shell_tool": False,
        "unified_exec": False,
        "multi_agent": False,
        "code_mode": False,
    },
}


class EngineSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings and dependencies of the engine."""

    codex: CodexSettings = CodexSettings()
    environ: Mapping[str, str]
    secret: Callable[[str], str | None] = lambda _: None
    """Looks up a secret that codex's own settings name. No other secret is passed on."""
    model: str = ""
    max_steps: int = 500
    run_folder: Path
    """A private folder for sockets."""
    lend_command: tuple[str, ...] = ()
    """The command of Hermes' tool server (`hermes mcp serve-tools`); empty to lend no tools."""
    may_read_notes: Callable[[Path], bool] = lambda _: True
    """Whether codex may read the project notes (AGENTS.md) of a folder."""
    arguments: tuple[str, ...] = ARGUMENTS


class CodexTurnServices(msgspec.Struct, frozen=True):
    """The dependencies of a turn: approvals, the policy, lent tools, and the keeper that saves files for undo."""

    approvals: Approver
    judge: CommandPolicy
    lending: LendingContext | None = None
    keeper: Keeper | None = None
    lender: Lender | None = None


class CodexEngine:
    """The codex processes of all sessions. `close` must be awaited at the end."""

    def __init__(self, settings: EngineSettings) -> None:
        self._settings = settings
        self._sessions: dict[str, tuple[CodexSession, Lender]] = {}

    def runtime(
        self,
        session: str,
        approvals: Approver,
        *,
        judge: CommandPolicy,
        lending: LendingContext | None = None,
        keeper: Keeper | None = None,
    ) -> "CodexRuntime":
        """Returns the runtime for a session's next turn. Raises CodexGone if there is no codex program."""
        codex, lender = self._sessions.get(session) or self._make(session)
        company = CodexTurnServices(approvals, judge, lending, keeper, lender)
        return CodexRuntime(codex, company, max_steps=self._settings.max_steps)

    @asynccontextmanager
    async def run_outside_sessions(
        self, company: CodexTurnServices
    ) -> AsyncIterator["CodexRuntime"]:
        """Runs one turn outside the sessions, with the same login.

        Its thread is not stored and has no shell and no other MCP servers, only the tools it is lent.
        """
        settings = self._settings
        lender = Lender(settings.run_folder, settings.lend_command)
        config = codex_home(settings.environ, settings.codex.home) / "config.toml"
        others = {
            name: {"enabled": False} for name in server_names(config) - {OWN_SERVER}
        }
        lent = lender.config.get("mcp_servers", {})
        restricted = {**_RESTRICTED, "mcp_servers": {**others, **lent}}
        codex = CodexSession(
            msgspec.structs.replace(
                self._setup(lender), config=restricted, ephemeral=True
            )
        )
        try:
            yield CodexRuntime(
                codex,
                msgspec.structs.replace(company, lender=lender),
                max_steps=_MAX_ASIDE_CALLS,
            )
        finally:
            await codex.close()
            await lender.close()

    def pid(self, session: str) -> int:
        """Returns the top process of a session; 0 if it has none now."""
        found = self._sessions.get(session)
        return found[0].pid if found else 0

    async def retire(self, session: str) -> None:
        """Ends a session's process; its next turn starts another."""
        if found := self._sessions.get(session):
            await found[0].retire()

    async def close(self) -> None:
        """Ends every process."""
        sessions = list(self._sessions.values())
        self._sessions.clear()
        await asyncio.gather(*(part.close() for pair in sessions for part in pair))

    def _make(self, session: str) -> tuple[CodexSession, Lender]:
        lender = Lender(self._settings.run_folder, self._settings.lend_command)
        self._sessions[session] = made = CodexSession(self._setup(lender)), lender
        return made

    def _setup(self, lender: Lender) -> Setup:
        settings, wanted = self._settings, self._settings.codex
        program = self._program
        profile = permission_profile(settings.environ)
        scratch = {Path("/tmp"), Path(settings.environ.get("TMPDIR") or "/tmp")}  # noqa: S108 - where codex lets write
        return Setup(
            launch=partial(self._launch, program),
            deadlines=CodexTimeouts(
                wanted.progress_timeout,
                wanted.tool_silence_timeout,
                wanted.turn_timeout,
            ),
            approval_policy=wanted.approval_policy,
            model=settings.model,
            config={
                **lender.config,
                **({"default_permissions": profile} if profile else {}),
            },
            may_read_notes=settings.may_read_notes,
            idle_timeout=wanted.idle_timeout,
            scratch=tuple(sorted(scratch)),
        )

    @cached_property
    def _program(self) -> Path:
        """The program, resolved once, before a sandboxed codex can have changed anything."""
        try:
            return require_codex(self._settings.environ, self._settings.codex.binary)
        except CodexGone as missing:
            raise CodexGone(missing.message, hint=f"{missing.hint} {BACK}") from missing

    def _launch(self, program: Path, cwd: Path) -> CodexLaunch:
        """Returns how to start codex. Reads its settings at every start, because they or the login may have changed."""
        settings, wanted = self._settings, self._settings.codex
        config = codex_home(settings.environ, wanted.home) / "config.toml"
        environment = child_environment(
            settings.environ,
            codex_home=wanted.home,
            named=named_variables(config),
            secret=settings.secret,
        )
        arguments = (*settings.arguments, *path_of_commands(settings.environ, config))
        add_workspace(cwd, confined=False)
        return CodexLaunch(program, arguments, environment, cwd, wanted.startup_timeout)


class CodexRuntime:
    """Runs one turn with codex."""

    name = "codex"

    def __init__(
        self, codex: CodexSession, company: CodexTurnServices, *, max_steps: int = 500
    ) -> None:
        self._codex = codex
        self._with = company
        self._max_steps = max_steps

    async def run(self, turn: Turn) -> TurnEnded:
        """Runs the whole turn. Returns how it ended, which the caller records."""
        said, before = _turn_inputs(turn)
        if turn.carried or not said:
            await _settle_carried(turn)
            return TurnEnded(reason="done", usage=turn.budget.used)
        try:
            turn.budget.room(
                request_tokens(
                    ModelRequest(system=(), messages=tuple(turn.history.messages))
                )
            )
            result = await self._run(turn, said, before)
        except BudgetSpent as spent:
            return TurnEnded(
                reason="budget",
                detail=f"{spent.message} {spent.hint}",
                usage=turn.budget.used,
            )
        return _ended(turn, result)

    async def _run(
        self, turn: Turn, said: Sequence[UserMessage], before: tuple[Message, ...]
    ) -> TurnResult:
        history = turn.history
        permissions = self._codex.permissions
        way = handover(
            history.codex_thread,
            turn.session,
            before,
            history.turns,
            permissions=permissions,
        )
        opening = TurnOpening(
            cwd=turn.cwd,
            instructions=instructions(history.prompt),
            thread=way.thread,
            missing=way.missing,
            everything=before,
        )
        words = CodexInput(
            tuple(item for message in said for item in _input(message)),
            f"hermes-{turn.id}",
        )
        learnt = _ThreadRecorder(turn, before, permissions)
        stage = self._turn_deps(turn, learnt)
        if (
            self._with.keeper is not None
        ):  # only once: codex does not wait for us before it changes files
            context = ToolContext(
                f"codex-{turn.id}", turn.session, turn.cwd, lambda _: None, turn.id
            )
            await self._with.keeper.keep(context, ())
        try:
            async with self._lent(turn):
                result = await self._codex.run_turn(opening, words, stage)
        finally:
            await learnt.settle()
        return result

    def _lent(self, turn: Turn) -> AbstractAsyncContextManager[None]:
        return (
            self._with.lender.during(turn.scope, self._with.lending)
            if self._with.lender
            else nullcontext()
        )

    def _turn_deps(self, turn: Turn, learnt: "_ThreadRecorder") -> CodexTurnDeps:
        steps = 0

        def spend(usage: Usage) -> None:
            nonlocal steps
            steps += 1
            turn.budget.spend(usage)
            if steps >= self._max_steps:
                done = calls_made(turn.history)
                raise BudgetSpent(
                    t.later(
                        "stopped after {count} step (budget.max_steps). {done}",
                        "stopped after {count} steps (budget.max_steps). {done}",
                        count=steps,
                        done=done,
                    ),
                    hint=GO_ON,
                )
            turn.budget.room(usage.input_tokens + usage.output_tokens)

        async def write(events: Sequence[Event]) -> None:
            await turn.journal.record(*events)

        def build_approvals(projector: Projector) -> CodexApprovals:
            lending = self._with.lending
            veto = lending.veto if lending else None
            approver = CodexApprover(
                self._with.approvals,
                write,
                projector.refusals,
                explain,
                partial(veto.reason, turn.session) if veto else None,
            )
            return CodexApprovals(approver, self._with.judge, projector.items, turn.cwd)

        async def explain(reason: str) -> None:
            await turn.journal.record(UserMessage(text=reason, delivery="steer"))

        steers = _steers(turn)
        return CodexTurnDeps(
            write=write,
            show=turn.journal.show,
            asking=build_approvals,
            opened=learnt.opened,
            begun=learnt.begun,
            spend=spend,
            steers=lambda: next(steers),
            interrupted=turn.interrupted,
        )


class _ThreadRecorder:
    """Records what codex's thread contains: the earlier messages, and this turn once codex has begun it.

    Messages that codex did not accept are sent again in the next turn.
    """

    def __init__(
        self, turn: Turn, before: tuple[Message, ...], permissions: str
    ) -> None:
        self._turn = turn
        self._before = before
        self._permissions = permissions
        self._thread = ""
        self._has_begun = False

    def opened(self, thread: str) -> None:
        self._thread = thread

    async def begun(self) -> None:
        self._has_begun = True
        await self._record(self._before, self._turn.id)

    async def settle(self) -> None:
        """Records the outcome when the turn is over, or could not begin."""
        if self._thread:
            await self._record(
                self._turn.history.messages if self._has_begun else self._before
            )

    async def _record(self, known: Sequence[Message], turn: str = "") -> None:
        row = CodexThread(
            thread=self._thread,
            owner=self._turn.session,
            known=knowledge(known),
            turn=turn,
            permissions=self._permissions,
        )
        await self._turn.journal.record(row)


def _steers(turn: Turn) -> Iterator[Sequence[CodexInput]]:
    """Yields, each time it is advanced, the user's new messages for the running turn."""
    given: set[int] = set()
    while True:
        new = [seq for seq in turn.history.steers() if seq not in given]
        given.update(new)
        yield [
            CodexInput(
                tuple(_input(turn.history.waiting[seq])), f"hermes-{turn.id}-{seq}", seq
            )
            for seq in new
        ]


def _turn_inputs(turn: Turn) -> tuple[list[UserMessage], tuple[Message, ...]]:
    """Returns the messages that this turn answers, and everything before them."""
    messages = turn.history.messages
    start = turn.history.turns[-1].messages if turn.history.turns else 0
    said = [message for message in messages[start:] if isinstance(message, UserMessage)]
    return said, tuple(messages[:start])


async def _settle_carried(turn: Turn) -> None:
    """Closes calls that were waiting for a person when Hermes ended. Their codex process is gone, so they can't run."""
    if turn.carried:
        why = "Not run: codex ended before it was answered."  # not translated
        await turn.journal.record(
            *(
                ToolFinished(call_id=call.id, name=call.name, text=why, ok=False)
                for call in turn.carried
            )
        )


def _input(message: UserMessage) -> Iterator[dict[str, Any]]:
    if message.text:
        yield {"type": "text", "text": message.text}
    for image in message.images:
        remote = image.source.startswith(("https://", "http://", "data:"))
        yield (
            {"type": "image", "url": image.source}
            if remote
            else {"type": "localImage", "path": image.source}
        )


def _ended(turn: Turn, result: TurnResult) -> TurnEnded:
    used = turn.budget.used
    if result.error:
        said = (
            result.error
            if result.info is None and result.should_retire
            else explain(result.error, result.info)
        )
        limits = ("usageLimitExceeded", "rateLimitExceeded")
        failure = "rate_limited" if result.info in limits else ""
        return TurnEnded(reason="failed", detail=said, failure=failure, usage=used)
    return TurnEnded(reason="interrupted" if result.interrupted else "done", usage=used)
