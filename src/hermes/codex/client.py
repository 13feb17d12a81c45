"""One `codex app-server` process and the conversation with it: the handshake, requests with deadlines, notifications
and codex's own requests. The client handles the syntax of the protocol; `session` handles its meaning.

One task reads. Each request of codex is answered in a task of its own, because a person may take minutes. When the
process ends, everything that waits for it fails at once.
"""

import asyncio
import contextlib
import itertools
import logging
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TypeVar

import msgspec

from hermes import __version__
from hermes.children.piped_child import READ_BYTES, PipedChild
from hermes.children.process_tree import describe_exit
from hermes.codex import wire
from hermes.codex.binary import parse_version, plain
from hermes.codex.failures import (
    BACK,
    CodexFailed,
    CodexGone,
    CodexRefused,
    CodexSilent,
    ended_error,
)
from hermes.errors import os_reason
from hermes.primitives.tasks import BackgroundTasks
from hermes.text.translation import translator

t = translator(__name__)

log = logging.getLogger("hermes.codex")

_CODEX_EXIT_TIMEOUT_S = 0.5
_CODEX_STDERR_TIMEOUT_S = 0.5  # wait for what codex wrote before it ended
_CLOSE_GRACE_S = 0.3  # codex needs 0.04 s to end when its input ends
_MAX_STDERR_CHARACTERS = 300

T = TypeVar("T")


class CodexLaunch(msgspec.Struct, frozen=True):
    """What to start, where, and with which environment."""

    program: Path
    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    cwd: Path
    startup_timeout: float = 10.0


class CodexListener(msgspec.Struct, frozen=True):
    """The functions that receive codex's notifications and answer its requests."""

    hear: Callable[[wire.CodexNotification | None], Awaitable[None]]
    """Receives each notification in order; None when the process has ended. Nothing more is read until it returns."""
    answer: Callable[[wire.CodexRequest], Awaitable[object]]
    """Returns the result of a request. CodexRefused becomes an error answer."""


class _Resolved(msgspec.Struct, frozen=True):
    requestId: wire.RequestId  # noqa: N815 - codex's name


class _Initialized(msgspec.Struct, frozen=True):
    userAgent: str = ""  # noqa: N815 - codex's name


