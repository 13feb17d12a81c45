"""The port between the adapter for small models and the engine that continues its prompts.

It defines only a prompt as chat turns, an optional grammar, and a stream of text; no tools and no processes.
`LocalEngine` implements it with a child process, and a separate server (llama.cpp, Ollama, LM Studio) can implement it
too. If the engine ignores grammars (`obeys_grammar` is False), the adapter parses the reply leniently and checks it in
code.
"""

from collections.abc import AsyncGenerator
from typing import Literal, Protocol, TypeAlias

import msgspec

CacheSlot: TypeAlias = Literal["talk", "work", "decide", "other"]
"""The prompts of one slot extend each other; prompts of different slots must not evict each other from the cache."""


class ChatTurn(msgspec.Struct, frozen=True):
    """One message of the prompt, as a chat template takes it."""

    role: Literal["system", "user", "assistant"]
    content: str


class Completion(msgspec.Struct, frozen=True, kw_only=True):
    """A request to continue `turns`, which are the whole prompt.

    `prefix` is how the prompts of this slot begin, for a day or longer, so an engine may store its computed state.
    """

    slot: CacheSlot
    turns: tuple[ChatTurn, ...]
    prefix: tuple[ChatTurn, ...] = ()
    grammar: str = ""
    stop: tuple[str, ...] = ()
    max_tokens: int = 512


class CompletionText(msgspec.Struct, frozen=True):
    """More of the reply."""

    text: str


class CompletionEnded(msgspec.Struct, frozen=True, kw_only=True):
    """The end of the reply: finished, cut at `max_tokens`, or cancelled. Always the last event of a stream."""

    finish: Literal["stop", "length", "cancelled"] = "stop"
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0


class CompletionEngine(Protocol):
    """An engine that continues prompts."""

    @property
    def obeys_grammar(self) -> bool:
        """Whether `Completion.grammar` (GBNF) is enforced."""
        ...

    def complete(
        self, prompt: Completion
    ) -> AsyncGenerator[CompletionText | CompletionEnded, None]:
        """Streams the reply. Closing the stream stops it. Raises ModelError (`too_long` if the prompt does not fit)."""
        ...

    async def warm(self) -> None:
        """Prepares the engine before the first prompt."""
        ...

    async def close(self) -> None:
        """Releases all resources."""
        ...
