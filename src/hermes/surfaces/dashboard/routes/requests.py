"""Routes of what waits for a person: approvals, questions and plans. The session owns the turn; these only write to it."""

import asyncio
import contextlib
from typing import Any

from hermes.app.kept_recordings import KeptRecordings
from hermes.core.accepted_plan import needs_trust
from hermes.errors import SessionNotFound
from hermes.schema.events import QuestionAsked
from hermes.surfaces.dashboard.dashboard import Dashboard
from hermes.surfaces.dashboard.routes.chat_bodies import (
    ApprovalAnswerBody,
    Counted,
    OpenQuestions,
    QuestionReply,
)
from hermes.surfaces.dashboard.routes.sessions import find, session_of
from hermes.surfaces.web.access import covers, require
from hermes.surfaces.web.endpoint import Endpoint, EndpointCall
from hermes.surfaces.web.errors import Refusal
from hermes.text.translation import translator

t = translator(__name__)


class RequestRoutes:
    """Handlers over one dashboard."""

    def __init__(self, dashboard: Dashboard) -> None:
        self._board = dashboard
        self._recordings = KeptRecordings(dashboard.app.home)

    def endpoints(self) -> list[Endpoint]:
        one = "/api/sessions/{id}"
        return [
            Endpoint(
                "GET", "/api/approvals", "observe", self.waiting, answer=OpenQuestions
            ),
            Endpoint(
                "POST",
                f"{one}/approvals/{{call_id}}",
                "approve",
                self.answer,
                body=ApprovalAnswerBody,
                answer=Counted,
            ),
            Endpoint(
                "POST",
                f"{one}/questions/{{call_id}}",
                "chat",
                self.reply,
                body=QuestionReply,
                answer=Counted,
            ),
        ]

    async def waiting(self) -> OpenQuestions:
        """All open requests and questions of running sessions, with the session that each works for."""
        found = await self._board.all_waiting()
        return OpenQuestions(await asyncio.to_thread(self._named, found))

    def _named(self, waiting: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Adds titles, and the session that a child works for."""
        named: list[dict[str, Any]] = []
        for one in waiting:
            with contextlib.suppress(SessionNotFound):  # deleted at this very moment
                info = find(self._board, one["session_id"])
                named.append(one | {"root_session_id": info.top, "title": info.title})
        return named

    async def answer(self, call: EndpointCall) -> Counted:
        """Answers a request for approval. The first answer counts; `always` changes the policy."""
        if call.body.answer == "always" and not covers(call.caller.scopes, "admin"):
            raise Refusal(
                403,
                t("This needs the scope 'admin': it would be remembered permanently."),
                t("Answer once."),
            )
        session = (await session_of(self._board, call)).id
        service = self._board.agent.service
        given: ApprovalAnswerBody = call.body
        call_id = call.path["call_id"]
        counted = await service.answer(
            session,
            call_id,
            given.answer,
            by="dashboard",
            shown=given.shown,
            reason=given.reason,
            rule=given.rule,
        )
        return Counted(counted)

    async def reply(self, call: EndpointCall) -> Counted:
        """Answers a question of a tool, or accepts a plan."""
        session = (await session_of(self._board, call)).id
        call_id = call.path["call_id"]
        service = self._board.agent.service
        given: QuestionReply = call.body
        plan = "unknown"  # a plan may be asked about between this look and the reply
        for asked in await service.pending(session):
            if isinstance(asked, QuestionAsked) and asked.call_id == call_id:
                plan = asked.plan
        if needs_trust(plan, given.text):
            require(call.caller, "approve", t("it lets Hermes do more without asking"))
        await asyncio.to_thread(self._recordings.take, session, given.recordings)
        counted = await service.reply(
            session, call_id, given.text, by="dashboard", plan=given.plan
        )
        return Counted(counted)
