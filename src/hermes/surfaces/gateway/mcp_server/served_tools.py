"""What other agents may use of Hermes, by scope. Nobody can be asked, so what needs approval is refused."""

import asyncio
import itertools
from collections.abc import Callable, Collection, Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import msgspec

from hermes.app import App
from hermes.commands.context import CommandContext
from hermes.commands.memory import show_memory
from hermes.commands.sessions import list_sessions, search_sessions
from hermes.commands.views import Block, document_of
from hermes.core.calls import check_arguments, readable
from hermes.core.ports import Policy, Tool, ToolContext
from hermes.errors import HermesError, Refused, ToolFailed, UsageError, in_sentences
from hermes.schema.messages import AssistantMessage, UserMessage
from hermes.schema.tool_spec import ToolResult, ToolSpec
from hermes.tools import close_tools

ServedScope: TypeAlias = Literal["sessions", "memory", "tools"]
SERVED_SCOPES: tuple[ServedScope, ...] = get_args(ServedScope)
READING_SCOPES: tuple[ServedScope, ...] = ("sessions", "memory")
served_caller: ContextVar[str] = ContextVar("served_caller", default="")
"""The id of the key with which the current call came."""
_MAX_RESULT_CHARACTERS = 60_000
_MAX_MESSAGES = 200


class QuietSurface:
    """The surface of commands that another agent calls: it sees only the result."""

    name = "mcp"

    def tell(self, *blocks: Block) -> None:
        """Shows nothing."""

    def warn(self, message: str, hint: str = "") -> None:
        """Shows nothing."""

    def confirm(self, question: str, nothing_done: str) -> bool:
        """Refuses: nobody is there."""
        raise Refused(question, hint=nothing_done)

    def read_secret(self, name: str) -> str:
        """Refuses: nobody is there."""
        raise UsageError(f"{name}: a value is missing.")


class ServedTool(msgspec.Struct, frozen=True):
    """One tool for other agents. `run` is called in a thread."""

    scope: ServedScope
    spec: ToolSpec
    run: Callable[[Mapping[str, Any]], Any]


