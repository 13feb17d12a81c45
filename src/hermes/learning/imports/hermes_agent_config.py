"""The settings and secrets of the well-known agent, as far as they mean the same here."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from hermes.settings.key_shapes import is_secret_value
from hermes.settings.load import read_text
from hermes.settings.secrets import is_secret_name, parse_env
from hermes.settings.yaml_read import parse_yaml

_SAME = {
    ("compression", "threshold"): "compression.threshold",
    ("compression", "protect_last_n"): "compression.protect_last_n",
    ("agent", "max_turns"): "budget.max_steps",
    ("agent", "reasoning_effort"): "model.reasoning_effort",
}
_MODEL = {
    "default": "model.default",
    "provider": "model.provider",
    "base_url": "model.base_url",
}
_SERVER = (
    "command",
    "args",
    "url",
    "headers",
    "timeout",
    "connect_timeout",
    "enabled",
    "env",
)
_TELLING = ("authorization", "proxy-authorization", "cookie")  # headers
_PLAIN = str | int | float | bool


class ImportedConfig(msgspec.Struct, frozen=True):
    """What can be carried over: settings by key, secrets by name, and what has no equivalent."""

    settings: dict[str, Any] = {}
    secrets: dict[str, str] = {}
    left: tuple[str, ...] = ()


def read_configuration(home: Path) -> ImportedConfig:
    """The settings and secrets in a home. What can't be read is left, and said."""
    try:
        data = parse_yaml(read_text(home / "config.yaml") or "")
    except ValueError:
        return ImportedConfig(left=("config.yaml (it is not valid YAML)",))
    data = data if isinstance(data, dict) else {}
    settings: dict[str, Any] = dict(_settings(data))
    secrets = dict(_secrets(home))
    for key, value in settings.items():
        server, _, part = key.removeprefix("mcp_servers.").rpartition(".")
        if part in ("env", "headers") and isinstance(value, dict):
            settings[key] = _without_secrets(
                value, secrets, server if part == "headers" else ""
            )
    known = {key for key, _ in _SAME} | {"model", "mcp_servers"}
    left = [f"config.yaml: {name}" for name in data if name not in known]
    return ImportedConfig(settings, secrets, tuple(left))


def _settings(data: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    model = data.get("model")
    if isinstance(model, str) and model:
        yield "model.default", model
    elif isinstance(model, dict):
        for name, key in _MODEL.items():
            if isinstance(value := model.get(name), str) and value:
                yield key, value
    for (section, name), key in _SAME.items():
        inner = data.get(section)
        value = inner.get(name) if isinstance(inner, dict) else None
        if isinstance(value, _PLAIN) and value != "":
            yield key, value
    servers = data.get("mcp_servers")
    for name, server in servers.items() if isinstance(servers, dict) else ():
        if isinstance(server, dict):
            yield from (
                (f"mcp_servers.{name}.{key}", server[key])
                for key in _SERVER
                if key in server
            )


def _secrets(home: Path) -> Iterator[tuple[str, str]]:
    for line in parse_env(read_text(home / ".env") or ""):
        if line.name and line.value and not line.problem and is_secret_name(line.name):
            yield line.name, line.value


def _without_secrets(
    values: dict[str, Any], secrets: dict[str, str], server: str = ""
) -> dict[str, str]:
    """Variables or headers with references in place of secrets, which go where secrets are kept. The secret in a header
    is called after its `server`, as all services have the same headers."""
    kept: dict[str, str] = {}
    for name, value in values.items():
        text = str(value)
        telling = (
            is_secret_name(name) or is_secret_value(text) or name.lower() in _TELLING
        )
        if "${" in text or not telling:
            kept[name] = text
            continue
        called = re.sub(r"\W+", "_", f"{server}_{name}_KEY").upper() if server else name
        secrets.setdefault(called, text)
        kept[name] = f"${{{called}}}"
    return kept
