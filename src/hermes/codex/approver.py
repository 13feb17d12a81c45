"""Decides whether codex may do what it asks for: Hermes' policy first, then the person, through the same port as for
Hermes' own tools. Anything but a clear yes is a no, and each denial is logged with its reason.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

import msgspec

from hermes.core.calls import refusal_of
from hermes.core.ports import Approver, PolicyDecision
from hermes.schema.event_base import Event
from hermes.schema.events import (
    ApprovalAnswered,
    ApprovalRequested,
    QuestionAsked,
    Reach,
)

log = logging.getLogger("hermes.codex")

Verdict: TypeAlias = Literal["once", "session", "always", "deny"]
Record: TypeAlias = Callable[[Sequence[Event]], Awaitable[None]]
AskVeto: TypeAlias = Callable[[str, str, Mapping[str, Any]], Awaitable[str]]
"""Returns why plugins forbid a call, given its id, its tool's name and its arguments; empty if none does."""
Explain: TypeAlias = Callable[[str], Awaitable[None]]
"""Sends codex the reason for a denial: codex's answer format has no field for it."""


async def drop_reason(reason: str) -> None:
    """Drops the reason: there is nobody to send it to."""


class CommandPolicy(Protocol):
    """The policy. It needs none of the session's tools, because codex has its own."""

    def check(
        self, command: str, folder: Path, *, workspace: Path | None = None
    ) -> PolicyDecision:
        """Judges a command."""
        ...

    def check_files(
        self, paths: tuple[Path, ...], workspace: Path, *, below: tuple[Path, ...] = ()
    ) -> PolicyDecision:
        """Judges changes to these files, and to anything in the folders `below`."""
        ...

    def check_host(self, host: str) -> PolicyDecision:
        """Judges reaching a host."""
        ...

    def check_tool(self, name: str) -> PolicyDecision:
        """Judges a call to a tool of an MCP server."""
        ...


class CodexApprover:
    """Decides about the requests of one turn."""

    def __init__(
        self,
        approvals: Approver,
        record: Record,
        refusals: MutableMapping[str, str],
        explain: Explain = drop_reason,
        veto: AskVeto | None = None,
    ) -> None:
        self._veto = veto
        self._approvals = approvals
        self._record = record
        self._refusals = refusals
        self._explain = explain
        self.waiting = 0
        """How many questions are waiting for a person now."""

    async def decide(
        self,
        request: ApprovalRequested,
        judge: Callable[[], PolicyDecision],
        *,
        is_free: Callable[[PolicyDecision], bool] = lambda _: False,
        plugin_call: tuple[str, Mapping[str, Any]] | None = None,
    ) -> Verdict:
        """Decides a request. `is_free` says which of the policy's decisions need no approval.

        `plugin_call` is the tool and the arguments that plugins are asked about, if they differ from the request's.
        """
        decision = await self._after_veto(request, _judged(judge), plugin_call)
        if decision.verdict == "forbid":
            return await self._forbid(request, decision)
        if decision.verdict == "allow" and is_free(decision):
            return "once"
        reason = _both(request.reason, decision.reason)
        memorable = request.memorable and decision.memorable
        answer = await self._ask(
            msgspec.structs.replace(request, reason=reason, memorable=memorable)
        )
        again = (
            _judged(judge) if answer != "deny" else decision
        )  # the rules may have changed in the meantime
        if again.verdict == "forbid":
            return await self._forbid(request, again)
        # If an action is allowed for the whole session, codex does not ask again, but plugins must be asked each time.
        # So codex gets `once`. The person is not asked again: the session remembers the answer.
        return "once" if self._veto and answer != "deny" else answer

    async def _after_veto(
        self,
        request: ApprovalRequested,
        decision: PolicyDecision,
        plugin_call: tuple[str, Mapping[str, Any]] | None,
    ) -> PolicyDecision:
        """Returns the policy's decision, unless a plugin forbids the call; then the person is not asked at all."""
        if self._veto is None or decision.verdict == "forbid":
            return decision
        given = msgspec.json.decode(request.arguments or "{}")
        name, arguments = plugin_call or (request.name, given)
        why = await self._veto(request.call_id, name, arguments)
        return PolicyDecision("forbid", request.summary, why) if why else decision

    async def question(
        self, number: str, text: str, options: tuple[str, ...]
    ) -> str | None:
        """Returns the person's answer as text; None if there is none."""
        self.waiting += 1
        try:
            return (
                await self._approvals.question(
                    QuestionAsked(call_id=number, text=text, options=options)
                )
            ).text
        except Exception:
            log.exception("could not ask anyone codex's question")
            return None
        finally:
            self.waiting -= 1

    async def _forbid(
        self, request: ApprovalRequested, decision: PolicyDecision
    ) -> Verdict:
        self._refusals[request.call_id] = (
            f"forbidden by policy: {decision.reason}"  # not translated
        )
        refused = ApprovalAnswered(call_id=request.call_id, answer="deny", by="policy")
        await self._record(
            (msgspec.structs.replace(request, reason=decision.reason), refused)
        )
        return "deny"

    async def _ask(self, request: ApprovalRequested) -> Verdict:
        """Asks the person. A request that must be asked each time is allowed only once."""
        self.waiting += 1
        try:
            answered = await self._approvals.ask(request)
            if answered.reason:
                await self._explain(answered.reason)
        except Exception:
            log.exception("could not ask anyone about %s", request.name)
            answered = ApprovalAnswered(
                call_id=request.call_id, answer="deny", by="nobody"
            )
        finally:
            self.waiting -= 1
        if answered.answer == "deny":
            self._refusals[request.call_id] = refusal_of(answered)
            return "deny"
        return answered.answer if request.memorable else "once"


def request_for(
    number: str,
    name: str,
    arguments: Mapping[str, Any],
    summary: str,
    *,
    reason: str,
    reach: Reach = "machine",
) -> ApprovalRequested:
    """Returns a request as every surface shows it. The same arguments always give the same shape."""
    text = msgspec.json.encode(arguments, order="sorted").decode()
    return ApprovalRequested(
        call_id=number,
        name=name,
        arguments=text,
        summary=summary,
        reason=reason,
        reach=reach,
        shape=f"codex {name} {text}",
    )


def _judged(judge: Callable[[], PolicyDecision]) -> PolicyDecision:
    """Returns the policy's decision. A policy that fails means no."""
    try:
        return judge()
    except Exception:
        log.exception("the policy failed to judge a request from codex")
        return PolicyDecision(
            "forbid", reason="the policy failed while judging it"
        )  # not translated


def _both(wish: str, concern: str) -> str:
    """Codex's reason, and the policy's."""
    return f"{wish} ({concern})" if wish and concern else wish or concern
