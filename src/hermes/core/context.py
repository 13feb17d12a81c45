"""What fills the model's window: tokens by kind, from real counts where there are any."""

import msgspec

from hermes.core.budget import estimate_tokens, message_tokens, tool_tokens
from hermes.core.history import History
from hermes.schema.messages import AssistantMessage, ToolFinished


class Part(msgspec.Struct, frozen=True):
    """One kind of content and about how many tokens it takes."""

    name: str
    tokens: int
    count: int


class Context(msgspec.Struct, frozen=True):
    """How full the window is. `counted` is what the provider last counted, 0 before the first reply."""

    parts: tuple[Part, ...]
    counted: int
    window: int

    @property
    def used(self) -> int:
        """Tokens in use: as counted, else as estimated."""
        return self.counted or sum(part.tokens for part in self.parts)

    @property
    def share(self) -> float:
        """The part of the window in use, 0 to 1 and beyond."""
        return self.used / self.window if self.window else 0.0


def measure(history: History, window: int) -> Context:
    """What the next request would hold."""
    prompt = history.prompt
    system = prompt.system if prompt else ()
    tools = prompt.tools if prompt else ()
    parts = [
        Part("instructions", sum(map(estimate_tokens, system)), len(system)),
        Part("tools", tool_tokens(tools), len(tools)),
    ]
    kinds: dict[str, list[int]] = {"your words": [], "replies": [], "tool results": []}
    for message in history.messages:
        kind = "your words"
        if isinstance(message, AssistantMessage):
            kind = "replies"
        elif isinstance(message, ToolFinished):
            kind = "tool results"
        kinds[kind].append(message_tokens(message))
    parts += [Part(kind, sum(tokens), len(tokens)) for kind, tokens in kinds.items()]
    return Context(tuple(parts), _counted(history), window)


def _counted(history: History) -> int:
    """What the provider counted last, and a guess for what came since."""
    since = 0
    for message in reversed(history.messages):
        if isinstance(message, AssistantMessage) and message.usage:
            return message.usage.input_tokens + message.usage.output_tokens + since
        since += message_tokens(message)
    return 0
