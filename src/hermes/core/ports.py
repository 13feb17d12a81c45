"""The Protocols through which core and its siblings name their collaborators. `app` supplies them."""

import time
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Mapping,
    Sequence,
)
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

import msgspec

from hermes.core.parallel_calls import Effect
from hermes.errors import ToolFailed
from hermes.schema.event import Event
from hermes.schema.events import (
    ApprovalAnswered,
    ApprovalRequested,
    QuestionAnswered,
    QuestionAsked,
    Reach,
)
from hermes.schema.messages import Message
from hermes.schema.model import ModelEvent, ModelRequest
from hermes.schema.tools import ToolResult, ToolSpec


class Clock(Protocol):
    """Wall time in unix seconds. Passed in, so that tests decide it."""

    def now(self) -> float: ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> float:
        return time.time()


class Model(Protocol):
    """Something that answers. The stream ends with `Finished` or raises ModelError; closing it cancels the call."""

    @property
    def provider(self) -> str: ...

    @property
    def name(self) -> str: ...

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]: ...


class Ids(Protocol):
    """Names for new things. Passed in, so that tests decide them."""

    def session(self) -> str: ...

    def turn(self) -> str: ...


class Journal(Protocol):
    """The session as a running turn writes it."""

    async def record(self, *events: Event) -> tuple[int, ...]:
        """Appends to the log, all or none, then publishes. Returns the rows' `seq`, once they are on disk."""
        ...

    def note(self, *events: Event) -> None:
        """Takes rows in now and writes them a moment later, together with the next ones: for what can be lost without
        harm, such as what a file said. A failure to write is raised by the next `record` or `flush`."""
        ...

    async def flush(self) -> None:
        """Waits for rows that are still being written for somebody who was interrupted."""
        ...

    def show(self, event: Event) -> None:
        """Publishes a transient event."""
        ...


CallTool: TypeAlias = Callable[[str, Mapping[str, Any]], Awaitable[ToolResult]]
AskUser: TypeAlias = Callable[[str, tuple[str, ...]], Awaitable[str]]


async def _no_calls(name: str, arguments: Mapping[str, Any]) -> ToolResult:  # noqa: ARG001 - the port's shape
    raise ToolFailed("Tools can't be called from here.")


async def _nobody(question: str, options: tuple[str, ...]) -> str:  # noqa: ARG001 - the port's shape
    raise ToolFailed(
        "Nobody can be asked here.",
        hint="Decide by yourself, or say in your answer what you need.",
    )


class ToolContext(msgspec.Struct, frozen=True):
    """What a tool may know of the call it serves, and what it may ask for."""

    call_id: str
    session: str
    cwd: Path
    show: Callable[[str], None]
    """Shows output while the tool runs."""
    turn: str = ""
    reach: Reach = "workspace"
    """How far the policy lets this call reach."""
    targets: tuple[Path, ...] = ()
    """The files that were judged, absolute, links followed: a tool touches no others by the paths it was given."""
    call: CallTool = _no_calls
    """Calls another tool as the model would: logged, judged by the same policy, approved by the same person."""
    ask: AskUser = _nobody
    """Puts a question to the user, with suggested answers, and waits. Raises ToolFailed when nobody can answer."""


class Tool(Protocol):
    """Something the model can do."""

    spec: ToolSpec
    effect: Effect

    def paths(self, arguments: Mapping[str, Any], cwd: Path) -> tuple[Path, ...]:
        """Files a call would touch, absolute."""
        ...

    async def run(
        self, arguments: Mapping[str, Any], context: ToolContext
    ) -> ToolResult:
        """Does it. Cancelling stops everything it started. Raises ToolFailed with a sentence the model can use."""
        ...


class PolicyDecision(msgspec.Struct, frozen=True):
    """What the policy says of a call; `summary` tells a person exactly what would happen."""

    verdict: Literal["allow", "ask", "forbid"]
    summary: str = ""
    reason: str = ""
    reach: Reach = "workspace"
    """How far the call may reach when it is allowed."""
    shape: str = ""
    """Names exactly this call, for an answer that is to be remembered; empty: exactly these arguments."""
    binding: str = ""
    """A hash of all that was judged (arguments, folder, environment, target files): what was approved is what runs."""
    targets: tuple[Path, ...] = ()
    """The files that were judged."""
    memorable: bool = True
    """Whether an answer may cover more than this one call."""
    scope: str = ""
    """What an answer for the rest of the session covers, in words; empty: only what `shape` names."""


class Policy(Protocol):
    """Decides about every call before it runs."""

    def judge(
        self, tool: Tool, arguments: Mapping[str, Any], cwd: Path
    ) -> PolicyDecision: ...

    def remember(self, request: ApprovalRequested) -> None:
        """The user wants calls of exactly this shape allowed from now on, in every session."""
        ...


class Approver(Protocol):
    """Puts a question to whoever can answer; denies when nobody can."""

    async def ask(self, request: ApprovalRequested) -> ApprovalAnswered:
        """Records the question, waits, and returns once the answer is in the log too."""
        ...

    async def question(self, request: QuestionAsked) -> QuestionAnswered:
        """The same for a question with an answer in words."""
        ...


class ContextEngine(Protocol):
    """Keeps a conversation inside the model's window."""

    def is_full(self, session: str, request: ModelRequest) -> bool:
        """Whether room should be made before this request."""
        ...

    async def make(
        self, session: str, request: ModelRequest, *, forced: bool = False
    ) -> list[Event]:
        """Rows that make room for the request. `forced`: the provider says that it does not fit."""
        ...


class ImageReader(Protocol):
    """Eyes for a model that reads only text, or whose provider refused a picture."""

    @property
    def reads_only_text(self) -> bool:
        """Whether the model gets no pictures at all."""
        ...

    async def look(
        self, session: str, messages: Sequence[Message], said: Collection[str]
    ) -> Sequence[Event]:
        """Rows that describe the pictures the model does not get, and say so unless they are among `said`."""
        ...


class Keeper(Protocol):
    """Keeps what a turn is about to change, so that it can be brought back."""

    async def keep(self, context: ToolContext, paths: tuple[Path, ...]) -> None:
        """Called before each call that changes something; no paths: anything in the working directory may change."""
        ...
