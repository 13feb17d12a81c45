"""Writes the user's Hermes setup into codex's config.toml: MCP servers, Hermes' own tool server, folders that commands
may write to, and installed plugins. All of it is in one marked block (see `config_block`).

The user's own entries take precedence: a server or key that is already there is not written again. Settings without an
equivalent in codex are reported. Secrets that Hermes stores are not written, only the names of their variables. A
secret that the user wrote as a plain value is written as one and reported, and then only the user can read the file.
"""

import difflib
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from hermes.codex import config_block
from hermes.codex.elicitation import OWN_SERVER
from hermes.primitives.files import make_private_folder
from hermes.primitives.untyped import object_in
from hermes.settings import atomic
from hermes.settings.key_shapes import is_secret_value
from hermes.settings.load import read_text
from hermes.settings.mcp import McpServerSettings
from hermes.settings.redaction import has_credentials
from hermes.text.translation import translator

t = translator(__name__)


PERMISSIONS = ":workspace"
_GROUP_AND_OTHERS_MODE = 0o077  # permissions of anybody but the owner
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_HIDDEN = re.compile(
    r"KEY|SECRET|TOKEN", re.IGNORECASE
)  # names that codex hides from its model's commands
_BEARER = re.compile(r"(?i)bearer \$\{([A-Za-z_][A-Za-z0-9_]*)\}")


