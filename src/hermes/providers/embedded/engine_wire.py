"""What the engine's parent and child say to each other: one JSON object per line, commands down, events up."""

from typing import Literal, TypeAlias

import msgspec

from hermes.providers.embedded.completion import CacheSlot, ChatTurn, Completion


class Load(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The first command: which file, and how the prompts of each slot begin.

    The computed states of these prefixes are kept in files that begin with `state`: `<folder>/<model>`. `context` is
    what one prompt and its reply may have.
    """

    path: str
    state: str
    prefixes: dict[CacheSlot, tuple[ChatTurn, ...]] = {}
    context: int = 4096
    threads: int = 0
    idle_seconds: float = 600.0
    reads_calls: bool = False
    """The engine reads tool calls out of the text, in the form that the model's template has for them."""


class Generate(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Continue a prompt."""

    id: int
    prompt: Completion


class ChatJob(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Answer a request of the chat completions format, which may offer tools.

    The state of the slot is kept under `state_key`, which stands for the beginning that such requests share.
    """

    id: int
    body: msgspec.Raw
    slot: CacheSlot = "work"
    state_key: str = ""
    max_tokens: int = 1024


class Cancel(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Stop the generation `id`; it answers with `GenerationEnded`."""

    id: int


class EngineReady(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The model is loaded and the prefix of the first slot is in place. `restored` is False when it had to be computed."""

    engine: str
    restored: bool


class PrefixProgress(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A prefix is being computed for the first time: tokens done, of how many."""

    done: int
    total: int


class Accepted(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The job arrived. Said at once, so that a child that was just leaving is told from one that works."""

    id: int


class Delta(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """More text."""

    id: int
    text: str


class ChatChunk(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """One chunk of a `ChatJob`, as the format has it."""

    id: int
    data: msgspec.Raw


class GenerationEnded(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The generation ended: by itself, at `max_tokens`, or because it was cancelled."""

    id: int
    finish: Literal["stop", "length", "cancelled"]
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0


class Failed(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """It can't be done. Without an id, the child could not start and ends."""

    reason: Literal["engine_missing", "library_missing", "load", "too_long", "engine"]
    message: str
    id: int = 0


Job: TypeAlias = Generate | ChatJob
Command: TypeAlias = Load | Job | Cancel
Report: TypeAlias = (
    EngineReady
    | PrefixProgress
    | Accepted
    | Delta
    | ChatChunk
    | GenerationEnded
    | Failed
)
