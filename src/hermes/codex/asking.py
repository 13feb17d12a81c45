"""What codex asks, and how it is answered: by Hermes' own policy first, then by the person, through the same port as
Hermes' own tools. Whatever is not a clear yes is a no.

Codex asks because it wants to leave its sandbox. So a policy that allows a command inside Hermes' sandbox is no yes
here: only one that lets it reach the whole machine is. What the policy forbids is declined without a question.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec

from hermes.codex import wire
from hermes.codex.failures import CodexRefused
from hermes.codex.items import FileChange, Item, McpCall, call_of, changes_in_words, changes_to_decide, shown_command
from hermes.core.ports import Approvals, Decision
from hermes.schema.events import ApprovalRequested, QuestionAsked

log = logging.getLogger("hermes.codex")

OWN_SERVER = "hermes"
"""The name of Hermes' tool server in codex's settings."""

Judge: TypeAlias = Callable[[str, Path], Decision]
"""What the policy says of a command in a folder."""
Explain: TypeAlias = Callable[[str], Awaitable[None]]
"""Passes the reason of a denial on: codex's own answer to a request has no room for it."""
Verdict: TypeAlias = Literal["once", "session", "always", "deny"]

_DECISIONS = {"once": "accept", "session": "acceptForSession", "always": "acceptForSession"}
_NOTHING: Mapping[str, object] = {}
_MOST_DIFF = 6_000  # characters of a patch in a question


class _CommandAsked(msgspec.Struct, frozen=True, rename="camel"):
    item_id: str = ""
    command: str | None = None
    cwd: str | None = None
    reason: str | None = None
    kind: str = "command"
    network_approval_context: Any = None


class _ChangeAsked(msgspec.Struct, frozen=True, rename="camel"):
    item_id: str = ""
    reason: str | None = None
    grant_root: str | None = None


class _Elicited(msgspec.Struct, frozen=True, rename="camel"):
    server_name: str = ""
    turn_id: str | None = None
    message: str = ""
    mode: str = "form"
    meta: Any = msgspec.field(default=None, name="_meta")
    requested_schema: Mapping[str, Any] = {}


class _Option(msgspec.Struct, frozen=True):
    label: str = ""


class _InputQuestion(msgspec.Struct, frozen=True):
    id: str = ""
    question: str = ""
    options: tuple[_Option, ...] | None = None


class _InputAsked(msgspec.Struct, frozen=True, rename="camel"):
    item_id: str = ""
    questions: tuple[_InputQuestion, ...] = ()


def nothing_to_say(command: str, cwd: Path) -> Decision:  # noqa: ARG001 - the port's shape
    """A policy without an opinion: the person is asked."""
    return Decision("ask")


async def nothing_to_explain(reason: str) -> None:
    """Nobody to pass a reason on to."""


