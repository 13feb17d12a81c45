"""Runs a review: a turn on an unsaved copy of the conversation. All tools are named, but only four work."""

import asyncio
import tempfile
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, NamedTuple

from hermes.core.budget import BudgetSpent, Cap, Price, TurnBudget, parse_amount
from hermes.core.calls import CallRunner
from hermes.core.history import Beginning, ConversationHistory
from hermes.core.ports import Model, PolicyDecision, Tool, ToolContext, Veto
from hermes.core.turn import NativeRuntime, Runtime, Turn
from hermes.errors import HermesError, in_sentences
from hermes.learning.change import Change
from hermes.learning.review import ALLOWED, INSTRUCTIONS, ReviewChanges
from hermes.schema.event_base import Event
from hermes.schema.events import (
    ApprovalAnswered,
    ApprovalRequested,
    AuxiliaryCalled,
    QuestionAnswered,
    QuestionAsked,
    TurnEnded,
)
from hermes.schema.messages import AssistantMessage, UserMessage
from hermes.schema.tool_spec import ToolResult
from hermes.text.translation import translator

t = translator(__name__)

_MAX_STEPS = 16
_MAX_REPLY_TOKENS = 4_000
_FORBIDDEN = PolicyDecision("forbid", reason="this is a review")  # not translated
_NOT_IN_A_REVIEW = "this is a review: only memory, skills_list, skill_view and skill_manage work in it"  # not translated


class ReviewDeps(NamedTuple):
    """The dependencies of a review."""

    model: Callable[[str], AbstractAsyncContextManager[Model]]
    """The model that reviews a session, for the duration of the review."""
    tools: Callable[[str], Mapping[str, Tool]]
    """The tools that the session's prompt names."""
    check_budget: Callable[[str, int], None]
    """Raises BudgetSpent if a call with this many input tokens would exceed one of the user's caps."""
    price: Callable[[str], Price | None]
    """The maximum price of a token in a session."""
    engine: Callable[
        [str, Mapping[str, Tool]], AbstractAsyncContextManager[Runtime] | None
    ] = lambda *_: None
    """An engine that reviews a session with these tools instead of a model; None for a model."""
    veto: Callable[[], Veto | None] = lambda: None
    """The plugins' decision about each call."""


class Review:
    """The turn of a review: the conversation's last request, byte for byte, and one more message."""

    def __init__(self, deps: ReviewDeps, tools: tuple[Tool, ...]) -> None:
        self._deps = deps
        self._tools = tools
        self.called = AuxiliaryCalled(task="review")
        """What the review cost, even if it was interrupted."""

    async def run(
        self, session: str, history: ConversationHistory, amount: str
    ) -> TurnEnded:
        """Runs until the model is done or `amount` is spent. The tools collect the changes."""
        tools = {
            **self._deps.tools(session),
            **{one.spec.name: one for one in self._tools},
        }
        history.messages.append(UserMessage(text=INSTRUCTIONS, origin="hermes"))
        budget = _ReviewBudget(amount, self._deps, session)
        turn = Turn(
            session=session,
            cwd=Path("/"),
            journal=UnsavedLog(history),
            history=history,
            budget=budget,
        )
        if (
            engine := self._deps.engine(
                session, {one.spec.name: one for one in self._tools}
            )
        ) is not None:
            return await self._by_engine(engine, turn)
        async with self._deps.model(session) as model:
            calls = CallRunner(
                tools, ReviewPolicy(), NobodyToAsk(), veto=self._deps.veto()
            )
            ended = TurnEnded(reason="failed", detail=t.logged("it was cut off"))
            try:
                runtime = NativeRuntime(
                    model,
                    calls,
                    max_steps=_MAX_STEPS,
                    max_output_tokens=_MAX_REPLY_TOKENS,
                )
                runtime.sums_up = False
                ended = await runtime.run(turn)
            finally:
                failure = ended.detail if ended.reason == "failed" else ""
                self.called = AuxiliaryCalled(
                    task="review",
                    provider=model.provider,
                    model=model.name,
                    usage=budget.used,
                    failure=failure,
                )
        return ended

    async def _by_engine(
        self, engine: AbstractAsyncContextManager[Runtime], turn: Turn
    ) -> TurnEnded:
        """Runs the review in codex, which gets the whole conversation and an empty folder."""
        history = turn.history
        history.codex_thread = None
        history.turns.append(
            Beginning(0, "review", len(history.messages) - 1, frozenset())
        )
        ended = TurnEnded(reason="failed", detail=t.logged("it was cut off"))
        with tempfile.TemporaryDirectory(prefix="hermes-review-") as folder:
            turn.cwd = Path(folder)
            async with engine as runtime:
                try:
                    ended = await runtime.run(turn)
                except HermesError as error:
                    ended = TurnEnded(reason="failed", detail=in_sentences(error))
                finally:
                    failure = ended.detail if ended.reason == "failed" else ""
                    replies = [
                        one
                        for one in history.messages
                        if isinstance(one, AssistantMessage)
                    ]
                    model = replies[-1].model if replies else ""
                    self.called = AuxiliaryCalled(
                        task="review",
                        provider=runtime.name,
                        model=model,
                        usage=turn.budget.used,
                        failure=failure,
                    )
        return ended


