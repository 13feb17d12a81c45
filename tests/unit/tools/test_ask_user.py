"""`ask_user`: the question reaches the person, the answer the model."""

from pathlib import Path

import pytest

from hermes.core.ports import ToolContext
from hermes.errors import ToolFailed
from hermes.tools.ask_user import ask_user


def context(answer: str, asked: list[tuple[str, tuple[str, ...]]]) -> ToolContext:
    async def ask(question: str, options: tuple[str, ...]) -> str:
        asked.append((question, options))
        return answer

    return ToolContext("c", "s", Path("/"), lambda text: None, ask=ask)


async def test_the_answer_is_the_result() -> None:
    asked: list[tuple[str, tuple[str, ...]]] = []
    arguments = {"question": " \x1b[1mWhich one?\n", "options": ["a", "b", "\x1b[31ma"]}
    assert (await ask_user.run(arguments, context("a", asked))).text == "a"
    assert asked == [("Which one?", ("a", "b"))]
    assert (
        "decide yourself"
        in (await ask_user.run({"question": "x"}, context(" ", asked))).text
    )


async def test_nobody_to_ask_is_said_with_what_to_do() -> None:
    with pytest.raises(ToolFailed) as failed:
        await ask_user.run(
            {"question": "x"}, ToolContext("c", "s", Path("/"), lambda text: None)
        )
    assert (failed.value.message, "Decide yourself" in failed.value.hint) == (
        "Nobody can be asked here.",
        True,
    )
    with pytest.raises(ToolFailed, match="empty"):
        await ask_user.run({"question": "  "}, context("a", []))
