"""The environment of codex: paths, and only those secrets that its own settings name.

The commands of codex's model can read the whole environment, so the keys of other providers are left out. HOME is the
user's own; CODEX_HOME is set only when the user wants codex's files elsewhere.
"""

import logging
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from hermes.children.helper_programs import (
    PLAIN_PREFIXES,
    PLAIN_VARIABLES,
    trusted_path,
)
from hermes.primitives.untyped import object_in, text_in
from hermes.settings.redaction import has_credentials

log = logging.getLogger("hermes.codex")

_PLAIN = PLAIN_VARIABLES | frozenset(
    [
        "TERM",
        "COLORTERM",
        "SSH_AUTH_SOCK",
        "DBUS_SESSION_BUS_ADDRESS",
        "CURL_CA_BUNDLE",
        "CARGO_HOME",
        "RUSTUP_HOME",
        "GOPATH",
        "GOROOT",
        "JAVA_HOME",
        "NVM_DIR",
        "VIRTUAL_ENV",
        "PYENV_ROOT",
        "RUST_LOG",
        "CODEX_CA_CERTIFICATE",
    ]
)


def child_environment(
    environ: Mapping[str, str],
    *,
    codex_home: str = "",
    named: Iterable[str] = (),
    secret: Callable[[str], str | None] = lambda _: None,
) -> dict[str, str]:
    """Returns the environment of the codex process.

    `named` are variables that codex's own settings refer to. A variable that is not in the environment is looked up
    with `secret` in the secrets that Hermes stores.
    """
    given = {
        name: value
        for name, value in environ.items()
        if (name in _PLAIN or name.startswith(PLAIN_PREFIXES))
        and not has_credentials(value)
    }
    given["PATH"] = trusted_path(
        environ
    )  # codex itself looks up git and other programs, outside any sandbox
    asked = {name: environ.get(name) or secret(name) for name in named}
    given |= {name: value for name, value in asked.items() if value}
    if home := codex_home or environ.get("CODEX_HOME", ""):
        given["CODEX_HOME"] = home
    return given


def path_of_commands(environ: Mapping[str, str], config: Path) -> tuple[str, ...]:
    """Returns options that give codex's sandboxed commands the user's whole PATH.

    Codex itself gets only the trusted part. Empty if both are the same, or if codex's own settings set the PATH.
    """
    whole = environ.get("PATH", "")
    chosen = object_in(_parsed(config).get("shell_environment_policy"), "set")
    if (
        not whole
        or whole == trusted_path(environ)
        or "PATH" in chosen
        or has_credentials(whole)
    ):
        return ()
    return (
        "-c",
        f"shell_environment_policy.set.PATH={msgspec.json.encode(whole).decode()}",
    )


SECURITY_MODE = "HERMES_TERMINAL_SECURITY_MODE"
_PROFILES = {
    "auto": ":workspace",
    "approval-required": ":read-only",
    "unrestricted": ":danger-full-access",
    "yolo": ":danger-full-access",
}


def permission_profile(environ: Mapping[str, str]) -> str:
    """Returns the permission profile that the environment asks for; empty to leave it to codex's own settings."""
    mode = environ.get(SECURITY_MODE, "").strip().lower()
    if mode and mode not in _PROFILES:
        log.warning(
            "%s is %r; expected one of: %s. Codex is read-only.",
            SECURITY_MODE,
            mode,
            ", ".join(_PROFILES),
        )
        return ":read-only"
    return _PROFILES.get(mode, "")


def codex_home(environ: Mapping[str, str], wanted: str = "") -> Path:
    """Returns the folder for codex's files: the user's choice, or else codex's default."""
    named = wanted or environ.get("CODEX_HOME", "")
    return (
        Path(named).expanduser()
        if named
        else Path(environ.get("HOME") or Path.home()) / ".codex"
    )


def server_names(config: Path) -> frozenset[str]:
    """Returns the MCP servers in codex's settings."""
    servers = _parsed(config).get("mcp_servers")
    return frozenset(servers) if isinstance(servers, Mapping) else frozenset()


def named_variables(config: Path) -> frozenset[str]:
    """Returns the variables that codex's settings refer to.

    These are the key of the provider in use and the variables of enabled MCP servers. Others are not needed and left
    out.
    """
    return frozenset(_named(_parsed(config)))


def _parsed(config: Path) -> Mapping[str, Any]:
    """Returns codex's settings; empty if they can't be read, in which case codex itself reports the error."""
    try:
        return tomllib.loads(config.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return {}


def _named(data: Mapping[str, Any]) -> Iterator[str]:
    if provider := _provider(data):
        yield from _strings([provider.get("env_key")])
        yield from _strings(_values(provider.get("env_http_headers")))
    for server in _values(data.get("mcp_servers")):
        if not isinstance(server, Mapping) or server.get("enabled") is False:
            continue
        yield from _strings([server.get("bearer_token_env_var")])
        yield from _strings(_values(server.get("env_http_headers")))
        yield from _strings(server.get("env_vars") or ())


def _provider(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the table of the provider in use; empty for a built-in one. The selected profile takes precedence."""
    profile = object_in(data.get("profiles"), text_in(data, "profile"))
    name = text_in(profile, "model_provider") or text_in(data, "model_provider")
    return object_in(data.get("model_providers"), name)


def _values(value: object) -> list[Any]:
    if isinstance(value, Mapping):
        return list(value.values())
    return []


def _strings(values: object) -> list[str]:
    return (
        [value for value in values if isinstance(value, str)]
        if isinstance(values, Iterable)
        else []
    )
