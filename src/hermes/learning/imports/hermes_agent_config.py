"""Reads the settings and secrets of Hermes Agent (Nous Research) that have an equivalent here."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from hermes.primitives.untyped import object_in, object_of
from hermes.settings.key_shapes import is_secret_value
from hermes.settings.load import read_text
from hermes.settings.secrets import is_secret_name, parse_env
from hermes.settings.yaml_read import parse_yaml
from hermes.text.translation import translator

t = translator(__name__)


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
_SECRET_HEADERS = ("authorization", "proxy-authorization", "cookie")
_PLAIN = str | int | float | bool


class ImportedConfig(msgspec.Struct, frozen=True):
    """The settings by key, the secrets by name, and what has no equivalent."""

    settings: dict[str, Any] = {}
    secrets: dict[str, str] = {}
    left: tuple[str, ...] = ()


def read_configuration(home: Path) -> ImportedConfig:
    """Reads the settings and secrets of a home. Reports what cannot be read."""
    try:
        data = parse_yaml(read_text(home / "config.yaml") or "")
    except ValueError:
        return ImportedConfig(left=(t.logged("config.yaml (it is not valid YAML)"),))
    data = object_of(data)
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
    yield from _model_settings(data.get("model"))
    for (section, name), key in _SAME.items():
        value = object_in(data, section).get(name)
        if isinstance(value, _PLAIN) and value != "":
            yield key, value
    servers = object_in(data, "mcp_servers")
    for name in servers:
        server = object_in(servers, name)
        for key in _SERVER:
            if key in server:
                yield f"mcp_servers.{name}.{key}", server[key]


def _model_settings(model: object) -> Iterator[tuple[str, str]]:
    if isinstance(model, str) and model:
        yield "model.default", model
    elif isinstance(model, dict):
        for name, key in _MODEL.items():
            value = model.get(name)
            if isinstance(value, str) and value:
                yield key, value


def _secrets(home: Path) -> Iterator[tuple[str, str]]:
    for line in parse_env(read_text(home / ".env") or ""):
        if line.name and line.value and not line.problem and is_secret_name(line.name):
            yield line.name, line.value


def _without_secrets(
    values: dict[str, Any], secrets: dict[str, str], server: str = ""
) -> dict[str, str]:
    """Moves secrets from variables or headers to `secrets` and returns references in their place.

    The secret of a header is named after its `server`, because all servers use the same header
    names.
    """
    safe: dict[str, str] = {}
    for name, value in values.items():
        text = str(value)
        is_secret = (
            is_secret_name(name)
            or is_secret_value(text)
            or name.lower() in _SECRET_HEADERS
        )
        if "${" in text or not is_secret:
            safe[name] = text
            continue
        secret_name = (
            re.sub(r"\W+", "_", f"{server}_{name}_KEY").upper() if server else name
        )
        secrets.setdefault(secret_name, text)
        safe[name] = f"${{{secret_name}}}"
    return safe
