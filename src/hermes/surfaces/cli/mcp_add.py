"""`hermes mcp add`: tries a server, then writes it to config.yaml. Secrets are only referred to."""

import argparse
import asyncio
import re
from typing import Any

import msgspec

from hermes.errors import HermesError, UsageError
from hermes.mcp import McpServers, is_server_name
from hermes.settings import Home
from hermes.settings.edit import set_value
from hermes.settings.key_shapes import is_secret_value
from hermes.settings.load import environment, find_home, load, load_secrets
from hermes.settings.redaction import has_credentials
from hermes.settings.secrets import is_secret_name
from hermes.settings.sections import McpServerSettings
from hermes.surfaces.cli.mcp_test import probe_all, show, words

_UNCHANGED = "Nothing was changed."


def add(args: argparse.Namespace) -> int:
    """Adds a server. One that does not answer is not added, unless that is wanted."""
    home = find_home()
    name: str = args.name
    if not is_server_name(name):
        raise UsageError(
            f"{name!r} can't be a server's name.",
            hint="Use letters, digits, - and _, at most 32.",
        )
    if name in load(home=home).mcp_servers:
        raise UsageError(
            f"There is already a server {name}.",
            hint=f"Remove it first: hermes mcp remove {name}",
        )
    values = _values(args)
    server = _checked(values)
    if not args.no_test:
        _try(name, server, home)
    config = home.ensure().config
    for key, value in _leaves(values):
        set_value(config, f"mcp_servers.{name}.{key}", value)
    print(f"{name} is added; new sessions offer its tools as mcp.{name}.TOOL.")
    return 0


def _try(name: str, server: McpServerSettings, home: Home) -> None:
    servers = McpServers({name: server}, home, load_secrets(home=home), environment())
    result = asyncio.run(probe_all(servers, [name], accept=True))[name]
    if isinstance(result, HermesError):
        hint = f"Nothing was changed (--no-test adds it all the same). {result.hint}".strip()
        raise HermesError(
            f"The MCP server {name} can't be used: {words(result)}.", hint=hint
        )
    show(name, result)


def _values(args: argparse.Namespace) -> dict[str, Any]:
    """What was given, as it goes into the settings."""
    if bool(args.command) == bool(args.url):
        raise UsageError(
            "A server is either a program or a service.",
            hint=f"hermes mcp add {args.name} -- COMMAND ARGUMENTS, or: hermes mcp add {args.name} --url URL",
        )
    if (args.env or args.cwd) and args.url:
        raise UsageError(
            "--env and --cwd are for a program; a service takes --header.",
            hint=_UNCHANGED,
        )
    if args.header and args.command:
        raise UsageError(
            "--header is for a service; a program takes --env.", hint=_UNCHANGED
        )
    command, *rest = args.command or [""]
    given: dict[str, Any] = {
        "command": command,
        "args": rest,
        "url": args.url,
        "cwd": args.cwd,
        "env": dict(map(_variable, args.env)),
        "headers": dict(map(_header, args.header)),
        "timeout": args.timeout,
    }
    return {key: value for key, value in given.items() if value}


def _checked(values: dict[str, Any]) -> McpServerSettings:
    for word in (*values.get("args", ()), values.get("url", "")):
        if is_secret_value(word) or has_credentials(word):
            raise UsageError(
                "A key does not belong into the command or the address.",
                hint=f"{_UNCHANGED} Give it as a variable (--env NAME) or a header (--header 'Authorization: Bearer "
                "${NAME}'), and store it with: hermes config set NAME",
            )
    try:
        return msgspec.convert(values, McpServerSettings)
    except msgspec.ValidationError as error:
        raise UsageError(
            f"That can't be a server: {error}.", hint=_UNCHANGED
        ) from error


def _variable(text: str) -> tuple[str, str]:
    """NAME=VALUE; NAME alone refers to the secret of that name."""
    name, given, value = text.partition("=")
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise UsageError(
            f"--env: {name!r} can't be a variable's name.", hint=_UNCHANGED
        )
    if not given:
        return name, f"${{{name}}}"
    _require_reference(name, value, name)
    return name, value


def _header(text: str) -> tuple[str, str]:
    name, given, value = (part.strip() for part in text.partition(":"))
    if not given or not re.fullmatch(r"[A-Za-z0-9-]+", name):
        raise UsageError("--header: expected 'NAME: VALUE'.", hint=_UNCHANGED)
    _require_reference(
        "token" if name.lower() in {"authorization", "cookie"} else name,
        value,
        "NAME_TOKEN",
    )
    return name, value


def _require_reference(name: str, value: str, suggestion: str) -> None:
    """A secret is stored in .env, not in config.yaml."""
    if "${" not in value and (is_secret_name(name) or is_secret_value(value)):
        raise UsageError(
            "That looks like a secret, and secrets don't belong in config.yaml.",
            hint=f"{_UNCHANGED} Refer to it as ${{{suggestion}}}, and store it with: hermes config set {suggestion}",
        )


def _leaves(values: dict[str, Any]) -> list[tuple[str, object]]:
    """Every single value with its key, so that the file stays readable."""
    found: list[tuple[str, object]] = []
    for key, value in values.items():
        found += (
            [(f"{key}.{name}", one) for name, one in value.items()]
            if isinstance(value, dict)
            else [(key, value)]
        )
    return found
