"""By which names a session is found."""

from pathlib import Path

import pytest

from hermes.errors import UsageError
from hermes.schema.events import SessionCreated
from hermes.store import open_store


@pytest.mark.parametrize("name", ["", " ", "\t\n"])
def test_an_empty_name_means_no_session_not_the_only_one(tmp_path: Path, name: str) -> None:
    with open_store(tmp_path / "state.db") as store:
        store.log.create("only", SessionCreated())
        with pytest.raises(UsageError, match="name is empty"):
            store.sessions.find(name)
        assert store.sessions.find("on").id == "only"
