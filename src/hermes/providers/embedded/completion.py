"""The port between the adapter for small models and whatever continues its prompts.

It owns the words of that conversation only: a prompt as chat turns, an optional grammar, and a stream of text. It knows
neither tools nor processes. `LocalEngine` implements it with the engine in a child process; a server of its own
(llama.cpp, Ollama, LM Studio) can implement it too. Where a grammar is not obeyed (`obeys_grammar` is False) the adapter
reads the reply leniently and checks it by code.
"""

from collections.abc import AsyncGenerator
from typing import Literal, Protocol, TypeAlias

import msgspec

CacheSlot: TypeAlias = Literal["talk", "work", "decide", "other"]
"""Prompts of one slot grow out of one another; prompts of different slots must not evict each other from the cache."""


class ChatTurn(msgspec.Struct, frozen=True):
    """One message of the prompt, as a chat template takes it."""

    role: Literal["system", "user", "assistant"]
    content: str


class Completion(msgspec.Struct, frozen=True, kw_only=True):
    """Continue `turns`, which are the whole prompt.

    `prefix` is how the prompts of this slot begin, for a day or longer: an engine may keep its computed state.
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
    """The end of the reply: by itself, at `max_tokens`, or because it was cancelled. Always the last of a stream."""

    finish: Literal["stop", "length", "cancelled"] = "stop"
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0


class CompletionEngine(Protocol):
    """What continues a prompt."""

    @property
    def obeys_grammar(self) -> bool:
        """Whether `Completion.grammar` (GBNF) is enforced."""
        ...

    def complete(
        self, prompt: Completion
    ) -> AsyncGenerator[CompletionText | CompletionEnded, None]:
        """Streams the reply. Closing the stream stops it. Raises ModelError, with reason `too_long` if it does not fit."""
        ...

    async def warm(self) -> None:
        """Gets ready ahead of the first prompt."""
        ...

    async def close(self) -> None:
        """Lets go of everything."""
        ...
