"""The logins of remote servers, in `mcp-logins.json` in the home: for this user only, changed under a lock.

A new token is on disk before it is used. A process that refreshes one takes the server's refresh lock and reads the
file again first, so that two processes never use up each other's refresh token.
"""

import contextlib
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import msgspec

from hermes.errors import SettingsError
from hermes.mcp.safe_text import ServerFailed
from hermes.primitives.file_lock import FileLock
from hermes.primitives.files import make_private_folder
from hermes.settings import Home, atomic
from hermes.text.translation import translator

t = translator(__name__)

EXPIRY_MARGIN_S = 60.0
"""A token that expires within this time is refreshed, because clocks differ."""
_REFRESH_LOCK_TIMEOUT_S = 60.0
_MAX_FILE_BYTES = 4 * 1024 * 1024


class OAuthClient(msgspec.Struct, frozen=True, omit_defaults=True):
    """How Hermes is registered with an authorization server."""

    id: str
    secret: str = ""
    auth_method: str = "none"

    def __repr__(self) -> str:
        return "OAuthClient(...)"


class PendingLogin(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A login that waits for the person in the browser."""

    url: str
    issuer: str
    requires_issuer: bool = False
    token_endpoint: str
    resource: str
    client: OAuthClient
    redirect_uri: str
    state: str
    verifier: str
    scope: str = ""

    def __repr__(self) -> str:
        return "PendingLogin(...)"


class ServerLogin(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A login at a server, valid only for the address it was made for."""

    url: str
    token_endpoint: str
    resource: str
    client: OAuthClient
    access_token: str
    refresh_token: str = ""
    expires_at: float = 0.0
    """Unix time; 0 if the server did not say."""
    scope: str = ""
    ended: str = ""
    """Why it is no longer valid; empty while it is."""

    def __repr__(self) -> str:
        return "ServerLogin(...)"

    def is_fresh(self, now: float) -> bool:
        """Whether the token can still be used."""
        return not self.expires_at or now < self.expires_at - EXPIRY_MARGIN_S


class _LoginFile(msgspec.Struct, frozen=True):
    servers: dict[str, ServerLogin] = {}
    pending: dict[str, PendingLogin] = {}


class LoginStore:
    """The logins of all servers."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self.path = home.root / "mcp-logins.json"
        self._known: tuple[tuple[int, int, int], _LoginFile] | None = None

    def of(self, server: str, url: str) -> ServerLogin | None:
        """Returns the login at a server; None if it was made for another address."""
        login = self._load().servers.get(server)
        return login if login is not None and login.url == url else None

    def pending(self, server: str) -> PendingLogin | None:
        """Returns the login that waits for the person."""
        return self._load().pending.get(server)

    def save_pending(self, server: str, pending: PendingLogin) -> None:
        """Saves what is needed to finish a login in any process."""
        with self._changing() as file:
            file.pending[server] = pending

    def save(self, server: str, login: ServerLogin) -> None:
        """Writes a login. It is on disk when this returns."""
        with self._changing() as file:
            file.servers[server] = login
            file.pending.pop(server, None)

    def forget(self, server: str) -> bool:
        """Deletes a login. Returns whether there was one."""
        known = self._load()
        if server not in known.servers and server not in known.pending:
            return False
        with self._changing() as file:
            file.servers.pop(server, None)
            file.pending.pop(server, None)
        return True

    @contextlib.asynccontextmanager
    async def refreshing(self, server: str) -> AsyncIterator[None]:
        """Holds the lock under which a server's token is refreshed, across processes."""
        folder = make_private_folder(self._home.root / "run")
        lock = FileLock(folder / f"mcp-login-{server}.lock")
        with lock:
            if not await lock.acquire_async(_REFRESH_LOCK_TIMEOUT_S):
                raise ServerFailed(
                    t.later(
                        "another process has been refreshing its login for a minute"
                    )
                )
            yield

    @contextlib.contextmanager
    def _changing(self) -> Iterator[_LoginFile]:
        self._home.ensure()
        with atomic.locked(self.path) as target:
            known = self._load()
            file = _LoginFile(dict(known.servers), dict(known.pending))
            yield file
            atomic.replace(target, msgspec.json.encode(file), mode=0o600)

    def _load(self) -> _LoginFile:
        try:
            info = self.path.stat()
            version = (info.st_ino, info.st_mtime_ns, info.st_size)
            if self._known is None or self._known[0] != version:
                self._known = (version, _read(self.path))
            return self._known[1]
        except FileNotFoundError:
            return _LoginFile()
        except (OSError, msgspec.MsgspecError) as error:
            raise SettingsError(
                t.later(
                    "{path} can't be read ({name}).",
                    path=self.path,
                    name=type(error).__name__,
                ),
                hint=t.later(
                    "It holds your logins at MCP servers. Move it away, and sign in again: hermes mcp login NAME"
                ),
            ) from error


def _read(path: Path) -> _LoginFile:
    with path.open("rb") as file:
        return msgspec.json.decode(file.read(_MAX_FILE_BYTES), type=_LoginFile)


def login_command(server: str) -> str:
    """The command that signs in at a server."""
    return f"hermes mcp login {server}"


def unix_now() -> float:
    """The time by which tokens expire."""
    return time.time()
