"""Commands of the table over HTTP."""

from tests.integration.dashboard.house import House

from hermes.commands.table import every_command
from hermes.schema.events import SessionCreated
from hermes.schema.messages import UserMessage


def begin(house: House, text: str) -> str:
    session = house.app.begin(SessionCreated(surface="test")).session
    house.app.record(session, UserMessage(text=text))
    return session


async def test_a_command_that_reads_is_a_get_with_its_options(house: House) -> None:
    begin(house, "an older talk")
    session = begin(house, "a talk about parsers")
    listed = await house.call(
        "GET", "/api/commands/sessions.list?limit=1", scope="observe"
    )
    assert [one["session_id"] for one in listed["sessions"]] == [session]
    found = await house.call(
        "GET", "/api/commands/sessions.search?words=about+parsers", scope="observe"
    )
    assert [hit["session_id"] for hit in found["hits"]] == [session]


async def test_a_command_that_changes_something_is_a_post(house: House) -> None:
    session = begin(house, "hello")
    body = {"session": session, "title": ["A", "title"]}
    renamed = await house.call(
        "POST", "/api/commands/sessions.rename", body, scope="chat"
    )
    assert renamed["lines"] == [f"{session}  A title"]
    assert house.app.store.sessions.find(session).title == "A title"


async def test_a_scope_wrong_words_and_a_missing_yes_are_refused(house: House) -> None:
    session = begin(house, "hello")
    path = "/api/commands/sessions.delete"
    body = {"sessions": [session]}
    assert (await house.ask("POST", path, body, scope="chat")).status_code == 403
    assert (await house.ask("POST", path, body)).status_code == 409
    nobody = {"sessions": ["nobody"], "yes": True}
    assert (await house.ask("POST", path, nobody)).status_code == 404
    wrong = await house.ask("GET", "/api/commands/sessions.list?limit=0")
    assert wrong.status_code == 422
    await house.call("POST", path, body | {"yes": True})
    assert house.app.store.sessions.recent(limit=5) == []


async def test_every_command_with_a_scope_is_described(house: House) -> None:
    paths = (await house.call("GET", "/api/openapi.json"))["paths"]
    for one in every_command():
        operations = paths.get(f"/api/commands/{one.key}", {})
        scopes = [operation["x-scope"] for operation in operations.values()]
        assert scopes == ([one.scope] if one.name and one.scope else [])
