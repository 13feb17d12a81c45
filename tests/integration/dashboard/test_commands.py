"""Commands of the table over HTTP."""

from pathlib import Path

from tests.integration.dashboard.harness import Harness, opened

from hermes.commands.table import every_command
from hermes.schema.events import SessionCreated
from hermes.schema.messages import UserMessage
from hermes.settings import Settings
from hermes.settings.sections import CustomProvider, ModelSettings


def begin(harness: Harness, text: str) -> str:
    session = harness.app.begin(SessionCreated(surface="test")).session
    harness.app.record(session, UserMessage(text=text))
    return session


async def test_a_command_that_reads_is_a_get_with_its_options(harness: Harness) -> None:
    begin(harness, "an older talk")
    session = begin(harness, "a talk about parsers")
    listed = await harness.call(
        "GET", "/api/commands/sessions.list?limit=1", scope="observe"
    )
    assert [one["session_id"] for one in listed["sessions"]] == [session]
    found = await harness.call(
        "GET", "/api/commands/sessions.search?words=about+parsers", scope="observe"
    )
    assert [hit["session_id"] for hit in found["hits"]] == [session]


async def test_a_command_that_changes_something_is_a_post(harness: Harness) -> None:
    session = begin(harness, "hello")
    body = {"session": session, "title": ["A", "title"]}
    renamed = await harness.call(
        "POST", "/api/commands/sessions.rename", body, scope="chat"
    )
    assert renamed["lines"] == [f"{session}  A title"]
    assert harness.app.store.sessions.find(session).title == "A title"


async def test_a_scope_wrong_words_and_a_missing_yes_are_refused(
    harness: Harness,
) -> None:
    session = begin(harness, "hello")
    path = "/api/commands/sessions.delete"
    body = {"sessions": [session]}
    assert (await harness.ask("POST", path, body, scope="chat")).status_code == 403
    assert (await harness.ask("POST", path, body)).status_code == 409
    nobody = {"sessions": ["nobody"], "yes": True}
    assert (await harness.ask("POST", path, nobody)).status_code == 404
    wrong = await harness.ask("GET", "/api/commands/sessions.list?limit=0")
    assert wrong.status_code == 422
    await harness.call("POST", path, body | {"yes": True})
    assert harness.app.store.sessions.recent(limit=5) == []


async def test_what_no_shell_can_give_is_wrong_usage(harness: Harness) -> None:
    begin(harness, "hello")
    nobody: dict[str, object] = {"sessions": (), "yes": True}
    path = "/api/commands/sessions.delete"
    assert (await harness.ask("POST", path, nobody)).status_code == 422
    nul = {"command_text": "ls", "cwd": "a\0b"}
    path = "/api/commands/policy.check"
    assert (await harness.ask("POST", path, nul)).status_code == 400
    path = "/api/commands/sessions.search?words=a%00b"
    assert (await harness.ask("GET", path, scope="observe")).status_code == 400


async def test_any_limit_is_one(harness: Harness) -> None:
    session = begin(harness, "hello")
    path = f"/api/commands/sessions.list?limit={2**63 - 1}"
    listed = await harness.call("GET", path, scope="observe")
    assert [one["session_id"] for one in listed["sessions"]] == [session]


async def test_a_password_in_the_address_of_a_model_is_not_shown(
    tmp_path: Path,
) -> None:
    lab = CustomProvider(base_url="http://me:hunter2@lab:8000/v1")
    settings = Settings(
        model=ModelSettings(provider="lab", default="qwen"),
        custom_providers={"lab": lab},
    )
    async with opened(tmp_path, settings) as harness:
        path = "/api/commands/model.show"
        shown = await harness.ask("GET", path, scope="observe")
        assert shown.json()["base_url"].endswith("@lab:8000/v1")
        assert "hunter2" not in shown.text


async def test_every_command_with_a_scope_is_described(harness: Harness) -> None:
    paths = (await harness.call("GET", "/api/openapi.json"))["paths"]
    for one in every_command():
        operations = paths.get(f"/api/commands/{one.key}", {})
        scopes = [operation["x-scope"] for operation in operations.values()]
        assert scopes == ([one.scope] if one.name and one.scope else [])
