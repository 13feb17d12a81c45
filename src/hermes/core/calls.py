"""Runs the tool calls of one reply: intent on disk first, approval if needed, then the effect, then its result.

A call whose arguments don't match its schema is never run.
"""

import asyncio
import itertools
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec

from hermes.core.arguments import BadArguments, parse_arguments
from hermes.core.fence import fenced
from hermes.core.ports import (
    Approver,
    ForwardingTool,
    Journal,
    Keeper,
    PlannedCall,
    PlanReply,
    Policy,
    PolicyDecision,
    Tool,
    ToolContext,
    Veto,
)
from hermes.core.reply_check import Fault
from hermes.errors import ToolFailed, in_sentences
from hermes.schema.event_base import Event
from hermes.schema.events import (
    ApprovalAnswered,
    ApprovalRequested,
    QuestionAsked,
    ToolProgress,
    ToolStarted,
)
from hermes.schema.messages import ToolCall, ToolFinished
from hermes.schema.tool_spec import ToolResult
from hermes.text.hidden_text import without_hidden

log = logging.getLogger("hermes.core")

MAX_PARALLEL_CALLS = 8
"""How many calls of a segment run at the same time."""
_MAX_NAMED_TOOLS = 60
"""How many tools are listed if the model calls one that does not exist."""
_DENIED = {
    "nobody": "nobody could be asked for approval",
    "expired": "nobody answered in time",
}


class ReadyCall(msgspec.Struct, frozen=True):
    """A call that can run."""

    call: ToolCall
    tool: Tool
    arguments: Mapping[str, Any]


class Unusable(msgspec.Struct, frozen=True):
    """A call that can't run, and why."""

    call: ToolCall
    fault: Fault
    detail: str


class CallScope(msgspec.Struct, frozen=True):
    """Where calls run: their session and turn, its journal, and the working directory."""

    journal: Journal
    session: str
    turn: str
    cwd: Path


