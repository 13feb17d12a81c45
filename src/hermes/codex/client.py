"""One `codex app-server` process and the conversation with it: handshake, requests with deadlines, notifications, and
what it asks. It knows the protocol's grammar, not its meaning: that is the session's.

One task reads. Each question of codex is answered in a task of its own, because a person may take minutes. When the
process ends, everything that waits is told so at once.
"""

import asyncio
import contextlib
import itertools
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TypeVar

import msgspec

from hermes import __version__
from hermes.children.piped_child import CHUNK, PipedChild
from hermes.codex import wire
from hermes.codex.binary import parse_version, plain
from hermes.codex.failures import (
    BACK,
    CodexFailed,
    CodexGone,
    CodexRefused,
    CodexSilent,
    gone,
)
from hermes.primitives.tasks import BackgroundTasks

log = logging.getLogger("hermes.codex")

_COMPLAINTS = 60  # lines of stderr that are remembered
_LAST_WORDS_S = 0.5  # for what codex wrote to stderr before it ended
_GRACE = 0.3  # seconds for codex to leave by itself when its input ends; it takes 0.04

T = TypeVar("T")


class CodexLaunch(msgspec.Struct, frozen=True):
    """What is started, where, and with what."""

    program: Path
    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    cwd: Path
    startup_timeout: float = 10.0


class CodexListener(msgspec.Struct, frozen=True):
    """Who hears what codex tells, and who answers what it asks."""

    hear: Callable[[wire.CodexNotification | None], Awaitable[None]]
    """Each notification, in order; None when the process has ended. While it takes its time, nothing more is read."""
    answer: Callable[[wire.CodexRequest], Awaitable[object]]
    """The result for a question. CodexRefused becomes an error answer."""


class _Resolved(msgspec.Struct, frozen=True):
    requestId: wire.RequestId  # noqa: N815 - codex's name


class _Initialized(msgspec.Struct, frozen=True):
    userAgent: str = ""  # noqa: N815 - codex's name


