"""Answers requests from codex's MCP servers (permission to run a tool, or a form to fill in), and questions from codex's
model to the user."""

from collections.abc import Mapping
from typing import Any

import msgspec

from hermes.codex import wire
from hermes.codex.approver import CodexApprover, CommandPolicy, request_for
from hermes.codex.items import Item, McpCall
from hermes.primitives.untyped import object_in, object_of
from hermes.schema.events import ApprovalRequested

OWN_SERVER = "hermes"
"""The name of Hermes' tool server in codex's settings."""

_NOTHING: Mapping[str, object] = {}


class Elicited(msgspec.Struct, frozen=True, rename="camel"):
    """A request from an MCP server."""

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


class InputAsked(msgspec.Struct, frozen=True, rename="camel"):
    """Questions that codex's model asks the user."""

    item_id: str = ""
    questions: tuple[_InputQuestion, ...] = ()


class Elicitations:
    """Answers the elicitations of one turn."""

    def __init__(
        self,
        approver: CodexApprover,
        judge: CommandPolicy,
        items: Mapping[str, Item],
        cwd: str,
    ) -> None:
        self._approver = approver
        self._judge = judge
        self._items = items
        self._cwd = cwd

    async def answer(self, call: wire.CodexRequest, asked: Elicited) -> object:
        """Returns the answer for the server."""
        if (
            asked.server_name == OWN_SERVER
        ):  # Hermes' own tool server: its calls return to Hermes, which judges them
            return {"action": "accept", "content": _NOTHING, "_meta": None}
        if (
            isinstance(asked.meta, Mapping)
            and asked.meta.get("codex_approval_kind") == "mcp_tool_call"
        ):
            return await self._tool(call, asked, asked.meta)
        if asked.mode != "form":
            return _declined()
        content = await self._form(call, asked)
        return (
            _declined()
            if content is None
            else {"action": "accept", "content": content, "_meta": None}
        )

    async def input(self, asked: InputAsked) -> object:
        """Returns the answers for codex's model: one for each question, or none at all."""
        answers: dict[str, object] = {}
        for question in asked.questions:
            options = tuple(
                option.label for option in question.options or () if option.label
            )
            said = await self._approver.question(
                f"{asked.item_id}-{question.id}", question.question, options
            )
            answers[question.id] = {"answers": [] if said is None else [said]}
        return {"answers": answers}

    async def _tool(
        self, call: wire.CodexRequest, asked: Elicited, meta: Mapping[str, Any]
    ) -> object:
        arguments = object_in(meta, "tool_params")
        running = self._running(asked.server_name, arguments)
        request = self._request(call, asked, arguments, running)
        answer = await self._approver.decide(
            request, lambda: self._judge.check_tool(request.name)
        )
        if answer == "deny":
            return _declined()
        lasting = {"persist": "session"} if answer in ("session", "always") else None
        return {"action": "accept", "content": _NOTHING, "_meta": lasting}

    def _request(
        self,
        call: wire.CodexRequest,
        asked: Elicited,
        arguments: Mapping[str, Any],
        running: McpCall | None,
    ) -> ApprovalRequested:
        name = (
            f"mcp.{asked.server_name}.{running.tool}"
            if running
            else f"mcp.{asked.server_name}"
        )
        number = running.id if running else f"codex-{call.id}"
        shown = msgspec.json.encode(arguments, order="sorted").decode()
        reason = asked.message or str(asked.meta.get("tool_description") or "")
        request = request_for(
            number, name, arguments, f"{name} {shown}\nin {self._cwd}", reason=reason
        )
        return msgspec.structs.replace(request, memorable=running is not None)

    def _running(self, server: str, arguments: Mapping[str, Any]) -> McpCall | None:
        """Returns the call that codex asks about; None if it is uncertain, because codex does not name it."""
        found = [
            item
            for item in self._items.values()
            if isinstance(item, McpCall)
            and item.server == server
            and item.status == "inProgress"
            if (item.arguments or {}) == arguments
        ]
        return found[0] if len(found) == 1 else None

    async def _form(
        self, call: wire.CodexRequest, asked: Elicited
    ) -> dict[str, object] | None:
        """Asks one question per field; returns None as soon as one is not answered."""
        content: dict[str, object] = {}
        for name, field in object_in(asked.requested_schema, "properties").items():
            schema = object_of(field)
            title = str(schema.get("title") or schema.get("description") or name)
            options = [str(value) for value in schema.get("enum") or ()]
            options = options or (
                ["yes", "no"] if schema.get("type") == "boolean" else []
            )
            said = await self._approver.question(
                f"codex-{call.id}-{name}",
                f"{asked.server_name}: {asked.message}\n{title}",
                tuple(options),
            )
            if said is None:
                return None
            value = _converted(said, str(schema.get("type", "string")))
            if value is None:
                return None
            content[name] = value
        return content


def _converted(said: str, kind: str) -> str | int | float | bool | None:
    """Returns an answer converted to the schema's type; None if it does not fit."""
    word = said.strip()
    try:
        match kind:
            case "boolean":
                return {
                    "yes": True,
                    "true": True,
                    "y": True,
                    "no": False,
                    "false": False,
                    "n": False,
                }[word.lower()]
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
