"""When a chat notifies its user, and with which sequences; and what /copy sends."""

import base64
from collections.abc import Mapping

import pytest
from prompt_toolkit.input.vt100_parser import Vt100Parser
from prompt_toolkit.key_binding import KeyPress

from hermes.settings.sections import NotifySettings
from hermes.surfaces.tui.clipboard_copy import MAX_OSC_BYTES, code_of, osc_52
from hermes.surfaces.tui.notifications import Focus, Notifier, focus_keys


class Watched:
    """A notifier, what it sent, and a clock that is set by hand."""

    def __init__(
        self,
        settings: NotifySettings | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self.now = 0.0
        self.sent: list[str] = []
        self.focus = Focus(lambda: self.now)
        quiet = NotifySettings(title=False, after=0)
        self.notifier = Notifier(
            settings or quiet, self.sent.append, environ or {}, self.focus
        )

    def end_turn(self, seconds: float = 60.0) -> None:
        about = {"session_id": "s"}
        self.notifier.on_event({"type": "agent.turn.started", "ts": 0.0, **about}, "s")
        ended = {"type": "agent.turn.ended", "ts": seconds, "reason": "done", **about}
        self.notifier.on_event(ended, "s")


def test_nobody_is_notified_while_the_window_is_looked_at() -> None:
    watched = Watched()
    watched.end_turn()
    watched.focus.report(focused=True)
    watched.now = 100.0
    watched.end_turn()
    assert watched.sent == []
    watched.focus.report(focused=False)
    watched.end_turn()
    assert watched.sent == ["\a"]
    watched.focus.touch()
    watched.end_turn()
    assert watched.sent == ["\a"]


def test_without_focus_reports_somebody_who_types_nothing_is_away() -> None:
    watched = Watched()
    watched.now = 31.0
    watched.end_turn()
    assert watched.sent == ["\a"]


def test_a_question_of_the_session_or_its_child_notifies_and_short_turns_do_not() -> (
    None
):
    watched = Watched(NotifySettings(title=False, when="always", after=10))
    watched.end_turn(seconds=5)
    assert watched.sent == []
    asked = {"type": "agent.approval.requested", "summary": "rm x", "ts": 1.0}
    watched.notifier.on_event({**asked, "session_id": "other"}, "s")
    assert watched.sent == []
    watched.notifier.on_event(
        {**asked, "session_id": "child", "root_session_id": "s"}, "s"
    )
    assert watched.sent == ["\a"]


@pytest.mark.parametrize(
    ("environ", "sequence"),
    [
        ({"TERM": "xterm-kitty"}, "\x1b]99;;hi there\x1b\\"),
        ({"TERM_PROGRAM": "WezTerm"}, "\x1b]9;hi there\a"),
        ({"TERM": "foot"}, "\x1b]777;notify;Hermes;hi there\a"),
        ({"TERM": "foot", "TMUX": "x"}, "\x1bPtmux;\x1b\x1b]777;notify;Hermes;hi there\a\x1b\\"),
        ({"TERM": "xterm"}, ""),
    ],
)  # fmt: skip
def test_each_terminal_gets_its_own_sequence(
    environ: dict[str, str], sequence: str
) -> None:
    settings = NotifySettings(when="always", bell=False, title=False)
    watched = Watched(settings, environ)
    watched.notifier.notify("hi\x1b]0;\a there")
    sent = "".join(watched.sent).replace("hi ]0  there", "hi there")
    assert sent == sequence


async def test_the_title_says_what_happens_and_is_restored() -> None:
    watched = Watched(NotifySettings(when="never"))
    watched.notifier.start()
    watched.end_turn()
    await watched.notifier.close()
    assert watched.sent == [
        *("\x1b[?1004h", "\x1b[22;2t", "\x1b]2;Hermes (working)\a", "\x1b]2;Hermes\a"),
        *("\x1b[?1004l", "\x1b[23;2t"),
    ]


def test_focus_reports_are_keys_and_never_text() -> None:
    keys = focus_keys(lambda _: None)
    found: list[KeyPress] = []
    Vt100Parser(found.append).feed("a\x1b[I\x1b[Ob")
    assert [one.key for one in found] == ["a", "f23", "f24", "b"]
    assert len(keys.bindings) == 2


def test_an_answer_is_copied_through_the_terminal() -> None:
    encoded = base64.b64encode("héllo".encode()).decode()
    assert osc_52("héllo", {}) == f"\x1b]52;c;{encoded}\a"
    own = osc_52("x", {})
    assert osc_52("x", {"TMUX": "1"}) == f"{own}\x1bPtmux;\x1b{own}\x1b\\"
    assert osc_52("x" * MAX_OSC_BYTES, {}) == ""
    assert code_of("a\n```py\nx = 1\n```\nb\n~~~\ny\n~~~\n") == "y"
    assert code_of("no code") == ""
