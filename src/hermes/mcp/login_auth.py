"""Sends a login's token with every request to its server, and refreshes it when it has expired or is refused."""

from collections.abc import AsyncGenerator, Callable
from typing import TypeAlias

import httpx2
import msgspec

from hermes.mcp import oauth
from hermes.mcp.logins import LoginStore, ServerLogin, login_command, unix_now
from hermes.mcp.safe_text import ServerFailed
from hermes.text.translation import Later, translator

t = translator(__name__)

OnEnded: TypeAlias = Callable[[str], None]
"""Called once with the reason when a login ends."""


class LoginAuth(httpx2.Auth):
    """The login of one server. Reads the file before every request, so that a login made by another process is used."""

    def __init__(
        self, server: str, url: str, store: LoginStore, on_ended: OnEnded
    ) -> None:
        self._server = server
        self._url = url
        self._store = store
        self._on_ended = on_ended

    # pyrefly: ignore[missing-override-decorator]
    async def async_auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Adds the token. A refused one is refreshed once."""
        login = self._login()
        if not login.is_fresh(unix_now()):
            login = await self._refreshed(login)
        request.headers["authorization"] = f"Bearer {login.access_token}"
        response = yield request
        if response.status_code == 401:
            login = await self._refreshed(login)
            request.headers["authorization"] = f"Bearer {login.access_token}"
            yield request

    def _login(self) -> ServerLogin:
        login = self._store.of(self._server, self._url)
        if login is None:
            raise ServerFailed(t.later("you are not signed in"), hint=self._hint())
        if login.ended:
            raise ServerFailed(login.ended, hint=self._hint())
        return login

    async def _refreshed(self, used: ServerLogin) -> ServerLogin:
        """Returns a login with a different token: one that another process has refreshed, or a new one."""
        async with self._store.refreshing(self._server):
            login = self._login()
            if login.access_token != used.access_token:
                return login
            try:
                fresh = await oauth.refresh(login)
            except oauth.LoginEnded as ended:
                dead = msgspec.structs.replace(login, ended=ended.message)
                self._store.save(self._server, dead)
                self._on_ended(ended.full)
                raise ServerFailed(
                    ended.message, hint=self._hint(), said=ended.said
                ) from ended
            self._store.save(self._server, fresh)  # before it is used
            return fresh

    def _hint(self) -> Later:
        return t.later("Sign in again: {command}", command=login_command(self._server))
