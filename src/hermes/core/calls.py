"""Runs the tool calls of one reply: intent on disk first, approval if needed, then the effect, then its result.

A call with arguments that are not what its schema asks for is never run.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from hermes.core.plan import Planned, segments
from hermes.core.ports import Approvals, Journal, Policy, Tool, ToolContext
from hermes.core.reply import Fault
from hermes.errors import ToolFailed
from hermes.schema.event import Event
from hermes.schema.events import ApprovalAnswered, ApprovalRequested, ToolProgress, ToolStarted
from hermes.schema.messages import ToolCall, ToolFinished
from hermes.schema.tools import ToolResult

log = logging.getLogger("hermes.core")

AT_ONCE = 8
"""How many calls of a segment run at the same time."""


class Ready(msgspec.Struct, frozen=True):
    """A call that can run."""

    call: ToolCall
    tool: Tool
    arguments: Mapping[str, Any]


class Unusable(msgspec.Struct, frozen=True):
    """A call that can't, and why."""

    call: ToolCall
    fault: Fault
    detail: str


class CallRunner:
    """Runs calls with a set of tools, under a policy."""

    def __init__(self, tools: Mapping[str, Tool], policy: Policy, approvals: Approvals) -> None:
        self._tools = tools
        self._policy = policy
        self._approvals = approvals

    def prepare(self, calls: Sequence[ToolCall]) -> list[Ready | Unusable]:
        """Finds each call's tool and reads its arguments, strictly."""
        return [self._prepare(call) for call in calls]

    async def run(
        self,
        journal: Journal,
        prepared: Sequence[Ready | Unusable],
        before: Sequence[Event],
        *,
        session: str,
        cwd: Path,
    ) -> None:
        """Runs everything in order, in segments. `before` is written together with the first intents."""
        pending: list[Event] = list(before)
        planned = [_plan(index, item, cwd) for index, item in enumerate(prepared)]
        for segment in segments(planned):
            items = [prepared[planned_call.index] for planned_call in segment]
            pending += [_intent(item) for item in items if isinstance(item, Ready)]
            await journal.record(*pending)
            pending.clear()
            await self._run_segment(journal, items, session, cwd)

    async def _run_segment(self, journal: Journal, items: Sequence[Ready | Unusable], session: str, cwd: Path) -> None:
        """Runs a segment's calls together and records their results in the order of the calls."""
        places = asyncio.Semaphore(AT_ONCE)

        async def one(item: Ready | Unusable) -> ToolFinished:
            if isinstance(item, Unusable):
                return finished(item.call, f"Not run: {item.detail}", ok=False)
            async with places:
                return await self._run_call(journal, item, session, cwd)

        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(one(item)) for item in items]
                for task in tasks:
                    await journal.record(await task)
        except BaseExceptionGroup as failures:
            raise _first(failures) from failures

    async def _run_call(self, journal: Journal, item: Ready, session: str, cwd: Path) -> ToolFinished:
        decision = self._policy.judge(item.tool, item.arguments, cwd)
        if decision.verdict == "forbid":
            return finished(item.call, f"Not run: forbidden by policy: {decision.reason}", ok=False)
        if decision.verdict == "ask":
            answer = await self._ask(item, decision.summary, decision.reason)
            if answer.answer == "deny":
                who = "nobody could be asked for approval" if answer.by == "nobody" else "the user said no"
                return finished(item.call, f"Not run: {who}. Do not try to do the same in another way.", ok=False)

        def show(text: str) -> None:
            journal.show(ToolProgress(call_id=item.call.id, text=writable(text)))

        context = ToolContext(item.call.id, session, cwd, show)
        result = await _guarded(item, context)
        return ToolFinished(
            call_id=item.call.id, name=item.call.name, text=writable(result.text), ok=result.ok, images=result.images
        )

    async def _ask(self, item: Ready, summary: str, reason: str) -> ApprovalAnswered:
        request = ApprovalRequested(
            call_id=item.call.id, name=item.call.name, arguments=item.call.arguments, summary=summary, reason=reason
        )
        return await self._approvals.ask(request)

    def _prepare(self, call: ToolCall) -> Ready | Unusable:
        tool = self._tools.get(call.name)
        if tool is None:
            known = ", ".join(sorted(self._tools))
            return Unusable(call, "unknown_tool", f"there is no tool {call.name!r}. There are: {known}")
        try:
            arguments = msgspec.json.decode(call.arguments or "{}")
        except msgspec.DecodeError as error:
            return Unusable(call, "bad_arguments", f"the arguments are not valid JSON ({error})")
        problem = check_arguments(arguments, tool.spec.parameters)
        return Unusable(call, "bad_arguments", problem) if problem else Ready(call, tool, arguments)


def check_arguments(arguments: object, schema: Mapping[str, Any]) -> str:
    """What is wrong with the arguments' shape; empty when nothing is. Values are checked by the tool itself."""
    if not isinstance(arguments, dict):
        return "the arguments must be a JSON object"
    properties = schema.get("properties", {})
    missing = [name for name in schema.get("required", ()) if name not in arguments]
    unknown = [name for name in arguments if name not in properties]
    if missing:
        return f"missing argument: {', '.join(missing)}"
    if unknown:
        return f"unknown argument: {', '.join(map(str, unknown))}. There are: {', '.join(properties)}"
    return ""


def finished(call: ToolCall, text: str, *, ok: bool = True) -> ToolFinished:
    """The result of a call, in words."""
    return ToolFinished(call_id=call.id, name=call.name, text=text, ok=ok)


async def _guarded(item: Ready, context: ToolContext) -> ToolResult:
    """The boundary of a tool: whatever goes wrong in it becomes a result the model can read."""
    try:
        return await item.tool.run(item.arguments, context)
    except ToolFailed as error:
        return ToolResult(text=" ".join(part for part in (error.message, error.hint) if part), ok=False)
    except Exception as error:
        log.exception("tool %s failed", item.call.name)
        return ToolResult(text=f"The tool failed: {type(error).__name__}: {error}", ok=False)


def writable(text: str) -> str:
    """Text that can be stored and sent: what is not a character (in file names, mostly) is shown as its code."""
    return text.encode("utf-8", "backslashreplace").decode()


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The failure inside a group of tasks that says why; one is enough, the others were cancelled."""
    inner = group.exceptions[0]
    return _first(inner) if isinstance(inner, BaseExceptionGroup) else inner


def _intent(item: Ready) -> ToolStarted:
    return ToolStarted(call_id=item.call.id, name=item.call.name, arguments=item.call.arguments)


def _plan(index: int, item: Ready | Unusable, cwd: Path) -> Planned:
    if isinstance(item, Unusable):
        return Planned(index, "read")
    paths = item.tool.paths(item.arguments, cwd) if item.tool.effect == "files" else ()
    return Planned(index, item.tool.effect, paths)