class Asking:
    """Answers the questions of one turn."""

    def __init__(
        self,
        approvals: Approvals,
        items: Mapping[str, Item],
        cwd: Path,
        *,
        judge: Judge = nothing_to_say,
        explain: Explain = nothing_to_explain,
    ) -> None:
        self._approvals = approvals
        self._items = items
        self._cwd = cwd
        self._judge = judge
        self._explain = explain
        self.waiting = 0
        """How many questions are before a person now."""

    async def answer(self, call: wire.Call) -> object:
        """What codex gets. CodexRefused for a question we don't know: an error, never silence."""
        match call.method:
            case "item/commandExecution/requestApproval":
                return {"decision": await self._command(_read(call, _CommandAsked))}
            case "item/fileChange/requestApproval":
                return {"decision": await self._change(_read(call, _ChangeAsked))}
            case "mcpServer/elicitation/request":
                return await self._elicited(call, _read(call, _Elicited))
            case "item/tool/requestUserInput":
                return await self._input(_read(call, _InputAsked))
            case "item/permissions/requestApproval":
                return {
                    "permissions": _NOTHING,
                    "scope": "turn",
                }  # nothing is granted: what needs more has to ask for itself
            case _:
                raise CodexRefused(f"Hermes does not answer {call.method}", code=wire.UNKNOWN_METHOD)

    async def _command(self, asked: _CommandAsked) -> str:
        command = shown_command(asked.command or "")
        if not command.strip() or asked.kind != "command" or asked.network_approval_context is not None:
            about = asked.network_approval_context or asked.reason or asked.kind
            log.warning("declined for codex: it names no command, or wants more than to run one (%r)", about)
            return "decline"
        cwd = asked.cwd or str(self._cwd)
        verdict = self._verdict(command, Path(cwd))
        if verdict.verdict == "forbid":
            log.warning("declined for codex, forbidden by policy: %s", verdict.reason)
            return "decline"
        if verdict.verdict == "allow" and verdict.reach == "machine":
            return "accept"
        arguments = {"command": command, "cwd": cwd}
        reason = asked.reason or verdict.reason or "codex wants to run it outside its sandbox"
        request = _request(asked.item_id, "exec_command", arguments, f"{command}\nin {cwd}", reason)
        raw = msgspec.json.encode({"command": asked.command, "cwd": cwd}, order="sorted").decode()
        return await self._decide(
            msgspec.structs.replace(request, shape=f"codex exec_command {raw}", memorable=verdict.memorable)
        )

    def _verdict(self, command: str, cwd: Path) -> Decision:
        """The boundary of the policy: one that fails does not allow."""
        try:
            return self._judge(command, cwd)
        except Exception:
            log.exception("the policy could not judge a command of codex")
            return Decision("ask")

    async def _change(self, asked: _ChangeAsked) -> str:
        item = self._items.get(asked.item_id)
        if not isinstance(item, FileChange):
            log.warning("declined for codex: a patch that was not announced (%s)", asked.item_id)
            return "decline"
        what = changes_in_words(item.changes, str(self._cwd))
        diff = changes_to_decide(item.changes, str(self._cwd))
        root = f"\nand from then on anywhere below {asked.grant_root}" if asked.grant_root else ""
        call = call_of(item, str(self._cwd))
        request = ApprovalRequested(
            call_id=call.id,
            name=call.name,
            arguments=call.arguments,
            summary=f"{what}\nin {self._cwd}{root}\n{_cut(diff)}",
            reason=asked.reason or "codex wants to change files outside its sandbox",
            reach="machine",
            shape=f"codex {call.name} {call.arguments}",
        )
        return await self._decide(request)

    async def _decide(self, request: ApprovalRequested) -> str:
        return _DECISIONS.get(await self._ask(request), "decline")

    async def _ask(self, request: ApprovalRequested) -> Verdict:
        """The person's answer. One that can't be had is a no, and what is asked each time is answered for once."""
        self.waiting += 1
        try:
            answered = await self._approvals.ask(request)
            answer = answered.answer
            if answered.reason:
                await self._explain(answered.reason)
        except Exception:
            log.exception("nobody could be asked about %s", request.name)
            answer = "deny"
        finally:
            self.waiting -= 1
        return answer if request.memorable or answer == "deny" else "once"

    async def _elicited(self, call: wire.Call, asked: _Elicited) -> object:
        """An MCP server of codex wants something: leave to run a tool, or an answer."""
        if asked.server_name == OWN_SERVER:
            return {
                "action": "accept",
                "content": _NOTHING,
                "_meta": None,
            }  # its calls come back to Hermes, which judges them
        if isinstance(asked.meta, Mapping) and asked.meta.get("codex_approval_kind") == "mcp_tool_call":
            return await self._tool_asked(call, asked, asked.meta)
        if asked.mode != "form":
            return _declined()
        content = await self._form(call, asked)
        return _declined() if content is None else {"action": "accept", "content": content, "_meta": None}

    async def _tool_asked(self, call: wire.Call, asked: _Elicited, meta: Mapping[str, Any]) -> object:
        parameters = meta.get("tool_params")
        arguments = parameters if isinstance(parameters, Mapping) else {}
        running = self._running(asked.server_name, arguments)
        name = f"mcp.{asked.server_name}.{running.tool}" if running else f"mcp.{asked.server_name}"
        number = running.id if running else f"codex-{call.id}"
        shown = msgspec.json.encode(arguments, order="sorted").decode()
        about = str(meta.get("tool_description") or "")
        request = _request(number, name, arguments, f"{name} {shown}\nin {self._cwd}", asked.message or about)
        answer = await self._ask(msgspec.structs.replace(request, memorable=running is not None))
        if answer == "deny":
            return _declined()
        lasting = {"persist": "session"} if answer in ("session", "always") else None
        return {"action": "accept", "content": _NOTHING, "_meta": lasting}

    def _running(self, server: str, arguments: Mapping[str, Any]) -> McpCall | None:
        """The call that codex asks about; None when it can't be told for certain. Codex does not name it."""
        found = [
            item
            for item in self._items.values()
            if isinstance(item, McpCall) and item.server == server and item.status == "inProgress"
            if (item.arguments or {}) == arguments
        ]
        return found[0] if len(found) == 1 else None

    async def _form(self, call: wire.Call, asked: _Elicited) -> dict[str, object] | None:
        """One question per field; None as soon as one is not answered."""
        fields = asked.requested_schema.get("properties")
        content: dict[str, object] = {}
        for name, field in (fields if isinstance(fields, Mapping) else {}).items():
            schema = field if isinstance(field, Mapping) else {}
            title = str(schema.get("title") or schema.get("description") or name)
            options = [str(value) for value in schema.get("enum") or ()]
            options = options or (["yes", "no"] if schema.get("type") == "boolean" else [])
            said = await self._question(
                f"codex-{call.id}-{name}", f"{asked.server_name}: {asked.message}\n{title}", tuple(options)
            )
            if said is None:
                return None
            value = _converted(said, str(schema.get("type", "string")))
            if value is None:
                return None
            content[name] = value
        return content

    async def _input(self, asked: _InputAsked) -> object:
        answers: dict[str, object] = {}
        for question in asked.questions:
            options = tuple(option.label for option in question.options or () if option.label)
            said = await self._question(f"{asked.item_id}-{question.id}", question.question, options)
            answers[question.id] = {"answers": [] if said is None else [said]}
        return {"answers": answers}

    async def _question(self, number: str, text: str, options: tuple[str, ...]) -> str | None:
        self.waiting += 1
        try:
            return (await self._approvals.question(QuestionAsked(call_id=number, text=text, options=options))).text
        except Exception:
            log.exception("nobody could be asked a question of codex")
            return None
        finally:
            self.waiting -= 1


