"""Finds MCP servers in the settings of other programs: Claude Code, codex, VS Code and Cursor. Reads only."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from hermes.mcp.definitions import is_server_name, usable_server_name
from hermes.primitives.untyped import list_in
from hermes.settings.json5_read import parse_json5
from hermes.settings.key_shapes import is_secret_value
from hermes.settings.redaction import has_credentials
from hermes.settings.secrets import is_secret_name
from hermes.text.translation import translator

t = translator(__name__)


MAX_FILE_BYTES = 8 * 1024 * 1024
_PLACEHOLDER = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(:-[^}]*)?\}")
_UNSUPPORTED = re.compile(
    r"\$\{(?:(?:input|command|config):|workspaceFolder|userHome|pathSeparator|/\})"
)
_MAX_TIMEOUTS_S = {"timeout": 3600, "connect_timeout": 600}
_SECRET_HEADERS = frozenset(("authorization", "cookie", "x-api-key"))


class FoundServer(msgspec.Struct, frozen=True, kw_only=True):
    """A server in another program's settings, converted to Hermes' settings."""

    name: str
    program: str
    """The program whose settings it is in."""
    file: str
    values: dict[str, Any]
    """The server's settings, which refer to secrets by name."""
    secrets: dict[str, str] = {}
    """The secrets, by their new names. Never shown."""
    problem: str = ""
    """Why it can't be imported."""

    @property
    def referred(self) -> list[str]:
        """The names of all secrets and variables that the server would get, new ones and the user's own."""
        texts = [
            *self.values.get("env", {}).values(),
            *self.values.get("headers", {}).values(),
        ]
        return sorted(
            {found[1] for text in texts for found in _PLACEHOLDER.finditer(text)}
        )

    def __repr__(self) -> str:
        return f"FoundServer({self.name!r}, {self.program!r})"


def candidate_files(home: Path, folder: Path) -> Iterator[tuple[str, Path]]:
    """Yields the files that may define servers, by program: the user's first, then the project's."""
    yield "Claude Code", home / ".claude.json"
    yield "Claude Code", folder / ".mcp.json"
    yield "codex", home / ".codex" / "config.toml"
    yield "Cursor", home / ".cursor" / "mcp.json"
    yield "Cursor", folder / ".cursor" / "mcp.json"
    yield "VS Code", home / ".config" / "Code" / "User" / "mcp.json"
    yield "VS Code", home / "Library/Application Support/Code/User/mcp.json"
    yield "VS Code", folder / ".vscode" / "mcp.json"


