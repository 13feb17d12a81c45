"""Routes that take back turns of a session, or begin another one at an earlier point."""

import asyncio

from hermes.app.undo import Rewind, UndoReport, shadows_of
from hermes.surfaces.dashboard.dashboard import Dashboard
from hermes.surfaces.dashboard.routes.chat_bodies import (
    Back,
    BackQuery,
    BranchAt,
    Deletes,
    Diff,
    DiffQuery,
    Forth,
    Identified,
)
from hermes.surfaces.dashboard.routes.sessions import find, session_of
from hermes.surfaces.web.endpoint import Endpoint, EndpointCall
from hermes.text.translation import translator

t = translator(__name__)


class RewindRoutes:
    """Handlers over one dashboard."""

    def __init__(self, dashboard: Dashboard) -> None:
        self._board = dashboard
        self._rewind = Rewind(dashboard.app, shadows_of(dashboard.app))

    def endpoints(self) -> list[Endpoint]:
        one = "/api/sessions/{id}"
        return [
            Endpoint(
                "POST",
                f"{one}/branch",
                "chat",
                self.branch,
                body=BranchAt,
                answer=Identified,
            ),
            Endpoint(
                "POST", f"{one}/undo", "chat", self.undo, body=Back, answer=UndoReport
            ),
            Endpoint(
                "GET",
                f"{one}/undo",
                "observe",
                self.undo_deletes,
                BackQuery,
                answer=Deletes,
            ),
            Endpoint(
                "POST", f"{one}/redo", "chat", self.redo, body=Forth, answer=UndoReport
            ),
            Endpoint(
                "POST",
                f"{one}/retry",
                "chat",
                self.retry,
                body=Forth,
                answer=UndoReport,
            ),
            Endpoint(
                "GET", f"{one}/diff", "observe", self.diff, DiffQuery, answer=Diff
            ),
        ]

    def branch(self, call: EndpointCall) -> Identified:
        """Starts a new session with the conversation so far."""
        info, body = find(self._board, call.path["id"]), call.body
        return Identified(
            self._rewind.branch(
                info.id, at=body.at, back=body.back, surface="dashboard"
            )
        )

    def undo(self, call: EndpointCall) -> UndoReport:
        """Undoes the last turns and their file changes."""
        info, body = find(self._board, call.path["id"]), call.body
        return self._rewind.undo(
            info.id, turns=body.turns, force=body.force, files=body.files
        )

    def undo_deletes(self, call: EndpointCall) -> Deletes:
        """The files that undoing the last turns would delete. Changes nothing."""
        info, query = find(self._board, call.path["id"]), call.query
        return Deletes(
            self._rewind.deletes(info.id, turns=query.turns, force=query.force)
        )

    def redo(self, call: EndpointCall) -> UndoReport:
        """Redoes the last undo."""
        return self._rewind.redo(
            find(self._board, call.path["id"]).id, force=call.body.force
        )

    async def retry(self, call: EndpointCall) -> UndoReport:
        """Undoes the last turn and submits the same message again."""
        session = (await session_of(self._board, call)).id
        report = await asyncio.to_thread(
            self._rewind.retry, session, force=call.body.force
        )
        await self._board.agent.service.resume(session)
        return report

    def diff(self, call: EndpointCall) -> Diff:
        """What a turn changed, by default the last one, as a unified diff."""
        session = find(self._board, call.path["id"]).id
        turn = call.query.turn or self._rewind.last_turn(session)
        return Diff(self._rewind.diff(session, turn=turn), turn)
