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
from pathlib import Path, PurePath
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

import msgspec

from hermes.errors import ToolFailed
from hermes.schema.event_base import Event
from hermes.schema.events import (
    ApprovalAnswered,
    ApprovalRequested,
    QuestionAnswered,
    QuestionAsked,
    Reach,
)
from hermes.schema.messages import Message
from hermes.schema.model import ModelEvent, ModelRequest
from hermes.schema.tool_spec import ToolResult, ToolSpec

Effect: TypeAlias = Literal["read", "network", "files", "other"]


class PlannedCall(msgspec.Struct, frozen=True):
    """The facts about a call that planning needs: its position, its effect, and the absolute paths it affects."""

    index: int
    effect: Effect
    paths: tuple[PurePath, ...] = ()


class Clock(Protocol):
    """Wall time in Unix seconds. Passed in, so that tests can set it."""

    def now(self) -> float: ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> float:
        return time.time()


class Model(Protocol):
    """A language model. Its stream ends with `ReplyFinished` or raises ModelError; closing the stream cancels the call."""

    @property
    def provider(self) -> str: ...

    @property
    def name(self) -> str: ...

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]: ...


class Ids(Protocol):
    """Makes ids. Passed in, so that tests can set them."""

    def session(self) -> str: ...

    def turn(self) -> str: ...


class Journal(Protocol):
    """The log of a session, as a running turn writes it."""

    async def record(self, *events: Event) -> tuple[int, ...]:
        """Writes the events to the log, all or none, and publishes them. Returns the `seq` of each, once they are on disk."""
        ...

    def note(self, *events: Event) -> None:
        """Adds rows now and writes them a moment later, together with the next ones.

        For the answer right before the end of its turn, and for data whose loss does no harm, such as the content of a
        file. The next `record` or `flush` raises any error.
        """
        ...

    async def flush(self) -> None:
        """Waits for rows that are noted, or still being written for a caller that was cancelled."""
        ...

    async def nothing_under_way(self) -> None:
        """Does the same, but leaves what is noted to the next `record`."""
        ...

    def show(self, event: Event) -> None:
        """Publishes a transient event."""
        ...


CallTool: TypeAlias = Callable[[str, Mapping[str, Any]], Awaitable[ToolResult]]
AskUser: TypeAlias = Callable[[str, tuple[str, ...]], Awaitable[str]]


class PlanReply(msgspec.Struct, frozen=True):
    """What the user answered to a plan: one of the choices, or words; and the plan, if they changed it."""

    text: str
    plan: str = ""


AskAboutPlan: TypeAlias = Callable[[str, tuple[str, ...], str], Awaitable[PlanReply]]


async def _no_calls(name: str, arguments: Mapping[str, Any]) -> ToolResult:  # noqa: ARG001 - the port's shape
    raise ToolFailed("Tools can't be called from here.")


async def _nobody(question: str, options: tuple[str, ...]) -> str:  # noqa: ARG001 - the port's shape
    raise ToolFailed(
        "Nobody can be asked here.",
        hint="Decide yourself, or say in your answer what you need.",
    )


async def _no_plan(*_: object) -> PlanReply:
    raise ToolFailed(
        "Nobody can accept a plan here.", hint="Give the plan as your answer."
    )


class ToolContext(msgspec.Struct, frozen=True):
    """What a tool knows about its call, and what it may ask for."""

    call_id: str
    session: str
    cwd: Path
    show: Callable[[str], None]
    """Shows output while the tool runs."""
    turn: str = ""
    reach: Reach = "workspace"
    """How far the policy lets this call reach."""
    targets: tuple[Path, ...] = ()
    """The files that the policy judged, as absolute paths with links resolved. A tool touches no others."""
    call: CallTool = _no_calls
    """Calls another tool as the model would: logged, judged by the same policy and approved by the same person."""
    ask: AskUser = _nobody
    """Asks the user a question with suggested answers, and waits. Raises ToolFailed when nobody can answer."""
    ask_about_plan: AskAboutPlan = _no_plan
    """Shows the user a plan that they can change, with choices, and waits. Raises ToolFailed when nobody can answer."""
    read_only: bool = False
    """Whether a command of this call can't write in the working directory either."""