class BlockContents(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of the block."""

    servers: Mapping[str, McpServerSettings] = {}
    tool_server: tuple[str, ...] = ()
    """The command of Hermes' own tool server; empty for none."""
    plugins: tuple[str, ...] = ()
    """Installed plugins, as `name@marketplace`."""


class ConfigPlan(msgspec.Struct, frozen=True):
    """What would be written, and what can't be."""

    path: Path
    before: str | None
    after: str
    unmapped: tuple[str, ...] = ()
    """One sentence for each item that has no equivalent, is overridden by the file, or may be a secret."""
    private: bool = False
    """Whether the file has values that only the user should be able to read."""

    @property
    def diff(self) -> str:
        """The change, as a unified diff; empty when there is none."""
        old, new = (self.before or "").splitlines(), self.after.splitlines()
        return "\n".join(
            difflib.unified_diff(
                old, new, "config.toml", "config.toml (new)", lineterm=""
            )
        )


def plan(path: Path, wanted: BlockContents) -> ConfigPlan:
    """Plans the new file. Writes nothing. Raises SettingsError if the file can't be changed safely."""
    before = read_text(path)
    parts = config_block.split(before or "", path.name)
    writer = _Writer(
        config_block.data(parts), config_block.closed(parts, ("mcp_servers", "plugins"))
    )
    lines = list(writer.lines(wanted))
    return ConfigPlan(
        path,
        before,
        config_block.join(parts, lines, path.name),
        tuple(writer.unmapped),
        writer.private,
    )


def plan_removal(path: Path) -> ConfigPlan:
    """Plans the file without the block."""
    before = read_text(path)
    return ConfigPlan(
        path,
        before,
        config_block.join(config_block.split(before or "", path.name), [], path.name),
    )


def write(planned: ConfigPlan) -> bool:
    """Writes the plan atomically. Returns False if there is nothing to do, or the file has changed since it was planned."""
    is_new = planned.after != (planned.before or "")
    if not is_new and not (
        planned.private and _mode(planned.path) & _GROUP_AND_OTHERS_MODE
    ):
        return False
    make_private_folder(planned.path.parent)
    with atomic.locked(planned.path) as target:
        if read_text(target) != planned.before:
            return False
        atomic.replace(
            target,
            planned.after,
            mode=_mode(target) & ~_GROUP_AND_OTHERS_MODE if planned.private else None,
        )
    return is_new


def _mode(file: Path) -> int:
    if file.exists():
        return stat.S_IMODE(file.stat().st_mode)
    return 0o600


class _Writer:
    """Writes the lines of the block, without repeating the user's own entries."""

    def __init__(
        self, there: Mapping[str, Any], closed: frozenset[str] = frozenset()
    ) -> None:
        self._there = there
        self._closed = closed
        self.unmapped: list[str] = []
        self.private = False

    def lines(self, wanted: BlockContents) -> Iterator[str]:
        yield from self._permissions()
        yield from self._servers(wanted)
        new = sorted(set(wanted.plugins) - set(object_in(self._there, "plugins")))
        for name in self._addable("plugins", new):
            yield from _table(("plugins", name), {"enabled": True})

    def _permissions(self) -> Iterator[str]:
        kept = next(
            (
                key
                for key in ("default_permissions", "sandbox_mode")
                if key in self._there
            ),
            "",
        )
        if kept:
            self.unmapped.append(
                t.logged("{kept} in your config.toml was not changed.", kept=kept)
            )
        else:
            yield f"default_permissions = {_value(PERMISSIONS)}"

    def _addable(self, key: str, names: list[str]) -> list[str]:
        """Returns the names that can be added; empty if the user wrote the whole table in one line."""
        if key not in self._closed or not names:
            return names
        self.unmapped.append(
            t.logged(
                "{key} is written in one line in your config.toml, to which nothing can be added. Not "
                "added: {names}. Write it as [{key}], and run `hermes codex on` again.",
                key=key,
                names=", ".join(names),
            )
        )
        return []

    def _servers(self, wanted: BlockContents) -> Iterator[str]:
        known = object_in(self._there, "mcp_servers")
        new: list[str] = []
        for name in wanted.servers:
            if name in known or name == OWN_SERVER:
                self.unmapped.append(_taken(name, is_known=name in known))
            else:
                new.append(name)
        own_too = [OWN_SERVER] if wanted.tool_server and OWN_SERVER not in known else []
        for name in self._addable("mcp_servers", new + own_too):
            yield from (
                self._own_server(wanted)
                if name == OWN_SERVER
                else self._server(name, wanted.servers[name])
            )

    def _own_server(self, wanted: BlockContents) -> Iterator[str]:
        command, *arguments = wanted.tool_server
        own = {
            "command": command,
            "args": arguments,
            "default_tools_approval_mode": "approve",
        }
        yield from _table(("mcp_servers", OWN_SERVER), own)

    def _server(self, name: str, server: McpServerSettings) -> Iterator[str]:
        keys: dict[str, Any] = (
            {"url": server.url}
            if server.url
            else {"command": server.command, "args": list(server.args)}
        )
        for key, texts in (("url", [server.url]), ("args", server.args)):
            if any(is_secret_value(text) or has_credentials(text) for text in texts):
                self._literal(f"mcp_servers.{name}.{key}")
        if server.url:
            keys |= self._headers(name, server.headers)
        else:
            keys |= {"cwd": server.cwd} if server.cwd else {}
            keys |= self._environment(name, server.env)
        keys |= {
            "tool_timeout_sec": server.timeout,
            "startup_timeout_sec": server.connect_timeout,
        }
        keys |= {"enabled": server.enabled}
        keys |= self._tools(name, server)
        self._without_equivalent(name, server)
        yield from _table(("mcp_servers", name), keys)

    def _environment(self, name: str, env: Mapping[str, str]) -> dict[str, Any]:
        plain: dict[str, str] = {}
        handed: list[str] = []
        for key, value in env.items():
            if "${" not in value:
                plain[key] = value
                self._literal(f"mcp_servers.{name}.env.{key}")
            elif value == f"${{{key}}}" and _HIDDEN.search(key):
                handed.append(key)
            else:
                self._secret(f"mcp_servers.{name}.env.{key}")
        return ({"env": plain} if plain else {}) | (
            {"env_vars": sorted(handed)} if handed else {}
        )

    def _headers(self, name: str, headers: Mapping[str, str]) -> dict[str, Any]:
        plain: dict[str, str] = {}
        named: dict[str, str] = {}
        keys: dict[str, Any] = {}
        for key, value in headers.items():
            bearer, whole = _BEARER.fullmatch(value), _REFERENCE.fullmatch(value)
            if "${" not in value:
                plain[key] = value
                self._literal(f"mcp_servers.{name}.headers.{key}")
            elif (
                bearer and key.lower() == "authorization" and _HIDDEN.search(bearer[1])
            ):
                keys["bearer_token_env_var"] = bearer[1]
            elif whole and _HIDDEN.search(whole[1]):
                named[key] = whole[1]
            else:
                self._secret(f"mcp_servers.{name}.headers.{key}")
        return (
            keys
            | ({"http_headers": plain} if plain else {})
            | ({"env_http_headers": named} if named else {})
        )

    def _tools(self, name: str, server: McpServerSettings) -> dict[str, Any]:
        chosen = (
            ("include", "enabled_tools", server.tools.include),
            ("exclude", "disabled_tools", server.tools.exclude),
        )
        keys: dict[str, Any] = {}
        for ours, theirs, names in chosen:
            if any(set("*?[") & set(pattern) for pattern in names):
                self.unmapped.append(
                    t.logged(
                        "mcp_servers.{name}.tools.{ours} has patterns, which codex does not support.",
                        name=name,
                        ours=ours,
                    )
                )
            elif names:
                keys[theirs] = list(names)
        return keys

    def _without_equivalent(self, name: str, server: McpServerSettings) -> None:
        default = McpServerSettings()
        for key in ("idle_timeout", "trusted"):
            if getattr(server, key) != getattr(default, key):
                self.unmapped.append(
                    t.logged(
                        "mcp_servers.{name}.{key} has no equivalent in codex.",
                        name=name,
                        key=key,
                    )
                )

    def _literal(self, where: str) -> None:
        self.private = True
        self.unmapped.append(
            t.logged(
                "{where} is written as it is, into a file that only you can read.",
                where=where,
            )
        )

    def _secret(self, where: str) -> None:
        self.unmapped.append(
            t.logged(
                "{where} uses a secret in a way that codex has no setting for; its server may not work "
                "there.",
                where=where,
            )
        )


def _taken(name: str, *, is_known: bool) -> str:
    if is_known:
        return t.logged(
            "mcp_servers.{name} is already in your config.toml and was not changed.",
            name=name,
        )
    return t.logged("mcp_servers.{name} is Hermes' own name.", name=name)


def _table(path: Iterable[str], keys: Mapping[str, Any]) -> Iterator[str]:
    yield f"[{'.'.join(map(_key, path))}]"
    yield from (f"{_key(key)} = {_value(value)}" for key, value in keys.items())


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _value(name)


def _value(value: Any) -> str:
    """Returns a value as TOML."""
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            if float(value).is_integer():
                return str(int(value))
            return repr(float(value))
        case str():
            return _string(value)
        case Mapping():
            return (
                "{ "
                + ", ".join(
                    f"{_key(key)} = {_value(inner)}" for key, inner in value.items()
                )
                + " }"
            )
        case _:
            return "[" + ", ".join(map(_value, value)) + "]"


def _string(text: str) -> str:
    plain = text.replace("\\", "\\\\").replace('"', '\\"')
    return (
        '"'
        + "".join(
            sign if sign >= " " and sign != "\x7f" else f"\\u{ord(sign):04x}"
            for sign in plain
        )
        + '"'
    )
