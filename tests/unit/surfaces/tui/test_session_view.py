"""What a chat shows of a session's events."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from hermes.core.answers import approval_hash
from hermes.surfaces.terminal.question_menu import PersonAnswer, QuestionMenu
from hermes.surfaces.terminal.style import Style
from hermes.surfaces.terminal.styled_text import Row, plain
from hermes.surfaces.terminal.tool_line import LINEAR_MARKS, Marks
from hermes.surfaces.tui.plain_screen import TypedInput
from hermes.surfaces.tui.session_view import ChatView
from hermes.testing.fixtures import FakeClock


class FakeScreen:
    """Implements the `Screen` port; keeps what was shown."""

    def __init__(self, *, echoes: bool = False, columns: int = 80) -> None:
        self.style = Style(enabled=False)
        self.marks = Marks(spinner="…")
        self.echoes = echoes
        self.animates = not echoes
        self.columns = columns
        self.text = ""
        self.now: list[str] = []
        self.label = ""
        self.below = ""
        self.is_whole = True
        self.settled = 0
        self.asked = asyncio.Event()
        self.menus: list[QuestionMenu | None] = []

    def write(self, text: str) -> None:
        self.is_whole = False
        self.text += text

    def end_reply(self) -> None:
        self.is_whole = True

    def line(self, text: str = "") -> None:
        self.text += (
            ("\n" if self.text and not self.text.endswith("\n") else "") + text + "\n"
        )

    def live(self, rows: Sequence[Row]) -> None:
        self.now = [plain(row) for row in rows]

    def status(self, text: str) -> None:
        self.below = text

    def show_prompt(self) -> None:
        self.settled += 1

    last_key_at = float("-inf")

    def menu(self, menu: QuestionMenu | None) -> None:
        self.menus.append(menu)
        self.asked.set()

    async def edit(self, text: str, suffix: str) -> str:
        raise AssertionError(text)

    def ask(self, label: str, *, keys: str = "") -> None:
        self.label = label
        self.asked.set()

    def suggest(self, text: str) -> None:
        self.label = text

    async def read(self) -> TypedInput | None:
        return None

    def leave(self) -> None:
        self.label = "left"


def event(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": f"agent.{kind}", "session_id": "s", "ts": 10.0, **fields}


def viewed(*events: dict[str, Any], screen: FakeScreen | None = None) -> FakeScreen:
    screen = screen or FakeScreen()
    view = ChatView(screen, "s", clock=FakeClock(14.0))
    for one in events:
        view.on_event(one)
    return screen


def test_what_a_check_found_stands_apart_from_the_answers_around_it() -> None:
    shown = viewed(
        event("turn.started", inputs=[]),
        event("message.delta", text="It is done.\n"),
        event("turn.checked", ok=False, detail="Check failed: make test"),
        event("message.delta", text="Now it is.\n"),
    )
    assert "It is done.\n\nCheck failed: make test\n\nNow it is." in shown.text


def test_a_picture_that_is_left_out_is_said() -> None:
    detail = "A picture was left out. Choose a model that can see."
    assert (
        detail
        in viewed(
            event("picture.withheld", sources=("a.png",), why="refused", detail=detail)
        ).text
    )


@pytest.mark.parametrize(("term", "shows"), [("xterm-kitty", True), ("tmux", False)])
def test_a_made_picture_is_shown_where_the_terminal_can(
    term: str, shows: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pillow = pytest.importorskip("PIL.Image")
    path = tmp_path / "cat.png"
    pillow.new("RGB", (4, 3)).save(path)
    monkeypatch.delenv("TMUX", raising=False)
    monkeypatch.delenv("STY", raising=False)
    monkeypatch.setenv("TERM", term)
    arguments = '{"prompt": "a cat"}'
    call: dict[str, Any] = {"call_id": "c", "name": "image_generate"}
    image = {"source": str(path), "media_type": "image/png", "withheld": True}
    text = viewed(
        event("tool.started", arguments=arguments, **call),
        event("tool.finished", text="Saved.", ok=True, images=[image], **call),
    ).text
    assert "Draw a cat" in text
    assert str(path) in text
    assert ("\x1b_Ga=T,f=100" in text) is shows


SAID = event("message.user", text="hello\nyou", seq=2)
STARTED = event("turn.started", inputs=[2])
ENDED = event(
    "turn.ended",
    reason="done",
    ts=11.5,
    usage={"input_tokens": 1000, "output_tokens": 20, "cost_usd": 0.5},
)


@pytest.mark.parametrize("outlives", [True, False])
def test_a_child_agent_that_outlives_the_turn_is_not_ended_silently(
    outlives: bool,
) -> None:
    gone = {
        **event("child.ended", child="20261117-aa11bb", reason="done", text="3 pears"),
        "kind": "delegate",
        "title": "count",
    }
    shown = viewed(SAID, STARTED, *((ENDED, gone) if outlives else (gone, ENDED))).text
    assert ("Child agent aa11bb (count) done: 3 pears" in shown) is outlives


def test_a_whole_turn() -> None:
    screen = viewed(
        SAID,
        STARTED,
        event(
            "tool.started", call_id="c", name="read_file", arguments='{"path": "a.py"}'
        ),
        event("tool.finished", call_id="c", name="read_file", ts=10.2),
        event("message.delta", text="It is "),
        event("message.delta", text="short."),
        event("message.assistant", text="It is short."),
        ENDED,
    )
    assert screen.text == (
        "› hello\n  you\n\n✓ Read a.py 200 ms\n\nIt is short.\n1.5 s · 1,020 tokens · $0.50\n\n"
    )
    assert screen.now == []
    assert screen.settled == 1


def test_what_is_text_is_shown_and_for_how_long() -> None:
    assert viewed(SAID, STARTED).now == ["… thinking 4.0 s"]
    started = event(
        "tool.started",
        call_id="c",
        name="terminal",
        arguments='{"command": "make"}',
        ts=12.0,
    )
    progress = event("tool.progress", call_id="c", text="one\ntwo\nthree\nfour\n")
    shown = viewed(SAID, STARTED, started, progress).now
    assert shown == ["… Run make 2.0 s", "  │ two", "  │ three", "  │ four"]


def test_messages_that_wait_are_shown() -> None:
    more = [event("message.user", text=f"more {seq}", seq=seq) for seq in range(5, 10)]
    screen = viewed(SAID, STARTED, event("message.delta", text="x"), *more)
    assert screen.now == [
        "  queued › more 5",
        "  queued › more 6",
        "  queued › more 7",
        "  and 2 more",
    ]


def test_thinking_is_shown_while_it_lasts() -> None:
    thought = event("reasoning.delta", text="First this.\nThen that.")
    assert viewed(SAID, STARTED, thought).now == ["… thinking 4.0 s", "  │ Then that."]
    assert viewed(SAID, STARTED, thought, event("message.delta", text="So")).now == []


def test_words_before_a_call_are_shown_once() -> None:
    screen = viewed(
        STARTED,
        event("message.delta", text="Let me."),
        event("tool.generating", call_id="c", name="terminal"),
        event("message.assistant", text="Let me."),
    )
    assert screen.text.count("Let me.") == 1


DIFF = "Edited a.py:\n@@ -1,1 +1,1 @@\n-old\n+new"
EDIT = event(
    "tool.started", call_id="c", name="edit_file", arguments='{"path": "a.py"}'
)


def test_a_diff_is_shown_with_the_call_that_made_it() -> None:
    done = event("tool.finished", call_id="c", name="edit_file", text=DIFF)
    assert (
        viewed(STARTED, EDIT, done).text
        == "✓ Edit a.py +1 -1 0 ms\n  │ 1 - old\n  │ 1 + new\n"
    )


async def test_a_diff_that_was_approved_is_not_shown_again() -> None:
    asked = event(
        "approval.requested",
        call_id="c",
        name="edit_file",
        arguments="{}",
        summary=DIFF,
    )
    answered = event("approval.answered", call_id="c", answer="once", by="cli")
    done = event("tool.finished", call_id="c", name="edit_file", text=DIFF)
    assert (
        viewed(STARTED, EDIT, asked, answered, done).text
        == "Allowed once.\n✓ Edit a.py +1 -1 0 ms\n"
    )


async def test_a_call_that_waits_says_so() -> None:
    asked = event(
        "approval.requested", call_id="c", name="edit_file", arguments="{}", summary="x"
    )
    assert viewed(STARTED, EDIT, asked).now == ["? Edit a.py waiting for you"]


def test_a_command_that_sends_a_message_is_shown_once_and_apart_from_the_one_before() -> (
    None
):
    screen = FakeScreen()
    view = ChatView(screen, "s", clock=FakeClock(14.0))
    view.echo_command("/status")
    view.echo_command("/init")
    sent = '/init\n\n<command name="init">\nLook.\n</command>'
    view.on_event(event("message.user", text=sent, seq=2))
    view.on_event(STARTED)
    assert screen.text == "› /status\n\n› /init\n\n"
    view.on_event(event("message.user", text="/init", seq=3))
    view.on_event(event("turn.started", inputs=[3]))
    assert screen.text.count("› /init") == 2


def test_a_command_of_the_persons_own_that_prints_nothing_says_so() -> None:
    screen = FakeScreen()
    view = ChatView(screen, "s", clock=FakeClock(14.0))
    view.show_own_command("true")
    view.tick()
    assert screen.now[0].endswith("running")
    view.show_own_result("true", "", "exit code 0", 0)
    view.show_own_command("false")
    view.show_own_result("false", "", "exit code 1", 1)
    assert screen.text == "$ true\n  │ (no output)\n\n$ false\n✗ exit code 1\n\n"


def test_a_long_message_is_echoed_in_short() -> None:
    screen = viewed(
        event("message.user", text="\n".join(map(str, range(30))), seq=2), STARTED
    )
    assert screen.text.splitlines()[-2] == "  … 23 more lines"


def test_what_was_attached_is_not_echoed() -> None:
    text = 'read @a\n\n<attached path="a">\nsecret\n</attached>'
    assert (
        viewed(event("message.user", text=text, seq=2), STARTED).text == "› read @a\n\n"
    )


def test_the_status_line_follows_what_replies_used() -> None:
    reply = event(
        "message.assistant",
        text="x",
        usage={"input_tokens": 1500, "output_tokens": 500, "cost_usd": 0.25},
    )
    assert viewed(STARTED, reply).below == "2k tokens · $0.25"


def test_a_screen_that_echoes_shows_nothing_twice() -> None:
    assert "hello" not in viewed(SAID, STARTED, screen=FakeScreen(echoes=True)).text


def test_an_answer_that_was_not_streamed_is_shown_whole() -> None:
    assert (
        viewed(STARTED, event("message.assistant", text="At once.")).text == "At once."
    )


DELTA = event("message.delta", text="half a wo")


@pytest.mark.parametrize(
    "last",
    [
        event("message.assistant", text="half a wo"),
        event("model.retried", reason="server"),
        ENDED,
    ],
)
def test_the_screen_is_told_when_what_was_written_is_whole(
    last: dict[str, Any],
) -> None:
    assert not viewed(STARTED, DELTA).is_whole
    assert viewed(STARTED, DELTA, last).is_whole


def test_troubles_are_said() -> None:
    screen = viewed(
        STARTED,
        event(
            "model.retried", reason="server", detail="500 from the service", delay=2.0
        ),
        event(
            "reply.rejected", reason="empty", detail="the model answered with nothing"
        ),
        event("reply.rejected", reason="bad_arguments", detail="said by the call"),
        event("turn.ended", reason="failed", detail="gave up", ts=12.0),
    )
    assert "said by the call" not in screen.text
    assert "Retrying in 2.0 s: 500 from the service" in screen.text
    assert "The reply could not be used: the model answered with nothing" in screen.text
    assert "\nGave up\n" in screen.text


def test_nudges_and_other_sessions_are_not_shown() -> None:
    nudge = event("message.user", text="go on", seq=3, origin="hermes")
    other = {**event("message.delta", text="elsewhere"), "session_id": "t"}
    screen = viewed(nudge, event("turn.started", inputs=[3]), other)
    assert screen.text == ""


def test_a_plan_is_shown_with_its_steps() -> None:
    done = event(
        "tool.finished",
        call_id="c",
        name="todo",
        text="[x] one\n[>] two\n[ ] three\n(1 of 3 done)",
    )
    screen = viewed(STARTED, done)
    plan = ["Plan 1 of 3 done", "  ✓ one", "  › two", "  · three"]
    assert (screen.text, screen.now[1:]) == ("", plan)
    later = done | {"text": "[x] one\n[x] two\n[x] three\n(3 of 3 done)"}
    assert viewed(STARTED, done, later, ENDED).now == []
    printed = viewed(STARTED, done, screen=FakeScreen(echoes=True))
    assert printed.text.splitlines() == plan


def test_a_plan_takes_one_row_once_a_turn_has_left_it_alone() -> None:
    plan = event(
        "tool.finished",
        call_id="c",
        name="todo",
        text="[>] one\n[ ] two\n(0 of 2 done)",
    )
    whole = ["Plan 0 of 2 done", "  › one", "  · two"]
    assert viewed(STARTED, plan, ENDED).now == whole
    assert viewed(STARTED, plan, ENDED, STARTED, ENDED).now == ["Plan 0 of 2 done"]
    again = viewed(STARTED, plan, ENDED, STARTED, ENDED, STARTED, plan, ENDED)
    assert again.now == whole


def test_a_plan_goes_with_the_turn_that_made_it() -> None:
    first, second = (
        event("tool.finished", call_id="c", name="todo", text=f"[>] {text}", seq=seq)
        for text, seq in (("one", 3), ("two", 7))
    )
    undone = {**event("undone", since=6), "type": "session.undone"}
    redone = {**event("redone", undone=9), "type": "session.redone"}
    turns = (STARTED, first, ENDED, STARTED, second, ENDED, undone)
    assert viewed(*turns).now == ["Plan 0 of 1 done", "  › one"]
    assert viewed(*turns, redone).now == ["Plan 0 of 1 done", "  › two"]
    assert viewed(STARTED, second, ENDED, undone).now == []


async def test_the_answer_to_a_question_is_shown() -> None:
    asked = event("question.asked", call_id="q", text="Which?", options=["red"])
    screen = viewed(
        STARTED, asked, event("question.answered", call_id="q", text="red", by="cli")
    )
    assert screen.text == "You: red\n"


def test_a_verdict_names_its_call_if_several_wait() -> None:
    started = [
        event(
            "tool.started",
            call_id=one,
            name="terminal",
            arguments=f'{{"command": "{one}"}}',
        )
        for one in ("make", "curl")
    ]
    said = event("approval.answered", call_id="curl", answer="deny", by="cli")
    assert viewed(STARTED, *started, said).text == "Run curl: Not allowed.\n"
    assert viewed(STARTED, started[1], said).text == "Not allowed.\n"


async def test_a_question_of_a_child_agent_is_put_and_answered_there() -> None:
    screen = FakeScreen()
    view = ChatView(screen, "s")
    child = {"session_id": "child", "root_session_id": "s"}
    asked = (
        event(
            "approval.requested",
            call_id="c",
            name="terminal",
            arguments="{}",
            summary="make",
        )
        | child
    )
    view.on_event(asked)
    view.on_event(
        event(
            "approval.requested",
            call_id="d",
            name="terminal",
            arguments="{}",
            summary="x",
        )
        | {"session_id": "t"}
    )
    await asyncio.wait_for(screen.asked.wait(), 5)
    given: list[PersonAnswer] = []

    async def give(answer: PersonAnswer) -> bool:
        given.append(answer)
        view.on_event(event("approval.answered", call_id="c", answer="once") | child)
        return True

    assert await view.questions.take("y", give)
    assert given == [PersonAnswer("c", "once", "", "child", approval_hash(asked))]
    assert view.questions.current is None


def test_nothing_seems_to_go_on_between_the_answer_and_the_end_of_the_turn() -> None:
    assert (
        viewed(STARTED, DELTA, event("message.assistant", text="half a wo")).now == []
    )
    asked = event(
        "message.assistant",
        text="x",
        tool_calls=[{"id": "c", "name": "t", "arguments": "{}"}],
    )
    assert viewed(STARTED, DELTA, asked).now == ["… thinking 4.0 s"]
    nudged = event("reply.rejected", reason="empty")
    assert viewed(STARTED, event("message.assistant", text=""), nudged).now == [
        "… thinking 4.0 s"
    ]


def test_a_turn_whose_beginning_was_not_seen_has_no_duration() -> None:
    done = event("tool.finished", call_id="c", name="terminal", text="x\n[exit code 0]")
    assert viewed(done, ENDED).text == "✓ Run\n  │ x\n1,020 tokens · $0.50\n\n"


FAILED = "a\nb\nc\nd\ne\nf: not permitted\n[exit code 2; now in /x]"
HINT = "\n[The sandbox may have stopped this: a command has no network.]"


def test_a_command_that_failed_shows_how_it_ended_and_its_last_lines() -> None:
    started = event(
        "tool.started", call_id="c", name="terminal", arguments='{"command": "make"}'
    )
    done = event("tool.finished", call_id="c", name="terminal", ok=False, text=FAILED)
    expected = [
        "✗ Run make 0 ms · exit code 2",
        "  │ a",
        "  │ b",
        "  │ c",
        "  │ d",
        "  │ e",
        "  │ f: not permitted",
    ]
    assert viewed(STARTED, started, done).text.splitlines() == expected
    stopped = viewed(STARTED, started, done | {"text": FAILED + HINT}).text.splitlines()
    assert stopped == [*expected, "  │ Probably stopped by the sandbox."]


def test_a_message_is_shown_at_once_and_what_steers_can_be_told_from_what_waits() -> (
    None
):
    assert viewed(SAID).now == ["› hello you"]
    steering = event("message.user", text="left!", seq=5, delivery="steer")
    later = event("message.user", text="later", seq=6)
    assert viewed(SAID, STARTED, DELTA, steering, later).now == [
        "  steers › left!",
        "  queued › later",
    ]


def test_a_stream_that_stalls_looks_busy() -> None:
    clock, screen = FakeClock(14.0), FakeScreen()
    view = ChatView(screen, "s", clock=clock)
    for one in (SAID, STARTED, DELTA):
        view.on_event(one)
    clock.advance(1.5)
    view.tick()
    assert screen.now == ["… writing 5.5 s"]
    view.on_event(event("message.delta", text="rd"))
    view.tick()
    assert screen.now == []


def test_messages_that_are_held_stay_on_the_screen_and_say_how_they_go_on() -> None:
    screen = FakeScreen()
    view = ChatView(screen, "s", clock=FakeClock(14.0))
    for one in (SAID, STARTED, event("message.user", text="more", seq=5)):
        view.on_event(one)
    view.hold()
    view.on_event(event("turn.ended", reason="interrupted", ts=12.0))
    assert "1 message not sent yet. Press Enter to send it." in screen.text
    assert "tokens" not in screen.text
    assert screen.now == ["  held › more"]
    view.on_event(event("turn.started", inputs=[5]))
    assert not view.held


def test_a_reply_that_is_ahead_of_the_result_before_it_is_shown_below_it() -> None:
    started = event(
        "tool.started", call_id="c", name="read_file", arguments='{"path": "a.py"}'
    )
    done = event("tool.finished", call_id="c", name="read_file")
    screen = viewed(
        STARTED,
        started,
        event("message.delta", text="It "),
        event("message.delta", text="is "),
        done,
    )
    assert screen.text == "✓ Read a.py 0 ms\n\nIt is "
    reply = event("message.assistant", text="It is.")
    assert (
        viewed(STARTED, started, event("message.delta", text="It is."), reply).text
        == "It is."
    )


def test_a_patch_names_its_files_on_its_card() -> None:
    patch = "*** Begin Patch\\n*** Update File: a.py\\n*** Add File: b.txt\\n+x\\n*** End Patch"
    started = event(
        "tool.started",
        call_id="c",
        name="apply_patch",
        arguments=f'{{"patch": "{patch}"}}',
        ts=14.0,
    )
    assert viewed(STARTED, started).now == ["… Edit a.py, b.txt"]


def test_that_room_was_made_by_itself_is_said_and_that_it_could_not_be() -> None:
    made = {
        "type": "session.compacted",
        "session_id": "s",
        "ts": 11.0,
        "before": 120_000,
        "after": 30_000,
    }
    failed = {
        "type": "session.compaction_failed",
        "session_id": "s",
        "ts": 11.0,
        "detail": "the summary was empty",
    }
    trimmed = {
        "type": "session.trimmed",
        "session_id": "s",
        "ts": 11.0,
        "call_ids": ["a", "b"],
    }
    shown = " ".join(viewed(event("turn.started"), made, failed, trimmed).text.split())
    assert "its middle was summarized: about 120,000 tokens became 30,000." in shown
    assert "could not be shortened: the summary was empty. Nothing was removed" in shown
    assert "it no longer sees 2 old results." in shown
    assert viewed(made).text == ""  # /compress says it itself


def test_a_turn_that_is_out_of_steps_says_how_to_go_on() -> None:
    detail = "stopped after 3 steps (budget.max_steps). Say “go on” to continue."
    shown = viewed(
        event("turn.started"), event("turn.ended", reason="budget", detail=detail)
    ).text
    assert "Stopped after 3 steps (budget.max_steps). Say “go on” to continue." in shown


def call(number: int, name: str, arguments: str, **result: Any) -> list[dict[str, Any]]:
    started = event(
        "tool.started", call_id=f"c{number}", name=name, arguments=arguments
    )
    finished = event(
        "tool.finished", call_id=f"c{number}", name=name, ts=10.5, **result
    )
    return [started, finished]


def test_calls_that_read_are_shown_as_one_line() -> None:
    reads = [
        one
        for number, path in enumerate("abcdea")
        for one in call(number, "read_file", f'{{"path": "{path}.py", "offset": 7}}')
    ]
    search = call(9, "search_files", '{"pattern": "def main", "path": "src"}')
    screen = viewed(STARTED, *reads, *search)
    assert screen.text == ""
    line = (
        "✓ Read 5 files, searched 1 time  a.py from line 7, b.py from line 7, c… 500 ms"
    )
    assert screen.now[0] == line
    screen = viewed(STARTED, *reads, *search, event("message.delta", text="Done."))
    assert screen.text == f"{line}\n\nDone."
    assert screen.now == []


def test_a_failed_call_stands_alone_below_those_before_it() -> None:
    screen = viewed(
        STARTED,
        *call(1, "read_file", '{"path": "a"}'),
        *call(2, "read_file", '{"path": "b"}', ok=False, text="There is no b."),
    )
    assert screen.text == ("✓ Read a 500 ms\n✗ Read b 500 ms · There is no b.\n")


def test_why_a_call_failed_is_not_cut() -> None:
    why = "There is no b here, nor in any of the folders that were searched for it."
    screen = viewed(STARTED, *call(2, "read_file", '{"path": "b"}', ok=False, text=why))
    heading, *below = screen.text.strip().split("\n")
    assert heading == "✗ Read b 500 ms"
    assert " ".join(line.removeprefix("  │ ") for line in below) == why


def test_long_output_is_folded_and_kept_whole() -> None:
    output = "".join(f"line {number}\n" for number in range(10_000))
    done = call(1, "terminal", '{"command": "seq"}', text=f"{output}[exit code 0]")
    screen = FakeScreen()
    view = ChatView(screen, "s", clock=FakeClock(14.0))
    for one in (STARTED, *done):
        view.on_event(one)
    assert screen.text.splitlines() == [
        "✓ Run seq 500 ms",
        "  │ … 9,997 more lines (Ctrl-O)",
        *(f"  │ line {number}" for number in (9_997, 9_998, 9_999)),
    ]
    assert ("  │ line 4711") in map(plain, view.details.rows(79, Marks()))


def test_thoughts_are_folded_and_kept() -> None:
    screen = FakeScreen()
    view = ChatView(screen, "s", clock=FakeClock(14.0))
    thought = [
        event("reasoning.delta", text="first\n", ts=10.0),
        event("reasoning.delta", text="second", ts=13.0),
    ]
    for one in (STARTED, *thought):
        view.on_event(one)
    assert screen.now == ["… thinking 4.0 s", "  │ second"]
    view.on_event(event("message.delta", text="Yes."))
    assert screen.text == "· Thought for 3.0 s (Ctrl-O)\n\nYes."
    assert "  │ first" in map(plain, view.details.rows(79, Marks()))


def test_quiet_leaves_out_what_succeeds() -> None:
    screen = FakeScreen()
    view = ChatView(screen, "s", quiet=True, clock=FakeClock(14.0))
    failed = call(2, "terminal", '{"command": "make"}', ok=False, text="[exit code 2]")
    done = call(1, "edit_file", '{"path": "a"}', text="Edited a:\n@@ -1 +1 @@\n-a\n+b")
    for one in (STARTED, *done, *failed):
        view.on_event(one)
    assert screen.text == "✗ Run make 500 ms · exit code 2\n"


def test_quiet_keeps_what_was_said_before_and_after_a_call_apart() -> None:
    screen = FakeScreen()
    view = ChatView(screen, "s", quiet=True, clock=FakeClock(14.0))
    said = event("message.assistant", text="Let me look.\n", tool_calls=[])
    for one in (STARTED, said, *call(1, "read_file", '{"path": "a"}'), said):
        view.on_event(one)
    assert screen.text == "Let me look.\n\nLet me look.\n"


def test_facts_on_a_line_are_read_as_a_list_by_a_screen_reader() -> None:
    assert LINEAR_MARKS.separator == ", "
    assert Marks().separator == " · "


def test_a_note_is_set_apart_like_a_command() -> None:
    screen = FakeScreen()
    view = ChatView(screen, "s")
    view.show_note("Noted: tea.")
    view.echo_command("/help")
    assert screen.text == "Noted: tea.\n\n› /help\n"
