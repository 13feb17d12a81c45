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
    assert FULL.text(80, "·") == "gpt-5 · 25% of 400k · $0.42 · ask · bubblewrap"


def test_the_last_parts_go_first() -> None:
    assert FULL.text(39, "·") == "gpt-5 · 25% of 400k · $0.42 · ask"
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
