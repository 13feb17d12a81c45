"""The plan that the user accepted. Compaction keeps it word for word, until a newer plan is accepted."""

from collections.abc import Sequence

from hermes.schema.events import Mode
from hermes.schema.messages import Message, ToolFinished, UserMessage
from hermes.text.translation import to_translate

PLAN_TOOL = "present_plan"
ACCEPTED = "The user accepted this plan"  # not translated: a model reads it
"""How the result of an accepted plan begins."""
STARTS: dict[str, Mode] = {
    to_translate("Start, and ask before each change"): "ask",
    to_translate("Start, and edit files in this folder without asking"): "auto-edit",
    to_translate("Start, and ask as little as possible"): "full",
}
"""The answers that accept a plan, and the mode in which work continues."""
PINNED = "\n\n[The plan that the user accepted, word for word]\n"  # not translated
"""The line before the plan at the end of a summary."""


def needs_trust(plan: str, answer: str) -> bool:
    """Whether an answer to a plan would let Hermes do more without asking."""
    return bool(plan) and STARTS.get(answer, "ask") != "ask"


def is_accepted_plan(message: Message) -> bool:
    """Whether a message is the result of a plan that was accepted."""
    return (
        isinstance(message, ToolFinished)
        and message.name == PLAN_TOOL
        and message.ok
        and message.text.startswith(ACCEPTED)
    )


def accepted_plan(messages: Sequence[Message]) -> str:
    """The newest accepted plan in some messages, including summaries of earlier ones; empty if there is none."""
    for message in reversed(messages):
        if is_accepted_plan(message):
            return message.text.partition("\n\n")[2]
        if isinstance(message, UserMessage) and message.origin == "hermes":
            plan = message.text.rpartition(PINNED)
            if plan[1]:
                return plan[2]
    return ""


def plan_question(plan: str) -> str:
    """The question that asks a person about a plan."""
    return f"Plan: {plan.strip().removeprefix('# ')}"
