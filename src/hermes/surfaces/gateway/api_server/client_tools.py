"""Tools of the caller: the model calls them, the caller runs them, and the results come with its next request.

Until then the turn waits. The caller gets call ids that we make, because two sessions may use the same id for their
calls.
"""

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from hermes.core.ports import Effect, Tool, ToolContext
from hermes.errors import ToolFailed
from hermes.primitives.recent import RecentDict
from hermes.schema.messages import ToolCall
from hermes.schema.tool_spec import ToolResult, ToolSpec

_RESULT_TIMEOUT_S = 600.0
_QUIET_S = 2.0
"""If the other calls of a message have not begun by then, those that have are handed over."""
_MAX_SESSIONS = 2_000


class _WaitingCall(msgspec.Struct):
    call: ToolCall
    result: "asyncio.Future[str]"
    is_handed_over: bool = False


class ClientTools:
    """The tools of the callers of one server, and the calls that wait for them."""

    def __init__(self) -> None:
        self._specs: RecentDict[str, tuple[ToolSpec, ...]] = RecentDict(_MAX_SESSIONS)
        self._waiting: dict[str, dict[str, _WaitingCall]] = {}
        self._begun: dict[str, asyncio.Event] = {}
        self._expected: dict[str, int] = {}

    def offer(self, session: str, specs: Sequence[ToolSpec]) -> None:
        """Offers tools in a session, before its first turn."""
        if specs:
            self._specs[session] = tuple(specs)

    def of(self, session: str) -> tuple[Tool, ...]:
        """The caller's tools in a session."""
        return tuple(
            ClientTool(spec, self, session) for spec in self._specs.get(session, ())
        )

    def session_of(self, ids: Sequence[str]) -> str:
        """The session whose calls have these ids; empty if none of them waits."""
        for session, calls in self._waiting.items():
            if any(one in calls for one in ids):
                return session
        return ""

    def resolve(self, session: str, results: Mapping[str, str]) -> None:
        """Passes results to the calls that wait for them; the others get none."""
        for name, waiting in self._waiting.get(session, {}).items():
            if waiting.result.done():
                continue
            if name in results:
                waiting.result.set_result(results[name])
            elif waiting.is_handed_over:
                waiting.result.set_exception(
                    ToolFailed("The application returned no result for this call.")
                )

    def expect(self, session: str, names: Sequence[str]) -> None:
        """Notes which tools a message calls, so that its calls are handed over together."""
        own = {spec.name for spec in self._specs.get(session, ())}
        self._expected[session] = sum(name in own for name in names)
        self._begun.setdefault(session, asyncio.Event()).set()

    def followed(self, session: str) -> None:
        """Forgets what was noted for whoever followed a session, unless calls still wait there."""
        if session not in self._waiting:
            self._begun.pop(session, None)
            self._expected.pop(session, None)

    async def next_calls(self, session: str) -> tuple[ToolCall, ...]:
        """Waits until the model has called tools of the caller. Each call is returned once."""
        begun = self._begun.setdefault(session, asyncio.Event())
        while True:
            fresh = self._fresh(session)
            is_whole = 0 < self._expected.get(session, 0) <= len(fresh)
            is_late = False
            if not is_whole:
                is_late = not await _set_within(begun, _QUIET_S if fresh else None)
                begun.clear()
            if fresh and (is_whole or is_late):
                self._expected.pop(session, None)
                for one in fresh:
                    one.is_handed_over = True
                return tuple(one.call for one in fresh)

    def _fresh(self, session: str) -> list[_WaitingCall]:
        waiting = self._waiting.get(session, {}).values()
        return [one for one in waiting if not one.is_handed_over]

    async def result(self, session: str, call: ToolCall) -> str:
        """Waits for the result of a call."""
        name = _public_id(session, call.id)
        shown = msgspec.structs.replace(call, id=name)
        waiting = _WaitingCall(shown, asyncio.get_running_loop().create_future())
        self._waiting.setdefault(session, {})[name] = waiting
        self._begun.setdefault(session, asyncio.Event()).set()
        try:
            async with asyncio.timeout(_RESULT_TIMEOUT_S):
                return await waiting.result
        except TimeoutError:
            raise ToolFailed(
                f"The application returned no result within {_RESULT_TIMEOUT_S:.0f} s."
            ) from None
        finally:
            calls = self._waiting[session]
            del calls[name]
            if not calls:
                del self._waiting[session]


class ClientTool:
    """One tool of the caller. It needs no approval: the caller decides itself what to run."""

    effect: Effect = "read"

    def __init__(self, spec: ToolSpec, owner: ClientTools, session: str) -> None:
        self.spec = spec
        self._calls = owner
        self._session = session

    def paths(self, arguments: Mapping[str, Any], cwd: Path) -> tuple[Path, ...]:
        """None: the tool works where the caller is."""
        del arguments, cwd
        return ()

    async def run(
        self, arguments: Mapping[str, Any], context: ToolContext
    ) -> ToolResult:
        """Hands the call over and waits for its result."""
        text = msgspec.json.encode(arguments).decode()
        call = ToolCall(id=context.call_id, name=self.spec.name, arguments=text)
        return ToolResult(text=await self._calls.result(self._session, call))


async def _set_within(event: asyncio.Event, seconds: float | None) -> bool:
    try:
        async with asyncio.timeout(seconds):
            return await event.wait()
    except TimeoutError:
        return False


def _public_id(session: str, call_id: str) -> str:
    digest = hashlib.sha256(f"{session}\n{call_id}".encode()).hexdigest()
    return f"call_{digest[:24]}"
