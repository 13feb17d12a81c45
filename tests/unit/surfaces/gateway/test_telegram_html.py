"""Markdown as Telegram's HTML: what is written is readable, tags are nested, nothing gets through unescaped."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.surfaces.gateway.adapters.text_formats import telegram_html


@pytest.mark.parametrize(
    ("markdown", "html"),
    [
        ("plain", "plain"),
        ("**bold** and *it* and ~~gone~~", "<b>bold</b> and <i>it</i> and <s>gone</s>"),
        ("`a < b`", "<code>a &lt; b</code>"),
        ("snake_case_name stays", "snake_case_name stays"),
        ("2 * 3 * 4", "2 * 3 * 4"),
        ("# Title", "<b>Title</b>"),
        ("## A **b**", "<b>A b</b>"),
        ("- one\n- two", "• one\n• two"),
        ("> said\n> so", "<blockquote>said\nso</blockquote>"),
        ("[x](https://a.test/?q=1&r=2)", '<a href="https://a.test/?q=1&amp;r=2">x</a>'),
        ("[x](javascript:alert)", "[x](javascript:alert)"),
        (
            "```python\na = 1 < 2\n```",
            '<pre><code class="language-python">a = 1 &lt; 2</code></pre>',
        ),
        ("```\nunclosed", "<pre>unclosed</pre>"),
        ("| a | b |\n|---|---|", "<pre>| a | b |\n|---|---|</pre>"),
        ("`**not bold**`", "<code>**not bold**</code>"),
        ("<script>", "&lt;script&gt;"),
    ],
)
def test_it_reads_as_it_was_meant(markdown: str, html: str) -> None:
    assert telegram_html(markdown) == html


@given(st.text(alphabet="ab*_~`[]()<>&#>-|\n h:/", max_size=200))
def test_every_tag_is_known_and_closed_in_order(markdown: str) -> None:
    made = telegram_html(markdown)
    open_tags: list[str] = []
    for closing, name in re.findall(r"<(/?)([^\s>]*)[^>]*>", made):
        assert name in {"b", "i", "s", "a", "code", "pre", "blockquote"}
        if not closing:
            open_tags.append(name)
        else:
            assert open_tags.pop() == name
    assert not open_tags
    assert "\x00" not in made
