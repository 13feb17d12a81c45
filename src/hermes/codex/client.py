"""One `codex app-server` process and the conversation with it: handshake, requests with deadlines, notifications, and
what it asks. It knows the protocol's grammar, not its meaning: that is the session's.

One task reads. Each question of codex is answered in a task of its own, because a person may take minutes. When the
process ends, everything that waits is told so at once.
"""

import asyncio
import contextlib
import itertools
import logging
import os
import subprocess
import sys
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TypeVar

import msgspec

from hermes.codex import wire
from hermes.codex.binary import parse_version, plain
from hermes.codex.failures import CodexFailed, CodexGone, CodexRefused, CodexSilent

log = logging.getLogger("hermes.codex")

_CHUNK = 256 * 1024
_COMPLAINTS = 60  # lines of stderr that are remembered
_GRACE = 0.3  # seconds for codex to leave by itself when its input ends; it takes 0.04
_FORCED = 7.0
_LEASH = Path(__file__).with_name("leash.py")

T = TypeVar("T")


class Launch(msgspec.Struct, frozen=True):
    """What is started, where, and with what."""

    program: Path
    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    cwd: Path
    startup_timeout: float = 10.0


class Listener(msgspec.Struct, frozen=True):
    """Who hears what codex tells, and who answers what it asks."""

    hear: Callable[[wire.Notice | None], Awaitable[None]]
    """Each notification, in order; None when the process has ended. While it takes its time, nothing more is read."""
    answer: Callable[[wire.Call], Awaitable[object]]
    """The result for a question. CodexRefused becomes an error answer."""


class _Resolved(msgspec.Struct, frozen=True):
    requestId: wire.RequestId  # noqa: N815 - codex's name


class _Initialized(msgspec.Struct, frozen=True):
    userAgent: str = ""  # noqa: N815 - codex's name