class Client:
    """A running process. `close` must be awaited, whatever happens."""

    def __init__(
        self, child: PipedChild, errors: asyncio.StreamReader, listener: CodexListener
    ) -> None:
        self.pid = child.pid
        self.version: tuple[int, ...] = ()
        self.noise = 0
        self._child = child
        self._closed = False
        self._listener = listener
        self._numbers = itertools.count(1)
        self._waiting: dict[wire.RequestId, asyncio.Future[wire.CodexResponse]] = {}
        self._answering: dict[wire.RequestId, asyncio.Task[None]] = {}
        self._complaints: deque[str] = deque(maxlen=_COMPLAINTS)
        self._errors = errors
        self._end: CodexGone | None = None
        self._tasks = BackgroundTasks("the conversation with codex")
        self._draining = self._tasks.start(self._drain())
        self._tasks.start(self._read())

    @classmethod
    async def start(cls, launch: CodexLaunch, listener: CodexListener) -> "Client":
        """Starts codex and shakes hands. CodexFailed says why that did not work; nothing is left running then."""
        command = (str(launch.program), *launch.arguments)
        errors = asyncio.StreamReader(limit=CHUNK)
        try:
            child = await PipedChild.start(
                command,
                cwd=launch.cwd,
                environment=launch.environment,
                complaints=lambda: asyncio.StreamReaderProtocol(errors),
            )
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            raise CodexGone(
                f"Codex can't be started ({why}).", hint=f"Run `hermes doctor`. {BACK}"
            ) from error
        client = cls(child, errors, listener)
        try:
            await client._shake_hands(launch.startup_timeout)
        except BaseException:
            await client.close()
            raise
        return client

    @property
    def alive(self) -> bool:
        """Whether it can still be asked something."""
        return self._end is None and not self._closed

    @property
    def end(self) -> CodexGone | None:
        """Why it can't be asked any more, once that is so."""
        return self._end

    async def request(
        self,
        method: str,
        params: object,
        result: type[T],
        *,
        timeout: float = 30.0,  # noqa: ASYNC109
    ) -> T:
        """Asks and waits. CodexRefused, CodexSilent or CodexGone when there is no result."""
        if self._end is not None:
            raise self._end
        number = next(self._numbers)
        place: asyncio.Future[wire.CodexResponse] = (
            asyncio.get_running_loop().create_future()
        )
        self._waiting[number] = place
        try:
            async with asyncio.timeout(timeout):
                await self._send(wire.request(number, method, params))
                answer = await place
        except TimeoutError as error:
            raise CodexSilent(
                f"Codex did not answer {method} within {timeout:g} seconds.",
                hint="Send your message again to restart it.",
            ) from error
        finally:
            self._waiting.pop(number, None)
        if answer.error is not None:
            raise CodexRefused(answer.error.message, code=answer.error.code)
        try:
            return msgspec.json.decode(answer.result, type=result)
        except msgspec.DecodeError as error:
            raise CodexRefused(
                f"Codex answered {method} in a way Hermes does not understand: {error}"
            ) from error

    async def close(self) -> None:
        """Ends codex with everything it started: its input ends, then the leash does the rest."""
        if self._closed:
            return
        self._closed = True
        for task in self._answering.values():
            task.cancel()
        await self._child.stop(grace=_GRACE)
        await self._tasks.close()
        self._ended(CodexGone("Codex was closed."))

    async def _shake_hands(self, seconds: float) -> None:
        about = {
            "clientInfo": {"name": "hermes", "title": "Hermes", "version": __version__},
            "capabilities": {"experimentalApi": True},
        }
        try:
            hello = await self.request(
                "initialize", about, _Initialized, timeout=seconds
            )
        except CodexSilent as error:
            raise CodexSilent(
                f"Codex did not start within {seconds:g} seconds.{self.complaint()}",
                hint=f"Run `codex doctor`, or give it longer: hermes config set codex.startup_timeout 30. {BACK}",
            ) from error
        self.version = parse_version(hello.userAgent)
        await self._send(wire.notification("initialized"))

    async def _send(self, line: bytes) -> None:
        if self._end is not None:
            raise self._end
        try:
            await self._child.write(line)
        except OSError as error:
            raise self._end or CodexGone(
                f"Codex has ended.{self.complaint()}"
            ) from error

    async def _read(self) -> None:
        lines = wire.LineSplitter()
        end = CodexGone("")
        try:
            while chunk := await self._child.output.read(CHUNK):
                for line in lines.feed(chunk):
                    await self._take(wire.classify(line))
        except CodexGone as error:
            end = error
        if not end.message:
            code = await self._child.exit_code(0.5)
            # What it complained about may come later.
            await asyncio.wait({self._draining}, timeout=_LAST_WORDS_S)
            how = f" (exit code {code})" if code else ""
            end = gone(how, "\n".join(self._complaints), self._last())
        self._ended(end)
        await self._listener.hear(None)

    async def _take(self, message: wire.Incoming) -> None:
        match message:
            case wire.CodexNotification():
                if message.method == "serverRequest/resolved":
                    self._resolved(message)
                await self._listener.hear(message)
            case wire.CodexRequest():
                task = self._tasks.start(self._answer(message))
                self._answering[message.id] = task
                task.add_done_callback(lambda _: self._answering.pop(message.id, None))
            case wire.CodexResponse():
                place = (
                    self._waiting.pop(message.id, None)
                    if message.id is not None
                    else None
                )
                if place is None or place.done():
                    self._passed_over(
                        f"an answer to a request that nobody waits for ({message.id!r})"
                    )
                else:
                    place.set_result(message)
            case wire.Noise():
                self._passed_over(message.why)

    def _passed_over(self, why: str) -> None:
        self.noise += 1
        log.warning("codex sent %s; it was passed over (%d so far)", why, self.noise)

    def _resolved(self, notice: wire.CodexNotification) -> None:
        """The question is settled without us, mostly because the turn was interrupted: nobody need answer any more."""
        with contextlib.suppress(msgspec.DecodeError):
            task = self._answering.get(
                msgspec.json.decode(notice.params, type=_Resolved).requestId
            )
            if task is not None:
                task.cancel()

    async def _answer(self, call: wire.CodexRequest) -> None:
        """The boundary of a question: whatever goes wrong becomes an error answer, which codex takes for a no."""
        try:
            reply = wire.answer(call.id, await self._listener.answer(call))
        except CodexRefused as refused:
            reply = wire.refusal(
                call.id, refused.code or wire.UNKNOWN_METHOD, refused.message
            )
        except Exception as error:
            log.exception("a question of codex could not be answered: %s", call.method)
            reply = wire.refusal(
                call.id, wire.INTERNAL, f"{type(error).__name__} while answering"
            )
        with contextlib.suppress(CodexFailed):
            await self._send(reply)

    async def _drain(self) -> None:
        """Keeps the end of what codex complains about. A pipe that nobody empties would stop it."""
        rest = b""
        while chunk := await self._errors.read(CHUNK):
            *lines, rest = (rest + chunk).split(b"\n")
            rest = rest[-CHUNK:]
            self._complaints.extend(
                plain(line.decode(errors="replace")) for line in lines
            )
        if rest:
            self._complaints.append(plain(rest.decode(errors="replace")))

    def complaint(self) -> str:
        """What it said last on stderr, as the end of a sentence."""
        last = self._last()
        return f" It said: {last}" if last else ""

    def _last(self) -> str:
        return next(
            (line.strip() for line in reversed(self._complaints) if line.strip()), ""
        )[:300]

    def _ended(self, end: CodexGone) -> None:
        if self._end is None:
            self._end = end
        for place in self._waiting.values():
            if not place.done():
                place.set_exception(self._end)
        for task in self._answering.values():
            task.cancel()


def decode(raw: msgspec.Raw, kind: type[T]) -> T | None:
    """A part of a message as a type; None when it does not look like that."""
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.DecodeError:
        return None
