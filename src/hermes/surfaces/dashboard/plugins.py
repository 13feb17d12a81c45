"""Runs plugins: imports the enabled ones, serves their routes, and ends everything they started.

The subscriptions and tasks of a plugin carry its owner name, so that disabling the plugin
leaves nothing behind.
"""

import asyncio
import contextlib
import hashlib
import inspect
import logging
import posixpath
import re
import sys
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextvars import ContextVar
from types import ModuleType
from typing import Any, Self

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from hermes.errors import HermesError
from hermes.events import default_bus
from hermes.plugins import Plugin, PluginRegistry, verified_import
from hermes.primitives import tasks
from hermes.surfaces.web.endpoint import find_file
from hermes.surfaces.web.routes import READING, Route, RouteTable
from hermes.text.install_words import install_hint
from hermes.text.translation import translator

t = translator(__name__)


log = logging.getLogger("hermes.dashboard")

_running: ContextVar["RunningPlugin | None"] = ContextVar(
    "hermes_dashboard_plugin", default=None
)
_PREFIX = "hermes_plugin_"
_START_TIMEOUT_S = 10.0
_PLUGIN_STOP_TIMEOUT_S = 3.0


class RunningPlugin:
    """A plugin that runs."""

    def __init__(self, plugin: Plugin) -> None:
        self.plugin = plugin
        self.owner = f"plugin:{plugin.name}"
        self.tasks: set[asyncio.Task[Any]] = set()
        self._page: dict[str, str] = {}
        self._app: ASGIApp | None = None
        self._life: asyncio.Task[None] | None = None
        self._begun = asyncio.Event()
        self._ending = asyncio.Event()

    @classmethod
    async def start(cls, plugin: Plugin, timeout_s: float) -> Self:
        """Imports the plugin in the thread of the event loop, so that its async callbacks have a loop."""
        running = cls(plugin)
        files = await asyncio.to_thread(
            verified_import.read, plugin.folder, plugin.hash
        )
        running._page = await asyncio.to_thread(_hashes, files)
        api = plugin.manifest.api if plugin.manifest else None
        if api:
            with running._in_its_name():
                module = _import(plugin, api, files)
                app = _application(module)
                register = _register_of(module)
                running._life = asyncio.get_running_loop().create_task(
                    running._live(app, register)
                )
                await running._until_begun(running._life, timeout_s)
                running._app = app
        return running

    async def _live(self, app: Any, register: Callable[[], Any] | None) -> None:
        """Runs the plugin from start to end in one task: it may have to close what it opens in the same one."""
        try:
            lifespan = (
                app.router.lifespan_context(app)
                if app is not None
                else contextlib.nullcontext()
            )
            async with lifespan:
                if register is not None and inspect.isawaitable(done := register()):
                    await done
                self._begun.set()
                await self._ending.wait()
        except SystemExit as error:  # out of a task it would end the dashboard
            raise HermesError(t("it tried to end Hermes")) from error

    async def _until_begun(self, life: "asyncio.Task[None]", timeout_s: float) -> None:
        async with tasks.running(self._begun.wait()) as begun:
            await asyncio.wait(
                {life, begun}, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED
            )
        if life.done():
            life.result()
        if not self._begun.is_set():
            await self.stop(0.0)
            raise HermesError(
                t("it did not start within {timeout_s:g} seconds", timeout_s=timeout_s)
            )

    def file(self, name: str) -> bytes | None:
        """A file of its page, as the user has approved it; None when there is none or it has changed."""
        approved = self._page.get(name)
        path = find_file(self.plugin.folder / "dashboard", name) if approved else None
        content = path.read_bytes() if path else b""
        return content if hashlib.sha256(content).hexdigest() == approved else None

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves a request in a task of the plugin, which ends with the plugin."""
        app = self._app
        if app is None:
            await _not_found(t("This plugin has no routes."), scope, receive, send)
            return
        with self._in_its_name():
            work = asyncio.get_running_loop().create_task(
                _call(app, scope, receive, send)
            )
        try:
            await work
        except asyncio.CancelledError:
            work.cancel()
            if (task := asyncio.current_task()) is not None and task.cancelling():
                raise

    async def stop(self, timeout_s: float) -> None:
        """Ends its subscriptions, tasks and routes. Tasks that don't end are logged."""
        self._app = None
        default_bus().end_owned(self.owner)
        await tasks.cancel_and_wait(*self.tasks - {self._life}, timeout_s=timeout_s)
        if self._life is not None:
            self._ending.set()
            await asyncio.wait({self._life}, timeout=timeout_s)
            await tasks.cancel_and_wait(self._life, timeout_s=timeout_s)
            if (
                self._life.done()
                and not self._life.cancelled()
                and (error := self._life.exception())
            ):
                log.error(
                    "the plugin %s failed when it ended",
                    self.plugin.name,
                    exc_info=error,
                )
        if self.tasks:
            log.warning(
                "%d tasks of the plugin %s don't end",
                len(self.tasks),
                self.plugin.name,
            )
        default_bus().end_owned(self.owner)
        verified_import.unload(f"{_PREFIX}{self.plugin.name}")

    @contextlib.contextmanager
    def _in_its_name(self) -> Iterator[None]:
        token = _running.set(self)
        try:
            with default_bus().owned_by(self.owner):
                yield
        finally:
            _running.reset(token)