class Client:
    """A running codex. `close` must be awaited, whatever happens."""

    def __init__(self, child: PipedChild, listener: CodexListener) -> None:
        self.pid = child.pid
        self.version: tuple[int, ...] = ()
        self.noise = 0
        self._child = child
        self._closed = False
        self._listener = listener
        self._numbers = itertools.count(1)
        self._waiting: dict[wire.RequestId, asyncio.Future[wire.CodexResponse]] = {}
        self._answering: dict[wire.RequestId, asyncio.Task[None]] = {}
        self._end: CodexGone | None = None
        self._tasks = BackgroundTasks("the conversation with codex")
        self._tasks.start(self._read())

    @classmethod
    async def start(cls, launch: CodexLaunch, listener: CodexListener) -> "Client":
        """Starts codex and initializes it. If CodexFailed is raised, nothing is left running."""
        command = (str(launch.program), *launch.arguments)
        try:
            child = await PipedChild.start(
                command,
                cwd=launch.cwd,
                environment=launch.environment,
            )
        except OSError as error:
            why = os_reason(error)
            raise CodexGone(
                t.later("Codex can't be started ({why}).", why=why),
                hint=t.later("Run `hermes doctor`. {back}", back=BACK),
            ) from error
        client = cls(child, listener)
        try:
            await client._initialize(launch.startup_timeout)
        except BaseException:
            await client.close()
            raise
        return client

    @property
    def alive(self) -> bool:
        """Whether codex still accepts requests."""
        return self._end is None and not self._closed

    @property
    def end(self) -> CodexGone | None:
        """Why codex accepts no more requests; None while it does."""
        return self._end

    async def request(
        self,
        method: str,
        params: object,
        result: type[T],
        *,
        timeout: float = 30.0,  # noqa: ASYNC109
    ) -> T:
        """Sends a request and waits. Raises CodexRefused, CodexSilent or CodexGone if there is no result."""
        if self._end is not None:
            raise self._end
        number = next(self._numbers)
        response: asyncio.Future[wire.CodexResponse] = (
            asyncio.get_running_loop().create_future()
        )
        self._waiting[number] = response
        try:
            async with asyncio.timeout(timeout):
                await self._send(wire.request(number, method, params))
                answer = await response
        except TimeoutError as error:
            raise CodexSilent(
                t.later(
                    "Codex did not answer {method} within {timeout:g} seconds.",
                    method=method,
                    timeout=timeout,
                ),
                hint=t.later("Send your message again to restart it."),
            ) from error
        finally:
            self._waiting.pop(number, None)
        if answer.error is not None:
            raise CodexRefused(answer.error.message, code=answer.error.code)
        try:
            return msgspec.json.decode(answer.result, type=result)
        except msgspec.DecodeError as error:
            raise CodexRefused(
                t.later(
                    "Codex answered {method} in a way Hermes does not understand: {error}",
                    method=method,
                    error=error,
                )
            ) from error

    async def close(self) -> None:
        """Ends codex and everything it started."""
        if self._closed:
            return
        self._closed = True
        for task in self._answering.values():
            task.cancel()
        await self._child.stop(grace=_CLOSE_GRACE_S)
        await self._tasks.close()
        self._ended(CodexGone(t.later("Codex was closed.")))

    async def _initialize(self, seconds: float) -> None:
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
                t.later(
                    "Codex did not start within {seconds:g} seconds.{stderr_note}",
                    seconds=seconds,
                    stderr_note=self.stderr_note(),
                ),
                hint=t.later(
                    "Run `codex doctor`, or give it longer: hermes config set codex.startup_timeout 30. {back}",
                    back=BACK,
                ),
            ) from error
        self.version = parse_version(hello.userAgent)
        await self._send(wire.notification("initialized"))

    async def _send(self, line: bytes) -> None:
        if self._end is not None:
            raise self._end
        try:
            await self._child.write(line)
        except OSError as error:
            raise self._end or await self._why_ended("") from error

    async def _read(self) -> None:
        lines = wire.LineSplitter()
        end = CodexGone("")
        try:
            while chunk := await self._child.output.read(READ_BYTES):
                for line in lines.feed(chunk):
                    await self._handle(wire.classify(line))
        except CodexGone as error:
            end = error
        if not end.message:
            code = await self._child.wait(_CODEX_EXIT_TIMEOUT_S)
            end = await self._why_ended(f" ({describe_exit(code)})" if code else "")
        self._ended(end)
        await self._listener.hear(None)

    async def _why_ended(self, how: str) -> CodexGone:
        """Returns the error for a process that has ended. Waits a moment for the rest of its error output."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(
                self._child.stderr.closed.wait(), _CODEX_STDERR_TIMEOUT_S
            )
        stderr = plain(self._child.stderr.text())
        return ended_error(how, stderr, self._last_stderr_line())

    async def _handle(self, message: wire.Incoming) -> None:
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
                self._accept(message)
            case wire.MalformedLine():
                self._ignore(message.why)

    def _accept(self, message: wire.CodexResponse) -> None:
        waiting = None
        if message.id is not None:
            waiting = self._waiting.pop(message.id, None)
        if waiting is None or waiting.done():
            self._ignore(
                f"an answer to a request that nobody waits for ({message.id!r})"  # not translated
            )
        else:
            waiting.set_result(message)

    def _ignore(self, why: str) -> None:
        self.noise += 1
        log.warning("codex sent %s; ignored it (%d so far)", why, self.noise)

    def _resolved(self, notice: wire.CodexNotification) -> None:
        """Stops answering a request that codex resolved itself, usually because the turn was interrupted."""
        with contextlib.suppress(msgspec.DecodeError):
            task = self._answering.get(
                msgspec.json.decode(notice.params, type=_Resolved).requestId
            )
            if task is not None:
                task.cancel()

    async def _answer(self, call: wire.CodexRequest) -> None:
        """Answers a request. Any failure becomes an error answer, which codex treats as a no."""
        try:
            reply = wire.answer(call.id, await self._listener.answer(call))
        except CodexRefused as refused:
            reply = wire.refusal(
                call.id, refused.code or wire.UNKNOWN_METHOD, refused.message
            )
        except Exception as error:
            log.exception("could not answer a request of codex: %s", call.method)
            reply = wire.refusal(
                call.id, wire.INTERNAL, f"{type(error).__name__} while answering"
            )
        with contextlib.suppress(CodexFailed):
            await self._send(reply)

    def stderr_note(self) -> str:
        """Returns the last line of stderr, as a sentence to append."""
        last = self._last_stderr_line()
        return f" It said: {last}" if last else ""

    def _last_stderr_line(self) -> str:
        return plain(self._child.stderr.last_line())[:_MAX_STDERR_CHARACTERS]

    def _ended(self, end: CodexGone) -> None:
        if self._end is None:
            self._end = end
        for response in self._waiting.values():
            if not response.done():
                response.set_exception(self._end)
        for task in self._answering.values():
            task.cancel()


def decode(raw: msgspec.Raw, kind: type[T]) -> T | None:
    """Decodes a part of a message; None if it has another shape."""
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.DecodeError:
        return None