class Tool(Protocol):
    """Something the model can do."""

    effect: Effect

    @property
    def spec(self) -> ToolSpec:
        """The tool as a model sees it."""
        ...

    def paths(self, arguments: Mapping[str, Any], cwd: Path) -> tuple[Path, ...]:
        """The files that a call would touch, as absolute paths."""
        ...

    async def run(
        self, arguments: Mapping[str, Any], context: ToolContext
    ) -> ToolResult:
        """Runs the tool. Cancelling it stops everything it started. Raises ToolFailed with a message for the model."""
        ...


class ForwardedCall(msgspec.Struct, frozen=True):
    """The call that another call stands for."""

    name: str
    arguments: Mapping[str, Any]


@runtime_checkable
class ForwardingTool(Protocol):
    """A tool that stands for others: a call of it is logged, judged, approved and run as the call that it returns."""

    def forwarded(self, arguments: Mapping[str, Any]) -> ForwardedCall:
        """The call that is meant. Raises ToolFailed if there is none."""
        ...


class PolicyDecision(msgspec.Struct, frozen=True):
    """The policy's decision about a call. `summary` tells a person exactly what would happen."""

    verdict: Literal["allow", "ask", "forbid"]
    summary: str = ""
    reason: str = ""
    reach: Reach = "workspace"
    """How far the call may reach if it is allowed."""
    shape: str = ""
    """Identifies this call for an answer that is remembered; empty for exactly these arguments."""
    binding: str = ""
    """A hash of everything that was judged: arguments, folder, environment and target files. What was approved is what runs."""
    targets: tuple[Path, ...] = ()
    """The files that were judged."""
    memorable: bool = True
    """Whether an answer may cover more than this one call."""
    scope: str = ""
    """What an answer for the rest of the session covers, in words; empty for only what `shape` identifies."""
    read_only: bool = False
    """Whether the sandbox keeps an allowed command from writing in the working directory."""
    may_precheck: bool = False
    """Whether the call may look at its files before anybody is asked, since reading them needs no approval."""


class Policy(Protocol):
    """Decides about every call before it runs."""

    def judge(
        self, tool: Tool, arguments: Mapping[str, Any], cwd: Path
    ) -> PolicyDecision: ...

    def remember(self, request: ApprovalRequested, rule: str = "") -> None:
        """Allows from now on, in every session, calls of exactly this shape or, as a `rule`, of the request's scope."""
        ...


class Veto(Protocol):
    """Forbids calls that the policy may allow: plugins can."""

    async def reason(
        self, session: str, call_id: str, name: str, arguments: Mapping[str, Any]
    ) -> str:
        """Why the call may not run; empty if it may."""
        ...


class Approver(Protocol):
    """Asks whoever can answer. Denies when nobody can."""

    async def ask(self, request: ApprovalRequested) -> ApprovalAnswered:
        """Records the question, waits, and returns once the answer is in the log too."""
        ...

    async def question(self, request: QuestionAsked) -> QuestionAnswered:
        """The same for a question that is answered with text."""
        ...


class ContextEngine(Protocol):
    """Keeps a conversation inside the model's context window."""

    def is_full(self, session: str, request: ModelRequest) -> bool:
        """Whether to compact before this request."""
        ...

    async def make(
        self, session: str, request: ModelRequest, *, forced: bool = False
    ) -> list[Event]:
        """The rows that make the request fit. `forced` means that the provider rejected it as too long."""
        ...


class ImageReader(Protocol):
    """Describes images for a model that reads only text, or whose provider rejected an image."""

    async def reads_only_text(self) -> bool:
        """Whether the model gets no images at all, as far as that is known."""
        ...

    async def describe_hidden(
        self, session: str, messages: Sequence[Message], said: Collection[str]
    ) -> Sequence[Event]:
        """Rows that describe the images which the model does not get. The user is told of those not in `said`."""
        ...


class Keeper(Protocol):
    """Saves files before a turn changes them, so that they can be restored."""

    async def keep(self, context: ToolContext, paths: tuple[Path, ...]) -> None:
        """Called before each call that changes something. Without paths, anything in the working directory may change."""
        ...
