"""Tool calls that a model wrote as text."""

import pytest

from hermes.providers.embedded.native_model import may_be_call, written_call

CALL = '{"name": "read_file", "arguments": {"path": "a.md"}}'
NAMES = {"read_file"}


@pytest.mark.parametrize(
    "text",
    [CALL, f"```json\n{CALL}\n```", f"```\n{CALL}```", f"<tool_call>\n{CALL}\n</tool_call>", f"\n {CALL}\n"],
)  # fmt: skip
def test_a_text_that_is_only_a_call_is_one(text: str) -> None:
    assert written_call(text, NAMES) == ("read_file", '{"path":"a.md"}')


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Hello.",
        f"I will call this: {CALL}",
        f"{CALL} and then I am done",
        '{"name": "other", "arguments": {}}',
        '{"name": "read_file", "arguments": "a.md"}',
        '{"name": ["read_file"]}',
        '{"answer": 42}',
        "```json\n{broken}\n```",
        "[" * 5_000,
    ],
)
def test_anything_else_is_text(text: str) -> None:
    assert written_call(text, NAMES) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", True),
        ("`", True),
        ("```json\n{", True),
        ("<tool", True),
        (' {"na', True),
        ("Hel", False),
        ("```python", False),
        ("<b>", False),
    ],
)
def test_a_beginning_is_held_back_only_while_it_may_be_a_call(
    text: str, *, expected: bool
) -> None:
    assert may_be_call(text) is expected
