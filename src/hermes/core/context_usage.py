"""What fills the model's window: tokens by kind, from real counts where there are any."""

import msgspec

from hermes.core.budget import (
    IMAGE_TOKENS,
    estimate_tokens,
    message_tokens,
    tool_tokens,
)
from hermes.core.compaction import MARK
from hermes.core.history import ConversationHistory
from hermes.core.prompt import PROJECT_HEAD, SKILLS_HEAD
from hermes.schema.messages import AssistantMessage, Message, ToolFinished


class ContextPart(msgspec.Struct, frozen=True):
    """One kind of content and about how many tokens it takes."""

    name: str
    tokens: int
    count: int


class Context(msgspec.Struct, frozen=True):
    """How full the window is. `counted` is what the provider last counted, 0 before the first reply; at `full` tokens
    room is made."""

    parts: tuple[ContextPart, ...]
    counted: int
    window: int
    full: int = 0

    @property
    def used(self) -> int:
        """Tokens in use: as counted, else as estimated."""
        return self.counted or sum(part.tokens for part in self.parts)

    def scaled(self) -> tuple[ContextPart, ...]:
        """The parts that there are, their estimates brought in line with what the provider counted for all of them."""
        total = sum(part.tokens for part in self.parts) or 1
        return tuple(
            ContextPart(part.name, round(part.tokens * self.used / total), part.count)
            for part in self.parts
            if part.tokens
        )

    @property
    def share(self) -> float:
        """The part of the window in use, 0 to 1 and beyond."""
        return self.used / self.window if self.window else 0.0


def measure(
    history: ConversationHistory, window: int, threshold: float = 1.0
) -> Context:
    """What the next request would hold; room is made when it passes `threshold`, a part of the window."""
    prompt = history.prompt
    parts: dict[str, list[int]] = {"instructions": []}
    system = prompt.system if prompt else ()
    for place, text in enumerate(system):
        inside = 0 < place < len(system) - 1
        for name, piece in _named(text) if inside else [("instructions", text)]:
            parts.setdefault(name, []).append(estimate_tokens(piece))
    parts["tools"] = [tool_tokens((tool,)) for tool in (prompt.tools if prompt else ())]
    parts |= {"your words": [], "replies": [], "tool results": []}
    for message in history.messages:
        pictures = () if isinstance(message, AssistantMessage) else message.images
        if pictures:
            parts.setdefault("pictures", []).extend([IMAGE_TOKENS] * len(pictures))
        parts.setdefault(_kind(message), []).append(
            message_tokens(message) - IMAGE_TOKENS * len(pictures)
        )
    listed = tuple(
        ContextPart(name, sum(tokens), len(tokens)) for name, tokens in parts.items()
    )
    return Context(listed, _counted(history), window, int(window * threshold))


def _named(text: str) -> list[tuple[str, str]]:
    """What a part between the instructions is, by how it begins."""
    if text.startswith(PROJECT_HEAD):
        return [("project notes", text)]
    memory, head, skills = text.partition(SKILLS_HEAD)
    return [
        (name, piece)
        for name, piece in (("memory", memory), ("skills index", head + skills))
        if piece.strip()
    ]


def _kind(message: Message) -> str:
    if isinstance(message, AssistantMessage):
        return "replies"
    if isinstance(message, ToolFinished):
        return "tool results"
    return (
        "summary"
        if message.origin == "hermes" and message.text.startswith(MARK)
        else "your words"
    )


def _counted(history: ConversationHistory) -> int:
    """What the provider counted last, and a guess for what came since."""
    since = 0
    for message in reversed(history.messages):
        if isinstance(message, AssistantMessage) and message.usage:
            return message.usage.input_tokens + message.usage.output_tokens + since
        since += message_tokens(message)
    return 0
