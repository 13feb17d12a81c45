"""The parts of a small model's replies: ids, usage, and the end of a reply."""

from collections.abc import Callable

import msgspec

from hermes.providers.embedded.completion import CompletionEnded
from hermes.schema.messages import AssistantMessage, FinishReason, ToolCall, Usage
from hermes.schema.model import ReplyFinished


class ReplyParts(msgspec.Struct, frozen=True):
    """Creates the parts of a reply: holds the model's name and the source of ids."""

    provider: str
    model: str
    new_id: Callable[[], str]

    def finished(
        self,
        usage: Usage,
        *,
        text: str = "",
        reasoning: str = "",
        calls: tuple[ToolCall, ...] = (),
        finish: FinishReason = "stop",
    ) -> ReplyFinished:
        """Returns the end of a reply."""
        return ReplyFinished(
            AssistantMessage(
                text=text,
                reasoning=reasoning,
                tool_calls=calls,
                finish=finish,
                provider=self.provider,
                model=self.model,
                usage=usage,
            )
        )

    def call_id(self, tag: str = "local-") -> str:
        """Returns an id for a call."""
        return tag + self.new_id()


def usage_of(done: CompletionEnded, generated: int = 0) -> Usage:
    """Returns the usage of a completion. `generated` are the tokens counted here, including other attempts."""
    return Usage(
        input_tokens=done.input_tokens,
        output_tokens=max(done.output_tokens, generated),
        cache_read_tokens=done.cached_tokens,
        cost_usd=0.0,
    )
