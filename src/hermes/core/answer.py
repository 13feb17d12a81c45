"""One answer without a turn around it: for work on the side, which nobody watches."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from hermes.core.ports import Model
from hermes.errors import ModelError
from hermes.schema.messages import AssistantMessage
from hermes.schema.model import Finished, ModelRequest


async def answer(model: Model, request: ModelRequest) -> AssistantMessage:
    """The whole reply. Raises ModelError."""
    events = model.stream(request)
    assert isinstance(events, AsyncGenerator)  # noqa: S101 - what every model gives, and what can be closed
    async with aclosing(events):
        async for event in events:
            if isinstance(event, Finished):
                return event.message
    raise ModelError("the model's stream ended without an end", reason="malformed")
