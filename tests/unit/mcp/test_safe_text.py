"""Text of others, made safe."""

from hypothesis import given
from hypothesis import strategies as st

from hermes.mcp.safe_text import Redaction, one_line, plain


@given(st.text())
def test_nothing_is_left_that_drives_a_terminal_or_hides(text: str) -> None:
    kept = plain(text)
    assert not set(kept) & {
        "\x1b",
        "\x9b",
        "\x07",
        "\u202e",
        "\u200b",
        "\ufeff",
        "\U000e0041",
    }
    assert plain(kept) == kept


def test_words_in_every_script_stay() -> None:
    for words in (
        "héllo wörld",
        "日本語",
        "سلام",
        "नमस्ते",
        "tab\tand\nline",
        "👩\u200d💻",
    ):
        assert plain(words) == words


def test_one_line_is_short() -> None:
    assert one_line("a\n b\t c") == "a b c"
    assert len(one_line("x" * 10_000, 50)) == 50


def test_secrets_are_taken_out_the_longest_first() -> None:
    redact = Redaction(["secret-1", "secret-1-long", "x"])
    assert redact("secret-1-long and secret-1 and x") == "******** and ******** and x"
    assert "secret" not in repr(redact)