class Client:
    """A running process. `close` must be awaited, whatever happens."""

    def __init__(self, process: "subprocess.Popen[bytes]", life: int, listener: Listener) -> None:
        self.process = process
        self.version: tuple[int, ...] = ()
        self.noise = 0
        self._life = life
        self._listener = listener
        self._numbers = itertools.count(1)
        self._waiting: dict[wire.RequestId, asyncio.Future[wire.Answer]] = {}
        self._answering: dict[wire.RequestId, asyncio.Task[None]] = {}
        self._complaints: deque[str] = deque(maxlen=_COMPLAINTS)
        self._reader = asyncio.StreamReader(limit=_CHUNK)
        self._errors = asyncio.StreamReader(limit=_CHUNK)
        self._writer: asyncio.StreamWriter | None = None
        self._transports: list[asyncio.BaseTransport] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._end: CodexGone | None = None

    @classmethod
    async def start(cls, launch: Launch, listener: Listener) -> "Client":
        """Starts codex and shakes hands. CodexFailed says why that did not work; nothing is left running then."""
        ours, theirs = os.pipe()
        try:
            process = subprocess.Popen(  # noqa: ASYNC220 - milliseconds, and asyncio's own does the same
                [sys.executable, "-I", "-S", str(_LEASH), str(ours), str(launch.program), *launch.arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=(ours,),
                cwd=launch.cwd,
                env=dict(launch.environment),
                start_new_session=True,
            )
        except OSError as error:
            os.close(theirs)
            raise CodexGone(f"Codex can't be started ({(error.strerror or str(error)).lower()}).") from error
        finally:
            os.close(ours)
        client = cls(process, theirs, listener)
        try:
            await client._connect()
            await client._shake_hands(launch.startup_timeout)
        except BaseException:
            await client.close()
            raise
        return client

    @property
    def alive(self) -> bool:
        """Whether it can still be asked something."""
        return self._end is None and self._life >= 0

    @property
    def end(self) -> CodexGone | None:
        """Why it can't be asked any more, once that is so."""
        return self._end

    async def request(self, method: str, params: object, result: type[T], *, timeout: float = 30.0) -> T:  # noqa: ASYNC109
        """Asks and waits. CodexRefused, CodexSilent or CodexGone when there is no result."""
        if self._end is not None:
            raise self._end
        number = next(self._numbers)
        place: asyncio.Future[wire.Answer] = asyncio.get_running_loop().create_future()
        self._waiting[number] = place
        try:
            async with asyncio.timeout(timeout):
                await self._send(wire.request(number, method, params))
                answer = await place
        except TimeoutError as error:
            raise CodexSilent(
                f"Codex did not answer {method} within {timeout:g} seconds.", hint="Say it again to start it afresh."
            ) from error
        finally:
            self._waiting.pop(number, None)
        if answer.error is not None:
            raise CodexRefused(answer.error.message, code=answer.error.code)
        try:
            return msgspec.json.decode(answer.result, type=result)
        except msgspec.DecodeError as error:
            raise CodexRefused(f"Codex answered {method} in a way Hermes does not understand: {error}") from error

    async def close(self) -> None:
        """Ends codex with everything it started: its input ends, then the leash does the rest, also without us."""
        if self._life < 0:
            return
        life, self._life = self._life, -1
        for task in self._answering.values():
            task.cancel()
        try:
            if self._writer is not None:
                self._writer.close()
            await self._exited(_GRACE)
        finally:
            os.close(life)
        await self._exited(_FORCED)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, *self._answering.values(), return_exceptions=True)
        for transport in self._transports:
            transport.close()
        self._ended(CodexGone("Codex was closed."))

    async def _connect(self) -> None:
        loop = asyncio.get_running_loop()
        out, err, into = self.process.stdout, self.process.stderr, self.process.stdin
        if out is None or err is None or into is None:
            raise CodexGone("Codex has no pipes.")
        for reader, pipe in ((self._reader, out), (self._errors, err)):
            transport, _ = await loop.connect_read_pipe(lambda r=reader: asyncio.StreamReaderProtocol(r), pipe)
            self._transports.append(transport)
        writing, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, into)
        self._transports.append(writing)
        self._writer = asyncio.StreamWriter(writing, protocol, None, loop)
        self._tasks = [asyncio.ensure_future(self._drain()), asyncio.ensure_future(self._read())]

    async def _shake_hands(self, seconds: float) -> None:
        about = {
            "clientInfo": {"name": "hermes", "title": "Hermes", "version": "1"},
            "capabilities": {"experimentalApi": True},
        }
        try:
            hello = await self.request("initialize", about, _Initialized, timeout=seconds)
        except CodexSilent as error:
            raise CodexSilent(
                f"Codex did not start within {seconds:g} seconds.{self.complaint()}",
                hint="Run `codex doctor`, or give it longer: hermes config set codex.startup_timeout 30",
            ) from error
        self.version = parse_version(hello.userAgent)
        await self._send(wire.notification("initialized"))

    async def _send(self, line: bytes) -> None:
        if self._writer is None or self._end is not None:
            raise self._end or CodexGone("Codex has ended.")
        try:
            self._writer.write(line)
            await self._writer.drain()
        except OSError as error:
            raise self._end or CodexGone(f"Codex has ended.{self.complaint()}") from error

    async def _read(self) -> None:
        lines = wire.Lines()
        end = CodexGone("")
        try:
            while chunk := await self._reader.read(_CHUNK):
                for line in lines.feed(chunk):
                    await self._take(wire.classify(line))
        except CodexGone as error:
            end = error
        if not end.message:
            await self._exited(0.5)
            code = self.process.poll()
            how = f" (exit code {code})" if code else ""
            hint = "What was done until then is kept. Say it again to go on."
            end = CodexGone(f"The codex process ended{how}.{self.complaint()}", hint=hint)
        self._ended(end)
        await self._listener.hear(None)

    async def _take(self, message: wire.Incoming) -> None:
        match message:
            case wire.Notice():
                if message.method == "serverRequest/resolved":
                    self._resolved(message)
                await self._listener.hear(message)
            case wire.Call():
                task = asyncio.ensure_future(self._answer(message))
                self._answering[message.id] = task
                task.add_done_callback(lambda _: self._answering.pop(message.id, None))
            case wire.Answer():
                place = self._waiting.pop(message.id, None) if message.id is not None else None
                if place is None or place.done():
                    self._passed_over(f"an answer to a request that nobody waits for ({message.id!r})")
                else:
                    place.set_result(message)
            case wire.Noise():
                self._passed_over(message.why)

    def _passed_over(self, why: str) -> None:
        self.noise += 1
        log.warning("codex sent %s; it was passed over (%d so far)", why, self.noise)

    def _resolved(self, notice: wire.Notice) -> None:
        """The question is settled without us, mostly because the turn was interrupted: nobody need answer any more."""
        with contextlib.suppress(msgspec.DecodeError):
            task = self._answering.get(msgspec.json.decode(notice.params, type=_Resolved).requestId)
            if task is not None:
                task.cancel()

    async def _answer(self, call: wire.Call) -> None:
        """The boundary of a question: whatever goes wrong becomes an error answer, which codex takes for a no."""
        try:
            reply = wire.answer(call.id, await self._listener.answer(call))
        except CodexRefused as refused:
            reply = wire.refusal(call.id, refused.code or wire.UNKNOWN_METHOD, refused.message)
        except Exception as error:
            log.exception("a question of codex could not be answered: %s", call.method)
            reply = wire.refusal(call.id, wire.INTERNAL, f"{type(error).__name__} while answering")
        with contextlib.suppress(CodexFailed):
            await self._send(reply)

    async def _drain(self) -> None:
        """Keeps the end of what codex complains about. A pipe that nobody empties would stop it."""
        rest = b""
        while chunk := await self._errors.read(_CHUNK):
            *lines, rest = (rest + chunk).split(b"\n")
            rest = rest[-_CHUNK:]
            self._complaints.extend(plain(line.decode(errors="replace")) for line in lines)
        if rest:
            self._complaints.append(plain(rest.decode(errors="replace")))

    def complaint(self) -> str:
        """What it said last on stderr, as the end of a sentence."""
        last = next((line.strip() for line in reversed(self._complaints) if line.strip()), "")
        return f" It said: {last[:300]}" if last else ""

    def _ended(self, end: CodexGone) -> None:
        if self._end is None:
            self._end = end
        for place in self._waiting.values():
            if not place.done():
                place.set_exception(self._end)
        for task in self._answering.values():
            task.cancel()

    async def _exited(self, seconds: float) -> None:
        deadline = asyncio.get_running_loop().time() + seconds
        while self.process.poll() is None and asyncio.get_running_loop().time() < deadline:  # noqa: ASYNC110 - the kernel knows
            await asyncio.sleep(0.005)


def decode(raw: msgspec.Raw, kind: type[T]) -> T | None:
    """A part of a message as a type; None when it does not look like that."""
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.DecodeError:
        return None
