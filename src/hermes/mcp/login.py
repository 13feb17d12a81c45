"""Signs in at a configured server, in one go or in two steps in different processes."""

import asyncio
import importlib
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from hermes.mcp.logins import LoginStore, ServerLogin, login_command
from hermes.mcp.safe_text import ServerFailed
from hermes.primitives.tasks import cancel_and_wait
from hermes.settings import Home
from hermes.settings.mcp import McpServerSettings
from hermes.text.translation import translator

t = translator(__name__)

if TYPE_CHECKING:
    from hermes.oauth.loopback import LoopbackListener

PASTE_REDIRECT = "http://127.0.0.1:8976/callback"
"""Where the browser is sent if nothing listens: the person copies that address from the browser."""
LOGIN_TIMEOUT_S = 600.0


class ServerSignIn:
    """Signing in at one server."""

    def __init__(self, name: str, settings: McpServerSettings, home: Home) -> None:
        if not settings.url:
            raise ServerFailed(
                t.later("it is a program on this machine, which has no login"),
                hint=t.later(
                    "Give it a key as a variable: hermes mcp add NAME --env KEY -- COMMAND"
                ),
            )
        self._name = name
        self._url = settings.url
        self._store = LoginStore(home)

    async def begin(self, redirect_uri: str = PASTE_REDIRECT, state: str = "") -> str:
        """Returns the address for the person to open, and saves what `finish` needs. Raises ServerFailed."""
        oauth = await asyncio.to_thread(importlib.import_module, "hermes.mcp.oauth")
        pending, address = await oauth.begin(self._url, redirect_uri, state)
        self._store.save_pending(self._name, pending)
        return address

    async def finish(self, address: str) -> ServerLogin:
        """Signs in with the address that the browser was sent back to. Raises ServerFailed."""
        pending = self._store.pending(self._name)
        if pending is None or pending.url != self._url:
            raise ServerFailed(
                t.later("no login was begun"),
                hint=t.later(
                    "Begin: {login_command}", login_command=login_command(self._name)
                ),
            )
        oauth = await asyncio.to_thread(importlib.import_module, "hermes.mcp.oauth")
        login = await oauth.finish(pending, address)
        self._store.save(self._name, login)
        return login

    async def run(
        self, show: Callable[[str], None], pasted: Callable[[], Awaitable[str]] | None
    ) -> ServerLogin:
        """Signs in while the person is present: the browser is sent to a local port, or the person pastes its address."""
        from hermes.oauth.loopback import LoopbackListener

        async with LoopbackListener() as listener:
            show(await self.begin(listener.redirect_uri, listener.state))
            try:
                async with asyncio.timeout(LOGIN_TIMEOUT_S):
                    return await self.finish(await _first(listener, pasted))
            except TimeoutError:
                raise ServerFailed(
                    t.later("nobody signed in within ten minutes"),
                    hint=t.later(
                        "Try again: {login_command}",
                        login_command=login_command(self._name),
                    ),
                ) from None


async def _first(
    listener: "LoopbackListener", pasted: Callable[[], Awaitable[str]] | None
) -> str:
    """The address that comes first: from the browser, or from the person."""

    async def redirected() -> str:
        return (await listener.wait()).address

    waiting = [asyncio.ensure_future(redirected())]
    if pasted is not None:
        waiting.append(asyncio.ensure_future(pasted()))
    try:
        done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        return done.pop().result()
    finally:
        await cancel_and_wait(*waiting)
