"""By which names a session is found."""

import pytest
from tests.fakes.store_engines import OpenStore

from hermes.errors import SessionNotFound, UsageError
from hermes.schema.events import SessionCreated, SessionTitled


@pytest.mark.parametrize("name", ["", " ", "\t\n"])
def test_an_empty_name_means_no_session_not_the_only_one(
    open_database: OpenStore, name: str
) -> None:
    with open_database() as store:
        store.log.create("only", SessionCreated())
        with pytest.raises(UsageError, match="name is empty"):
            store.sessions.find(name)
        assert store.sessions.find("on").id == "only"


def test_how_a_session_began_is_known_until_it_is_deleted(
    open_database: OpenStore,
) -> None:
    with open_database() as store:
        store.log.create("only", SessionCreated(surface="telegram", cwd="/w"))
        origin = store.sessions.origin("only")
        assert (origin.kind, origin.root, origin.surface, origin.cwd) == (
            "root",
            "only",
            "telegram",
            "/w",
        )
        assert store.sessions.title("only") == ""
        store.log.append("only", SessionTitled(title="A name"))
        assert store.sessions.title("only") == "A name"
        store.sessions.delete("only")
        for ask in (store.sessions.origin, store.sessions.title):
            with pytest.raises(SessionNotFound, match="only"):
                ask("only")
        with pytest.raises(SessionNotFound):
            store.sessions.origin("on")
