"""The codex process of a Hermes session: one process at a time, one thread, one turn after another.

Starts and ends the process, opens or resumes the thread, and runs turns in it. Independent of logs, surfaces and
settings.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

import msgspec

from hermes.codex import stray_folders, wire
from hermes.codex.binary import NEWEST, version_warning
from hermes.codex.client import Client, CodexLaunch, CodexListener, decode
from hermes.codex.elicitation import OWN_SERVER
from hermes.codex.failures import (
    BACK,
    CodexFailed,
    CodexRefused,
    SignedOut,
    is_signed_out,
)
from hermes.codex.handover import as_items
from hermes.codex.projector import CodexInput, Projector, UsageTracker
from hermes.codex.turn import (
    CodexConnection,
    CodexTimeouts,
    CodexTurn,
    CodexTurnDeps,
    Heard,
    TurnResult,
)
from hermes.primitives.tasks import BackgroundTasks, cancel_and_wait, running
from hermes.schema.messages import Message
from hermes.text.translation import translator

t = translator(__name__)

log = logging.getLogger("hermes.codex")

T = TypeVar("T")

_TOOL_SERVER_TIMEOUT_S = 15.0  # seconds for Hermes' tool server to start
_MAX_WAITING_NOTIFICATIONS = (
    10_000  # queued notifications; beyond that codex has to wait
)


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """The configuration of a session's codex."""

    launch: Callable[[Path], CodexLaunch]
    deadlines: CodexTimeouts = CodexTimeouts()
    approval_policy: str = "on-request"
    model: str = ""
    config: Mapping[str, Any] = {}
    """Settings for the thread alone, such as Hermes' tool server."""
    ephemeral: bool = False
    """Whether the thread is temporary, so that codex stores nothing of it."""
    idle_timeout: float = 900.0
    scratch: tuple[Path, ...] = ()
    """Folders besides the working directory that codex lets commands write to."""
    may_read_notes: Callable[[Path], bool] = lambda _: True
    """Whether codex may read the project notes of a folder."""


class TurnOpening(msgspec.Struct, frozen=True):
    """The start of a turn."""

    cwd: Path
    instructions: str = ""
    thread: str = ""
    missing: tuple[Message, ...] = ()
    """Messages that codex's thread lacks."""
    everything: tuple[Message, ...] = ()
    """The whole conversation, in case the thread is lost."""


class _Named(msgspec.Struct, frozen=True, rename="camel"):
    """A thread or a turn. The name of the id field depends on codex's version."""

    id: str = ""
    thread_id: str = ""
    session_id: str = ""
    turn_id: str = ""
    path: str | None = None


class _ThreadOpened(msgspec.Struct, frozen=True, rename="camel"):
    thread: _Named | str = _Named()
    thread_id: str = ""
    session_id: str = ""
    conversation_id: str = ""
    model: str = ""
    model_provider: str = ""

    @property
    def id(self) -> str:
        """The thread's id, without a prefix and in lower case."""
        inner = _Named(id=self.thread) if isinstance(self.thread, str) else self.thread
        names = (
            inner.id,
            inner.thread_id,
            self.thread_id,
            inner.session_id,
            self.session_id,
            self.conversation_id,
        )
        return canonical(next(filter(None, names), ""))

    @property
    def rollout(self) -> str:
        if isinstance(self.thread, str):
            return ""
        return self.thread.path or ""


class _ServerStatus(msgspec.Struct, frozen=True):
    name: str = ""
    status: str = ""
    error: str | None = None


class _TurnOpened(msgspec.Struct, frozen=True, rename="camel"):
    turn: _Named | str = _Named()
    turn_id: str = ""

    @property
    def id(self) -> str:
        inner = _Named(id=self.turn) if isinstance(self.turn, str) else self.turn
        return inner.id or inner.turn_id or self.turn_id


class _Account(msgspec.Struct, frozen=True, rename="camel"):
    account: Any = None
    requires_openai_auth: bool = False


