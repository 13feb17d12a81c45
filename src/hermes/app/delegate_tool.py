"""The tool `delegate`: child agents. Each child has its own session, so its work is in the log whatever happens to the
parent. A child is identified by its session's id. Children share their parent's caps and its user."""

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from hermes.app.app import App
from hermes.app.session_service import SessionService
from hermes.app.session_titles import shortened
from hermes.core.fence import FENCE
from hermes.core.ports import ToolContext
from hermes.errors import HermesError, SessionNotFound, ToolFailed
from hermes.primitives.lazy_pattern import lazy_pattern
from hermes.schema.events import (
    SessionCreated,
    SessionTitled,
    TurnEnded,
    TurnStarted,
)
from hermes.schema.messages import AssistantMessage, ToolFinished
from hermes.schema.tool_spec import ToolResult
from hermes.store.sessions import SessionInfo
from hermes.tools.tool import FunctionTool, tool

MAX_DELEGATION_DEPTH = 2  # children of children
_MAX_RUNNING_CHILDREN = 8
_MAX_ANSWER_CHARS = 30_000
_AGENT = lazy_pattern(r"\s*@([a-z0-9][a-z0-9_-]*)[:,]?\s+")
"""The name of an agent before a task, as the prompts of older sessions ask for it."""
_WORKTREE = lazy_pattern(r"\s*\+worktree(?:=([a-z0-9][a-z0-9_-]*))?\s+")
WORKTREE_HINT = (
    "Begin a task for `delegate` with +worktree to let the child work in its own copy of "
    "the repository, which the user can merge."
)
_TASK = (
    "You work for another agent, which gave you this task. Do it to its end and answer with the complete result: the "
    "answer is all that the other agent sees.\n\n"
)


def delegate_for(tool: FunctionTool, agents: Sequence[tuple[str, str]]) -> FunctionTool:
    """The tool as a session sees it. The argument `agent` is there only if there are agents, and names them."""
    spec = tool.spec
    properties = dict(spec.parameters["properties"])
    argument = properties.pop("agent")
    if agents:
        listed = "; ".join(f"{name}: {about or 'no description'}" for name, about in agents)  # fmt: skip
        text = f"{argument['description']} Without one, a copy of you. {listed}"
        properties["agent"] = {**argument, "description": text}
    parameters = {**spec.parameters, "properties": properties}
    return tool.offered_as(msgspec.structs.replace(spec, parameters=parameters))


