"""Board commands as people give them: in a shell, behind `/kanban`, and what a card's question says about its owner."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.web_server import Asked, Page, web_server

from hermes.app import App, build
from hermes.app.boards.board_service import Boards
from hermes.app.boards.card_draft import CardDraft
from hermes.codex.tool_lending import lendable
from hermes.commands import boards as board_commands
from hermes.commands import card_columns, cards
from hermes.commands.command import Command
from hermes.commands.context import CommandContext
from hermes.commands.kanban_chat import kanban, shell_words
from hermes.core.ports import ToolContext
from hermes.errors import NotFound, Refused, ToolFailed, UsageError
from hermes.events import Bus
from hermes.schema.boards import CardRun
from hermes.schema.events import SessionCreated
from hermes.settings import Home, Secrets, Settings
from hermes.settings.tools import WebSettings


class SilentSurface:
    """A surface that shows nothing and agrees to nothing."""

    name = "test"

    def tell(self, *blocks: Any) -> None: ...

    def warn(self, message: str, hint: str = "") -> None: ...

    def confirm(self, question: str, nothing_done: str) -> bool:
        return False

    def read_secret(self, name: str) -> str:
        return ""


class Desk:
    """Gives commands to an app."""

    def __init__(self, app: App) -> None:
        self.app = app
        self.context = CommandContext(SilentSurface(), app=app)

    def give(self, command: Command, *words: str) -> Any:
        arguments = shell_words(command, list(words))
        return command.function(self.context, **arguments)


@pytest.fixture
def desk(tmp_path: Path) -> Any:
    with build(Settings(), Home(tmp_path / "home"), bus=Bus()) as app:
        yield Desk(app)


def test_a_card_is_made_listed_changed_and_archived(desk: Desk) -> None:
    made = desk.give(
        cards.create_card, "fix", "the", "test", "--priority=5", "--labels", "ci,auth",
        "--time-limit", "2h", "--workspace", "scratch", "--retries", "2",
    ).card  # fmt: skip
    assert (made.title, made.priority, made.labels) == ("fix the test", 5, ("ci", "auth"))  # fmt: skip
    assert (made.time_limit, made.retries) == (7_200.0, 2)
    (listed,) = desk.give(cards.list_cards, "--label", "ci").listing.cards
    assert "no dispatcher is running" in listed.why
    desk.give(cards.comment_on_card, made.id, "mind", "the", "gap")
    desk.give(cards.schedule_card, made.id, "tomorrow", "at", "9")
    report = desk.give(cards.show_card, made.id[:6]).details
    assert [one.text for one in report.comments] == ["mind the gap"]
    assert report.why.startswith("scheduled for")
    topics = [row.topic for row in desk.give(cards.show_card_history, made.id).events]
    assert topics == [
        "kanban.card.created",
        "kanban.card.moved",
        "kanban.card.commented",
        "kanban.card.edited",
    ]
    assert desk.give(cards.archive_card, made.id).card.status == "archived"
    assert desk.give(cards.list_cards).listing.cards == []


def test_dependencies_have_no_circles_and_stay_on_one_board(desk: Desk) -> None:
    first = desk.give(cards.create_card, "first").card
    second = desk.give(cards.create_card, "second", "--parents", first.id).card
    with pytest.raises(UsageError, match="already waits"):
        desk.give(cards.link_cards, second.id, first.id)
    desk.give(board_commands.create_board, "Other work")
    other = desk.give(cards.create_card, "third", "--board", "other-work").card
    with pytest.raises(UsageError, match="is on the board"):
        desk.give(cards.link_cards, first.id, other.id)
    with pytest.raises(Refused, match="waits for"):
        desk.give(cards.move_card, second.id, "ready")
    assert desk.give(cards.unlink_cards, first.id, second.id).card.status == "ready"
    linked = desk.give(cards.link_cards, first.id, second.id)
    assert (linked.card.status, linked.why) == ("todo", f"waits for {first.id}")


def test_boards_are_made_chosen_renamed_and_removed(desk: Desk) -> None:
    desk.give(board_commands.create_board, "My Project", "--budget", "$5")
    desk.give(board_commands.switch_board, "my-project")
    card = desk.give(cards.create_card, "something").card
    assert card.board == "my-project"
    desk.give(board_commands.rename_board, "my-project", "Our", "project")
    shown = desk.give(board_commands.show_board)
    assert (shown.board.name, shown.counts["ready"]) == ("Our project", 1)
    with pytest.raises(Refused):
        desk.give(board_commands.remove_board, "my-project")
    desk.give(board_commands.remove_board, "my-project", "--yes")
    assert desk.give(board_commands.list_boards).boards == []
    with pytest.raises(NotFound, match="no board"):
        desk.give(board_commands.show_board, "my-project")


def test_an_unknown_agent_status_or_option_is_refused(desk: Desk) -> None:
    with pytest.raises(NotFound, match="no agent 'bob'"):
        desk.give(cards.create_card, "x", "--assignee", "bob")
    with pytest.raises(UsageError, match="no status"):
        desk.give(cards.list_cards, "--status", "asleep")
    with pytest.raises(UsageError, match="no option"):
        desk.give(cards.list_cards, "--colour", "red")
    assert desk.give(cards.list_cards).listing.cards == []


def test_a_file_is_attached_and_written_back(desk: Desk, tmp_path: Path) -> None:
    card = desk.give(cards.create_card, "x").card
    (tmp_path / "in.bin").write_bytes(b"\0\1\2")
    desk.give(cards.attach_file, card.id, str(tmp_path / "in.bin"))
    (file,) = desk.give(cards.show_card, card.id).details.attachments
    desk.give(cards.save_attachment, file.id, str(tmp_path / "out.bin"))
    assert (tmp_path / "out.bin").read_bytes() == b"\0\1\2"


def test_a_person_completes_a_card_that_never_ran(desk: Desk) -> None:
    card = desk.give(cards.create_card, "x").card
    waits = desk.give(cards.create_card, "y", "--parents", card.id).card
    desk.give(cards.complete_card, card.id, "did", "it", "myself")
    (run,) = desk.give(cards.show_card_runs, card.id).runs
    assert (run.outcome, run.summary) == ("completed", "did it myself")
    assert Boards(desk.app).find(waits.id).status == "ready"


async def test_the_slash_command_takes_the_words_of_the_shell(desk: Desk) -> None:
    result = await kanban.run(desk.context, {"words": 'create "a card" --priority 3'})
    assert result.card.priority == 3
    listed = await kanban.run(desk.context, {"words": ""})
    assert [card.title for card in listed.listing.cards] == ["a card"]
    boards = await kanban.run(desk.context, {"words": "boards list"})
    assert [one.board.slug for one in boards.boards] == ["default"]
    with pytest.raises(UsageError, match="works in a shell only"):
        await kanban.run(desk.context, {"words": "run"})
    for words, meant in (
        ("add x", "create x"), ("t_1 show", "show t_1"), ("fix the login", "create 'fix the login'"),
    ):  # fmt: skip
        with pytest.raises(UsageError) as refused:
            await kanban.run(desk.context, {"words": words})
        assert refused.value.hint == f"Did you mean: /kanban {meant}"


def test_what_a_worker_asks_belongs_to_the_session_that_made_its_card(
    desk: Desk,
) -> None:
    app = desk.app
    made_in = app.begin(SessionCreated(surface="tui")).session
    row = app.begin(SessionCreated(surface="kanban", parent=made_in))
    assert app.envelope(row)["root_session_id"] == made_in
    assert app.root(row.session) == "", "its caps and its model are its own"


def test_worker_tools_are_offered_on_a_card_only_and_lent_to_codex(desk: Desk) -> None:
    from hermes.app.boards.worker_tools import card_tools

    card = desk.give(cards.create_card, "x").card
    app = desk.app
    session = app.begin(SessionCreated(surface="kanban")).session
    assert card_tools(app, session, Secrets({}, {})) == ()
    run = CardRun("r_1", card.id, card.board, 1, "hermes", "work", session=session)
    app.store.boards.change(lambda tx: tx.insert_run(run))
    tools = {one.spec.name: one for one in card_tools(app, session, Secrets({}, {}))}
    assert set(lendable(tools)) == set(tools) == {
        "kanban_show", "kanban_list", "kanban_complete", "kanban_block", "kanban_request_review",
        "kanban_comment", "kanban_heartbeat", "kanban_create", "kanban_link", "kanban_unblock", "kanban_attach",
        "kanban_attach_url", "kanban_attachments",
    }  # fmt: skip


def test_columns_come_in_pages_and_can_be_filtered(desk: Desk) -> None:
    for number in range(5):
        desk.give(cards.create_card, f"card {number}", "--hold", "--priority", str(-number))  # fmt: skip
    desk.give(cards.create_card, "other", "--triage", "--labels", "ci", "--body", "see card 3")  # fmt: skip

    def shown(*options: str) -> dict[str, tuple[int, list[str]]]:
        found = desk.give(card_columns.show_columns, *options).columns
        return {
            one.status: (one.total, [card.title for card in one.cards])
            for one in found.columns
            if one.total
        }

    assert shown("--limit", "2") == {
        "triage": (1, ["other"]),
        "todo": (5, ["card 0", "card 1"]),
    }
    assert shown("--status", "todo", "--limit", "2", "--offset", "4") == {
        "todo": (5, ["card 4"])
    }
    assert shown("--label", "ci") == {"triage": (1, ["other"])}
    assert shown("--query", "CARD 3") == {
        "triage": (1, ["other"]),
        "todo": (1, ["card 3"]),
    }
    board = desk.give(card_columns.show_columns).columns
    assert (board.labels, board.assignees) == (["ci"], ["hermes"])
    with pytest.raises(UsageError, match="no status 'gone'"):
        desk.give(card_columns.show_columns, "--status", "gone")


def test_a_changed_limit_is_the_reason_at_once(desk: Desk) -> None:
    desk.give(cards.create_card, "first")
    assert "no dispatcher" in desk.give(card_columns.show_columns).columns.idle
    config = desk.app.home.config
    config.parent.mkdir(exist_ok=True)
    config.write_text("boards:\n  max_running: 7\n")
    assert desk.give(card_columns.show_columns).columns.max_running == 7


def test_nobody_moves_a_card_to_running(desk: Desk) -> None:
    made = desk.give(cards.create_card, "first", "--hold").card
    with pytest.raises(Refused, match="started by the dispatcher"):
        desk.give(cards.move_card, made.id, "running")


def test_plain_hermes_can_be_given_cards(desk: Desk) -> None:
    found = desk.give(card_columns.list_assignees).assignees
    assert [one.name for one in found][:1] == ["hermes"]


def _worker(desk: Desk, *words: str, workspace: str = "") -> dict[str, Any]:
    """The tools of a session that works on a new card."""
    from hermes.app.boards.worker_tools import card_tools

    card = desk.give(cards.create_card, "mine", *words).card
    session = desk.app.begin(SessionCreated(surface="kanban")).session
    run = CardRun(
        "r_1", card.id, card.board, 1, "hermes", "work", session=session, workspace=workspace,
    )  # fmt: skip
    desk.app.store.boards.change(lambda tx: tx.insert_run(run))
    return {
        one.spec.name: one for one in card_tools(desk.app, session, Secrets({}, {}))
    }


async def _call(tools: dict[str, Any], name: str, **arguments: Any) -> str:
    context = ToolContext("c1", "", Path("/"), lambda _: None)
    return (await tools[name].run(arguments, context)).text


async def test_a_worker_makes_cards_only_where_it_works_itself(
    desk: Desk, tmp_path: Path
) -> None:
    repository, elsewhere = tmp_path / "repository", tmp_path / "elsewhere"
    repository.mkdir()
    elsewhere.mkdir()
    tools = _worker(desk, f"--workspace=worktree:{repository}", "--budget=$2")
    for kind, path in (
        ("dir", elsewhere), ("worktree", elsewhere), ("dir", Path("/")),
        ("dir", repository),  # it has a clone of it, not the folder itself
        ("dir", repository / ".." / "elsewhere"),
    ):  # fmt: skip
        with pytest.raises(ToolFailed, match="not where you work"):
            await _call(
                tools, "kanban_create", title="x", workspace_kind=kind, workspace_path=str(path),
            )  # fmt: skip
    made = await _call(
        tools, "kanban_create", title="y", workspace_kind="worktree", workspace_path=str(repository),
    )  # fmt: skip
    card = Boards(desk.app).find(made.split()[2].rstrip(";"))
    first = Boards(desk.app).find(card.family)
    assert (first.budget, first.made) == ("$2", (card.id,)), "they share its budget"


async def test_a_worker_attaches_a_file_from_the_web_and_lists_the_files(
    tmp_path: Path,
) -> None:
    def serve(asked: Asked) -> Page:
        return Page(b"%PDF-1.7") if asked.target == "/a/our%20plan.pdf" else Page(status=404)  # fmt: skip

    async with web_server(serve) as server:
        web = WebSettings(allow_hosts=(f"127.0.0.1:{server.port}",))
        with build(Settings(web=web), Home(tmp_path / "home"), bus=Bus()) as app:
            tools = _worker(Desk(app))
            assert "no files" in await _call(tools, "kanban_attachments")
            url = f"{server.url}/a/our%20plan.pdf"
            told = await _call(tools, "kanban_attach_url", url=url)
            assert "our plan.pdf (8 bytes)" in told
            await _call(tools, "kanban_attach_url", url=url, filename="copy.pdf")
            with pytest.raises(ToolFailed, match="404"):
                await _call(tools, "kanban_attach_url", url=f"{server.url}/gone")
            with pytest.raises(ToolFailed, match="not contacted"):
                await _call(tools, "kanban_attach_url", url="http://127.0.0.1:9/x")
            first, second = (await _call(tools, "kanban_attachments")).splitlines()
    kept = Path(first.rpartition(": ")[2])
    assert await asyncio.to_thread(kept.read_bytes) == b"%PDF-1.7"
    assert "copy.pdf" in second


async def test_a_worker_may_name_its_own_card_but_closes_no_other(desk: Desk) -> None:
    tools = _worker(desk)
    other = desk.give(cards.create_card, "other").card
    (mine,) = [card.id for card in desk.give(cards.list_cards).listing.cards if card.title == "mine"]  # fmt: skip
    for name in ("kanban_complete", "kanban_request_review"):
        with pytest.raises(ToolFailed, match="not your card"):
            await _call(tools, name, task_id=other.id, summary="done")
    await _call(tools, "kanban_heartbeat", task_id=mine, note="on it")
    told = await _call(tools, "kanban_complete", task_id=mine, summary="done")
    assert "closed as completed" in told


ORIGINAL_ARGUMENTS = {
    "kanban_show": "task_id board",
    "kanban_list": "assignee status tenant include_archived limit board",
    "kanban_complete": "task_id summary metadata result created_cards artifacts board",
    "kanban_block": "task_id reason kind board",
    "kanban_heartbeat": "task_id note board",
    "kanban_comment": "task_id body board",
    "kanban_attach": "task_id filename content_base64 content_type board",
    "kanban_attach_url": "task_id url filename content_type board",
    "kanban_attachments": "task_id board",
    "kanban_create": "title assignee body parents tenant priority workspace_kind workspace_path project triage "
    "idempotency_key max_runtime_seconds initial_status skills goal_mode goal_max_turns model board",
    "kanban_unblock": "task_id board",
    "kanban_link": "parent_id child_id board",
}
"""The tools of hermes-agent 0.19 and their arguments; `model` is newer."""


def test_worker_tools_take_the_arguments_of_the_original(desk: Desk) -> None:
    tools = _worker(desk)
    missing = {
        name: set(arguments.split()) - set(tools[name].spec.parameters["properties"])
        for name, arguments in ORIGINAL_ARGUMENTS.items()
    }
    assert {name for name, left in missing.items() if left} == set()


async def test_a_worker_reads_other_boards_and_changes_only_its_own(desk: Desk) -> None:
    tools = _worker(desk)
    Boards(desk.app).create_board("Elsewhere", slug="elsewhere")
    far = desk.give(cards.create_card, "far away", "--board=elsewhere").card
    assert "far away" in await _call(tools, "kanban_list", board="elsewhere")
    assert "far away" in await _call(tools, "kanban_show", task_id=far.id, board="elsewhere")  # fmt: skip
    with pytest.raises(ToolFailed, match="on the board elsewhere"):
        await _call(tools, "kanban_show", task_id=far.id, board="default")
    refused: list[tuple[str, dict[str, str]]] = [
        ("kanban_create", {"title": "x"}),
        ("kanban_comment", {"task_id": far.id, "body": "x"}),
        ("kanban_attach", {"filename": "x", "content_base64": ""}),
        ("kanban_complete", {"summary": "x"}),
        ("kanban_unblock", {"task_id": far.id}),
    ]
    for name, arguments in refused:
        with pytest.raises(ToolFailed, match="not your board") as failure:
            await _call(tools, name, board="elsewhere", **arguments)
        assert "your own: default" in failure.value.hint
    with pytest.raises(ToolFailed, match="no board 'nowhere'"):
        await _call(tools, "kanban_list", board="nowhere")
    told = await _call(tools, "kanban_create", title="near", board="default", initial_status="blocked")  # fmt: skip
    assert "it is blocked" in told
    assert "it is ready" in await _call(tools, "kanban_create", title="now", initial_status="running")  # fmt: skip


async def test_a_card_that_is_blocked_from_the_start_is_a_new_one_and_no_trouble(
    desk: Desk,
) -> None:
    tools, boards = _worker(desk), Boards(desk.app)
    draft = CardDraft(title="theirs", key="k", held=True)
    theirs = boards.create("default", draft)
    told = await _call(tools, "kanban_create", title="x", idempotency_key="k", initial_status="blocked")  # fmt: skip
    assert f"{theirs.id}; it is todo" in told
    assert boards.find(theirs.id) == theirs
    told = await _call(tools, "kanban_create", title="new", initial_status="blocked")
    assert "it is blocked" in told
    made = boards.find(told.removeprefix("Made card ").partition(";")[0])
    assert "made for a person" in made.block_reason
    boards.unblock(made.id)
    assert boards.block(made.id, "which one?", by="worker").status == "blocked"


async def test_a_worker_does_not_decide_what_a_person_has_to(desk: Desk) -> None:
    tools = _worker(desk)
    idea = desk.give(cards.create_card, "idea", "--triage").card
    stopped = desk.give(cards.create_card, "stopped").card
    desk.give(cards.block_card, stopped.id, "not now")
    for card in (idea, stopped):
        with pytest.raises(ToolFailed, match="person"):
            await _call(tools, "kanban_unblock", task_id=card.id)
    assert Boards(desk.app).find(idea.id).status == "triage"
    waits = desk.give(cards.create_card, "waits").card
    desk.give(cards.block_card, waits.id, "needs that one", "--kind=dependency")
    assert "ready" in await _call(tools, "kanban_unblock", task_id=waits.id)


def test_a_cards_budget_does_not_raise_the_cap_of_a_session() -> None:
    from hermes.app.agent_pool import session_cap

    assert session_cap("$50", "$2") == "$2"
    assert session_cap("$1", "$2") == "$1"
    assert session_cap("$1", "") == "$1"
    assert session_cap("", "$2") == "$2"
