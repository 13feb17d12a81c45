"""Signs of all languages reach the grammar only in a form that its scanner can look up, and come back whole."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.tools.policy.shell_parser import Unreadable, read_script
from hermes.tools.policy.unicode_escapes import escape, unescape


@given(st.text(alphabet=st.characters(codec=None), max_size=80))
def test_every_text_comes_back(text: str) -> None:
    assert unescape(escape(text)) == text


@given(st.text(max_size=80))
def test_the_grammar_sees_only_signs_of_its_tables(text: str) -> None:
    assert all(ord(sign) < 0x100 for sign in escape(text).decode())


@settings(deadline=None)
@given(
    st.lists(
        st.one_of(
            st.sampled_from(list("{}$`'\"\\ \n;<(#![")),
            st.characters(min_codepoint=0x80),
        ),
        max_size=30,
    )
)
def test_no_sign_ends_the_process(signs: list[str]) -> None:
    try:
        read_script("".join(signs), {})
    except Unreadable:
        return


@pytest.mark.parametrize(
    "word", ["größe.txt", "文件", "😀", "a\u00a0b", "\u2003", "ﬁ", "Àÿ", "\U0010ffff"]
)
def test_words_keep_their_signs(word: str) -> None:
    (command,) = read_script(f'cat {word} "{word}"', {}).commands
    assert [one.text for one in command.words] == ["cat", word, word]
