"""The status line."""

from hermes.surfaces.tui.status_line import StatusLine

FULL = StatusLine(
    model="gpt-5",
    window=400_000,
    context=100_000,
    cost=0.42,
    mode="ask",
    sandbox="bubblewrap",
)


def test_everything_when_there_is_room() -> None:
    assert FULL.text(80, "·") == "gpt-5 · ask · 25% of 400k · $0.42 · bubblewrap"


def test_the_last_parts_go_first() -> None:
    assert FULL.text(39, "·") == "gpt-5 · ask · 25% of 400k · $0.42"
    assert FULL.text(3, "·") == "gp…"


def test_a_reply_of_codex_names_the_engine() -> None:
    foot = StatusLine(model="codex")
    foot.on_event(
        {"type": "agent.message.assistant", "provider": "codex", "model": "gpt-5.5"}
    )
    assert foot.text(80, "-") == "codex gpt-5.5"
    foot.on_event(
        {"type": "agent.message.assistant", "provider": "openai", "model": "gpt-5"}
    )
    assert foot.text(80, "-") == "gpt-5"


def test_an_unknown_window_tells_the_tokens() -> None:
    assert StatusLine(model="m", context=1234).text(80, "-") == "m - 1k tokens"


def test_a_price_that_is_not_known_is_said() -> None:
    foot = StatusLine(model="m")
    foot.on_event({"type": "agent.message.assistant", "usage": {"input_tokens": 5}})
    assert foot.text(80, "·") == "m · 5 tokens · cost unknown"
    foot.on_event({"type": "agent.auxiliary.called", "usage": {"cost_usd": 0.5}})
    assert foot.spent() == "$0.50 + unknown"


def test_children_that_work_are_counted() -> None:
    foot = StatusLine(model="m", branch="main", script="mine")
    for child in ("a", "b"):
        foot.on_child_event({"type": "agent.turn.started", "session_id": child})
    assert foot.text(80, "·") == "m · main · 2 agents · mine"
    assert foot.on_child_event({"type": "agent.turn.ended", "session_id": "a"})
    assert not foot.on_child_event({"type": "agent.turn.ended", "session_id": "a"})
    assert foot.text(80, "·") == "m · main · 1 agent · mine"


def test_the_profile_is_shown_unless_it_is_the_default_one() -> None:
    assert StatusLine(model="m", profile="profile work").text(80, "-") == "m - profile work"  # fmt: skip
    assert StatusLine(model="m").text(80, "-") == "m"
