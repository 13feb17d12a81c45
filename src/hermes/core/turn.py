"""One turn: ask the model and run its calls, again and again, until an answer, a cap, an interrupt or an error.

The turn belongs to its session and knows nothing of who watches. All that it does is written to the journal.
"""

import asyncio
import itertools
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Literal, Protocol

import msgspec

from hermes.core import rejected_images
from hermes.core.budget import BudgetSpent, TurnBudget, request_tokens
from hermes.core.calls import CallRunner, CallScope, ReadyCall, Unusable, finished
from hermes.core.history import ConversationHistory, change_pictures
from hermes.core.ports import ContextEngine, ImageReader, Journal, Model
from hermes.core.reply_check import ReplyJudge, ReplyVerdict
from hermes.errors import ModelError, in_sentences
from hermes.primitives.tasks import cancel_and_wait, running
from hermes.schema.event_base import Event
from hermes.schema.events import (
    CompactionFailed,
    LoginExpired,
    MessageDelta,
    ModelPreparing,
    ModelRetried,
    PictureReduced,
    ReasoningDelta,
    ReplyRejected,
    SessionCompacted,
    SessionPrompted,
    Steered,
    ToolGenerating,
    TurnEnd,
    TurnEnded,
)
from hermes.schema.messages import (
    AssistantMessage,
    Message,
    ToolCall,
    ToolFinished,
    UserMessage,
)
from hermes.schema.model import (
    LoginLost,
    ModelRequest,
    ReplyFinished,
    ReplyPreparing,
    Retrying,
    TextDelta,
    ToolCallStarted,
)
from hermes.schema.model import ReasoningPiece as Thought
from hermes.text.translation import translator

t = translator(__name__)

_SUM_UP = (
    "You have used up the steps of this turn, so no more calls will run. Do not call tools. Tell the user briefly what "
    "you have done, what is left to do, and how you would go on."
)
GO_ON = t.later("Say “go on” to continue.")
_CANCEL_TIMEOUT_S = 1.0  # for a cancelled tool to clean up


class Turn:
    """The circumstances and state of a turn, so that it can be closed properly after an interrupt at any point."""

    def __init__(
        self,
        *,
        session: str,
        cwd: Path,
        journal: Journal,
        history: ConversationHistory,
        budget: TurnBudget,
        id: str = "",  # noqa: A002
    ) -> None:
        self.session = session
        self.id = id
        self.cwd = cwd
        self.journal = journal
        self.history = history
        self.budget = budget
        self.carried: tuple[ToolCall, ...] = ()
        """Calls of an earlier turn that still wait for a person. They come first."""
        self.interrupted = asyncio.Event()
        self.partial: list[str] = []

    @property
    def scope(self) -> CallScope:
        """Where its calls run."""
        return CallScope(self.journal, self.session, self.id, self.cwd)

    def interrupt(self) -> None:
        """Ends the turn as soon as possible. What was streamed is kept."""
        self.interrupted.set()


class NoteReader(Protocol):
    """Reads the project's notes while a session works."""

    def for_paths(
        self, history: ConversationHistory, cwd: Path, paths: Sequence[Path]
    ) -> Sequence[UserMessage]:
        """The notes of the folders of these files, unless the model has them already."""
        ...

    def after_compaction(
        self, history: ConversationHistory, before: Sequence[Message], cwd: Path
    ) -> Sequence[UserMessage]:
        """What the model needs to read again after a compaction removed it."""
        ...


class Runtime(Protocol):
    """Runs one turn to its end and writes everything to the turn's journal. The caller records the end."""

    name: str

    async def run(self, turn: Turn) -> TurnEnded: ...


