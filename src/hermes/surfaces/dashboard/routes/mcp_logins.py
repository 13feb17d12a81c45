"""Routes of logins at MCP servers: begin one in the browser, and ask whether it is done."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Literal, TypeAlias

import msgspec

from hermes.errors import HermesError, NotFound
from hermes.mcp.login import ServerSignIn
from hermes.mcp.safe_text import ServerFailed
from hermes.primitives.tasks import BackgroundTasks
from hermes.settings.load import load
from hermes.surfaces.dashboard.dashboard import Dashboard
from hermes.surfaces.web.endpoint import Endpoint, EndpointCall
from hermes.text.translation import translator

t = translator(__name__)


_BEGIN_TIMEOUT_S = 60.0

LoginTask: TypeAlias = "asyncio.Task[ServerFailed | None]"
"""Ends with the reason why the login failed, or None."""


class LoginAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """A login at a server. The person opens `address`; their browser then comes back to this machine."""

    state: Literal["none", "waiting", "done", "failed"] = "none"
    address: str = ""
    problem: str = ""


class McpLoginRoutes:
    """Handlers over one dashboard. Each server has at most one login under way."""

    def __init__(
        self, dashboard: Dashboard, begin_timeout_s: float = _BEGIN_TIMEOUT_S
    ) -> None:
        self._app = dashboard.app
        self._begin_timeout_s = begin_timeout_s
        self._attempts: dict[str, LoginAttempt] = {}
        self._running: dict[str, LoginTask] = {}
        self._tasks = BackgroundTasks("a login at an MCP server")

    def endpoints(self) -> list[Endpoint]:
        path = "/api/mcp/{name}/login"
        return [
            Endpoint("POST", path, "admin", self.begin, answer=LoginAttempt),
            Endpoint("GET", path, "admin", self.attempt, answer=LoginAttempt),
        ]

    async def begin(self, call: EndpointCall) -> LoginAttempt:
        """Begins a login. It waits for the person for ten minutes."""
        name = call.path["name"]
        settings = await asyncio.to_thread(load, home=self._app.home)
        if name not in settings.mcp_servers:
            raise NotFound(t("There is no MCP server {name!r}.", name=name))
        try:
            sign_in = ServerSignIn(name, settings.mcp_servers[name], self._app.home)
        except ServerFailed as failed:
            raise _not_signed_in(name, failed) from failed
        address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        task = self._replace(name, sign_in, address)
        await asyncio.wait(
            {task, address},
            timeout=self._begin_timeout_s,
            return_when=asyncio.FIRST_COMPLETED,
        )
        if address.done():
            return LoginAttempt(state="waiting", address=address.result())
        if not task.done():
            task.cancel()
            late = t(
                "it did not answer within {begin_timeout_s:g} seconds",
                begin_timeout_s=self._begin_timeout_s,
            )
            raise _not_signed_in(name, ServerFailed(late))
        raise _not_signed_in(
            name, _failure(task) or ServerFailed(t("it gave no address"))
        )

    def attempt(self, call: EndpointCall) -> LoginAttempt:
        """How the last login at a server went."""
        return self._attempts.get(call.path["name"], LoginAttempt())

    def _replace(
        self, name: str, sign_in: ServerSignIn, address: "asyncio.Future[str]"
    ) -> LoginTask:
        """Starts a login and ends the one before. `address` gets what the person opens."""

        def show(where: str) -> None:
            if not address.done():
                address.set_result(where)
            if self._running.get(name) is task:
                self._attempts[name] = LoginAttempt(state="waiting", address=where)

        if (before := self._running.get(name)) is not None:
            before.cancel()
        task = self._tasks.start(_signed_in(sign_in, show))
        self._running[name] = task
        task.add_done_callback(partial(self._ended, name))
        return task

    def _ended(self, name: str, task: LoginTask) -> None:
        """Stores how a login went, however it ended, unless another one has replaced it."""
        if self._running.get(name) is not task:
            return
        del self._running[name]
        failed = _failure(task)
        self._attempts[name] = (
            LoginAttempt(state="failed", problem=failed.full_shown)
            if failed
            else LoginAttempt(state="done")
        )


async def _signed_in(
    sign_in: ServerSignIn, show: Callable[[str], None]
) -> ServerFailed | None:
    try:
        await sign_in.run(show, None)
    except ServerFailed as failed:
        return failed
    except (HermesError, OSError) as error:
        return ServerFailed(str(error))
    return None


def _failure(task: LoginTask) -> ServerFailed | None:
    """Why a login that has ended failed; None if the person is signed in."""
    if task.cancelled():
        return ServerFailed(t("the login was stopped, or another one was begun"))
    if task.exception() is not None:  # which was logged
        return ServerFailed(
            t("the login failed"), hint=t("The log says why: hermes logs")
        )
    return task.result()


def _not_signed_in(name: str, failed: ServerFailed) -> HermesError:
    return HermesError(
        t(
            "You are not signed in at {name}: {full}.",
            name=name,
            full=failed.full_shown,
        ),
        hint=failed.hint_words,
    )
