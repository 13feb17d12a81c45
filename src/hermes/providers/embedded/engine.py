"""The engine of a local model, in a child process that is started on first use and generates one reply at a time.

Nothing heavy is imported here. The weights, the library and its threads are in the child (`engine_child`,
`engine_slot`), which is killed if a cancelled generation does not stop at once.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from pathlib import Path

import msgspec

from hermes.children.own_python import module_command
from hermes.children.piped_child import PipedChild
from hermes.children.process_tree import describe_exit
from hermes.errors import ModelError
from hermes.providers.control_tokens import plain_text, without_control_tokens
from hermes.providers.embedded import engine_wire
from hermes.providers.embedded.completion import (
    ChatTurn,
    Completion,
    CompletionEnded,
    CompletionText,
)
from hermes.text.install_words import install_hint
from hermes.text.translation import JoinedWords, LoggedWords, translator

t = translator(__name__)

_STOP_TIMEOUT_S = 0.1  # to stop a cancelled generation before the child is killed
_EXIT_TIMEOUT_S = 5.0


class LocalEngine:
    """Implements the `CompletionEngine` port: runs the child process. Not shared between event loops."""

    def __init__(
        self,
        load: engine_wire.Load,
        *,
        on_prepare: Callable[[int, int], None] | None = None,
    ) -> None:
        self._load = load
        self._on_prepare = on_prepare
        self._lock = asyncio.Lock()
        self._child: _Child | None = None
        self._ids = 0

    @property
    def obeys_grammar(self) -> bool:
        """True: the engine's library enforces grammars."""
        return True

    @property
    def pid(self) -> int | None:
        """The child's process id while it runs."""
        return (
            self._child.pid if self._child is not None and self._child.alive else None
        )

    async def warm(self) -> None:
        """Starts the child ahead of use and waits until it is ready."""
        async with self._lock:
            await self._ready()

    async def complete(
        self, prompt: Completion
    ) -> AsyncGenerator[CompletionText | CompletionEnded, None]:
        """Streams a reply. Closing the stream stops the generation within 0.2 seconds."""
        job = engine_wire.Generate(id=0, prompt=_without_control_tokens(prompt))
        async with aclosing(self._run(job)) as reports:
            async for report in reports:
                if (event := self._taken(report)) is not None:
                    yield event

    async def chat(
        self, body: bytes, *, state_key: str = "", max_tokens: int
    ) -> AsyncGenerator[engine_wire.ChatChunk | CompletionEnded, None]:
        """Streams the reply to a request of the chat completions format, as `complete` does."""
        job = engine_wire.ChatJob(
            id=0,
            body=msgspec.Raw(without_control_tokens(body)),
            slot="work" if state_key else "other",
            state_key=state_key,
            max_tokens=max_tokens,
        )
        async with aclosing(self._run(job)) as reports:
            async for report in reports:
                if isinstance(report, engine_wire.ChatChunk):
                    yield report
                elif isinstance(event := self._taken(report), CompletionEnded):
                    yield event

    async def _run(
        self, job: engine_wire.Job
    ) -> AsyncGenerator[engine_wire.Report, None]:
        """Runs one job at a time, up to its last report. Stops the job when the stream is closed."""
        async with self._lock:
            self._ids += 1
            job = msgspec.structs.replace(job, id=self._ids)
            child = await self._begin(job)
            finished = False
            try:
                while not finished:
                    report = await child.receive()
                    finished = isinstance(
                        report, engine_wire.Failed | engine_wire.GenerationEnded
                    )
                    yield report
            finally:
                if not finished:
                    await child.stop(job.id)

    async def close(self) -> None:
        """Ends the child."""
        if self._child is not None:
            await self._child.end()
            self._child = None

    async def _begin(self, job: engine_wire.Job) -> "_Child":
        """Sends the job. Starts a new child if the old one has just ended because it was idle."""
        child = await self._ready()
        try:
            await child.accept(job)
        except (ConnectionError, ModelError):
            await child.end()
            child = await self._ready()
            await child.accept(job)
        return child

    async def _ready(self) -> "_Child":
        if self._child is not None:
            if self._child.alive:
                return self._child
            await self._child.end()
        self._child = child = await _Child.start(self._load)
        try:
            while not isinstance(
                report := await child.receive(), engine_wire.EngineReady
            ):
                self._taken(report)
        except BaseException:
            await asyncio.shield(child.end())
            raise
        return child

    def _taken(
        self, report: engine_wire.Report
    ) -> CompletionText | CompletionEnded | None:
        """Returns a report as an event for the caller, if any. Raises the error of a failure; passes on progress."""
        match report:
            case engine_wire.Failed():
                raise _failure(report)
            case engine_wire.Delta():
                return CompletionText(report.text)
            case engine_wire.GenerationEnded():
                return CompletionEnded(
                    finish=report.finish,
                    input_tokens=report.input_tokens,
                    cached_tokens=report.cached_tokens,
                    output_tokens=report.output_tokens,
                )
            case engine_wire.PrefixProgress() if self._on_prepare is not None:
                self._on_prepare(report.done, report.total)
            case _:
                pass
        return None


