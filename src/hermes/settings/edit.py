"""Edits settings and secrets in their files: one key at a time, validated, under a lock, atomically."""

from collections.abc import Callable
from pathlib import Path

import msgspec

from hermes.errors import SettingsError
from hermes.primitives.untyped import object_of
from hermes.settings import atomic
from hermes.settings.home import probe
from hermes.settings.load import MAX_CONFIG_BYTES, read_text, unusable
from hermes.settings.parse import drop_empty, overlay, parse_config
from hermes.settings.secrets import parse_env, with_secret, without_secret
from hermes.settings.sections import Settings
from hermes.settings.setting_keys import find_key
from hermes.text.translation import translator

t = translator(__name__)


_UNCHANGED = t.later("Nothing was changed.")


def set_value(path: Path, key: str, value: object) -> None:
    """Sets `key` in the config.yaml at `path`. The rest of the file keeps every byte."""
    from hermes.settings.yaml_edit import with_value

    keys = find_key(key).path
    value = (
        list(value) if isinstance(value, tuple) else value
    )  # in the form in which a file holds it, for comparison

    def edit(text: str) -> list[str]:
        _require_small(
            path, text + str(value)
        )  # first, because editing a large file is slow
        return with_value(text, keys, value)

    _change(path, edit, lambda data: overlay(data, keys, value))


def unset_value(path: Path, key: str) -> bool:
    """Removes `key` from the config.yaml at `path`, so that its default applies. Returns False if
    it was not there. An entry of a table (`mcp_servers.NAME`) is removed with its only field.
    """
    from hermes.settings.yaml_edit import without_value

    keys = _with_entry(path, find_key(key).path)
    return _change(
        path, lambda text: without_value(text, keys), lambda data: _without(data, keys)
    )


def _with_entry(path: Path, keys: tuple[str, ...]) -> tuple[str, ...]:
    """The keys to remove: an entry that would be left empty is no valid value of its table."""
    data, _ = parse_config(read_text(path) or "")
    while len(keys) > 1:
        try:
            _require_valid(_without(data, keys))
        except SettingsError:
            if _is_empty_without(data, keys):
                keys = keys[:-1]
                continue
        break
    return keys


def _is_empty_without(data: object, keys: tuple[str, ...]) -> bool:
    for key in keys[:-1]:
        data = object_of(data).get(key)
    return set(object_of(data)) == {keys[-1]}


def remove_entry(path: Path, table: str, name: str) -> bool:
    """Removes `name` from a table such as `mcp_servers`. Returns False if it was not there."""
    from hermes.settings.yaml_edit import without_value

    data, _ = parse_config(read_text(path) or "")
    entries = data.get(table)
    last = isinstance(entries, dict) and set(entries) == {name}
    keys = (table,) if last else (table, name)
    return _change(
        path, lambda text: without_value(text, keys), lambda data: _without(data, keys)
    )


def set_secret(path: Path, name: str, value: str | None) -> None:
    """Sets or removes `name` in the `.env` at `path`. Only this user can read the file."""
    with atomic.locked(path) as target:
        text = read_text(target) or ""
        changed = (
            without_secret(text, name)
            if value is None
            else with_secret(text, name, value)
        )
        if changed != text:
            _require_small(path, changed)
            _require_stored(path, changed, name, value)
            atomic.replace(target, changed, mode=0o600)


def install(path: Path, text: str, *, expected: str | None) -> bool:
    """Writes `text`, which the caller has validated, as the config.yaml, unless the file is no
    longer `expected`.
    """
    with atomic.locked(path) as target:
        if read_text(target) != expected:
            return False
        _require_small(path, text)
        problems = parse_config(text)[1]
        if problems:
            raise unusable(path, problems, _UNCHANGED)
        atomic.replace(target, text)
        return True


def _require_small(path: Path, text: str) -> None:
    """Rejects a file that is larger than Hermes reads: it would lock the user out."""
    if len(text.encode(errors="surrogatepass")) > MAX_CONFIG_BYTES:
        raise SettingsError(
            t.later("{name} would be larger than 1 MiB.", name=path.name),
            hint=t.later("{unchanged} Give a shorter value.", unchanged=_UNCHANGED),
        )


def _require_stored(path: Path, text: str, name: str, value: str | None) -> None:
    lines = parse_env(text)
    held = [line.value for line in lines if line.name == name and not line.problem]
    if held != ([] if value is None else [value]) or "\x00" in text:
        raise SettingsError(
            t.later(
                "{name} can't be stored in {path_name}: reading it back would give another value.",
                name=name,
                path_name=path.name,
            ),
            hint=_UNCHANGED,
        )


def _change(
    path: Path,
    edit: Callable[[str], list[str]],
    expect: Callable[[dict[str, object]], dict[str, object]],
) -> bool:
    if isinstance(probe(path), OSError):
        read_text(path)  # reports a dangling link or a closed folder
    with atomic.locked(path) as target:
        text = read_text(target) or ""
        data, problems = parse_config(text)
        if problems:
            raise unusable(path, problems, _UNCHANGED)
        expected = expect(data)
        _require_valid(expected)
        if expected == data:
            return False
        for candidate in edit(text):
            if _reads_as(candidate, expected):
                _require_small(path, candidate)
                atomic.replace(target, candidate)
                return True
    raise SettingsError(
        t.later("{path} is written in a way that Hermes can't edit safely.", path=path),
        hint=t.later(
            "{unchanged} Edit it with: hermes config edit", unchanged=_UNCHANGED
        ),
    )


def _require_valid(data: dict[str, object]) -> None:
    try:
        msgspec.convert(drop_empty(data), Settings)
    except msgspec.ValidationError as error:
        raise SettingsError(
            t.later("That would break the settings: {error}", error=error),
            hint=_UNCHANGED,
        ) from error


def _reads_as(text: str, expected: dict[str, object]) -> bool:
    data, problems = parse_config(text)
    return not problems and data == drop_empty(expected)


def _without(data: dict[str, object], path: tuple[str, ...]) -> dict[str, object]:
    below = data.get(path[0])
    if len(path) == 1:
        return {name: value for name, value in data.items() if name != path[0]}
    if not isinstance(below, dict):
        return data
    left = _without(below, path[1:])
    if left != below:
        return {**data, path[0]: left or None}
    return data
