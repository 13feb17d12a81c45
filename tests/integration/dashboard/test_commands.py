"""Commands of the table over HTTP."""

from pathlib import Path

from tests.integration.dashboard.harness import Harness, opened

from hermes.commands.table import every_command
from hermes.schema.events import InterruptRequested, SessionCreated, TurnStarted
from hermes.schema.goals import GoalCleared, GoalPaused, GoalSet
from hermes.schema.messages import UserMessage
from hermes.settings import Settings
from hermes.settings.models import CustomProvider, ModelSettings


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


async def test_a_name_that_no_file_can_have_is_refused(harness: Harness) -> None:
    answer = await harness.ask(
        "POST", "/api/commands/skills.check", {"name": "a" * 5000}
    )
    assert answer.status_code == 400
    assert answer.json() == {
        "error": "A file can't have a name this long.",
        "hint": "",
    }


async def test_only_an_owner_runs_the_code_of_a_plugin(harness: Harness) -> None:
    path, body = "/api/commands/plugins.run", {"name": "shout"}
    assert (await harness.ask("POST", path, body, scope="chat")).status_code == 403
    assert (await harness.ask("POST", path, body)).status_code == 404


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


async def test_a_goal_is_changed_only_where_it_is_clear_which_one(
    harness: Harness,
) -> None:
    path, log = "/api/commands/goal.clear", harness.app.store.log
    goals = [begin(harness, "one"), begin(harness, "two")]
    for session in goals:
        draft = GoalSet(text="a poem", max_turns=3, is_draft=True, by="test")
        harness.app.record(session, draft)
    begin(harness, "the newest, without a goal")
    unclear = await harness.ask("POST", path, {}, scope="chat")
    assert unclear.status_code in (400, 422)
    assert all(session in unclear.text for session in goals)
    await harness.call("POST", path, {"session": goals[0]}, scope="chat")
    assert log.latest(goals[1], GoalCleared.topic) is None
    await harness.call("POST", path, {}, scope="chat")
    assert log.latest(goals[1], GoalCleared.topic) is not None


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


async def test_slash_commands_of_a_chat_work_on_the_page(harness: Harness) -> None:
    session = begin(harness, "hello")
    path = f"/api/sessions/{session}/commands"
    draft = GoalSet(text="a poem", max_turns=3, is_draft=True, by="test")
    harness.app.record(session, draft)

    goal = await harness.call("POST", path, {"name": "goal", "words": "show"}, scope="chat")  # fmt: skip
    assert "a poem" in goal["text"]
    added = await harness.call("POST", path, {"name": "subgoal", "words": "it rhymes"}, scope="chat")  # fmt: skip
    assert "it rhymes" in added["text"]
    made = {"name": "kanban", "words": "create fix the parser --triage"}
    assert "fix the parser" in (await harness.call("POST", path, made))["text"]
    refused = await harness.ask("POST", path, made, scope="chat")
    assert refused.status_code == 403
    unknown = await harness.ask("POST", path, {"name": "quit"}, scope="chat")
    assert "/goal" in unknown.text


async def test_a_command_works_beside_a_turn_though_another_model_was_picked(
    harness: Harness,
) -> None:
    session = begin(harness, "hello")
    harness.app.record(session, GoalSet(text="a poem", max_turns=3, by="test"))
    path = f"/api/sessions/{session}/commands"
    pause = {"name": "goal", "words": "pause", "model": "another"}
    lease = harness.app.store.leases.acquire(session)
    await harness.call("POST", path, pause, scope="chat")
    assert harness.app.store.log.latest(session, GoalPaused.topic) is not None
    harness.app.store.leases.release(lease)


async def test_children_are_listed_told_opened_and_stopped_on_the_page(
    harness: Harness,
) -> None:
    session = begin(harness, "hello")
    created = SessionCreated(kind="child", parent=session, root=session, surface="background")  # fmt: skip
    child = harness.app.begin(created).session
    harness.app.record(child, UserMessage(text="work"), TurnStarted(inputs=(2,)))
    lease = harness.app.store.leases.acquire(child)
    path = f"/api/sessions/{session}/commands"

    async def agents(words: str) -> dict[str, str]:
        asked = {"name": "agents", "words": words}
        return await harness.call("POST", path, asked, scope="chat")

    assert "working" in (await agents(""))["text"]
    assert (await agents(f"open {child[-6:]}"))["opens"] == child
    assert "Told" in (await agents(f"tell {child[-6:]} be quick"))["text"]
    assert "Stopped" in (await agents(f"stop {child[-6:]}"))["text"]
    topics = [row.type for row in harness.app.store.log.every_event(child)]
    assert topics[-2:] == [UserMessage.topic, InterruptRequested.topic]
    harness.app.store.leases.release(lease)