def find_servers(program: str, file: Path, folder: Path) -> list[FoundServer]:
    """Returns the servers of one file. Raises ValueError if it can't be parsed, OSError if it is missing."""
    with file.open("rb") as opened:
        data = opened.read(MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        raise ValueError(t.logged("it is too large"))
    content = _parsed(data.decode("utf-8-sig"), file.suffix)
    found: dict[str, FoundServer] = {}
    for entries in _sections(content, folder):
        for name, entry in entries.items():
            if isinstance(entry, dict):
                made = _server(str(name), program, file, entry)
                found.setdefault(made.name, made)
    return list(found.values())


def _parsed(text: str, suffix: str) -> dict[str, Any]:
    if suffix == ".toml":
        return tomllib.loads(text)
    return parse_json5(text)


def _sections(content: Mapping[str, Any], folder: Path) -> Iterator[dict[str, Any]]:
    """Yields the parts of a file that list servers, including Claude Code's parts for single projects."""
    places = [content]
    if isinstance(content.get("mcp"), dict):  # OpenClaw
        places.append(content["mcp"])
    projects = content.get("projects")
    if isinstance(projects, dict) and isinstance(projects.get(str(folder)), dict):
        places.append(projects[str(folder)])
    for place in places:
        for key in ("mcpServers", "mcp_servers", "servers"):
            if isinstance(place.get(key), dict):
                yield place[key]


def _server(
    name: str, program: str, file: Path, entry: Mapping[str, Any]
) -> FoundServer:
    clean = usable_server_name(name)
    secrets: dict[str, str] = {}
    values: dict[str, Any] = {}
    for key, theirs in (("command", "command"), ("args", "args"), ("cwd", "cwd")):
        if entry.get(theirs):
            values[key] = entry[theirs]
    if url := entry.get("url") or entry.get("serverUrl"):
        values["url"] = str(url)
    for key, given in (("env", _variables(entry)), ("headers", _headers(entry))):
        if given:
            values[key] = {
                one: _named(clean, one, text, secrets) for one, text in given.items()
            }
    if entry.get("disabled") is True or entry.get("enabled") is False:
        values["enabled"] = False
    values |= _restrictions(entry)
    return FoundServer(
        name=clean,
        program=program,
        file=str(file),
        values=values,
        secrets=secrets,
        problem=_problem(clean, values, entry),
    )


def _variables(entry: Mapping[str, Any]) -> dict[str, str]:
    """The server's variables: those with a value, and those that codex passes on from the environment."""
    names = [
        one.get("name") if isinstance(one, dict) else one
        for one in list_in(entry, "env_vars")
    ]
    return {str(one): f"${{{one}}}" for one in names if one} | _texts(entry.get("env"))


def _headers(entry: Mapping[str, Any]) -> dict[str, str]:
    """The server's headers: those with a value, and those whose value codex takes from the environment."""
    headers = _texts(entry.get("headers") or entry.get("http_headers"))
    for name, variable in _texts(entry.get("env_http_headers")).items():
        headers[name] = f"${{{variable}}}"
    if token := entry.get("bearer_token_env_var"):
        headers["Authorization"] = f"Bearer ${{{token}}}"
    return headers


def _restrictions(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Which tools codex offers, and how long it waits."""
    chosen = {
        ours: [str(one) for one in entry[theirs]]
        for ours, theirs in (
            ("include", "enabled_tools"),
            ("exclude", "disabled_tools"),
        )
        if isinstance(entry.get(theirs), list)
    }
    waits = {
        ours: min(entry[theirs], _MAX_TIMEOUTS_S[ours])
        for ours, theirs in (("connect_timeout", "startup_timeout_sec"), ("timeout", "tool_timeout_sec"))
        if isinstance(entry.get(theirs), (int, float)) and entry[theirs] > 0
    }  # fmt: skip
    return ({"tools": chosen} if chosen else {}) | waits


def _texts(given: Any) -> dict[str, str]:
    if isinstance(given, dict):
        return {str(k): str(v) for k, v in given.items()}
    return {}


def _named(server: str, key: str, text: str, secrets: dict[str, str]) -> str:
    """Returns a value with a secret replaced by its name. References to variables stay as they are."""
    text = _PLACEHOLDER.sub(lambda found: f"${{{found[1]}{found[2] or ''}}}", text)
    if "${" in text:
        return text
    is_secret = (
        is_secret_name(key)
        or key.upper().endswith("KEY")
        or key.lower() in _SECRET_HEADERS
        or is_secret_value(text)
        or has_credentials(text)
    )
    if not is_secret or not text:
        return text
    kind, space, value = text.rpartition(" ")
    # The name includes the server's, so that it can't get a secret of the user's with the same name.
    name = re.sub(r"[^A-Za-z0-9]+", "_", f"{server}_{key}").upper().strip("_")
    if not is_secret_name(name):
        name = f"{name}_TOKEN"
    secrets[name] = value
    return f"{kind}{space}${{{name}}}"


def _problem(name: str, values: Mapping[str, Any], entry: Mapping[str, Any]) -> str:
    words = [values.get("command", ""), values.get("url", ""), *values.get("args", ())]
    problems = {
        t.logged("its name can't be used"): not is_server_name(name),
        t.logged("it needs either a command or a url"): bool(values.get("command"))
        == bool(values.get("url")),
        t.logged("it uses the old HTTP+SSE transport"): entry.get("type") == "sse",
        t.logged("it takes variables from a file, which is not read"): bool(
            entry.get("envFile")
        ),
    }
    for problem, is_so in problems.items():
        if is_so:
            return problem
    if not all(isinstance(word, str) for word in words):
        return t.logged("its arguments are not texts")
    texts = (
        *words,
        values.get("cwd", ""),
        *values.get("env", {}).values(),
        *values.get("headers", {}).values(),
    )
    if any(_UNSUPPORTED.search(str(text)) for text in texts):
        return t.logged("it refers to a value that only its program knows")
    if any(is_secret_value(word) or has_credentials(word) for word in words):
        return t.logged(
            "its command or address contains a key; add it with --env or --header"
        )
    return ""
