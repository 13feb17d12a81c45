"""Words: the same cut for what is stored and what is asked, in any script."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.store.search import snippet
from hermes.store.tokenizer import match_expression, split


@pytest.mark.parametrize(
    ("text", "words", "names"),
    [
        ("Hello, World!", ["hello", "world"], []),
        ("getUserById", ["get", "user", "by", "id"], ["getuserbyid"]),
        ("HTTPServer2", ["http", "server2"], ["httpserver2"]),
        ("snake_case.name", ["snake", "case", "name"], []),
        ("SCREAMING_CASE Title", ["screaming", "case", "title"], []),
        ("天气很好", ["天气", "气很", "很好", "好"], []),
        ("用Python写", ["用", "python", "写"], []),
        ("ｆｕｌｌ ﬁne Straße", ["full", "fine", "strasse"], []),
        ("Café CAFÉ İstanbul", ["cafe", "cafe", "istanbul"], []),
        ("한국어 が", ["한국", "국어", "어", "が"], []),
        ("Foo™ 0㋀", ["foo", "tm", "0", "1", "月"], []),
        ("", [], []),
        ("-- !! 🙂", [], []),
    ],
)
def test_text_is_cut_into_words(text: str, words: list[str], names: list[str]) -> None:
    assert split(text) == (words, names)


@given(text=st.text(st.sampled_from("aZbY19_. "), max_size=40))
def test_the_quick_way_for_ascii_cuts_as_the_other_one_does(text: str) -> None:
    words, names = split(f"{text} é")
    assert split(text) == (words[:-1], names)


@pytest.mark.parametrize(
    ("query", "expression"),
    [
        (
            "one two",
            '(words : "one" OR names : "one") AND (words : "two" OR names : "two")',
        ),
        ('"one two"', '(words : "one two")'),
        (
            "a -b -c",
            '((words : "a" OR names : "a")) NOT ((words : "b" OR names : "b") OR (words : "c" OR names : "c"))',
        ),
        ("getUser", '(words : "get user" OR names : "getuser")'),
        ("fooBar.bazQux", '(words : "foo bar baz qux")'),
        ("天", '(words : "天" * OR names : "天" *)'),
        ("好abc", '(words : "好 abc")'),
        ("abc好", '(words : "abc 好" *)'),
        ("-only -excluded", ""),
        ('"" - !', ""),
    ],
)
def test_a_query_becomes_an_expression(query: str, expression: str) -> None:
    assert match_expression(query, prefix=False) == expression


def test_beginnings_count_for_unquoted_words_of_two_letters_or_more() -> None:
    assert "*" in match_expression("be", prefix=True)
    for query in ("b", '"begin"', "-begin end1"):
        loose = match_expression(query, prefix=True)
        assert "begin" not in loose or 'begin" *' not in loose
    assert match_expression("b", prefix=True) == match_expression("b", prefix=False)


@settings(deadline=None)
@given(text=st.text(max_size=5000), query=st.text(max_size=100))
def test_a_snippet_is_one_short_line(text: str, query: str) -> None:
    line = snippet(text, query)
    assert len(line) <= 162
    assert "\n" not in line


def test_a_snippet_shows_the_place() -> None:
    assert (
        "needle" in snippet("hay " * 1000 + "Needle" + " hay" * 1000, "needle").lower()
    )


@pytest.mark.parametrize(
    ("written", "asked"),
    [("كِتَابٌ", "كتاب"), ("أمس", "امس"), ("שָׁלוֹם", "שלום"), ("عـــربي", "عربي")],
)
def test_vowel_signs_and_stretches_that_most_people_leave_out_do_not_count(
    written: str, asked: str
) -> None:
    assert split(written).words == split(asked).words == [asked]
