"""What the fakes of chat platforms have in common: a web server on loopback, messages as people see them, waiting for
something to hold, and faults on command."""

import asyncio
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import msgspec
from aiohttp import web

if TYPE_CHECKING:
    from typing_extensions import override
else:

    def override(method):
        """`typing.override` is newer than the Python we support."""
        return method


PATIENCE = 20.0  # seconds for anything to happen


class Shown(msgspec.Struct):
    """A message as people see it now. `buttons` are labels and what they carry."""

    chat: str
    id: str
    text: str
    buttons: dict[str, str] = {}
    thread: str = ""
    changes: int = 0
    file: bytes = b""
    name: str = ""
    raw: dict[str, Any] = {}


class Failure(NamedTuple):
    """What the next call of a method answers instead."""

    code: int
    reason: str = ""
    retry_after: float = 0.0
    effect: bool = False  # it is done all the same, and only the answer is a failure


class ChatServer:
    """`async with` starts it. A subclass adds its routes, and `calls` holds what was asked of them."""

    def __init__(self) -> None:
        self.url = ""
        self.messages: list[Shown] = []
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.notes: list[str] = []  # what only one person sees, after a press
        self.failures: dict[str, list[Failure]] = {}
        self.files: dict[str, bytes] = {}
        self.hang = False  # take connections and say nothing
        self.sockets: list[web.WebSocketResponse] = []
        self._changed = asyncio.Event()
        self._number = 1000
        self._runner: web.AppRunner | None = None
        self._tasks: set[asyncio.Task[Any]] = set()

    def routes(self) -> list[web.RouteDef]:
        """What it serves."""
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        application = web.Application(
            client_max_size=50_000_000, middlewares=[self._through]
        )
        application.add_routes(self.routes())
        self._runner = web.AppRunner(application, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.cut()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._runner is not None:
            await self._runner.cleanup()

    async def cut(self) -> None:
        """Every open WebSocket goes away without a word."""
        for socket in self.sockets:
            if socket._req is not None and socket._req.transport is not None:
                socket._req.transport.abort()
        self.sockets.clear()

    def texts(self, chat: str) -> list[str]:
        """What can be read in a chat."""
        return [one.text for one in self.messages if one.chat == chat and not one.file]

    async def until(self, holds: Callable[[], object]) -> None:
        """Waits until that holds."""

        async def look() -> None:
            while not holds():
                self._changed.clear()
                await self._changed.wait()

        try:
            await asyncio.wait_for(look(), PATIENCE)
        except TimeoutError as error:
            raise AssertionError(
                f"it never held of: {self.messages!r}\n{self.calls[-10:]!r}"
            ) from error

    async def sees(self, text: str, chat: str) -> Shown:
        """Waits until a message of a chat holds that text."""

        def found() -> Shown | None:
            return next(
                (one for one in self.messages if one.chat == chat and text in one.text),
                None,
            )

        await self.until(found)
        shown = found()
        assert shown is not None
        return shown

    def spawn(self, work: Coroutine[Any, Any, Any]) -> None:
        """Does something meanwhile; it ends with the server at the latest."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def changed(self) -> None:
        """Something did."""
        self._changed.set()

    def next_id(self) -> int:
        """A new number."""
        self._number += 1
        return self._number

    def failing(self, method: str) -> Failure | None:
        """The failure that is due, if any."""
        return self.failures[method].pop(0) if self.failures.get(method) else None

    @web.middleware
    async def _through(
        self, request: web.Request, handler: Callable[[web.Request], Any]
    ) -> web.StreamResponse:
        if self.hang:
            await asyncio.Event().wait()
        try:
            return await handler(request)
        finally:
            self.changed()
