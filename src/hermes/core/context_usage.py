"""What uses up the model's context window, and what compaction would do about it."""

from collections.abc import Sequence

import msgspec

from hermes.core.budget import (
    IMAGE_TOKENS,
    estimate_tokens,
    message_tokens,
    tool_tokens,
)
from hermes.core.compaction import MARK, NotCompacted, choose_cut
from hermes.core.context_window import choose_trim
from hermes.core.history import ConversationHistory
from hermes.core.prompt import PROJECT_HEAD, SKILLS_HEAD
from hermes.schema.messages import AssistantMessage, Message, ToolFinished


class ContextPart(msgspec.Struct, frozen=True):
    """One kind of content, and about how many tokens it takes."""

    name: str
    tokens: int
    count: int


class Context(msgspec.Struct, frozen=True):
    """How full the context window is. `counted` is the provider's last count, 0 before the first reply. At `full` tokens
    the conversation is compacted."""

    parts: tuple[ContextPart, ...]
    counted: int
    window: int
    full: int = 0

    @property
    def used(self) -> int:
        """Tokens in use: counted if possible, else estimated."""
        return self.counted or sum(part.tokens for part in self.parts)

    def scaled(self) -> tuple[ContextPart, ...]:
        """The parts that are not empty, their estimates scaled to the provider's count."""
        total = sum(part.tokens for part in self.parts) or 1
        return tuple(
            ContextPart(part.name, round(part.tokens * self.used / total), part.count)
            for part in self.parts
            if part.tokens
        )

    @property
    def share(self) -> float:
        """The share of the window in use; may be above 1."""
        return self.used / self.window if self.window else 0.0


def measure(
    history: ConversationHistory, window: int, threshold: float = 1.0
) -> Context:
    """What the next request would hold. Beyond `threshold`, a share of the window, the conversation is compacted."""
    parts: dict[str, list[int]] = {"instructions": []}
    system = history.system
    for place, text in enumerate(system):
        inside = 0 < place < len(system) - 1
        for name, piece in _named(text) if inside else [("instructions", text)]:
            parts.setdefault(name, []).append(estimate_tokens(piece))
    parts["tools"] = [tool_tokens((tool,)) for tool in history.tools]
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
    """The kind of a part of the system prompt, by how it begins."""
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
    """The provider's last count, and an estimate for what came since."""
    since = 0
    for message in reversed(history.messages):
        if isinstance(message, AssistantMessage) and message.usage:
            return message.usage.input_tokens + message.usage.output_tokens + since
        since += message_tokens(message)
    return 0


class CompactionPreview(msgspec.Struct, frozen=True):
    """What compaction would do: first old results become pointers, then a summary replaces the middle."""

    pointers: int
    freed: int
    """About how many tokens the pointers save."""
    summarised: int
    replaced: int
    """About how many tokens the summary would replace."""


def preview_compaction(
    messages: Sequence[Message], *, first: int, last: int
) -> CompactionPreview:
    """What compaction would do now; all zero for a short conversation."""
    trimmed = choose_trim(messages, last)
    pointers, freed = len(trimmed.call_ids), trimmed.freed // 3
    try:
        cut = choose_cut(messages, first=first, last=last)
    except NotCompacted:
        return CompactionPreview(pointers, freed, 0, 0)
    start = len(messages) - cut.tail
    middle = [
        message
        for place, message in enumerate(messages[:start], 1)
        if place > cut.head and place != cut.kept
    ]
    return CompactionPreview(
        pointers, freed, len(middle), sum(map(message_tokens, middle))
    )