class ServedTools:
    """The tools that a caller with certain scopes sees and may call."""

    def __init__(
        self,
        app: App,
        make_tools: Callable[[], Mapping[str, Tool]],
        policy: Policy,
        cwd: Path,
    ) -> None:
        self._app = app
        self._make_tools = make_tools
        self._policy = policy
        self._cwd = cwd
        self._numbers = itertools.count(1)
        self._tools: dict[str, dict[str, Tool]] = {}
        """By caller: tools hold running commands, temporary files and lists that are no other caller's business."""
        self._own = {one.spec.name: one for one in self._readers()}

    def listed(self, scopes: Collection[str]) -> list[tuple[ToolSpec, bool]]:
        """Returns the tools for these scopes, and whether each only reads."""
        own = [(one.spec, True) for one in self._own.values() if one.scope in scopes]
        if "tools" not in scopes:
            return own
        lent = [
            (msgspec.structs.replace(one.spec, name=name), one.effect == "read")
            for name, one in self._tools_of_caller().items()
        ]
        return own + lent

    async def call(
        self, scopes: Collection[str], name: str, arguments: Mapping[str, Any]
    ) -> ToolResult:
        """Calls a tool. A scope that is missing, and a call that needs approval, is a refusal."""
        own = self._own.get(name)
        if own is not None and own.scope in scopes:
            return await self._read(own, arguments)
        lent = self._tools_of_caller().get(name) if "tools" in scopes else None
        if lent is not None:
            return await self._lend(lent, arguments)
        return ToolResult(text=f"There is no tool {name[:100]!r} for you.", ok=False)

    async def close(self) -> None:
        """Ends what callers left running."""
        for tools in self._tools.values():
            await close_tools(tools)
        self._tools.clear()

    def _tools_of_caller(self) -> dict[str, Tool]:
        """Returns the tools of whoever calls now; made on the first use."""
        caller = served_caller.get()
        if caller not in self._tools:
            self._tools[caller] = {
                f"hermes_{name}": one
                for name, one in self._make_tools().items()
                if one.effect != "files"
            }
        return self._tools[caller]

    async def _read(self, tool: ServedTool, arguments: Mapping[str, Any]) -> ToolResult:
        if problem := check_arguments(arguments, tool.spec.parameters):
            return ToolResult(text=f"Not run: {problem}", ok=False)
        try:
            found = await asyncio.to_thread(tool.run, arguments)
        except HermesError as error:
            return ToolResult(text=in_sentences(error), ok=False)
        text = msgspec.json.encode(found, enc_hook=str).decode()
        if len(text) > _MAX_RESULT_CHARACTERS:
            text = f"{text[:_MAX_RESULT_CHARACTERS]} [cut; ask for less]"
        return ToolResult(text=text)

    async def _lend(self, tool: Tool, arguments: Mapping[str, Any]) -> ToolResult:
        if problem := check_arguments(arguments, tool.spec.parameters):
            return ToolResult(text=f"Not run: {problem}", ok=False)
        decision = self._policy.judge(tool, arguments, self._cwd)
        if decision.verdict != "allow":
            return ToolResult(
                text="Not run: it needs permission, and nobody can be asked here.",
                ok=False,
            )
        context = ToolContext(
            f"served-{next(self._numbers)}",
            "",
            self._cwd,
            lambda _: None,
            reach=decision.reach,
            targets=decision.targets,
            read_only=decision.read_only,
        )
        try:
            result = await tool.run(arguments, context)
        except ToolFailed as error:
            return ToolResult(text=in_sentences(error), ok=False)
        return ToolResult(text=readable(result), ok=result.ok, images=result.images)

    def _readers(self) -> tuple[ServedTool, ...]:
        return (
            _served(
                "sessions",
                "sessions_list",
                "Lists the user's sessions with Hermes, the most recently used first.",
                lambda given: self._command(list_sessions, limit=_limit(given, 20)),
                limit={"type": "integer"},
            ),
            _served(
                "sessions",
                "sessions_search",
                "Finds messages in the user's sessions that have all these words, newest first.",
                lambda given: self._command(
                    search_sessions,
                    words=tuple(str(given["query"]).split()),
                    session=str(given.get("session", "")),
                    limit=_limit(given, 20),
                ),
                ("query",),
                query={"type": "string"},
                session={"type": "string", "description": "Only in this one."},
                limit={"type": "integer"},
            ),
            _served(
                "sessions",
                "sessions_read",
                "Reads the last messages of a session.",
                self._messages,
                ("session",),
                session={"type": "string", "description": "Its id or title."},
                limit={"type": "integer"},
            ),
            _served(
                "memory",
                "memory_read",
                "Reads what Hermes remembers about the user and their work.",
                lambda _: self._command(show_memory),
            ),
        )

    def _command(self, command: Any, **arguments: Any) -> Any:
        with CommandContext(QuietSurface(), app=self._app) as context:
            return document_of(command.function(context, **arguments))

    def _messages(self, given: Mapping[str, Any]) -> Any:
        store = self._app.store
        session = store.sessions.find(str(given["session"]))
        spoken = [
            {
                "role": "user" if isinstance(row.event, UserMessage) else "hermes",
                "text": row.event.text,
            }
            for row in store.log.every_event(session.id)
            if isinstance(row.event, UserMessage | AssistantMessage) and row.event.text
        ]
        return {
            "session": session.id,
            "title": session.title,
            "messages": spoken[-_limit(given, 20) :],
        }


def _served(
    scope: ServedScope,
    name: str,
    description: str,
    run: Callable[[Mapping[str, Any]], Any],
    required: tuple[str, ...] = (),
    **properties: Any,
) -> ServedTool:
    parameters = {
        "type": "object",
        "properties": properties,
        "required": list(required),
    }
    spec = ToolSpec(name=name, description=description, parameters=parameters)
    return ServedTool(scope, spec, run)


def _limit(given: Mapping[str, Any], default: int) -> int:
    wanted = given.get("limit", default)
    if isinstance(wanted, int):
        return max(1, min(wanted, _MAX_MESSAGES))
    return default
