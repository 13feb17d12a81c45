"""How a reply ends that hit the output limit: complete all the same, or cut off."""

import pytest

from hermes.core.reply_check import ends_naturally


@pytest.mark.parametrize(
    "text",
    ["Done.", "完成。", "Done ✅", "☺", "Done ☑️", "❤️", "⭐", "👍🏽", "👩‍💻", "🇩🇪", "1️⃣", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "really‼", "©", "^"],
)  # fmt: skip
def test_a_sentence_or_an_emoji_is_an_ending(text: str) -> None:
    assert ends_naturally(text)


@pytest.mark.parametrize("text", [*"ℹ↔◻◼◽◾⤴⤵〰〽", "ℹ️", "↔️", "〰️"])
def test_an_emoji_that_unicode_counts_among_letters_and_signs_is_an_ending(
    text: str,
) -> None:
    assert ends_naturally(f"Done {text}")


@pytest.mark.parametrize("text", ["\U0001fa77", "\U0001fae8", "\U0001faff"])
def test_an_emoji_that_is_newer_than_this_python_is_an_ending(text: str) -> None:
    assert ends_naturally(f"Done {text}")


@pytest.mark.parametrize("text", ["", "and then", "完", "𠀀", "price is $", "a +"])
def test_a_word_is_none(text: str) -> None:
    assert not ends_naturally(text)
