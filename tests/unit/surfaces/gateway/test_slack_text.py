"""Texts as Slack writes them, both ways."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.surfaces.gateway.adapters.text_formats import (
    slack_length,
    slack_mrkdwn,
    slack_plain_text,
)


@pytest.mark.parametrize(
    ("markdown", "shown"),
    [
        ("**bold** and *leaning* and ~~gone~~", "*bold* and _leaning_ and ~gone~"),
        ("# Heading", "*Heading*"),
        ("- one\n- two", "• one\n• two"),
        (
            "see [the **docs**](https://example.org/a?b=1&c=2)",
            "see <https://example.org/a?b=1&amp;c=2|the *docs*>",
        ),
        ("`a < b` & c", "`a &lt; b` &amp; c"),
        ("```python\nif a < b:\n    pass\n```", "```\nif a &lt; b:\n    pass\n```"),
        ("> said\n> so", "> said\n> so"),
        (
            "| a | b |\n|---|---|\n| 1 | 2 |",
            "```\n| a | b |\n|---|---|\n| 1 | 2 |\n```",
        ),
        ("<!channel> <@U1>", "&lt;!channel&gt; &lt;@U1&gt;"),
    ],
)
def test_markdown_in_the_marks_of_slack(markdown: str, shown: str) -> None:
    assert slack_mrkdwn(markdown) == shown


@given(st.text(alphabet="ab <>&!@|*_~`[]()#\n-", max_size=200))
def test_no_text_can_call_anybody(text: str) -> None:
    assert "<!" not in slack_mrkdwn(text)
    assert "<@" not in slack_mrkdwn(text)


@given(
    st.lists(st.sampled_from(["<a>", "& b", "plain", "\n", "- x"]), max_size=40).map(
        " ".join
    )
)
def test_what_is_counted_is_not_less_than_what_is_sent(text: str) -> None:
    assert len(slack_mrkdwn(text)) <= slack_length(text)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("<@UME> hello", "hello"),
        ("<@UME|hermes> hello <@U2> in <#C1|general>", "hello @U2 in #general"),
        ("<!here> look at <https://example.org>", "@here look at https://example.org"),
        ("<https://example.org|this>", "this (https://example.org)"),
        ("a &lt; b &amp;&amp; c", "a < b && c"),
    ],
)
def test_what_people_write_as_plain_text(written: str, read: str) -> None:
    assert slack_plain_text(written, "UME") == read
