"""`todo`: the model's list of steps. Its state is the latest result in the conversation; nothing else is kept."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from hermes.tools.escapes import clean
from hermes.tools.tool import tool

_MARKS = {"pending": "[ ]", "in_progress": "[>]", "done": "[x]"}


class TodoStep(Struct, frozen=True, forbid_unknown_fields=True):
    """One step."""

    text: Annotated[str, Meta(min_length=1)]
    status: Literal["pending", "in_progress", "done"] = "pending"


@tool("todo", effect="read")
async def todo(
    items: Annotated[list[TodoStep], Meta(max_length=50)],
) -> str:
    """Shows the user your plan for work of three or more steps. Each call replaces the whole list; update it as you go."""
    if not items:
        return "The list is empty now."
    done = sum(step.status == "done" for step in items)
    lines = [
        f"{_MARKS[step.status]} {' '.join(clean(step.text).split())}" for step in items
    ]
    return "\n".join([*lines, f"({done} of {len(items)} done)"])
