"""One turn that codex runs: followed to its end, interrupted, steered, and limited in time.

Three tasks run at once: reading codex's notifications, watching the deadlines, and waiting for an interrupt. The first
to finish decides. In every case, open calls are closed before the turn ends.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec

from hermes.codex import wire
from hermes.codex.approvals import CodexApprovals
from hermes.codex.client import Client
from hermes.codex.failures import (
    BACK,
    CodexFailed,
    CodexGone,
    CodexRefused,
    CodexSilent,
    is_signed_out,
)
from hermes.codex.items import CommandItem
from hermes.codex.projector import NO_OUTPUT, STOPPED, CodexInput, Ending, Projector
from hermes.codex.thread_file import Output, find_output
from hermes.primitives.tasks import running
from hermes.schema.event_base import Event
from hermes.schema.messages import Usage
from hermes.text.translation import translator

t = translator(__name__)

log = logging.getLogger("hermes.codex")

Heard = asyncio.Queue[wire.CodexNotification | asyncio.Event | None]
"""Codex's notifications, in order. An event in the queue is set once everything before it was read; None is the end."""

_DEADLINE_CHECK_INTERVAL_S = (
    0.1  # seconds between checks of the deadlines and of new messages
)
_INTERRUPT_STEP_S = 0.4  # seconds for each step of an interrupt; there are two
_PROGRESS_METHODS = (
    "item/",
    "turn/",
    "thread/tokenUsage/",
)  # codex's attempts to reconnect don't count as progress
_OUTPUT_TIMEOUT_S = 0.5  # for codex to write a command's unreported output to its file
_OUTPUT_POLL_S = 0.02
_SEND_AGAIN = t.logged("Send your message again to continue.")
_BACKGROUND = "Still running when the turn ended."  # not translated: a model reads it


class CodexTimeouts(msgspec.Struct, frozen=True):
    """How long codex may take, in seconds; 0 for no limit."""

    progress: float = 600.0
    tool_silence: float = 300.0
    turn: float = 14_400.0
    sign_of_life: float = 20.0
    """After this much silence, Hermes checks whether the process still answers."""
    reaction: float = 10.0
    """How long that check may take."""


class CodexTurnDeps(msgspec.Struct, frozen=True):
    """The dependencies of a turn: functions that record events, answer questions, and return steering messages."""

    write: Callable[[Sequence[Event]], Awaitable[None]]
    show: Callable[[Event], None]
    asking: Callable[[Projector], CodexApprovals]
    opened: Callable[[str], None]
    """Receives the thread's id before the turn begins."""
    begun: Callable[[], Awaitable[None]]
    """Called when codex has accepted the input."""
    spend: Callable[[Usage], None] = lambda _: None
    """Counts a model call. If it raises, the turn ends."""
    steers: Callable[[], Sequence[CodexInput]] = tuple
    """Returns the user's messages for the running turn since the last call."""
    interrupted: asyncio.Event = msgspec.field(default_factory=asyncio.Event)


class TurnResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a turn."""

    final_text: str = ""
    projected_messages: tuple[Event, ...] = ()
    tool_iterations: int = 0
    interrupted: bool = False
    error: str = ""
    info: Any = None
    turn_id: str = ""
    thread_id: str = ""
    should_retire: bool = False


class CodexConnection(msgspec.Struct, frozen=True):
    """The process that runs a turn: its client, its notifications, and how to end it."""

    client: Client
    heard: Heard
    thread: str
    rollout: str
    """Codex's own file of the thread; empty if there is none."""
    retire: Callable[[], Awaitable[None]]


