"""Where a server is: its settings with the secrets filled in."""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from hermes.mcp.definitions import is_server_name
from hermes.mcp.environment import Values, handed_on, telling
from hermes.mcp.failures import ServerFailed
from hermes.mcp.safe_text import Redaction
from hermes.mcp.server_context import ServerContext
from hermes.mcp.stdio_server import ServerLaunch
from hermes.settings.sections import McpServerSettings


class Address(msgspec.Struct, frozen=True):
    """What is started here, or a service with its headers. Never shown: it holds secrets."""

    launch: ServerLaunch | None
    url: str
    headers: Mapping[str, str]
    connect_timeout: float
    redact: Redaction

    def __repr__(self) -> str:
        return "Address(...)"


def bad_name() -> ServerFailed:
    """The name of a server becomes a part of its tools' names and of files."""
    return ServerFailed(
        "its name can't be used", hint="Use letters, digits, - and _, at most 32."
    )


def address_of(name: str, settings: McpServerSettings, place: ServerContext) -> Address:
    """The address of a server. ServerFailed or SettingsError says what is wrong with its settings."""
    if not is_server_name(name):
        raise bad_name()
    if bool(settings.command) == bool(settings.url):
        raise ServerFailed(
            "it needs either a command or a url",
            hint="Correct it with: hermes config edit",
        )
    values = Values(place.secrets, place.environment)
    env = {key: values.filled(value) for key, value in settings.env.items()}
    headers = {key: values.filled(value) for key, value in settings.headers.items()}
    redact = Redaction(values.used | telling(env) | telling(headers))
    launch = _launch(name, settings, env, place) if settings.command else None
    return Address(launch, settings.url, headers, settings.connect_timeout, redact)


def _launch(
    name: str, settings: McpServerSettings, env: Mapping[str, str], place: ServerContext
) -> ServerLaunch:
    home = Path(place.environment.get("HOME") or "/")
    folder = settings.cwd.removeprefix("~/") if settings.cwd not in {"", "~"} else "."
    log = place.home.logs / "mcp" / f"{name}.log"
    search_path = env.get("PATH") or place.environment.get("PATH", "")
    given = {**handed_on(place.environment), **env}
    return ServerLaunch(
        settings.command, settings.args, given, home / folder, log, search_path
    )