class NativeRuntime:
    """Runs turns with Hermes' own loop. Implements `Runtime`."""

    name = "native"

    def __init__(  # noqa: PLR0913 - the ports have defaults
        self,
        model: Model,
        calls: CallRunner,
        *,
        max_steps: int,
        max_output_tokens: int | None = None,
        context: ContextEngine | None = None,
        sight: ImageReader | None = None,
        notes: NoteReader | None = None,
        adapted: Callable[[SessionPrompted], SessionPrompted] = lambda prompt: prompt,
    ) -> None:
        self._model = model
        self._calls = calls
        self._context = context
        self._sight = sight
        self._notes = notes
        self._adapted = adapted
        self._max_steps = max_steps
        self.sums_up = True
        """Whether the model is asked at the last step what was done and what is left."""
        self._max_output = max_output_tokens

    async def run(self, turn: Turn) -> TurnEnded:
        """Runs the turn. Returns its end, which the caller records."""
        if turn.interrupted.is_set():  # an answer that is there at once would win
            return _ended(turn, "interrupted")
        work = asyncio.ensure_future(self._work(turn))
        try:
            async with running(turn.interrupted.wait()) as stop:
                await asyncio.wait({work, stop}, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                return work.result()
            await cancel_and_wait(work, timeout_s=_CANCEL_TIMEOUT_S)
            await self._keep_partial(turn)
            return _ended(turn, "interrupted")
        finally:
            turn.budget.release()
            work.cancel()

    async def _work(self, turn: Turn) -> TurnEnded:
        judge = ReplyJudge()
        if turn.carried:
            await self._calls.run(turn.scope, self._calls.prepare(turn.carried), ())
        while turn.budget.take_step(self._max_steps):
            await _take_steers(turn)
            try:
                message = await self._ask_with_room(turn)
            except ModelError as error:
                failed = _ended(turn, "failed", in_sentences(error))
                return msgspec.structs.replace(failed, failure=error.reason)
            except BudgetSpent as error:
                return _ended(turn, "budget", in_sentences(error), "spending")
            verdict = judge.judge(message)
            if verdict.kind == "calls":
                verdict = await self._run_calls(turn, message, judge)
            else:
                await _note(turn, message, verdict)
            if verdict.kind == "end":
                return _ended(turn, verdict.end, verdict.detail)
            if verdict.kind == "answer":
                await turn.journal.nothing_under_way()  # such as a steer
                if not turn.history.steers():
                    return _ended(turn, "done")
        return await self._out_of_steps(turn)

    async def _out_of_steps(self, turn: Turn) -> TurnEnded:
        """Ends a turn at its step limit: the model sums up without making calls."""
        stopped = t.logged(
            "stopped after {count} step (budget.max_steps).",
            "stopped after {count} steps (budget.max_steps).",
            count=self._max_steps,
        )
        if not self.sums_up:
            return _ended(turn, "budget", stopped, "steps")
        await turn.journal.record(UserMessage(text=_SUM_UP, origin="hermes"))
        try:
            message = await self._ask_with_room(turn)
        except (ModelError, BudgetSpent):
            told = f"{stopped} {calls_made(turn.history)} {GO_ON}"
            return _ended(turn, "budget", told, "steps")
        await _note(
            turn,
            message,
            ReplyVerdict("end", refuse_calls="Not run: the turn had no steps left."),
        )
        done = "" if message.text.strip() else f" {calls_made(turn.history)}"
        return _ended(turn, "budget", f"{stopped}{done} {GO_ON}", "steps")

    async def _ask_with_room(self, turn: Turn) -> AssistantMessage:
        """Makes one model call. Compacts if the provider finds the request too long, and leaves out images that it
        rejects."""
        await self._describe_images(turn)
        await self._make_room(turn, forced=False)
        try:
            return await self._ask(turn)
        except ModelError as error:
            if rejected_images.is_about_pictures(
                error, turn.history.messages, self._model.name
            ):
                return await self._ask_without_pictures(turn, error)
            if not error.compress or not await self._make_room(turn, forced=True):
                raise
        return await self._ask(turn)

    async def _ask_without_pictures(
        self, turn: Turn, failure: ModelError
    ) -> AssistantMessage:
        """Asks again with smaller images, then without them. Raises the first error when nothing helps.

        Only what helped is recorded, so an image that has nothing to do with the error stays.
        """
        messages, tried = turn.history.messages, list[Event]()
        for row in rejected_images.steps(failure, messages):
            messages = change_pictures(messages, row)
            described = (
                await self._sight.describe_hidden(
                    turn.session, messages, turn.history.text_only
                )
                if self._sight
                else ()
            )
            for one in described:
                messages = change_pictures(messages, one)
            tried = [
                *(one for one in tried if not isinstance(one, PictureReduced)),
                rejected_images.with_descriptions(row, described),
                *described,
            ]
            try:
                reply = await self._ask(turn, messages)
            except ModelError as error:
                if error.retryable:
                    raise
            else:
                await turn.journal.record(*tried)
                return reply
        raise failure

    async def _describe_images(self, turn: Turn) -> None:
        """Has another model describe the images that the session's model does not get."""
        if self._sight is None or not turn.history.has_images:
            return
        if not await self._sight.reads_only_text():
            return
        if rows := await self._sight.describe_hidden(
            turn.session, turn.history.messages, turn.history.text_only
        ):
            await turn.journal.record(*rows)

    async def _make_room(self, turn: Turn, *, forced: bool) -> bool:
        """Compacts the conversation. Returns whether that freed anything."""
        request = _request(turn)
        if self._context is None or not (
            forced or self._context.is_full(turn.session, request)
        ):
            return False
        turn.budget.room(
            request_tokens(request)
        )  # a summary reads about as much; raises if the budget has no room for it
        rows = await self._context.make(turn.session, request, forced=forced)
        before = list(turn.history.messages)
        if rows:
            await turn.journal.record(*rows)
        if self._notes and any(isinstance(row, SessionCompacted) for row in rows):
            read = self._notes.after_compaction
            again = await asyncio.to_thread(read, turn.history, before, turn.cwd)
            if again:
                await turn.journal.record(*again)
        for row in rows:
            if isinstance(row, SessionCompacted):
                turn.budget.spend(row.usage)
        return any(not isinstance(row, CompactionFailed) for row in rows)

    async def _ask(
        self, turn: Turn, messages: Sequence[Message] | None = None
    ) -> AssistantMessage:
        """Makes one model call and publishes its pieces. `messages` replace those of the history."""
        turn.partial = []
        request = await self._request(turn, messages)
        async with aclosing(self._model.stream(request)) as stream:  # type: ignore[type-var]
            async for event in stream:
                match event:
                    case TextDelta(text=text):
                        turn.partial.append(text)
                        turn.journal.show(MessageDelta(text=text))
                    case Thought(text=text):
                        turn.journal.show(ReasoningDelta(text=text))
                    case ToolCallStarted():
                        turn.journal.show(
                            ToolGenerating(call_id=event.id, name=event.name)
                        )
                    case ReplyPreparing(done=done, total=total):
                        turn.journal.show(ModelPreparing(done=done, total=total))
                    case Retrying():
                        turn.partial = []
                        await turn.journal.record(_retried(event))
                    case LoginLost():
                        await turn.journal.record(_login_expired(event))
                    case ReplyFinished(message=message):
                        turn.budget.spend(message.usage)
                        return with_unique_ids(message, turn.history.call_ids)
        raise ModelError(t.later("the model's stream ended early"), reason="malformed")

    async def _request(
        self, turn: Turn, messages: Sequence[Message] | None
    ) -> ModelRequest:
        request = _request(turn, messages)
        room = await turn.budget.reserve(request_tokens(request))
        limits = [limit for limit in (room, self._max_output) if limit is not None]
        return msgspec.structs.replace(
            request, max_output_tokens=min(limits, default=None)
        )

    async def _run_calls(
        self, turn: Turn, message: AssistantMessage, judge: ReplyJudge
    ) -> ReplyVerdict:
        prepared = self._calls.prepare(message.tool_calls)
        turn.partial = []
        await self._calls.run(turn.scope, prepared, (message,))
        await self._read_notes(turn, prepared)
        await self._adapt_prompt(turn)
        unusable = [item for item in prepared if isinstance(item, Unusable)]
        for fault in ("bad_arguments", "unknown_tool"):
            if not any(item.fault == fault for item in unusable):
                judge.worked(fault)
        verdict = ReplyVerdict("calls")
        for item in unusable[:1]:
            verdict = judge.fault(item.fault, f"{item.call.name}: {item.detail}")
            await turn.journal.record(
                ReplyRejected(reason=item.fault, detail=verdict.detail)
            )
        return verdict

    async def _adapt_prompt(self, turn: Turn) -> None:
        """Builds the prompt again if calls changed what the session offers, such as its tools."""
        prompt = turn.history.prompt
        if prompt and (now := self._adapted(prompt)) is not prompt:
            await turn.journal.record(now)

    async def _read_notes(
        self, turn: Turn, prepared: Sequence[ReadyCall | Unusable]
    ) -> None:
        """Gives the model the project's notes of the folders that its calls went to."""
        if self._notes is None:
            return
        paths = [
            path
            for item in prepared
            if isinstance(item, ReadyCall) and item.tool.effect in ("read", "files")
            for path in item.tool.paths(item.arguments, turn.cwd)
            if path.parent != turn.cwd or path.is_dir()
        ]
        if paths:  # below the working directory, whose own notes are in the prompt
            read = self._notes.for_paths
            notes = await asyncio.to_thread(read, turn.history, turn.cwd, paths)
            if notes:
                await turn.journal.record(*notes)

    async def _keep_partial(self, turn: Turn) -> None:
        """Records what was streamed before an interrupt."""
        await turn.journal.flush()
        if turn.partial:
            reply = AssistantMessage(
                text="".join(turn.partial),
                finish="interrupted",
                provider=self._model.provider,
                model=self._model.name,
            )
            await turn.journal.record(reply)


def calls_made(history: ConversationHistory) -> str:
    """Names the calls of the last turn in a sentence, as a summary without a model."""
    start = history.turns[-1].messages if history.turns else 0
    names = Counter(
        one.name
        for one in history.messages[start:]
        if isinstance(one, ToolFinished) and not one.text.startswith("Not run:")
    )
    listed = ", ".join(
        f"{name} ({number})" if number > 1 else name
        for name, number in names.most_common()
    )
    if not listed:
        return t.logged("No calls were made.")
    return t.logged("Calls made: {calls}.", calls=listed)


def _request(turn: Turn, messages: Sequence[Message] | None = None) -> ModelRequest:
    """The next request, without a limit on its answer."""
    return ModelRequest(
        system=turn.history.system,
        messages=tuple(turn.history.messages if messages is None else messages),
        tools=turn.history.tools,
        cache_key=turn.session,
        folder=str(turn.cwd),
    )


def with_unique_ids(
    message: AssistantMessage, used: Collection[str] = ()
) -> AssistantMessage:
    """The same reply with call ids that are unique in the session, because answers and results are matched by them. Some
    services send none, or repeat them.
    """
    taken = set(used)
    ids: list[str] = []
    for call in message.tool_calls:
        stem = call.id or "call"
        unique = next(
            name
            for name in itertools.chain((call.id,), _numbered(stem))
            if name and name not in taken
        )
        taken.add(unique)
        ids.append(unique)
    if ids == [call.id for call in message.tool_calls]:
        return message
    calls = (
        msgspec.structs.replace(call, id=name)
        for call, name in zip(message.tool_calls, ids, strict=True)
    )
    return msgspec.structs.replace(message, tool_calls=tuple(calls))


def _numbered(stem: str) -> Iterator[str]:
    return (f"{stem}-{number}" for number in itertools.count(1))


async def _take_steers(turn: Turn) -> None:
    if inputs := turn.history.steers():
        await turn.journal.record(Steered(inputs=inputs))


async def _note(turn: Turn, message: AssistantMessage, verdict: ReplyVerdict) -> None:
    """Records a reply without calls. If it was rejected, also records what was wrong with it and what the model is told.

    An answer is written together with the end of its turn.
    """
    turn.partial = []
    if verdict.kind == "answer":
        turn.journal.note(message)
        return
    rejected = (
        [ReplyRejected(reason=verdict.fault, detail=verdict.detail)]
        if verdict.fault
        else []
    )
    why = verdict.refuse_calls or "Not run: the reply was not usable."
    refused = [finished(call, why, ok=False) for call in message.tool_calls]
    nudge = (
        [UserMessage(text=verdict.nudge, origin="hermes")]
        if verdict.nudge and verdict.kind == "again"
        else []
    )
    await turn.journal.record(message, *rejected, *refused, *nudge)


def _ended(
    turn: Turn,
    reason: TurnEnd,
    detail: str = "",
    limit: Literal["", "steps", "spending"] = "",
) -> TurnEnded:
    return TurnEnded(reason=reason, detail=detail, usage=turn.budget.used, limit=limit)


def _login_expired(event: LoginLost) -> LoginExpired:
    return LoginExpired(
        provider=event.provider,
        account=event.account,
        detail=event.detail,
        command=event.command,
    )


def _retried(event: Retrying) -> ModelRetried:
    return ModelRetried(
        reason=event.reason,
        detail=event.detail,
        attempt=event.attempt,
        delay=event.delay,
        provider=event.provider,
        model=event.model,
        request_id=event.request_id,
        timing=event.timing,
    )