class _Child:
    """One child process and its pipes."""

    def __init__(self, process: PipedChild) -> None:
        self._process = process
        self._encoder = msgspec.json.Encoder()
        self._decoder: msgspec.json.Decoder[engine_wire.Report] = msgspec.json.Decoder(
            engine_wire.Report
        )
        self._ended = False

    @classmethod
    async def start(cls, load: engine_wire.Load) -> "_Child":
        """Starts the process and tells it what to load."""
        load = _with_absolute_paths(load)
        Path(load.state).parent.mkdir(parents=True, exist_ok=True)
        child = cls(
            await PipedChild.start(
                module_command("hermes.providers.embedded.engine_child"),
                cwd=Path("/"),  # the library looks for plugins in the working directory
                environment=os.environ,
            )
        )
        with contextlib.suppress(ConnectionError):  # `receive` reports why
            await child.send(load)
        return child

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return not self._ended and self._process.return_code is None

    async def send(self, command: engine_wire.Command) -> None:
        """Writes one command. Raises ConnectionError if the child has ended."""
        if not self.alive:
            raise ConnectionResetError(t.logged("the engine has ended"))
        try:
            await self._process.write(self._encoder.encode(command) + b"\n")
        except ConnectionError:
            await self.end()
            raise

    async def receive(self) -> engine_wire.Report:
        """Returns the next report. Raises ModelError if the child has ended instead."""
        line = await self._process.output.readline()
        if line:
            return self._decoder.decode(line)
        code = await self._process.wait(_EXIT_TIMEOUT_S)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._process.stderr.closed.wait(), _EXIT_TIMEOUT_S)
        raise self._died(code)

    async def accept(self, job: engine_wire.Job) -> None:
        """Sends a job and waits until it has arrived."""
        try:
            await self.send(job)
            while not isinstance(await self.receive(), engine_wire.Accepted):
                pass
        except asyncio.CancelledError:
            self.kill()  # its state is unknown
            raise

    async def stop(self, job: int) -> None:
        """Cancels a generation; kills the child if it does not stop at once."""
        stopped = False
        try:
            async with asyncio.timeout(_STOP_TIMEOUT_S):
                await self.send(engine_wire.Cancel(id=job))
                while not isinstance(
                    await self.receive(),
                    engine_wire.GenerationEnded | engine_wire.Failed,
                ):
                    pass
            stopped = True
        except (TimeoutError, ModelError, ConnectionError):
            pass  # killed below; the next use starts a new child
        finally:
            if not stopped:
                self.kill()  # without waiting, because an interrupt must be fast

    def kill(self) -> None:
        """Kills the child without waiting; `end` waits."""
        self._ended = True
        self._process.end()

    async def end(self) -> None:
        """Ends the child and waits until it is gone."""
        self.kill()
        await self._process.stop()

    def _died(self, code: int | None) -> ModelError:
        if code == -signal.SIGKILL:
            return ModelError(
                t.later("the local model was killed by the system"),
                hint=t.later(
                    "Memory probably ran out: close other programs, or pick the model `small`."
                ),
                reason="server",
            )
        last = self._process.stderr.last_line()
        how = (
            describe_exit(code)
            if code is not None
            else t.logged("it closed its output")
        )
        return ModelError(
            t.later(
                "the local model ended unexpectedly: {reason}",
                reason=LoggedWords(last or how),
            ),
            hint=t.later(
                "What it wrote so far is saved. Try again; `hermes doctor` checks the installation."
            ),
            reason="server",
            retryable=True,
        )


def _with_absolute_paths(load: engine_wire.Load) -> engine_wire.Load:
    path, state = (str(Path(name).absolute()) for name in (load.path, load.state))
    return msgspec.structs.replace(load, path=path, state=state)


def _failure(report: engine_wire.Failed) -> ModelError:
    """Turns a child's failure into an error for a person."""
    match report.reason:
        case "engine_missing":
            hint = JoinedWords(
                t.later(
                    "Connect another model with `hermes setup`, or add the local engine."
                ),
                install_hint("local"),
            )
            return ModelError(
                t.later("the engine of the local model is not installed"),
                hint=hint,
                reason="not_found",
            )
        case "library_missing":
            hint = t.later(
                "It needs the system's libgomp. Debian, Ubuntu: apt install libgomp1. Fedora: dnf install "
                "libgomp."
            )
            return ModelError(
                t.later(
                    "the local model can't start: {message}", message=report.message
                ),
                hint=hint,
                reason="not_found",
            )
        case "load":
            hint = t.later(
                "The file may be damaged or too large for this machine's memory. Try the model `small`."
            )
            return ModelError(
                t.later(
                    "the local model can't be loaded: {message}", message=report.message
                ),
                hint=hint,
                reason="server",
            )
        case "too_long":
            return ModelError(
                t.later(
                    "that is too long for the local model: {message}",
                    message=report.message,
                ),
                reason="too_long",
                compress=True,
            )
        case "engine":
            return ModelError(
                t.later("the local model failed: {message}", message=report.message),
                reason="server",
                retryable=True,
            )


def _without_control_tokens(prompt: Completion) -> Completion:
    turns, prefix = (
        tuple(ChatTurn(turn.role, plain_text(turn.content)) for turn in part)
        for part in (prompt.turns, prompt.prefix)
    )
    return msgspec.structs.replace(prompt, turns=turns, prefix=prefix)
