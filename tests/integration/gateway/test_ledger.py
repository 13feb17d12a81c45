"""What the gateway keeps: taken in once, delivered up to, begun and sent. It survives a reopening and a rebuilding."""

from contextlib import closing
from pathlib import Path

import apsw
from tests.fakes.store_engines import OpenStore

from hermes.schema.events import SessionCreated, SessionTitled
from hermes.store import Store, open_store
from hermes.store.chats import Binding, DeliveredMessage
from hermes.store.people import KnownPerson
from hermes.testing.fixtures import FakeClock

KEY = "telegram/1"


def bound(store: Store, session: str = "s1", key: str = KEY) -> None:
    store.log.create(session, SessionCreated(surface="telegram"))
    store.chats.bind(
        Binding(key, session, '{"platform":"telegram","id":"1"}', "1", 1)
    ).result()


def test_the_same_message_is_taken_in_once_also_after_it_was_dealt_with(
    open_database: OpenStore,
) -> None:
    with open_database() as store:
        bound(store)
        assert store.chats.accept("telegram", "7", "words", KEY).result()
        assert not store.chats.accept("telegram", "7", "words", KEY).result()
        assert [one.data for one in store.chats.waiting()] == ["words"]
        assert [one.key for one in store.chats.busy()] == [KEY]
    with open_database() as store:
        store.chats.rest(KEY, "s1", 5, ["7"]).result()
        assert store.chats.waiting() == []
        assert store.chats.busy() == []
        assert not store.chats.accept("telegram", "7", "words", KEY).result()
        assert store.chats.accept("discord", "7", "words", "discord/1").result()


def test_a_chat_is_behind_until_everything_was_delivered(
    open_database: OpenStore,
) -> None:
    with open_database() as store:
        bound(store)
        assert store.chats.behind() == []
        store.log.append("s1", SessionTitled(title="more"))
        assert [one.session for one in store.chats.behind()] == ["s1"]
        store.chats.rest(KEY, "s1", 2).result()
        assert store.chats.behind() == []
        store.chats.rest(KEY, "s1", 1).result()  # never backwards
        assert store.chats.behind() == []


def test_a_session_has_one_chat_and_a_chat_one_session(
    open_database: OpenStore,
) -> None:
    with open_database() as store:
        bound(store)
        bound(store, "s2")
        found = store.chats.find(KEY)
        assert found is not None
        assert found.session == "s2"
        store.chats.bind(Binding("discord/9", "s2", "{}")).result()
        assert store.chats.find(KEY) is None
        moved = store.chats.of_session("s2")
        assert moved is not None
        assert moved.key == "discord/9"


def test_what_was_begun_becomes_part_of_its_row(open_database: OpenStore) -> None:
    with open_database() as store:
        bound(store)
        piece = store.chats.sending(KEY, "s1", 0, 0).result()
        assert store.chats.pieces(KEY, "s1", 0) == [piece]
        store.chats.sent(
            KEY, DeliveredMessage(piece.id, "s1", 4, 0, "sent", "m1")
        ).result()
        store.chats.sent(KEY, DeliveredMessage(0, "s1", 4, 1, "sent", "m2")).result()
        assert store.chats.pieces(KEY, "s1", 0) == []
        assert [one.message for one in store.chats.pieces(KEY, "s1", 4)] == ["m1", "m2"]
        assert [key for key, _ in store.chats.everywhere("s1", 4)] == [KEY, KEY]


def test_old_ids_are_forgotten_and_what_waits_is_not(open_database: OpenStore) -> None:
    clock = FakeClock()
    with open_database(clock) as store:
        bound(store)
        for name in ("old", "waits"):
            store.chats.accept("telegram", name, "words", KEY).result()
        store.chats.handled("telegram", "old").result()
        clock.advance(100)
        store.chats.forget(clock.now()).result()
        assert [one.id for one in store.chats.waiting()] == ["waits"]
        assert store.chats.accept("telegram", "old", "words", KEY).result()


def test_people_and_chats_survive_a_rebuilding(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with open_store(path) as store:
        bound(store)
        store.people.put(KnownPerson("telegram", "1", "Anna", "owner", 1.0))
    with closing(apsw.Connection(str(path))) as raw:
        size = int(raw.execute("PRAGMA page_size").get)
        page = int(
            raw.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'leases'").get
        )
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)
    with open_store(path) as store:
        assert store.recovery is not None
        assert [one.role for one in store.people.every()] == ["owner"]
        assert store.chats.find(KEY) is not None
