"""Code blocks in Markdown."""

import pytest

from hermes.commands.markdown import code_block


@pytest.mark.parametrize(
    ("text", "fence"), [("a", "```"), ("a\n```\nb", "````"), ("`````x", "``````")]
)
def test_a_text_can_not_end_its_code_block(text: str, fence: str) -> None:
    assert code_block(text) == f"{fence}\n{text}\n{fence}"
