"""What the tests of the three formats share: their codecs, an endpoint, and reading a stream without a socket."""

from hermes.providers.adapter import Codec
from hermes.providers.anthropic import AnthropicMessages
from hermes.providers.catalogue import facts_of
from hermes.providers.chat_completions import ChatCompletions
from hermes.providers.endpoint import ModelEndpoint, Options
from hermes.providers.provider_table import GENERIC, Quirks
from hermes.providers.responses import Responses
from hermes.providers.sse import EventParser
from hermes.schema.messages import AssistantMessage
from hermes.schema.model import ModelEvent
from hermes.testing.formats import Format

CODECS: dict[Format, Codec] = {
    "chat": ChatCompletions(),
    "responses": Responses(),
    "anthropic": AnthropicMessages(),
}
FORMATS: tuple[Format, ...] = ("chat", "responses", "anthropic")


def endpoint(
    model: str = "gpt-5",
    quirks: Quirks = GENERIC,
    provider: str = "fake",
    options: Options | None = None,
) -> ModelEndpoint:
    """A service that is never called."""
    return ModelEndpoint(
        provider=provider,
        base_url="http://127.0.0.1:1/v1",
        model=model,
        quirks=quirks,
        facts=facts_of(model),
        options=options or Options(),
    )


def read(wire: Format, body: bytes) -> tuple[list[ModelEvent], AssistantMessage]:
    """The events and the message of a whole stream; raises what the reader raises."""
    reader = CODECS[wire].reader(endpoint())
    events = [item for event in EventParser().feed(body) for item in reader.feed(event)]
    return events, reader.message()
