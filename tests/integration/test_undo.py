"""Going back in a session: the log, the model's view and the files together."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.integration.shadow.bench import PATH

from hermes.app import App, build
from hermes.app.partial_text import partial_path
from hermes.app.session_journal import read_history
from hermes.app.undo import Rewind
from hermes.core.calls import CallRunner, CallScope, ReadyCall
from hermes.core.history import ConversationHistory
from hermes.core.ports import PolicyDecision, ToolContext
from hermes.errors import HermesError, SessionBusy, UsageError
from hermes.events import Bus
from hermes.schema.events import SessionCreated, SessionTitled, TurnEnded, TurnStarted
from hermes.schema.messages import AssistantMessage, ToolCall, UserMessage
from hermes.settings import Home, Settings
from hermes.tools.shadow import ShadowKeeper, Shadows
from hermes.tools.tool import tool


class Desk:
    """A session whose turns are written by hand, with real files beside it."""

    def __init__(self, app: App, base: Path, path: str = PATH) -> None:
        self.app = app
        self.cwd = base / "work"
        self.cwd.mkdir()
        shadows = Shadows(
            app.home.root,
            environment={"PATH": path},
            user_home=base / "user",
            clock=app.clock,
        )
        self.keeper = ShadowKeeper(shadows)
        self.rewind = Rewind(app, shadows)
        self.session = app.begin(
            SessionCreated(surface="test", cwd=str(self.cwd))
        ).session

    def turn(
        self, text: str, work: Callable[[], object] | None = None, *, ended: bool = True
    ) -> str:
        """A turn as the agent runs it: the words, the work, an answer."""
        turn = self.app.ids.turn()
        (said,) = self.app.record(self.session, UserMessage(text=text))
        self.app.record(self.session, TurnStarted(inputs=(said.seq,)), turn=turn)
        if work:
            asyncio.run(
                self.keeper.keep(
                    ToolContext("c", self.session, self.cwd, lambda _: None, turn), ()
                )
            )
            work()
        if ended:
            asyncio.run(self.keeper.finish(turn, self.cwd))
            self.app.record(
                self.session,
                AssistantMessage(text=f"re {text}"),
                TurnEnded(reason="done"),
                turn=turn,
            )
        return turn

    def write(self, name: str, text: str) -> Callable[[], object]:
        return lambda: (self.cwd / name).write_text(text)

    def history(self, session: str = "") -> ConversationHistory:
        return read_history(self.app.store, session or self.session)

    def said(self, session: str = "") -> list[str]:
        return [message.text for message in self.history(session).messages]


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with build(Settings(), Home(tmp_path / "home"), bus=Bus()) as app:
        yield Desk(app, tmp_path)


def test_files_and_conversation_go_back_and_forth_together(desk: Desk) -> None:
    desk.turn("one", desk.write("file", "1"))
    desk.turn("two", desk.write("file", "2"))
    report = desk.rewind.undo(desk.session)
    assert (report.text, report.files.restored, len(report.turns)) == (
        "two",
        ("file",),
        1,
    )
    assert (desk.cwd / "file").read_text() == "1"
    assert desk.said() == ["one", "re one"]
    again = desk.rewind.redo(desk.session)
    assert (again.text, again.files.restored) == ("two", ("file",))
    assert (desk.cwd / "file").read_text() == "2"
    assert desk.said() == ["one", "re one", "two", "re two"]


def test_what_undo_would_delete_is_known_before(desk: Desk) -> None:
    desk.write("old", "0")()
    desk.turn("one", desk.write("made", "1"))
    desk.turn(
        "two",
        lambda: (
            desk.write("made", "2")(),
            desk.write("old", "2")(),
            desk.write("also", "2")(),
        ),
    )
    assert desk.rewind.deletes(desk.session) == ("also",)
    assert desk.rewind.deletes(desk.session, turns=2) == ("also", "made")
    desk.write("also", "mine now")()
    assert desk.rewind.deletes(desk.session, turns=2) == ("made",)
    assert desk.rewind.deletes(desk.session, turns=2, force=True) == ("also", "made")
    assert (desk.cwd / "also").read_text() == "mine now"
    desk.rewind.undo(desk.session, turns=2)
    assert sorted(path.name for path in desk.cwd.iterdir()) == ["also", "old"]


def test_nothing_leaves_the_log_and_the_title_stays(desk: Desk) -> None:
    desk.turn("one", desk.write("file", "1"))
    desk.app.record(desk.session, SessionTitled(title="A title"))
    before = list(desk.app.store.log.every_event(desk.session))
    desk.rewind.undo(desk.session)
    after = list(desk.app.store.log.every_event(desk.session))
    assert after[: len(before)] == before
    assert [row.type for row in after[len(before) :]] == ["session.undone"]
    assert desk.app.store.sessions.find(desk.session).title == "A title"


def test_several_turns_and_turns_without_files(desk: Desk) -> None:
    desk.turn("one")
    desk.turn("two", desk.write("file", "2"))
    desk.turn("three")
    report = desk.rewind.undo(desk.session, turns=3)
    assert (report.text, len(report.turns)) == ("one", 3)
    assert not (desk.cwd / "file").exists()
    assert desk.said() == []
    desk.rewind.redo(desk.session)
    assert (desk.cwd / "file").read_text() == "2"
    assert len(desk.said()) == 6


def test_one_undo_after_the_other_goes_further_back_and_redo_comes_the_same_way(
    desk: Desk,
) -> None:
    for number in ("1", "2", "3"):
        desk.turn(number, desk.write("file", number))
    desk.rewind.undo(desk.session)
    desk.rewind.undo(desk.session)
    assert ((desk.cwd / "file").read_text(), desk.said()) == ("1", ["1", "re 1"])
    desk.rewind.redo(desk.session)
    desk.rewind.redo(desk.session)
    assert ((desk.cwd / "file").read_text(), len(desk.said())) == ("3", 6)
    with pytest.raises(UsageError, match="nothing to redo"):
        desk.rewind.redo(desk.session)


def test_a_crashed_turn_is_closed_and_taken_back(desk: Desk) -> None:
    desk.turn("one")
    desk.turn("two", desk.write("file", "2"), ended=False)
    partial = partial_path(desk.app.home, desk.session)
    partial.parent.mkdir(parents=True)
    partial.write_text("what it had said")
    report = desk.rewind.undo(desk.session)
    assert report.files.restored == ("file",)
    assert not partial.exists()
    assert desk.said() == ["one", "re one"]
    assert not desk.history().open_turn
    types = [row.type for row in desk.app.store.log.every_event(desk.session)][-2:]
    assert types == ["agent.turn.ended", "session.undone"]


def test_files_can_be_left_as_they_are(desk: Desk) -> None:
    desk.turn("one", desk.write("file", "1"))
    assert desk.rewind.undo(desk.session, files=False).files.restored == ()
    assert (desk.cwd / "file").read_text() == "1"
    assert desk.said() == []


def test_a_session_that_runs_is_refused(desk: Desk) -> None:
    desk.turn("one", desk.write("file", "1"))
    lease = desk.app.store.leases.acquire(desk.session)
    for refused in (desk.rewind.undo, desk.rewind.redo, desk.rewind.retry):
        with pytest.raises(SessionBusy, match="is running"):
            refused(desk.session)
    assert (desk.cwd / "file").read_text() == "1"
    desk.app.store.leases.release(lease)
    assert desk.rewind.undo(desk.session).files.restored == ("file",)


@pytest.mark.parametrize("turns", [0, 2])
def test_more_turns_than_there_are_change_nothing(desk: Desk, turns: int) -> None:
    desk.turn("one", desk.write("file", "1"))
    with pytest.raises(UsageError):
        desk.rewind.undo(desk.session, turns=turns)
    assert (desk.cwd / "file").read_text() == "1"


def test_a_retry_says_the_same_words_again(desk: Desk) -> None:
    desk.turn("one")
    desk.turn("two", desk.write("file", "2"))
    desk.rewind.retry(desk.session)
    history = desk.history()
    assert [message.text for message in history.messages] == ["one", "re one"]
    assert [message.text for message in history.waiting.values()] == ["two"]
    assert not (desk.cwd / "file").exists()


def test_a_branch_goes_on_from_here_or_from_earlier(desk: Desk) -> None:
    desk.turn("one")
    desk.turn("two", desk.write("file", "2"))
    whole, earlier = (
        desk.rewind.branch(desk.session),
        desk.rewind.branch(desk.session, back=1),
    )
    assert len(desk.said(whole)) == 4
    assert desk.said(earlier) == ["one", "re one"]
    assert not desk.history(earlier).waiting
    assert len(desk.said()) == 4
    assert desk.rewind.undo(whole).files.restored == (
        "file",
    )  # a turn it was born with


def test_a_branch_leaves_what_runs_and_what_waits_to_the_old_session(
    desk: Desk,
) -> None:
    desk.turn("one")
    desk.turn("two", ended=False)
    desk.app.record(desk.session, UserMessage(text="later"))
    new = desk.rewind.branch(desk.session)
    history = desk.history(new)
    assert desk.said(new) == ["one", "re one"]
    assert (history.open_turn, history.waiting) == ("", {})


def test_a_diff_shows_what_the_last_turn_changed(desk: Desk) -> None:
    (desk.cwd / "file").write_text("old\n")
    first = desk.turn("one", desk.write("file", "new\n"))
    assert "-old\n+new\n" in desk.rewind.diff(desk.session)
    desk.turn("two")
    assert desk.rewind.diff(desk.session) == ""
    assert "--- a/file\n+++ b/file\n" in desk.rewind.diff(desk.session, turn=first)


def test_a_diff_of_a_turn_that_runs_shows_it_so_far(desk: Desk) -> None:
    desk.turn("one", desk.write("file", "new\n"), ended=False)
    assert "+new" in desk.rewind.diff(desk.session)
    (desk.cwd / "file").write_text("newer\n")
    assert "+newer" in desk.rewind.diff(desk.session)


def test_a_long_diff_is_cut_and_says_so(desk: Desk) -> None:
    desk.turn("one", desk.write("file", "line\n" * 10_000))
    text = desk.rewind.diff(desk.session)
    assert text.endswith("more lines are not shown\n")
    assert len(text) < 100_000


def test_what_a_child_did_for_the_turn_is_taken_back_with_it(desk: Desk) -> None:
    child = desk.app.begin(
        SessionCreated(
            kind="child",
            parent=desk.session,
            root=desk.session,
            surface="test",
            cwd=str(desk.cwd),
        )
    ).session

    def delegate() -> None:
        named = (desk.cwd / "file",)
        asyncio.run(
            desk.keeper.keep(
                ToolContext("c", child, desk.cwd, lambda _: None, "child-turn"), named
            )
        )
        named[0].write_text("by the child")
        asyncio.run(desk.keeper.finish("child-turn", desk.cwd))

    desk.turn("one", delegate)
    report = desk.rewind.undo(desk.session)
    assert (report.files.restored, report.files.conflicts) == (("file",), ())


def test_without_git_the_conversation_still_goes_back(tmp_path: Path) -> None:
    with build(Settings(), Home(tmp_path / "home"), bus=Bus()) as app:
        desk = Desk(app, tmp_path, path=str(tmp_path))
        desk.turn("one", desk.write("file", "1"))
        report = desk.rewind.undo(desk.session)
        assert (
            report.note == "Files are not saved for undo, because git is not installed."
        )
        assert desk.said() == []


def test_kept_files_that_are_damaged_leave_the_conversation_alone(desk: Desk) -> None:
    (desk.cwd / "file").write_text("0")
    desk.turn("one", desk.write("file", "1"))
    for kept in (desk.app.home.root / "undo").glob("*/objects/??/*"):
        kept.unlink()
    with pytest.raises(HermesError, match="can't be used"):
        desk.rewind.undo(desk.session)
    assert len(desk.said()) == 2
    assert (desk.cwd / "file").read_text() == "1"


class _Allowed:
    def judge(self, *_: object) -> PolicyDecision:
        return PolicyDecision("allow")

    def remember(self, *_: object) -> None:
        raise AssertionError


class _Journal:
    async def record(self, *events: object) -> tuple[int, ...]:
        return tuple(range(len(events)))

    def note(self, *events: object) -> None: ...

    async def flush(self) -> None: ...

    async def nothing_under_way(self) -> None: ...

    def show(self, event: object) -> None: ...


@tool("shout", effect="files", paths=("path",))
def shout(context: ToolContext, path: str) -> str:
    """Writes loudly."""
    (context.cwd / path).write_text("LOUD")
    return "done"


async def test_calls_that_the_agent_runs_are_kept_before_they_run(desk: Desk) -> None:
    (desk.cwd / "file").write_text("quiet")
    runner = CallRunner({"shout": shout}, _Allowed(), None, desk.keeper)  # pyrefly: ignore - nobody is asked
    prepared = runner.prepare(
        [ToolCall(id="c", name="shout", arguments='{"path": "file"}')]
    )
    assert isinstance(prepared[0], ReadyCall)
    await runner.run(CallScope(_Journal(), desk.session, "t", desk.cwd), prepared, ())
    assert (desk.cwd / "file").read_text() == "LOUD"
    await desk.keeper.finish("t", desk.cwd)
    assert "-quiet" in desk.rewind.diff(desk.session, turn="t")
