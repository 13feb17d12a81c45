"""Gets one answer from a model outside of a turn, for background work."""

from collections.abc import AsyncGenerator

from hermes.core.ports import Model
from hermes.errors import ModelError
from hermes.schema.messages import AssistantMessage
from hermes.schema.model import ModelRequest, ReplyFinished
from hermes.text.translation import translator

t = translator(__name__)


async def complete(model: Model, request: ModelRequest) -> AssistantMessage:
    """Returns the whole reply. Raises ModelError."""
    events = model.stream(request)
    try:
        async for event in events:
            if isinstance(event, ReplyFinished):
                return event.message
    finally:
        if isinstance(events, AsyncGenerator):
            await events.aclose()
    raise ModelError(t.later("the model's stream ended early"), reason="malformed")