def _request(number: str, name: str, arguments: Mapping[str, Any], summary: str, reason: str) -> ApprovalRequested:
    text = msgspec.json.encode(arguments, order="sorted").decode()
    return ApprovalRequested(
        call_id=number,
        name=name,
        arguments=text,
        summary=summary,
        reason=reason,
        reach="machine",
        shape=f"codex {name} {text}",
    )


def _cut(diff: str) -> str:
    left = len(diff) - _MOST_DIFF
    more = f"\n[... {left:,} more characters of the patch are not shown here ...]" if left > 0 else ""
    return diff[:_MOST_DIFF] + more


def _converted(said: str, kind: str) -> str | int | float | bool | None:
    """An answer in words as the schema wants it; None when it is not that."""
    word = said.strip()
    try:
        match kind:
            case "boolean":
                return {"yes": True, "true": True, "y": True, "no": False, "false": False, "n": False}[word.lower()]
            case "integer":
                return int(word)
            case "number":
                return float(word)
            case _:
                return said
    except (KeyError, ValueError):
        return None


def _declined() -> dict[str, object]:
    return {"action": "decline", "content": None, "_meta": None}


def _read(call: wire.Call, kind: type[Any]) -> Any:
    """The question's fields. What can't be read can't be shown to anybody, so it is refused."""
    try:
        return msgspec.json.decode(call.params, type=kind)
    except msgspec.DecodeError as error:
        raise CodexRefused(f"Hermes does not understand this {call.method}: {error}", code=-32602) from error
