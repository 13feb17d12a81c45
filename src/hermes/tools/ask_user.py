"""`ask_user`: asks the person a question in the middle of the work."""

from typing import Annotated

from msgspec import Meta

from hermes.core.ports import ToolContext
from hermes.errors import ToolFailed
from hermes.tools.escapes import clean
from hermes.tools.tool import tool

_Option = Annotated[str, Meta(min_length=1, max_length=200)]


@tool("ask_user", effect="read")
async def ask_user(
    context: ToolContext,
    question: Annotated[str, Meta(min_length=1, max_length=4000)],
    options: Annotated[
        tuple[_Option, ...], Meta(max_length=8, description="Suggested answers.")
    ] = (),
) -> str:
    """Asks the user and waits for the answer. Only for what you can't find out yourself and that matters."""
    text = clean(question).strip()
    if not text:
        raise ToolFailed("The question is empty.", hint="Nobody was asked.")
    answer = await context.ask(text, tuple(dict.fromkeys(map(clean, options))))
    return answer if answer.strip() else "(The user gave no answer: decide yourself.)"