class Plugins:
    """The plugins of a dashboard. `errors` says why an enabled one does not run."""

    def __init__(self, catalogue: PluginRegistry, routes: RouteTable) -> None:
        self._catalogue = catalogue
        self._routes = routes
        self._running: dict[str, RunningPlugin] = {}
        self._changing = asyncio.Lock()
        self.timeouts_s = (_START_TIMEOUT_S, _PLUGIN_STOP_TIMEOUT_S)
        """How long a plugin may take to start, and to end."""
        self.errors: dict[str, str] = {}

    @property
    def catalogue(self) -> PluginRegistry:
        return self._catalogue

    async def refresh(self) -> list[Plugin]:
        """Starts and ends plugins as they are enabled; returns all plugins."""
        async with self._changing:
            found = await asyncio.to_thread(self._catalogue.every)
            wanted = {
                plugin.name: plugin for plugin in found if plugin.state == "enabled"
            }
            for name, running in list(self._running.items()):
                if name not in wanted or wanted[name].hash != running.plugin.hash:
                    await self._stop(name)
            for name, plugin in wanted.items():
                if name not in self._running and name not in self.errors:
                    await self._start(plugin)
            self.errors = {
                name: text for name, text in self.errors.items() if name in wanted
            }
            return found

    async def close(self) -> None:
        """Ends all plugins."""
        async with self._changing:
            for name in list(self._running):
                await self._stop(name)

    def file(self, name: str, file: str) -> bytes | None:
        """A file of a running plugin's page."""
        running = self._running.get(name)
        return running.file(file) if running else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves `/api/plugins/<name>/...`; access was checked before."""
        name = scope["path"].removeprefix("/api/plugins/").partition("/")[0]
        running = self._running.get(name)
        if running is None:
            await _not_found(t("There is no such plugin."), scope, receive, send)
            return
        await running.serve(
            {**scope, "root_path": f"/api/plugins/{name}"}, receive, send
        )

    async def _start(self, plugin: Plugin) -> None:
        _track_tasks()
        try:
            running = await RunningPlugin.start(plugin, self.timeouts_s[0])
        except BaseException as error:
            if not isinstance(error, Exception | SystemExit):
                raise
            log.exception("the plugin %s can't be loaded", plugin.name)
            self.errors[plugin.name] = f"{type(error).__name__}: {error}"
            default_bus().end_owned(f"plugin:{plugin.name}")
            return
        self._running[plugin.name] = running
        self._routes.add(plugin_routes(plugin.name, self), group=plugin.name)

    async def _stop(self, name: str) -> None:
        self._routes.remove_group(name)
        await self._running.pop(name).stop(self.timeouts_s[1])


def plugin_routes(name: str, application: ASGIApp) -> list[Route]:
    """The routes of a plugin: reading needs the scope `observe`, everything else `admin`."""
    path = re.compile(re.escape(f"/api/plugins/{name}") + "(?:/.*)?")
    return [
        Route("http", READING, path, "observe", application),
        Route("http", frozenset(), path, "admin", application),
        Route("websocket", frozenset(), path, "observe", application),
    ]


def _hashes(files: Mapping[str, bytes]) -> dict[str, str]:
    """The hash of each file of its page, as the user has approved it."""
    page = {
        name.removeprefix("dashboard/"): data
        for name, data in files.items()
        if name.startswith("dashboard/")
    }
    return {name: hashlib.sha256(data).hexdigest() for name, data in page.items()}


def _import(plugin: Plugin, api: str, files: Mapping[str, bytes]) -> ModuleType:
    """The plugin's module, from the files that the user has approved."""
    sys.dont_write_bytecode = (
        True  # its folder stays as it is, or its hash would change
    )
    return verified_import.load(
        plugin.folder,
        posixpath.normpath(f"dashboard/{api}"),
        files,
        f"{_PREFIX}{plugin.name}",
    )


def _register_of(module: ModuleType) -> Callable[[], Any] | None:
    """Its `register()`, which is called once at the start and may be async; None when it has none."""
    register = getattr(module, "register", None)
    if register is not None and not callable(register):
        raise HermesError(
            t(
                "its `register` can't be called: a function without parameters was expected"
            )
        )
    return register


def _application(module: ModuleType) -> Any:
    """Its router as an application; None without one. FastAPI is loaded only here."""
    router = getattr(module, "router", None)
    if router is None:
        return None
    try:
        from fastapi import APIRouter, FastAPI
    except ImportError as error:
        raise HermesError(
            t("fastapi is not installed."), hint=install_hint("web")
        ) from error
    if not isinstance(router, APIRouter):
        raise HermesError(t("its `router` is not a FastAPI APIRouter"))
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    app.include_router(router)
    return app


async def _not_found(error: str, scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 4004})
    else:
        await JSONResponse({"error": error, "hint": ""}, 404)(scope, receive, send)


async def _call(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    try:
        await app(scope, receive, send)
    except SystemExit as error:  # as above
        raise HermesError(t("it tried to end Hermes")) from error


def _track_tasks() -> None:
    """From now on, each task belongs to the plugin that starts it."""
    loop = asyncio.get_running_loop()
    if loop.get_task_factory() is not None:
        return

    def make(
        on: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Any], **options: Any
    ) -> asyncio.Task[Any]:
        task = asyncio.Task(work, loop=on, **options)
        running = _running.get()
        if running is not None:
            running.tasks.add(task)
            task.add_done_callback(running.tasks.discard)
        return task

    factory: Callable[..., Any] = make
    loop.set_task_factory(factory)
