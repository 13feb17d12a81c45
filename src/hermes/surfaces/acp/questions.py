"""Passes Hermes' requests and questions to the person at the editor, and records the answers.

If the editor has no dialogue for them, the policy decides at once: what needs approval is denied.
"""

import logging
from collections.abc import Mapping
from typing import Any

from acp.exceptions import RequestError
from acp.interfaces import Client
from acp.schema import (
    AllowedOutcome,
    PermissionOption,
    ToolCallUpdate,
)

from hermes.app.session_service import SessionService, Verdict
from hermes.commands.markdown import code_block
from hermes.core.answers import approval_hash
from hermes.surfaces.acp.updates import UpdateStream

log = logging.getLogger("hermes.acp")

_BY = "editor"
_NO_DIALOGUE = (
    "The editor has no dialogue for approvals, so Hermes denied this without asking."
)
_OTHER_ANSWER = "other"
_ALLOWED: Mapping[str, Verdict] = {
    "once": "once",
    "session": "session",
    "always": "always",
    "deny": "deny",
}


class EditorQuestions:
    """The open requests of one editor."""

    def __init__(self, client: Client, service: SessionService) -> None:
        self._client = client
        self._service = service
        self._has_dialogue = True

    async def approve(
        self, session: str, event: Mapping[str, Any], stream: UpdateStream
    ) -> None:
        """Asks whether a call may run, and writes the answer."""
        answer = await self._permission(session, event, stream)
        if answer is None:
            return  # the editor went away; the request stays open
        reason = "" if self._has_dialogue else _NO_DIALOGUE
        await self._service.answer(
            str(event["session_id"]),
            event["call_id"],
            answer,
            by=_BY,
            shown=approval_hash(event),
            reason=reason,
            rule=str(event.get("scope", "")) if answer == "always" else "",
        )

    async def _permission(
        self, session: str, event: Mapping[str, Any], stream: UpdateStream
    ) -> Verdict | None:
        if not self._has_dialogue:
            return "deny"
        chosen = await self._choose(
            session, _call(event, stream), _permission_options(event)
        )
        if chosen is None and not self._has_dialogue:
            return "deny"
        return _ALLOWED.get(chosen or "")

    async def ask(
        self, session: str, event: Mapping[str, Any], stream: UpdateStream
    ) -> bool:
        """Asks a question with choices. False if it must be answered by the next prompt: the person wants to type."""
        options = [str(one) for one in event.get("options", ())]
        if not options or not self._has_dialogue:
            return False
        choices = [
            PermissionOption(option_id=f"choice-{index}", name=one, kind="allow_once")
            for index, one in enumerate(options)
        ]
        choices.append(
            PermissionOption(
                option_id=_OTHER_ANSWER,
                name="Answer in the chat instead",
                kind="reject_once",
            )
        )
        asked = ToolCallUpdate(
            tool_call_id=str(event["call_id"]),
            title=str(event["text"]),
            kind="think",
            content=stream.texts(str(event.get("plan", ""))),
        )
        chosen = await self._choose(session, asked, choices)
        if chosen is None or chosen == _OTHER_ANSWER:
            return False
        text = options[int(chosen.removeprefix("choice-"))]
        return await self._service.reply(
            str(event["session_id"]), event["call_id"], text, by=_BY
        )

    async def _choose(
        self, session: str, call: ToolCallUpdate, options: list[PermissionOption]
    ) -> str | None:
        """The id of the option that was chosen; None if none was."""
        try:
            reply = await self._client.request_permission(
                session_id=session, tool_call=call, options=options
            )
        except RequestError as error:
            log.warning("the editor can't ask for permission: %s", error)
            self._has_dialogue = False
            return None
        outcome = reply.outcome
        return outcome.option_id if isinstance(outcome, AllowedOutcome) else None


def _call(event: Mapping[str, Any], stream: UpdateStream) -> ToolCallUpdate:
    """The call as the person must see it: what will happen, why it is asked, and the diff."""
    name, arguments = str(event["name"]), str(event["arguments"])
    title, kind = stream.call(event)
    # Editors render Markdown, which hides parts of some texts.
    summary = code_block(str(event["summary"])) if event["summary"] else ""
    words = "\n\n".join(
        part for part in (summary, str(event.get("reason", ""))) if part
    )
    return ToolCallUpdate(
        tool_call_id=str(event["call_id"]),
        title=title,
        kind=kind,
        status="pending",
        content=[*stream.content(name, arguments), *stream.texts(words)],
        locations=stream.locations(arguments),
    )


def _permission_options(event: Mapping[str, Any]) -> list[PermissionOption]:
    """Yes, yes for more than this call where that is possible, and no. A rule is spelled out."""
    options = [PermissionOption(option_id="once", name="Yes", kind="allow_once")]
    if event.get("memorable", True):
        covered = str(event.get("scope") or "this exact call")
        options += [
            PermissionOption(
                option_id="session",
                name=f"Yes, and don't ask again in this session: {covered}",
                kind="allow_always",
            ),
            PermissionOption(
                option_id="always", name=f"Always: {covered}", kind="allow_always"
            ),
        ]
    no = PermissionOption(option_id="deny", name="No", kind="reject_once")
    return [*options, no]
