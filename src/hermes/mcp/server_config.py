"""What a server needs: the context that all servers share, and its address with secrets filled in. Also its status."""

import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from hermes.mcp.definitions import is_server_name
from hermes.mcp.environment import Values, handed_on, secret_values
from hermes.mcp.logins import LoginStore
from hermes.mcp.results import ResultFiles
from hermes.mcp.safe_text import Redaction, ServerFailed
from hermes.mcp.server_cache import Listings, ToolPins
from hermes.mcp.stdio_server import ServerLaunch
from hermes.settings import Home, Secrets
from hermes.settings.mcp import McpServerSettings
from hermes.text.translation import translator

t = translator(__name__)

ServerState: TypeAlias = Literal["off", "idle", "connecting", "connected", "failed"]


class ServerStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a server now."""

    name: str
    state: ServerState
    detail: str = ""
    """Why it failed, or what it calls itself."""
    hint: str = ""
    retry_in: float = 0.0
    """Seconds until the next call may connect again."""
    tools: int = 0
    changed: tuple[str, ...] = ()
    """Tools that differ from what the user accepted."""
    left_out: tuple[str, ...] = ()
    pid: int = 0


class LoginSource(msgspec.Struct, frozen=True):
    """The store of a server's login, and the function to call when the login ends."""

    server: str
    store: LoginStore
    on_ended: Callable[[str], None]


class ServerReports(msgspec.Struct, frozen=True):
    """Functions that receive reports about servers, and one that checks the descriptions of their tools."""

    on_change: Callable[[ServerStatus], None] = lambda _: None
    on_login_ended: Callable[[str, str], None] = lambda *_: None
    """Receives the server and the reason."""
    on_log: Callable[[str, str, str], None] = lambda *_: None
    """Receives the server, the level and the message."""
    on_suspected: Callable[[str, tuple[str, ...]], None] = lambda *_: None
    """Receives the server, and the tools that are not offered because of their descriptions."""
    scan: Callable[[str], str] = lambda _: ""
    """Returns the problem with a text that a model would read; empty if there is none."""


class ServerContext(msgspec.Struct, frozen=True):
    """What all servers share."""

    home: Home
    secrets: Secrets
    environment: Mapping[str, str]
    listings: Listings
    pins: ToolPins
    files: ResultFiles
    logins: LoginStore
    reports: ServerReports = ServerReports()
    now: Callable[[], float] = time.monotonic

    def make_folders(self) -> None:
        """Creates the folders that servers use, for this user only. Raises HomeError if that fails."""
        cache, logs = self.home.cache, self.home.logs
        self.home.ensure(cache, cache / "mcp", cache / "outputs", logs, logs / "mcp")


class ServerAddress(msgspec.Struct, frozen=True):
    """A program to start, or a service with its headers. It is never shown, because it holds secrets."""

    launch: ServerLaunch | None
    url: str
    headers: Mapping[str, str]
    connect_timeout: float
    redact: Redaction
    name: str = ""
    login: LoginSource | None = None

    def __repr__(self) -> str:
        return "ServerAddress(...)"


def bad_name() -> ServerFailed:
    """The error for a server whose name can't be part of tool and file names."""
    return ServerFailed(
        t.later("its name can't be used"),
        hint=t.later("Use letters, digits, - and _, at most 32."),
    )


def address_of(
    name: str, settings: McpServerSettings, context: ServerContext
) -> ServerAddress:
    """Returns the address of a server. Raises ServerFailed or SettingsError if its settings are wrong."""
    if not is_server_name(name):
        raise bad_name()
    if bool(settings.command) == bool(settings.url):
        raise ServerFailed(
            t.later("it needs either a command or a url"),
            hint=t.later("Correct it with: hermes config edit"),
        )
    values = Values(context.secrets, context.environment)
    env = {key: values.filled(value) for key, value in settings.env.items()}
    headers = {key: values.filled(value) for key, value in settings.headers.items()}
    known = values.used | secret_values(env) | secret_values(headers)
    login: LoginSource | None = None
    if settings.url and not any(key.lower() == "authorization" for key in headers):
        found = context.logins.of(name, settings.url)
        if found is not None:
            known |= {found.access_token, found.refresh_token}
            login = LoginSource(
                name, context.logins, partial(context.reports.on_login_ended, name)
            )
    launch = _launch(name, settings, env, context) if settings.command else None
    return ServerAddress(
        launch,
        settings.url,
        headers,
        settings.connect_timeout,
        Redaction(known),
        name,
        login,
    )


def _launch(
    name: str,
    settings: McpServerSettings,
    env: Mapping[str, str],
    context: ServerContext,
) -> ServerLaunch:
    home = Path(context.environment.get("HOME") or "/")
    folder = settings.cwd.removeprefix("~/") if settings.cwd not in {"", "~"} else "."
    log = context.home.logs / "mcp" / f"{name}.log"
    search_path = env.get("PATH") or context.environment.get("PATH", "")
    environment = {**handed_on(context.environment), **env}
    return ServerLaunch(
        settings.command, settings.args, environment, home / folder, log, search_path
    )