class CodexSession:
    """The codex of one Hermes session. `close` must be awaited, whatever happens."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._client: Client | None = None
        self._thread = ""
        self._rollout = ""
        self._model = self._model_provider = ""
        self._meter = UsageTracker()
        self._turn: CodexTurn | None = None
        self._queue: Heard = asyncio.Queue()
        self._idle: asyncio.TimerHandle | None = None
        self._leaving = BackgroundTasks("ending an idle codex")
        self._warned = False
        self._listening = False
        self._lent = asyncio.Event()

    @property
    def pid(self) -> int:
        """The top process of this session's codex; 0 if none runs."""
        if self._client and self._client.alive:
            return self._client.pid
        return 0

    async def run_turn(
        self, opening: TurnOpening, words: CodexInput, stage: CodexTurnDeps
    ) -> TurnResult:
        """Runs one turn to its end. Raises CodexFailed if it could not begin."""
        self._cancel_idle_timer()
        absent = stray_folders.possible_folders((opening.cwd, *self._setup.scratch))
        try:
            client = await self._until_interrupted(self._ready(opening, stage), stage)
            if client is None:
                return TurnResult(interrupted=True, thread_id=self._thread)
            return await self._play(client, opening, words, stage)
        except CodexRefused as refused:
            await self.retire()
            if is_signed_out(refused.message):
                raise SignedOut from refused
            said = t.logged(
                "Codex refused to start the turn: {message}", message=refused.message
            )
            raise CodexRefused(
                said,
                code=refused.code,
                hint=t.later("Run `hermes doctor`. {back}", back=BACK),
            ) from refused
        except CodexFailed:
            await self.retire()
            raise
        finally:
            self._listening = False
            stray_folders.sweep(absent)
            self._leave_later()

    async def retire(self) -> None:
        """Ends the process. The next turn starts another one and continues the thread."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def close(self) -> None:
        """Ends everything."""
        self._cancel_idle_timer()
        await self.retire()
        await self._leaving.join()

    def _cancel_idle_timer(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None

    def _leave_later(self) -> None:
        """Ends an idle process after a while, because it takes 110 MB and restarts in half a second."""
        if self._client is None or not self._setup.idle_timeout:
            return
        self._idle = asyncio.get_running_loop().call_later(
            self._setup.idle_timeout, self._retire_soon
        )

    def _retire_soon(self) -> None:
        self._leaving.start(self.retire())

    async def _until_interrupted(
        self, step: Coroutine[Any, Any, T], stage: CodexTurnDeps
    ) -> T | None:
        """Waits for a step, unless an interrupt stops it."""
        async with running(step) as task, running(stage.interrupted.wait()) as stop:
            try:
                await asyncio.wait({task, stop}, return_when=asyncio.FIRST_COMPLETED)
                if task.done():
                    return task.result()
            finally:
                if not task.done():
                    await cancel_and_wait(task)
                    await self.retire()  # it is unknown how far it got
        return None

    async def _ready(self, opening: TurnOpening, stage: CodexTurnDeps) -> Client:
        client = self._client
        if client is None or not client.alive:
            await self.retire()
            client = await self._start(opening.cwd)
            self._thread = ""
        missing: Sequence[Message] = opening.missing
        if not self._thread or self._thread != canonical(opening.thread):
            resumed = bool(opening.thread) and await self._resume(client, opening)
            if not resumed:
                await self._open(client, opening)
                missing = opening.everything
            await self._wait_for_tools()
        if items := as_items(missing):
            await client.request(
                "thread/inject_items",
                {"threadId": self._thread, "items": items},
                dict[str, Any],
            )
        stage.opened(self._thread)
        return client

    async def _wait_for_tools(self) -> None:
        """Waits for Hermes' tool server. Codex itself does not wait, so its first turn would lack the tools."""
        if "mcp_servers" not in self._setup.config:
            return
        try:
            async with asyncio.timeout(_TOOL_SERVER_TIMEOUT_S):
                await self._lent.wait()
        except TimeoutError:
            log.warning(
                "Hermes' tool server did not start for codex within %g seconds; continuing without it",
                _TOOL_SERVER_TIMEOUT_S,
            )

    async def _start(self, cwd: Path) -> Client:
        self._queue = asyncio.Queue(_MAX_WAITING_NOTIFICATIONS)
        self._meter = UsageTracker()
        self._lent.clear()
        self._client = client = await Client.start(
            self._setup.launch(cwd),
            CodexListener(hear=self._drop_notification, answer=self._answer),
        )
        warning = "" if self._warned else version_warning(client.version)
        if warning:
            self._warned = True
            log.warning("%s", warning)
        account = await client.request(
            "account/read", {"refreshToken": False}, _Account
        )
        if account.account is None and account.requires_openai_auth:
            raise SignedOut
        return client

    @property
    def permissions(self) -> str:
        """The permission profile that threads are opened with; empty to leave it to codex's own settings."""
        return str(self._setup.config.get("default_permissions", ""))

    def _thread_settings(
        self, opening: TurnOpening, version: tuple[int, ...]
    ) -> dict[str, Any]:
        """Returns the settings that every thread gets, new or not, because codex does not store all of them."""
        about: dict[str, Any] = {
            "cwd": str(opening.cwd),
            "approvalPolicy": self._setup.approval_policy,
        }
        about |= (
            {"developerInstructions": opening.instructions}
            if opening.instructions
            else {}
        )
        about |= {"model": self._setup.model} if self._setup.model else {}
        config = dict(self._setup.config)
        if version[:2] < NEWEST:
            features = config.get("features", {})
            config["features"] = {
                **features,
                "shell_snapshot": False,
            }  # it exposes codex's own keys to commands
        if not self._setup.may_read_notes(opening.cwd):
            config["project_doc_max_bytes"] = 0
        return about | ({"config": config} if config else {})

    async def _open(self, client: Client, opening: TurnOpening) -> None:
        self._meter = UsageTracker()
        about = self._thread_settings(opening, client.version) | (
            {"ephemeral": True} if self._setup.ephemeral else {}
        )
        self._enter(
            await client.request("thread/start", about, _ThreadOpened, timeout=60)
        )

    def _enter(self, opened: _ThreadOpened) -> None:
        if not opened.id:
            raise CodexRefused(
                t.later("Codex opened a thread but did not report its id.")
            )
        self._thread, self._rollout = opened.id, opened.rollout
        self._model, self._model_provider = opened.model, opened.model_provider

    async def _resume(self, client: Client, opening: TurnOpening) -> bool:
        """Tries to continue the thread. Returns False if it is lost; a new one then gets the whole conversation."""
        params = {
            "threadId": opening.thread,
            "excludeTurns": True,
            **self._thread_settings(opening, client.version),
        }
        try:
            opened = await client.request(
                "thread/resume", params, _ThreadOpened, timeout=60
            )
        except CodexRefused as error:
            log.warning(
                "codex can't continue thread %s (%s): starting a new one",
                opening.thread,
                error.message,
            )
            return False
        self._enter(opened)
        return True

    async def _play(
        self,
        client: Client,
        opening: TurnOpening,
        words: CodexInput,
        stage: CodexTurnDeps,
    ) -> TurnResult:
        self._listening = True
        params = {
            "threadId": self._thread,
            "input": list(words.items),
            "clientUserMessageId": words.name,
            "cwd": str(opening.cwd),
        }
        self._forget()
        opened = await self._until_interrupted(
            client.request("turn/start", params, _TurnOpened), stage
        )
        if opened is None:
            return TurnResult(interrupted=True, thread_id=self._thread)
        await stage.begun()
        whole = client.version[:2] >= NEWEST
        projector = Projector(
            opened.id,
            cwd=str(opening.cwd),
            model=self._model,
            has_tags=self._model_provider != "openai",
            whole_output=whole,
            meter=self._meter,
        )
        projector.delivered[words.name] = words
        connection = CodexConnection(
            client, self._queue, self._thread, self._rollout, self.retire
        )
        self._turn = CodexTurn(connection, projector, stage, self._setup.deadlines)
        try:
            result = await self._turn.run()
        finally:
            self._turn = None
            self._forget()
        if result.should_retire:
            await self.retire()
        return result

    def _forget(self) -> None:
        """Drops notifications about a finished turn."""
        while not self._queue.empty():
            told = self._queue.get_nowait()
            if isinstance(told, asyncio.Event):
                told.set()

    async def _drop_notification(self, notice: wire.CodexNotification | None) -> None:
        """Reads and drops notifications between turns, so that codex never blocks."""
        if notice is not None and notice.method == "mcpServer/startupStatus/updated":
            server = decode(notice.params, _ServerStatus)
            if server and server.name == OWN_SERVER and server.status != "starting":
                self._lent.set()
                if server.status != "ready":
                    log.warning(
                        "Hermes' tool server did not start for codex: %s",
                        server.error or server.status,
                    )
        if self._listening:
            await self._queue.put(notice)
        elif notice is not None and notice.method == "thread/tokenUsage/updated":
            with contextlib.suppress(msgspec.DecodeError):
                self._meter.is_new(notice)

    async def _answer(self, call: wire.CodexRequest) -> object:
        """Waits until earlier notifications are processed, because a request refers to them."""
        taken_in = asyncio.Event()
        if self._listening:
            await self._queue.put(taken_in)
            await taken_in.wait()
        if self._turn is None:
            raise CodexRefused(t.later("no turn is running"), code=wire.UNKNOWN_METHOD)
        return await self._turn.answer(call)


def canonical(thread: str) -> str:
    """Returns a thread's id in codex's current form: a UUID in lower case. Anything else is returned unchanged."""
    try:
        return str(UUID(thread.lower()))
    except ValueError:
        return thread