class CallRunner:
    """Runs calls with a set of tools, under a policy."""

    def __init__(
        self,
        tools: Mapping[str, Tool],
        policy: Policy,
        approvals: Approver,
        keeper: Keeper | None = None,
        veto: Veto | None = None,
    ) -> None:
        self._veto = veto
        self._tools = tools
        self._policy = policy
        self._approvals = approvals
        self._keeper = keeper

    def prepare(self, calls: Sequence[ToolCall]) -> list[ReadyCall | Unusable]:
        """Finds each call's tool and reads its arguments, strictly."""
        return [self._prepare(call) for call in calls]

    async def run(
        self,
        place: CallScope,
        prepared: Sequence[ReadyCall | Unusable],
        before: Sequence[Event],
    ) -> None:
        """Runs everything in order, in segments. `before` is written together with the first intents."""
        pending: list[Event] = list(before)
        planned = [_plan(index, item, place.cwd) for index, item in enumerate(prepared)]
        for segment in segments(planned):
            items = [prepared[planned_call.index] for planned_call in segment]
            pending += [_intent(item) for item in items if isinstance(item, ReadyCall)]
            await place.journal.record(*pending)
            pending.clear()
            await self._run_segment(place, items)

    async def _run_segment(
        self, place: CallScope, items: Sequence[ReadyCall | Unusable]
    ) -> None:
        """Runs a segment's calls together and records their results in the order of the calls."""
        if len(items) == 1:
            await self._record(place, items[0], await self._run_one(place, items[0]))
            return
        places = asyncio.Semaphore(MAX_PARALLEL_CALLS)

        async def one(item: ReadyCall | Unusable) -> ToolFinished:
            async with places:
                return await self._run_one(place, item)

        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(one(item)) for item in items]
                for item, task in zip(items, tasks, strict=True):
                    await self._record(place, item, await task)
        except BaseExceptionGroup as failures:
            raise _first(failures) from failures

    async def _record(
        self, place: CallScope, item: ReadyCall | Unusable, result: ToolFinished
    ) -> None:
        """Whether a result need not be on disk before the model continues: what was only read can be read again."""
        if isinstance(item, ReadyCall) and item.tool.effect == "read":
            place.journal.note(result)
        else:
            await place.journal.record(result)

    async def _run_one(
        self, place: CallScope, item: ReadyCall | Unusable
    ) -> ToolFinished:
        if isinstance(item, Unusable):
            return finished(item.call, f"Not run: {item.detail}", ok=False)
        decision = await self._decision(place, item)
        refusal = await self._permission(place, item, decision)
        if refusal:
            return finished(item.call, f"Not run: {refusal}", ok=False)
        context = self._context(place, item.call, decision)
        result = await self._guarded(item, context)
        return ToolFinished(
            call_id=item.call.id,
            name=item.call.name,
            text=readable(result),
            ok=result.ok,
            images=result.images,
        )

    async def _decision(self, place: CallScope, item: ReadyCall) -> PolicyDecision:
        """The policy's decision, unless a veto comes first: then nobody is asked in vain."""
        decision = self._judged(item, place.cwd)
        if self._veto is None or decision.verdict == "forbid":
            return decision
        call = item.call
        why = await self._veto.reason(place.session, call.id, call.name, item.arguments)
        if not why:
            return decision
        return PolicyDecision("forbid", decision.summary or call.name, why)

    def _judged(self, item: ReadyCall, cwd: Path) -> PolicyDecision:
        """The policy's decision. A policy that fails forbids the call."""
        try:
            return self._policy.judge(item.tool, item.arguments, cwd)
        except Exception:
            log.exception("the policy failed to judge a call of %s", item.call.name)
            return PolicyDecision(
                "forbid", item.call.name, "the policy failed while judging it"
            )

    async def _permission(
        self, place: CallScope, item: ReadyCall, decision: PolicyDecision
    ) -> str:
        """Why the call may not run; empty if it may. What was approved must still be what would run."""
        if decision.verdict == "allow":
            return ""
        request = ApprovalRequested(
            call_id=item.call.id,
            name=item.call.name,
            arguments=item.call.arguments,
            summary=decision.summary,
            reason=decision.reason,
            reach=decision.reach,
            shape=decision.shape or f"{item.call.name} {item.call.arguments}",
            scope=decision.scope,
            binding=decision.binding,
            memorable=decision.memorable,
        )
        if decision.verdict == "forbid":
            await place.journal.record(
                request,
                ApprovalAnswered(call_id=item.call.id, answer="deny", by="policy"),
            )
            return f"forbidden by policy: {decision.reason}"
        if decision.may_precheck and (failure := await _failure(item, place.cwd)):
            return failure
        answer = await self._approvals.ask(request)
        if answer.answer == "deny":
            return _denial(answer)
        if answer.answer == "always" and decision.memorable:
            self._policy.remember(request, answer.rule)
        again = self._judged(item, place.cwd)
        same = again.targets == decision.targets and (
            again.verdict == "allow" or again.binding == decision.binding
        )
        if again.verdict == "forbid" or not same:
            return "its effect has changed since it was approved. Check again before you continue."
        return ""

    def _context(
        self, place: CallScope, call: ToolCall, decision: PolicyDecision
    ) -> ToolContext:
        numbers = itertools.count(1)

        def show(text: str) -> None:
            place.journal.show(ToolProgress(call_id=call.id, text=writable(text)))

        async def inner(name: str, arguments: Mapping[str, Any]) -> ToolResult:
            nested = ToolCall(
                id=f"{call.id}/{next(numbers)}",
                name=name,
                arguments=msgspec.json.encode(arguments).decode(),
            )
            item = self._prepare(nested)
            await place.journal.record(
                *([_intent(item)] if isinstance(item, ReadyCall) else [])
            )
            result = await self._run_one(place, item)
            await place.journal.record(result)
            return ToolResult(text=result.text, ok=result.ok, images=result.images)

        async def ask(question: str, options: tuple[str, ...]) -> str:
            return (await ask_about_plan(question, options, "")).text

        async def ask_about_plan(
            question: str, options: tuple[str, ...], plan: str
        ) -> PlanReply:
            answered = await self._approvals.question(
                QuestionAsked(
                    call_id=call.id, text=question, options=options, plan=plan
                )
            )
            if answered.text is None:
                raise ToolFailed(
                    "Nobody answered."
                    if answered.by == "expired"
                    else "Nobody can be asked here.",
                    hint="Decide yourself, or say in your answer what you need to know.",
                )
            return PlanReply(answered.text, answered.plan)

        return ToolContext(
            call_id=call.id,
            session=place.session,
            cwd=place.cwd,
            show=show,
            turn=place.turn,
            reach=decision.reach,
            targets=decision.targets,
            call=inner,
            ask=ask,
            ask_about_plan=ask_about_plan,
            read_only=decision.read_only,
        )

    async def _guarded(self, item: ReadyCall, context: ToolContext) -> ToolResult:
        """The boundary of a tool: whatever fails in it becomes a result that the model can read."""
        try:
            if self._keeper and item.tool.effect in ("files", "other"):
                await self._keeper.keep(
                    context, item.tool.paths(item.arguments, context.cwd)
                )
            return await item.tool.run(item.arguments, context)
        except ToolFailed as error:
            return ToolResult(text=in_sentences(error), ok=False)
        except Exception as error:
            log.exception("tool %s failed", item.call.name)
            return ToolResult(
                text=f"The tool failed: {type(error).__name__}: {error}", ok=False
            )

    def _prepare(self, call: ToolCall) -> ReadyCall | Unusable:
        tool = self._tools.get(call.name)
        if tool is None:
            return Unusable(
                call,
                "unknown_tool",
                f"there is no tool {call.name!r}. {_known(call.name, self._tools)}",
            )
        try:
            arguments = parse_arguments(call.arguments)
        except BadArguments as error:
            return Unusable(call, "bad_arguments", str(error))
        if problem := check_arguments(arguments, tool.spec.parameters):
            return Unusable(call, "bad_arguments", problem)
        if isinstance(tool, ForwardingTool):
            return self._forward(call, tool, cast("dict[str, Any]", arguments))
        return ReadyCall(call, tool, cast("dict[str, Any]", arguments))

    def _forward(
        self, call: ToolCall, tool: ForwardingTool, arguments: Mapping[str, Any]
    ) -> ReadyCall | Unusable:
        """Prepares the call that another one stands for. From here on, everybody sees only that call, under the same
        id."""
        try:
            meant = tool.forwarded(arguments)
        except ToolFailed as error:
            return Unusable(call, "bad_arguments", in_sentences(error))
        inner = ToolCall(
            id=call.id,
            name=meant.name,
            arguments=msgspec.json.encode(meant.arguments).decode(),
        )
        if isinstance(self._tools.get(meant.name), ForwardingTool):
            return Unusable(call, "bad_arguments", f"{meant.name} can't be called so")
        return self._prepare(inner)


