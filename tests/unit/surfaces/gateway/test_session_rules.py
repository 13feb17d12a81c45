"""Which chat, thread or person has a session of its own."""

import pytest

from hermes.surfaces.gateway.adapter import Chat, ChatKind, Person
from hermes.surfaces.gateway.session_rules import Scope, is_at, is_shared, key_of

ANNA, BEN = Person("1", "Anna"), Person("2", "Ben")


@pytest.mark.parametrize(
    ("kind", "thread", "shared"),
    [
        ("direct", "", True),
        ("group", "", False),
        ("channel", "", False),
        ("group", "t", True),
    ],
)
def test_by_default_threads_are_shared_and_groups_are_not(
    kind: ChatKind, thread: str, shared: bool
) -> None:
    chat = Chat("telegram", "-7", kind, thread)
    assert (key_of(chat, ANNA, {}) == key_of(chat, BEN, {})) is shared


def test_the_settings_go_before_the_table() -> None:
    chat = Chat("telegram", "-7", "group")
    chosen: dict[str, Scope] = {"telegram.group": "chat"}
    assert key_of(chat, ANNA, chosen) == key_of(chat, BEN, chosen) == "telegram/-7"
    assert key_of(Chat("slack", "-7", "group"), ANNA, chosen) != key_of(
        Chat("slack", "-7", "group"), BEN, chosen
    )


def test_no_name_can_pass_for_another_place() -> None:
    whole: dict[str, Scope] = {"*": "chat"}
    tricky = key_of(Chat("webhook", "a/b", "direct"), ANNA, whole)
    assert tricky == "webhook/a%2Fb"
    assert tricky != key_of(Chat("webhook", "a", "direct", "b"), ANNA, {})
    assert key_of(Chat("webhook", "a%2Fb"), ANNA, whole) != tricky


def test_two_threads_and_two_platforms_are_apart() -> None:
    keys = {
        key_of(Chat("telegram", "7", "group", "1"), ANNA, {}),
        key_of(Chat("telegram", "7", "group", "2"), ANNA, {}),
        key_of(Chat("discord", "7", "group", "1"), ANNA, {}),
    }
    assert len(keys) == 3


def test_a_key_is_at_its_own_chat_only() -> None:
    group = Chat("telegram", "-5", "group")
    assert is_at(key_of(group, Person("2"), {}), group)
    assert not is_at(key_of(Chat("telegram", "-55", "group"), Person("2"), {}), group)
    assert not is_at(key_of(Chat("slack", "-5", "group"), Person("2"), {}), group)


def test_only_where_one_session_is_for_several_people_it_is_shared() -> None:
    assert not is_shared(Chat("email", "a@b", "direct", "<thread>"), {})
    assert not is_shared(Chat("telegram", "-5", "group"), {})
    assert is_shared(Chat("slack", "C1", "channel", "17.5"), {})
    assert is_shared(Chat("telegram", "-5", "group"), {"telegram.group": "chat"})
