"""Keys derived from the types: names, variables, kinds, suggestions, parsing."""

from functools import reduce
from pathlib import Path
from typing import Annotated, Literal

import pytest
from msgspec import Meta, Struct

from hermes.errors import SettingsError
from hermes.settings.edit import set_value
from hermes.settings.sections import Settings
from hermes.settings.setting_keys import (
    OTHER_PREFIXES,
    OTHER_VARIABLES,
    SettingKey,
    all_keys,
    find_key,
    kind,
    nearest,
    parse_value,
    unknown_variables,
)
from hermes.settings.yaml_read import parse_yaml


class Server(Struct, frozen=True):
    url: str
    retries: Annotated[int, Meta(ge=0)] = 3


class Later(Struct, frozen=True):
    """A section as later work may add it."""

    names: list[str] = []
    servers: dict[str, Server] = {}
    limit: Annotated[int, Meta(ge=1, description="A limit.")] | None = None


def test_no_two_keys_share_a_variable() -> None:
    variables = [key.variable for key in all_keys()]
    assert len(variables) == len(set(variables))
    assert not set(variables) & set(OTHER_VARIABLES)
    assert not [name for name in variables if name.startswith(OTHER_PREFIXES)]


def test_a_variable_is_the_key_in_capitals() -> None:
    assert (
        find_key("sessions.write_json_snapshots").variable
        == "HERMES_SESSIONS_WRITE_JSON_SNAPSHOTS"
    )


def test_every_key_has_a_description_and_a_valid_default() -> None:
    settings = Settings()
    for key in all_keys():
        assert key.description.endswith("."), key.name
        assert reduce(getattr, key.path, settings) == key.default


def test_a_new_section_needs_only_its_struct() -> None:
    found = {key.name: key for key in all_keys(Later)}
    assert list(found) == ["names", "servers", "limit"]
    assert found["limit"].description == "A limit."
    assert str(kind(found["limit"].annotation)) == "a whole number at least 1 or null"
    assert str(kind(found["names"].annotation)) == "a list"
    assert parse_value(found["names"], "[a, b]") == ["a", "b"]
    assert parse_value(found["servers"], "{x: {url: u}}") == {
        "x": {"url": "u", "retries": 3}
    }
    assert parse_value(found["limit"], "null") is None


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("sesions.write_json_snapshots", "sessions.write_json_snapshots"),
        ("store.busy_timout", "store.busy_timeout"),
        ("busy-timeout", "store.busy_timeout"),
        ("store.color", "display.color"),
        ("stor", "store"),
        ("display.max_step", "budget.max_steps"),
        ("qqqq", None),
    ],
)
def test_the_nearest_key_is_suggested(name: str, expected: str | None) -> None:
    assert nearest(name) == expected


def test_an_unknown_key_and_a_section_are_not_settings() -> None:
    with pytest.raises(SettingsError, match="no setting called") as unknown:
        find_key("store.busy_timout")
    assert unknown.value.hint == "Did you mean store.busy_timeout?"
    with pytest.raises(SettingsError, match="is a section") as section:
        find_key("store")
    assert "store.busy_timeout" in section.value.hint


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "store.",
        ".busy_timeout",
        "store.busy_timeout.more",
        "store..busy_timeout",
    ],
)
def test_malformed_names_are_unknown(name: str) -> None:
    with pytest.raises(SettingsError):
        find_key(name)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("sessions.write_json_snapshots", "true", True),
        ("sessions.write_json_snapshots", "1", True),
        ("sessions.write_json_snapshots", "ON", True),
        ("sessions.write_json_snapshots", " no ", False),
        ("store.busy_timeout", "2.5", 2.5),
        ("store.busy_timeout", " 7 ", 7.0),
        ("budget.max_steps", "12", 12),
        ("display.color", "never", "never"),
    ],
)
def test_text_becomes_the_type_of_the_key(name: str, text: str, value: object) -> None:
    parsed = parse_value(find_key(name), text)
    assert parsed == value
    assert type(parsed) is type(value)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("sessions.write_json_snapshots", "maybe"),
        ("sessions.write_json_snapshots", ""),
        ("store.busy_timeout", "-1"),
        ("store.busy_timeout", "nan"),
        ("store.busy_timeout", "inf"),
        ("budget.max_steps", "1.5"),
        ("budget.max_steps", "9" * 400),
        ("display.color", "AUTO"),
    ],
)
def test_text_that_does_not_fit_says_what_is_expected(name: str, text: str) -> None:
    with pytest.raises(SettingsError, match=f"{name}: expected "):
        parse_value(find_key(name), text)


def test_literal_choices_are_named() -> None:
    assert str(kind(Literal["a", "b"])) == "one of a, b"
    assert SettingKey(("x",), Literal["a"], "a").description == ""


def test_unknown_variables_are_those_that_mean_nothing() -> None:
    environ = {
        "HERMES_HOME": "",
        "HERMES_STORE_BUSY_TIMEOUT": "",
        "HERMES_DASHBOARD_EVENT_URL": "",
        "HERMES_STORE": "",
    }
    assert unknown_variables({**environ, "PATH": ""}) == ["HERMES_STORE"]


def test_the_name_of_an_entry_may_contain_dots(tmp_path: Path) -> None:
    key = "custom_providers.own.models.gpt-4.1.images"
    assert find_key(key).path == (
        "custom_providers", "own", "models", "gpt-4.1", "images"
    )  # fmt: skip
    assert find_key("custom_providers.api.example.org.base_url").path == (
        "custom_providers", "api.example.org", "base_url"
    )  # fmt: skip
    for unknown in (
        "custom_providers.own.nope",
        "custom_providers..base_url",
        "custom_providers.own.models.gpt-4.1.nope",
    ):
        with pytest.raises(SettingsError, match="There is no setting called"):
            find_key(unknown)
    config = tmp_path / "config.yaml"
    set_value(config, key, True)
    assert parse_yaml(config.read_text()) == {
        "custom_providers": {"own": {"models": {"gpt-4.1": {"images": True}}}}
    }


@pytest.mark.parametrize(
    ("setting", "command"),
    [
        ("store.url", "hermes config set STORE_PASSWORD"),
        ("events.url", "hermes config set EVENTS_PASSWORD"),
        ("model.base_url", "hermes config set NAME_API_KEY"),
    ],
)
def test_whoever_types_a_password_into_an_address_is_told_where_it_belongs(
    setting: str, command: str
) -> None:
    key = find_key(setting)
    assert key is not None
    with pytest.raises(SettingsError) as refused:
        parse_value(key, "https://me:hunter2hunter2@db.example/hermes")
    assert command in refused.value.hint
