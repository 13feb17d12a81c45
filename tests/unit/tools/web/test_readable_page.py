"""Pages: what is read of them, and as which Markdown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.tools.web.html import Tag, tokens
from hermes.tools.web.markdown import find_converter, render, to_markdown
from hermes.tools.web.readable_page import Page, read_page

BASE = "https://example.com/folder/page"
LONG = "Many words that make this the main part. " * 10


def read(markup: str) -> str:
    return render(read_page(markup, BASE))


def test_tags_attributes_and_texts_are_told_apart() -> None:
    found = list(tokens("<P Class='a b' hidden x=1>a &lt; b<br/>1 < 2</p>"))
    assert found == [
        Tag("p", attributes={"class": "a b", "hidden": "", "x": "1"}),
        *("a < b", Tag("br"), "1 ", "<", " 2", Tag("p", closing=True)),
    ]


def test_comments_and_declarations_are_left_out() -> None:
    assert list(
        tokens(
            "<!doctype html>a<!-- <b>no</b> -->b<![CDATA[ c ]]>d<?php x ?>e<!-- open"
        )
    ) == list("abde")


def test_a_script_ends_only_at_its_own_end() -> None:
    found = list(tokens("<script>if (a</b> && '<p>') </script >after"))
    assert found[1] == "if (a</b> && '<p>') "
    assert found[-1] == "after"


@given(st.text(alphabet="<>/!-=\"' abpsctrip&;", max_size=200))
def test_whatever_is_written_something_is_read(markup: str) -> None:
    page = read_page(markup, BASE)
    render(page)
    assert read_page(page.to_html(), BASE).content is not None


def reads(markup: str) -> int:
    """How many characters the tokens of a page hold: what a linear reader looks at."""
    return sum(len(token) for token in tokens(markup) if isinstance(token, str))


@pytest.mark.parametrize(
    "part",
    ["<!--", "<a ", '<a x="', "<title>", "<script></scrip", "</", "<a x=", "&#x"],
)
def test_a_page_made_to_be_slow_gives_few_tokens(part: str) -> None:
    """One unclosed start takes the rest, so nothing is looked at again and again."""
    assert reads(part * 50_000) <= len(part) * 50_000
    assert sum(1 for _ in tokens(part * 50_000)) <= 100_001


def test_the_title_is_read_and_menus_scripts_and_hidden_parts_are_not() -> None:
    page = read_page(
        "<head><title>A &amp; B</title><style>p{}</style></head><nav>menu</nav><p>shown</p>"
        "<p hidden>one<p>seen</p><div style='display: none'>two<div>three</div></div><span aria-hidden=true>four</span>"
        "<svg><text>five</text></svg><template>six</template><footer>seven</footer>",
        BASE,
    )
    assert page.title == "A & B"
    assert render(page).split() == ["shown", "seen"]


def test_the_main_part_is_taken_alone_when_it_holds_the_words() -> None:
    assert read(
        f"<header>Top</header><main><h1>Title</h1>{LONG}</main><div>beside</div>"
    ).startswith("# Title")
    assert "beside" not in read(f"<main>{LONG}</main><div>beside</div>")
    assert "beside" in read("<main>short</main><div>beside</div>")


def test_a_page_of_nothing_but_menus_is_read_all_the_same() -> None:
    assert "only this" in read("<nav>only this</nav>")


def test_links_become_absolute_and_other_schemes_are_dropped() -> None:
    text = read(
        "<a href='../x?a=1&amp;b=2'>one</a> <a href='javascript:alert(1)'>two</a> <a href='//o.org'>three</a>"
    )
    assert text == "[one](https://example.com/x?a=1&b=2) two [three](https://o.org)"
    assert (
        read("<base href='https://other.org/'><a href=x>y</a>")
        == "[y](https://other.org/x)"
    )


def test_headings_lists_code_and_tables_are_rendered_without_the_library() -> None:
    markup = (
        "<h2>Head</h2><p>a <b>bold</b> <code>word</code></p><ul><li>one<ol><li>two<li>three</ol></ul>"
        "<pre>x = 1\n  y</pre><table><tr><th>a<th>b<tr><td>1<td>2</table>"
    )
    expected = "## Head\n\na **bold** `word`\n\n- one\n  1. two\n  2. three\n\n```\nx = 1\n  y\n```\n\na | b\n1 | 2"
    assert to_markdown(read_page(markup, BASE), find=lambda: None) == expected


def test_the_library_makes_tables_and_code_blocks() -> None:
    if find_converter() is None:
        pytest.skip("html-to-markdown is not installed: the `markdown` extra")
    markup = "<h2>Head</h2><table><tr><th>a<th>b<tr><td>1<td>2</table><pre><code class=language-py>x</code></pre>"
    text = to_markdown(read_page(markup, BASE))
    assert text.startswith("## Head")
    assert "| 1 | 2 |" in text
    assert "```py\nx\n```" in text


def test_a_page_that_is_too_deep_for_the_library_is_rendered_by_ourselves() -> None:
    page = Page("", [*[Tag("div")] * 20_000, "deep inside"])
    assert to_markdown(page) == "deep inside"