class UnsavedLog:
    """A journal that is not saved, because a review is not part of the conversation."""

    def __init__(self, history: ConversationHistory) -> None:
        self._history = history
        self._seq = 1 << 40  # beyond any row of the log

    async def record(self, *events: Event) -> tuple[int, ...]:
        """Adds the events only to the history."""
        seqs: list[int] = []
        for event in events:
            self._seq += 1
            self._history.add(self._seq, event, "")
            seqs.append(self._seq)
        return tuple(seqs)

    def note(self, *events: Event) -> None:
        """Adds the events to the history, without waiting."""
        for event in events:
            self._history.add(self._seq, event, "")

    async def flush(self) -> None:
        """Does nothing, as nothing is written."""

    async def nothing_under_way(self) -> None:
        """Does nothing, as nothing is written."""

    def show(self, event: Event) -> None:
        """Does nothing, as nobody is watching."""


class ReviewPolicy:
    """The policy of a review: other tools are refused. They stay in the prompt, whose bytes must not change."""

    def judge(
        self,
        tool: Tool,
        arguments: Mapping[str, Any],  # noqa: ARG002
        cwd: Path,  # noqa: ARG002
    ) -> PolicyDecision:
        """Allows the four tools for memory and skills, and forbids everything else."""
        return (
            PolicyDecision("allow")
            if tool.spec.name in ALLOWED
            else PolicyDecision("forbid", reason=_NOT_IN_A_REVIEW)
        )

    def remember(self, request: ApprovalRequested, rule: str = "") -> None:
        """Does nothing, as nothing is asked."""

    def check(
        self,
        command: str,  # noqa: ARG002
        folder: Path,  # noqa: ARG002
        *,
        workspace: Path | None = None,  # noqa: ARG002
    ) -> PolicyDecision:
        """Denies every command of codex."""
        return _FORBIDDEN

    def check_files(
        self,
        paths: tuple[Path, ...],  # noqa: ARG002
        workspace: Path,  # noqa: ARG002
        *,
        below: tuple[Path, ...] = (),  # noqa: ARG002
    ) -> PolicyDecision:
        return _FORBIDDEN

    def check_host(self, host: str) -> PolicyDecision:  # noqa: ARG002 - as above
        return _FORBIDDEN

    def check_tool(self, name: str) -> PolicyDecision:  # noqa: ARG002 - as above
        return _FORBIDDEN


class NobodyToAsk:
    """Answers every question with no, because nobody can be asked."""

    async def ask(self, request: ApprovalRequested) -> ApprovalAnswered:
        """Answers no."""
        return ApprovalAnswered(call_id=request.call_id, answer="deny", by="nobody")

    async def question(self, request: QuestionAsked) -> QuestionAnswered:
        """Returns no answer."""
        return QuestionAnswered(call_id=request.call_id, by="nobody")


class ReviewTools:
    """Collects the changes of a review."""

    def __init__(self, stage: ReviewChanges) -> None:
        self._stage = stage

    def text_of(self, name: str, path: str) -> str | None:
        return self._stage.text_of(name, path)

    async def submit(self, change: Change, context: ToolContext) -> ToolResult:  # noqa: ARG002 - the port's shape
        await asyncio.to_thread(self._stage.add, change)
        return ToolResult(text="Noted.")


class _ReviewBudget(TurnBudget):
    """The review's own cap, below those of the user."""

    def __init__(self, amount: str, deps: ReviewDeps, session: str) -> None:
        caps = [Cap("review", *parse_amount(amount))] if amount else []
        super().__init__(caps, deps.price(session))
        self._allowed: Callable[[int], None] = lambda tokens: deps.check_budget(
            session, tokens
        )

    # pyrefly: ignore[missing-override-decorator]
    def room(self, input_tokens: int) -> int | None:
        self._allowed(input_tokens)
        try:
            return super().room(input_tokens)
        except BudgetSpent as spent:
            hint = t.later("Raise learning.budget for longer conversations.")
            raise BudgetSpent(
                t.later("the review stopped at its own cap (learning.budget)."),
                hint=hint,
            ) from spent
