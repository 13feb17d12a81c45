"""The table of commands as a whole."""

from collections import Counter

from hermes.commands.table import (
    CHAT_APP_MODULES,
    TOPICS,
    chat_commands,
    commands_of,
    every_command,
    find_command,
    find_topic,
)
from hermes.surfaces.cli.shell import has_json
from hermes.surfaces.gateway.commands import chat_app_commands
from hermes.surfaces.tui.slash_lookup import slashes

_LISTS_OR_SHOWS = ("list", "show", "search", "history", "stats", "check", "proposals")


def test_every_command_is_described_once_and_can_be_read() -> None:
    commands = list(every_command())
    keys = Counter(one.key for one in commands)
    assert [key for key, times in keys.items() if times > 1] == []
    for one in commands:
        assert one.summary
        assert not one.summary.endswith(".")
        assert one.form is not None
        assert one.slash_parameters is not None
        assert one.group or not one.slash


def test_names_in_chats_are_unique() -> None:
    for commands in (slashes(), chat_app_commands()):
        names = [one.slash for one in commands]
        assert len(names) == len(set(names))


def test_a_command_with_a_role_is_in_a_module_that_chat_apps_load() -> None:
    with_role = {one.slash for one in chat_commands() if one.role}
    assert with_role == {
        one.slash for one in chat_commands(CHAT_APP_MODULES) if one.role
    }


def test_what_lists_or_shows_has_json() -> None:
    lacking = [
        one.name
        for one in every_command()
        if one.name.rpartition(" ")[2] in _LISTS_OR_SHOWS and not has_json(one)
    ]
    assert lacking == []


def test_a_topic_finds_its_commands_by_their_words() -> None:
    topic = find_topic("sessions")
    assert topic is not None
    found = find_command(topic, ["undo", "last"])
    assert found is not None
    assert found.name == "sessions undo"
    assert find_command(topic, []) is None
    assert find_command(topic, ["--help"]) is None
    for one in TOPICS:
        names = {command.name for command in commands_of(one)}
        assert names
        assert not one.default or f"{one.name} {one.default}" in names


def test_a_second_word_may_have_actions_of_its_own() -> None:
    topic = find_topic("api")
    assert topic is not None

    def name(*words: str) -> str:
        found = find_command(topic, list(words))
        return found.name if found is not None else ""

    assert name() == name("--port", "0") == "api"
    assert name("key") == name("key", "list", "--json") == "api key list"
    assert name("key", "add", "laptop") == "api key add"
    assert name("key", "ad") == name("key", "--help") == ""