class Delegation:
    """The children of all sessions of one process."""

    def __init__(
        self,
        app: App,
        service: Callable[[], SessionService],
        begin_agent: Callable[[str, str, Path], None] = lambda *_: None,
    ) -> None:
        self._begin_agent = begin_agent
        self._app = app
        self._service = service
        self._starting = asyncio.Lock()

    @tool("delegate", effect="read")
    async def delegate(  # noqa: PLR0913, PLR0917 - its arguments
        self,
        context: ToolContext,
        action: Literal["start", "list", "wait", "tell", "stop"] = "start",
        task: Annotated[
            str, Meta(description="For start, tell: all it needs to know.")
        ] = "",
        child: Annotated[str, Meta(description="For wait, tell, stop.")] = "",
        background: Annotated[bool, Meta(description="Don't wait.")] = False,
        seconds: Annotated[int, Meta(ge=1, le=3600)] = 900,
        agent: Annotated[str, Meta(description="For start: who works on it.")] = "",
    ) -> ToolResult:
        """Gives a task to a child agent with a fresh context and the same tools; returns its answer. Calls in one
        reply run side by side. For work whose details you don't need to see."""
        if action == "list":
            return ToolResult(text=await asyncio.to_thread(self._list, context.session))
        if action == "start":
            async with self._starting:  # one at a time, so that the count is right
                child = await self._start(context, task, agent)
        else:
            child = self._find_child(context.session, child)
        if action == "stop":
            await self._service().interrupt(child, by="delegate")
            await self._service().idle(child)
            return await self._result(child)
        if action == "tell":
            await self._service().submit(child, _required(task))
        if background and action in ("start", "tell"):
            return ToolResult(
                text=f"child {child} is working; see `wait`, `stop` and `list`"
            )
        return await self._wait(context, child, seconds, started_here=action != "wait")

    async def _start(self, context: ToolContext, task: str, agent: str) -> str:
        """Begins a child session and gives it the task."""
        info = self._app.store.sessions.find(context.session)
        running = [
            one.id for one in self._children(context.session) if self._runs(one.id)
        ]
        if len(running) >= _MAX_RUNNING_CHILDREN:
            raise ToolFailed(
                f"{len(running)} children are already working.",
                hint="Wait for one of them, or stop one.",
            )
        folder = context.cwd
        if apart := _WORKTREE.match(_required(task)):
            folder = await asyncio.to_thread(self._worktree, context.cwd, apart[1])
            task = task[apart.end() :]
        created = SessionCreated(
            kind="child",
            parent=info.id,
            parent_seq=info.head,
            root=info.top or info.id,
            surface="delegate",
            cwd=str(folder),
        )
        named = _AGENT.match(_required(task))
        text = _TASK + (task[named.end() :] if named else task)
        agent = agent.strip().removeprefix("@") or (named[1] if named else "")
        child = (await asyncio.to_thread(self._app.begin, created)).session
        if agent:
            await self._name_agent(child, agent, folder)
        title = shortened(task[named.end() :] if named else task)
        titled = SessionTitled(title=title, by="hermes")
        await asyncio.to_thread(self._app.record, child, titled)
        await self._service().submit(child, text)
        return child

    def _worktree(self, cwd: Path, name: str | None) -> Path:
        """The folder of a worktree for a child, which is made if there is none of that name."""
        from hermes.app.worktrees import user_worktrees

        now = self._app.clock.now()
        try:
            return Path(user_worktrees().open(cwd, name or "", now=now).folder)
        except HermesError as error:
            raise ToolFailed(error.message, hint=error.hint) from error

    async def _name_agent(self, child: str, name: str, cwd: Path) -> None:
        """Lets the child work as an agent from a file. Without one of that name there is no child."""
        try:
            await asyncio.to_thread(self._begin_agent, child, name, cwd)
        except HermesError as error:
            await asyncio.to_thread(self._app.delete, child)
            raise ToolFailed(error.message, hint=error.hint) from error

    async def _wait(
        self, context: ToolContext, child: str, seconds: int, *, started_here: bool
    ) -> ToolResult:
        """Waits for a child. An interrupt also stops the child if it was started by this call."""
        with self._shown(context, child):
            try:
                with contextlib.suppress(
                    TimeoutError
                ):  # the child continues; its text so far is returned
                    async with asyncio.timeout(seconds):
                        await self._service().idle(child)
            except asyncio.CancelledError:
                if started_here:
                    await asyncio.shield(
                        self._service().interrupt(child, by="delegate")
                    )
                raise
        return await self._result(child)

    @contextmanager
    def _shown(self, context: ToolContext, child: str) -> Iterator[None]:
        """Shows what the child does while its parent waits."""
        from hermes.app.child_sessions import call_in_words

        def see(event: Mapping[str, Any]) -> None:
            if event.get("session_id") == child:
                words = call_in_words(event["name"], str(event["arguments"]))
                context.show(f"{child[-6:]}: {words}\n")

        handle = self._app.bus.subscribe("agent.tool.started", see)
        try:
            yield
        finally:
            self._app.bus.unsubscribe(handle)

    async def _result(self, child: str) -> ToolResult:
        return await asyncio.to_thread(self._read_result, child)

    def _read_result(self, child: str) -> ToolResult:
        """The child's answer, or how far it got."""
        said, ended, is_tainted = self._outcome(child)
        source = f"child {child}, which read text from outside" if is_tainted else ""
        if len(said) > _MAX_ANSWER_CHARS:
            said = f"{said[:_MAX_ANSWER_CHARS]}\n[cut; the full answer is in session {child}: see session_search]"
        where = self._worktree_note(child)
        if self._runs(child):
            from hermes.app.child_sessions import child_status

            doing = child_status(self._app, child).doing or "starting"
            return ToolResult(
                text=f"child {child} is still working ({doing}). So far:\n{said or '(nothing said yet)'}",
                source=source,
            )
        if ended is None:  # the process ended before the child was done
            return ToolResult(
                text=f"child {child} was cut off; `tell` it to continue. So far:\n{said}{where}",
                ok=False,
                source=source,
            )
        if ended.reason == "done":
            text = f"{said}\n[child {child}: done]{where}"
            return ToolResult(text=text, source=source)
        state = " ".join(part for part in (ended.reason, ended.detail) if part)
        return ToolResult(
            text=f"{said or '(no answer)'}\n[child {child}: {state}]{where}",
            ok=False,
            source=source,
        )

    def _worktree_note(self, child: str) -> str:
        """What a child left in a worktree of its own, and how that gets into the checkout."""
        cwd = self._app.store.sessions.origin(child).working_directory
        parent = self._app.store.sessions.origin(child).parent
        if cwd == self._app.store.sessions.origin(parent).working_directory:
            return ""
        from hermes.app.worktrees import user_worktrees

        trees = user_worktrees()
        if (tree := trees.at(cwd)) is None:
            return ""
        held = trees.state(tree)
        merge = f"/worktree merge {tree.name} (in a shell: hermes worktree merge {tree.name})"
        return f"\n[worktree {tree.name}: {held}; the user merges it with {merge}]"

    def _outcome(self, child: str) -> tuple[str, TurnEnded | None, bool]:
        """The last text of a child, the end of its last turn, and whether it read text from outside."""
        said, ended, is_tainted = "", None, False
        for row in self._app.store.log.every_event(child):
            match row.event:
                case AssistantMessage(text=text) if text:
                    said = text
                case ToolFinished(text=text):
                    is_tainted = is_tainted or text.startswith(FENCE)
                case TurnStarted():
                    ended = None
                case TurnEnded() as ended:
                    pass
                case _:
                    pass
        return said, ended, is_tainted

    def _list(self, session: str) -> str:
        from hermes.app.child_sessions import child_status

        found = [child_status(self._app, one.id) for one in self._children(session)]
        lines = [
            f"{one.id} {one.state}{f' ({one.doing})' if one.doing else ''}, {one.turns} turns, {one.tokens:,} tokens, "
            f"{one.seconds:.0f} s: {one.title or '(no title)'}"
            for one in found
        ]
        return "\n".join(lines) or "no children yet"

    def _children(self, session: str) -> list[SessionInfo]:
        return self._app.store.sessions.children(session)

    def _find_child(self, session: str, child: str) -> str:
        """The id of the child that is meant. Raises ToolFailed unless it is a child of this session."""
        own = [info.id for info in self._children(session)]
        if child in own:
            return child
        known = ", ".join(own) or "none"
        raise ToolFailed(
            f"There is no child {child!r}.", hint=f"Children of this session: {known}."
        )

    def _runs(self, child: str) -> bool:
        return (
            self._service().works_on(child)
            or self._app.store.leases.holder(child) is not None
        )


def depth(app: App, session: str) -> int:
    """How many parents a session has."""
    steps = 0
    while steps <= MAX_DELEGATION_DEPTH:
        try:
            info = app.store.sessions.origin(session)
        except SessionNotFound:
            break
        if info.kind != "child":
            break
        session, steps = info.parent, steps + 1
    return steps


def _required(task: str) -> str:
    if not task.strip():
        raise ToolFailed(
            "The task is empty.",
            hint="Say what the child should do, with everything it needs to know.",
        )
    return task