class CodexTurn:
    """A running turn, and its deadlines."""

    def __init__(
        self,
        connection: CodexConnection,
        projector: Projector,
        stage: CodexTurnDeps,
        deadlines: CodexTimeouts,
    ) -> None:
        now = asyncio.get_running_loop().time()
        self._client = connection.client
        self._heard = connection.heard
        self._thread = connection.thread
        self._rollout = connection.rollout
        self._retire = connection.retire
        self._projector = projector
        self._stage = stage
        self._limits = deadlines
        self._asking = stage.asking(projector)
        self._written: list[Event] = []
        self._began = now
        self._moved = now  # when something last happened in the turn
        self._reacted = now
        self._asked = 0.0  # seconds spent waiting for a person

    async def answer(self, call: wire.CodexRequest) -> object:
        """Answers a request of codex. First sends any text that the user gave with the answer, so that codex has it."""
        answer = await self._asking.answer(call)
        await self._pass_on()
        return answer

    async def run(self) -> TurnResult:
        """Follows the turn until it ends, is interrupted or takes too long, then closes open calls."""
        error, retire = "", False
        try:
            async with (
                running(self._follow()) as follow,
                running(self._watch()) as watch,
                running(self._stage.interrupted.wait()) as stop,
            ):
                await asyncio.wait(
                    {follow, watch, stop}, return_when=asyncio.FIRST_COMPLETED
                )
                if not follow.done():
                    error = watch.result() if watch.done() else ""
                    retire = bool(error)
                    retire |= not await self._interrupt(follow)
                elif (fault := follow.exception()) is not None:
                    await self._interrupt(follow)
                    if not isinstance(fault, CodexGone):
                        raise fault
                    error, retire = f"{fault.message} {fault.hint}".strip(), True
                elif (
                    self._projector.ending is not None
                    and self._projector.ending.is_marker
                ):
                    retire = not await self._interrupt(
                        follow
                    )  # otherwise the next message would go into that turn
        finally:
            if retire:
                await self._retire()
            await self._close(error)
        return self._result(error, retire=retire)

    async def _close(self, error: str) -> None:
        ending = self._projector.ending
        broken = bool(error) or ending is None or ending.status != "completed"
        if not broken:
            await self._find_late_outputs()
        events = self._projector.close(
            STOPPED if broken else _BACKGROUND, "interrupted" if broken else "stop"
        )
        await self._publish(events)

    def _result(self, error: str, *, retire: bool) -> TurnResult:
        projector = self._projector
        ending = projector.ending or Ending("interrupted")
        if not error and ending.status == "failed":
            error = ending.message or t.logged("it did not say why")
        return TurnResult(
            final_text=projector.final_text,
            projected_messages=tuple(self._written),
            tool_iterations=projector.calls,
            interrupted=not error and ending.status == "interrupted",
            error=error,
            info=ending.info,
            turn_id=projector.turn,
            thread_id=self._thread,
            should_retire=retire or (bool(error) and is_signed_out(error, ending.info)),
        )

    async def _follow(self) -> None:
        """Reads codex's notifications until the turn is over."""
        loop = asyncio.get_running_loop()
        projector = self._projector
        counted = 0
        while projector.ending is None:
            notice = await self._heard.get()
            if notice is None:
                raise self._gone_error()
            if isinstance(notice, asyncio.Event):
                notice.set()
                continue
            events = projector.feed(notice)
            if notice.method.startswith(_PROGRESS_METHODS):
                self._moved = self._reacted = loop.time()
            await self._publish(events)
            while projector.without_output:
                await self._find_output(projector.without_output[0])
            for usage in projector.usages[counted:]:
                counted += 1
                self._stage.spend(usage)

    async def _find_output(self, command: CommandItem) -> None:
        """Finds a command's output that codex did not report, in the file that codex writes for its model."""
        output: Output | None = None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_OUTPUT_TIMEOUT_S):
                while (output := await self._output(command.id)) is None:  # noqa: ASYNC110 - a file has no event
                    await asyncio.sleep(_OUTPUT_POLL_S)
        self._projector.without_output.remove(command)
        text = NO_OUTPUT if output is None else output.text
        await self._publish(
            self._projector.finish(command.id, text, command.exit_code or 0)
        )

    async def _find_late_outputs(self) -> None:
        """Finds the outputs of commands that ended within the turn, but whose end codex has not reported yet."""
        for call_id in self._projector.commands:
            output = await self._output(call_id)
            if output is not None and output.exit_code is not None:
                await self._publish(
                    self._projector.finish(call_id, output.text, output.exit_code)
                )

    async def _output(self, call_id: str) -> Output | None:
        return await asyncio.to_thread(find_output, self._rollout, call_id)

    def _gone_error(self) -> CodexGone:
        return self._client.end or CodexGone(
            t.later("The codex process ended in the middle of the turn.")
        )

    async def _publish(self, events: Sequence[Event]) -> None:
        for event in events:
            if not event.durable:
                self._stage.show(event)
        if lasting := [event for event in events if event.durable]:
            await self._stage.write(lasting)
            self._written += lasting

    async def _watch(self) -> str:
        """Watches the deadlines and forwards new user messages. Returns an error message when a deadline passes."""
        loop = asyncio.get_running_loop()
        last = loop.time()
        while True:
            await asyncio.sleep(_DEADLINE_CHECK_INTERVAL_S)
            now = loop.time()
            if self._asking.waiting:
                self._asked += now - last
                self._moved = now
            last = now
            if late := self._late(now):
                return late
            if now - max(self._moved, self._reacted) > self._limits.sign_of_life:
                if not await self._reacts():
                    ended = t.logged(
                        "Codex stopped responding, so its process was ended."
                    )
                    return f"{ended} {_SEND_AGAIN} {BACK}"
                self._reacted = loop.time()
            await self._pass_on()

    async def _pass_on(self) -> None:
        """Sends codex new messages from the user for the running turn."""
        for words in self._stage.steers():
            await self._steer(words)

    def _late(self, now: float) -> str:
        limits = self._limits
        silent = now - self._moved
        saved = t.logged("Everything up to then was saved.")
        end = f"{saved} {_SEND_AGAIN}"
        if limits.turn and now - self._began - self._asked > limits.turn:
            late = t.logged(
                "The turn took longer than {seconds:g} seconds (codex.turn_timeout) and was stopped.",
                seconds=limits.turn,
            )
            return f"{late} {end}"
        if self._projector.working:
            return ""
        if (
            self._projector.after_tool
            and limits.tool_silence
            and silent > limits.tool_silence
        ):
            late = t.logged(
                "Codex was silent for {seconds:.0f} seconds after a tool (codex.tool_silence_timeout).",
                seconds=silent,
            )
            return f"{late} {end}"
        if limits.progress and silent > limits.progress:
            late = t.logged(
                "Codex made no progress for {seconds:.0f} seconds (codex.progress_timeout).",
                seconds=silent,
            )
            return f"{late} {end}"
        return ""

    async def _reacts(self) -> bool:
        try:
            await self._client.request(
                "thread/loaded/list", {}, dict[str, Any], timeout=self._limits.reaction
            )
        except CodexSilent:
            return False
        except CodexFailed:
            return True  # codex refused or has ended, which is handled elsewhere
        return True

    async def _steer(self, words: CodexInput) -> None:
        projector = self._projector
        projector.delivered[words.name] = words
        params = {
            "threadId": self._thread,
            "expectedTurnId": projector.turn,
            "input": list(words.items),
            "clientUserMessageId": words.name,
        }
        try:
            await self._client.request("turn/steer", params, dict[str, Any])
        except CodexFailed as error:  # the turn is ending: the next one gets it
            projector.delivered.pop(words.name, None)
            log.info(
                "codex did not accept a message sent during the turn: %s", error.message
            )

    async def _interrupt(self, follow: "asyncio.Task[None]") -> bool:
        """Stops the turn and its commands. Returns False if codex did not stop; its process is then unusable.

        Codex is asked only once: a second request for the same turn would not be answered.
        """
        projector = self._projector
        if not self._client.alive:
            return False
        about = {"threadId": self._thread}
        try:
            await self._client.request(
                "turn/interrupt",
                {**about, "turnId": projector.turn},
                dict[str, Any],
                timeout=_INTERRUPT_STEP_S,
            )
            await self._client.request(
                "thread/backgroundTerminals/clean",
                about,
                dict[str, Any],
                timeout=_INTERRUPT_STEP_S,
            )
        except CodexRefused as error:  # it had just ended
            log.info("codex had nothing to interrupt: %s", error.message)
        except CodexFailed:
            return False
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_INTERRUPT_STEP_S):
                if not follow.done():
                    await asyncio.wait({follow})
                await self._hear_commands_end()
        return projector.ending is not None and not projector.commands

    async def _hear_commands_end(self) -> None:
        """Waits until codex reports that the stopped commands have ended, which it does only after the turn has ended."""
        projector = self._projector
        while projector.commands or projector.ending is None:
            notice = await self._heard.get()
            if notice is None:
                self._heard.put_nowait(None)
                return
            if isinstance(notice, asyncio.Event):
                notice.set()
            else:
                await self._publish(projector.feed(notice))
