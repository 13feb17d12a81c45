"""Titles, the first auxiliary task: one at once from the first words, a better one by a model if the user wants it.

An auxiliary task has a model of its own, never stands in the user's way, and what it cost is in the log.
"""

from hermes.core.history import History
from hermes.core.ports import Model
from hermes.schema.messages import AssistantMessage, Usage, UserMessage
from hermes.schema.model import Finished, ModelRequest

LONGEST = 60

_ASK = (
    "Give the conversation below a title of at most six words, in its own language. Answer with the title alone: "
    "no quotes, no full stop."
)
_SHOWN = 2_000  # characters of each side that the model sees


def first_words(history: History) -> str:
    """A title without a model: how the person began."""
    first = next((message.text for message in history.messages if isinstance(message, UserMessage)), "")
    return _shortened(first)


async def suggest(model: Model, history: History) -> tuple[str, Usage | None]:
    """A title by a model, empty if it gave none; and what the call took. Raises ModelError."""
    said = [message for message in history.messages if isinstance(message, UserMessage | AssistantMessage)][:4]
    text = "\n\n".join(f"{message.role}: {message.text[:_SHOWN]}" for message in said if message.text)
    request = ModelRequest(system=(_ASK,), messages=(UserMessage(text=text),), max_output_tokens=100)
    async for event in model.stream(request):
        if isinstance(event, Finished):
            return _shortened(event.message.text.strip().strip("\"'`.")), event.message.usage
    return "", None


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else line[: LONGEST - 1].rsplit(" ", 1)[0] + "…"
