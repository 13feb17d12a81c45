"""Masks secrets for a backup: those in the settings, and anything in a text file that looks like a secret."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hermes.settings.key_shapes import HIDDEN, is_secret_value
from hermes.settings.redaction import mask
from hermes.settings.secrets import is_secret_name, names_variable
from hermes.settings.yaml_read import parse_yaml

YAML_HIDDEN = "REMOVED"
"""The mask in YAML, where the usual asterisks would name an anchor."""
_HEADERS = ("authorization", "proxy-authorization", "cookie")


def config_secrets(text: str) -> set[str]:
    """The secrets that are in the settings themselves, recognised by name or shape, and not as `${NAME}`."""
    try:
        return set(_secrets(parse_yaml(text)))
    except ValueError:  # settings that can't be read
        return set()


def is_clean_config(content: bytes) -> bool:
    """Whether settings can be read and hold no secret."""
    try:
        return not set(_secrets(parse_yaml(content.decode())))
    except ValueError:
        return False


def _secrets(node: Any, name: str = "") -> Iterator[str]:
    if isinstance(node, dict):
        for key, value in node.items():
            yield from _secrets(value, str(key))
    elif isinstance(node, list):
        for value in node:
            yield from _secrets(value, name)
    elif isinstance(node, str) and "${" not in node and not names_variable(node):
        word = (
            node.rpartition(" ")[2] if name.lower() in _HEADERS else node
        )  # `Bearer x`
        is_named = is_secret_name(name) or name.lower() in _HEADERS
        if word not in {"", YAML_HIDDEN} and (is_named or is_secret_value(node)):
            yield word


def masked_content(name: Path, content: bytes, spellings: list[str]) -> bytes:
    """Masks the given spellings and everything that looks like a secret in a file. Binary files are unchanged."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return content
    if "\0" in text:
        return content
    hidden = text
    for spelling in sorted(spellings, key=len, reverse=True):
        hidden = hidden.replace(spelling, HIDDEN)
    hidden = mask(hidden)
    if hidden == text:
        return content
    return (
        hidden.replace(HIDDEN, YAML_HIDDEN)
        if name.suffix in {".yaml", ".yml"}
        else hidden
    ).encode()