def _known(name: str, tools: Mapping[str, Tool]) -> str:
    """Lists the tools that exist; if there are very many, those with similar names."""
    if len(tools) <= _MAX_NAMED_TOOLS:
        return f"There are: {', '.join(sorted(tools))}"
    import difflib  # slow to load, and rarely needed

    near = difflib.get_close_matches(name, tools, n=5, cutoff=0.4)
    return f"Similar names: {', '.join(near)}" if near else "Check its name."


def check_arguments(arguments: object, schema: Mapping[str, Any]) -> str:
    """What is wrong with the shape of the arguments; empty if nothing is. The tool checks the values."""
    if not isinstance(arguments, dict):
        return "the arguments must be a JSON object"
    properties = schema.get("properties", {})
    missing = [name for name in schema.get("required", ()) if name not in arguments]
    is_open = (
        schema.get("additionalProperties", False) is not False
    )  # only MCP servers have such tools
    unknown: list[str] = (
        [] if is_open else [name for name in arguments if name not in properties]
    )
    if missing:
        return f"missing argument: {', '.join(missing)}"
    if unknown:
        return f"unknown argument: {', '.join(map(str, unknown))}. There are: {', '.join(properties)}"
    return ""


def refusal_of(answer: ApprovalAnswered) -> str:
    """Why a request was denied, in the person's words if there are any."""
    if answer.reason:
        return f"the user said no: {writable(answer.reason)}"
    return _DENIED.get(answer.by, "the user said no")


def _denial(answer: ApprovalAnswered) -> str:
    """What the model reads when a call is denied. The person's reason may say what to do instead."""
    refusal = refusal_of(answer)
    return (
        refusal
        if answer.reason
        else f"{refusal}. Do not try to do the same in another way."
    )


def finished(call: ToolCall, text: str, *, ok: bool = True) -> ToolFinished:
    """The result of a call, as text."""
    return ToolFinished(call_id=call.id, name=call.name, text=text, ok=ok)


def readable(result: ToolResult) -> str:
    """The text of a result for the model: without hidden characters, and with outside text marked as such."""
    text = without_hidden(result.text)
    return writable(fenced(text, result.source) if result.source else text)


def writable(text: str) -> str:
    """Text that can be stored and sent. Invalid characters (mostly in file names) are replaced by their codes."""
    return text.encode("utf-8", "backslashreplace").decode()


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The error of a task group that is the cause. The other tasks were cancelled because of it."""
    inner = group.exceptions[0]
    return _first(inner) if isinstance(inner, BaseExceptionGroup) else inner


def _intent(item: ReadyCall) -> ToolStarted:
    return ToolStarted(
        call_id=item.call.id, name=item.call.name, arguments=item.call.arguments
    )


async def _failure(item: ReadyCall, cwd: Path) -> str:
    """Why a call can't succeed or would change nothing, so that nobody is asked about it; empty if it may run."""
    precheck = getattr(item.tool, "precheck", None)
    if precheck is None:
        return ""
    try:
        await asyncio.to_thread(precheck, item.arguments, cwd)
    except ToolFailed as error:
        return in_sentences(error)
    return ""


def _plan(index: int, item: ReadyCall | Unusable, cwd: Path) -> PlannedCall:
    if isinstance(item, Unusable):
        return PlannedCall(index, "read")
    paths = item.tool.paths(item.arguments, cwd) if item.tool.effect == "files" else ()
    return PlannedCall(index, item.tool.effect, paths)


def segments(calls: Sequence[PlannedCall]) -> list[list[PlannedCall]]:
    """Groups calls, in order, into segments that may run at the same time.

    Calls that only read run together, and so do calls that only look something up on the network. Calls that change
    named files run together unless their files overlap. Anything else runs alone.
    """
    groups: list[list[PlannedCall]] = []
    for call in calls:
        if groups and _fits(call, groups[-1]):
            groups[-1].append(call)
        else:
            groups.append([call])
    return groups


def _fits(call: PlannedCall, group: list[PlannedCall]) -> bool:
    if call.effect == "other" or group[0].effect != call.effect:
        return False
    return call.effect != "files" or not any(_overlap(call, other) for other in group)


def _overlap(one: PlannedCall, two: PlannedCall) -> bool:
    """Whether a path of one equals, contains or lies within a path of the other. A call without paths overlaps everything."""
    if not one.paths or not two.paths:
        return True
    return any(
        a == b or a in b.parents or b in a.parents for a in one.paths for b in two.paths
    )
