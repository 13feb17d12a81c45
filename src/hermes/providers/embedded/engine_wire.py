"""The messages between the engine's parent and child: one JSON object per line, commands down, reports up."""

from typing import Literal, TypeAlias

import msgspec

from hermes.providers.embedded.completion import CacheSlot, ChatTurn, Completion


class Load(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The first command: which file to load, and how the prompts of each slot begin.

    The computed states of these prefixes are stored in files whose names begin with `state`: `<folder>/<model>`.
    `context` is the number of tokens for one prompt and its reply.
    """

    path: str
    state: str
    prefixes: dict[CacheSlot, tuple[ChatTurn, ...]] = {}
    context: int = 4096
    threads: int = 0
    idle_seconds: float = 600.0
    reads_calls: bool = False
    """The engine parses tool calls from the text, in the format of the model's template."""


class Generate(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A command to continue a prompt."""

    id: int
    prompt: Completion


class ChatJob(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A command to answer a request of the chat completions format, which may offer tools.

    The state of the slot is stored under `state_key`, which identifies the prefix that such requests share.
    """

    id: int
    body: msgspec.Raw
    slot: CacheSlot = "work"
    state_key: str = ""
    max_tokens: int = 1024


class Cancel(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A command to stop the generation `id`; the child replies with `GenerationEnded`."""

    id: int


class EngineReady(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The model is loaded and the first slot's prefix is in place. `restored` is False if it had to be computed."""

    engine: str
    restored: bool


class PrefixProgress(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A prefix is being computed for the first time: tokens done, and the total."""

    done: int
    total: int


class Accepted(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The job arrived. Sent at once, so that the parent can tell a working child from one that was just exiting."""

    id: int


class Delta(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """More text."""

    id: int
    text: str


class ChatChunk(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """One chunk of a `ChatJob`, in the chat completions format."""

    id: int
    data: msgspec.Raw


class GenerationEnded(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The generation ended: finished, cut at `max_tokens`, or cancelled."""

    id: int
    finish: Literal["stop", "length", "cancelled"]
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0


class Failed(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A job failed. Without an id, the child could not start and exits."""

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
