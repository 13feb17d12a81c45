"""Where questions wait for a person. Any surface that is attached can answer; the first answer counts."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from hermes.app.journal import SessionJournal
from hermes.schema.events import ApprovalAnswered, ApprovalRequested

_Key = tuple[str, str]


class Desk:
    """The open questions of this process, and who could answer them."""

    def __init__(self) -> None:
        self._surfaces: list[str] = []
        self._open: dict[_Key, asyncio.Future[ApprovalAnswered]] = {}
        self._allowed: set[tuple[str, str, str]] = set()

    @property
    def anybody(self) -> bool:
        """Whether a surface is there that can put a question to a person."""
        return bool(self._surfaces)

    @contextmanager
    def attached(self, surface: str) -> Iterator[None]:
        """While inside, this surface can answer."""
        self._surfaces.append(surface)
        try:
            yield
        finally:
            self._surfaces.remove(surface)

    def remembers(self, session: str, request: ApprovalRequested) -> bool:
        """Whether exactly this call was allowed for the rest of the session."""
        return (session, request.name, request.arguments) in self._allowed

    def open(self, session: str, request: ApprovalRequested) -> "asyncio.Future[ApprovalAnswered]":
        """A place for the answer."""
        future = asyncio.get_running_loop().create_future()
        self._open[session, request.call_id] = future
        return future

    def settle(self, session: str, request: ApprovalRequested, answer: ApprovalAnswered) -> None:
        """Forgets the question; remembers an answer that is good for the session."""
        self._open.pop((session, request.call_id), None)
        if answer.answer == "session":
            self._allowed.add((session, request.name, request.arguments))

    def claim(self, session: str, call_id: str) -> "asyncio.Future[ApprovalAnswered] | None":
        """Takes the question, for the one who answers first; None when it is not open here (any more)."""
        return self._open.pop((session, call_id), None)

    def resolve(self, session: str, answer: ApprovalAnswered) -> None:
        """Hands over an answer that another process wrote into the log; a second one changes nothing."""
        future = self.claim(session, answer.call_id)
        if future is not None and not future.done():
            future.set_result(answer)


class SessionApprovals:
    """Implements the `Approvals` port for one session."""

    def __init__(self, desk: Desk, journal: SessionJournal) -> None:
        self._desk = desk
        self._journal = journal

    async def ask(self, request: ApprovalRequested) -> ApprovalAnswered:
        """Waits for the first answer; denies at once when nobody can be asked."""
        session = self._journal.session
        if self._desk.remembers(session, request):
            return await self._say(
                request, ApprovalAnswered(call_id=request.call_id, answer="session", by="remembered")
            )
        if not self._desk.anybody:
            return await self._say(request, ApprovalAnswered(call_id=request.call_id, answer="deny", by="nobody"))
        answer = ApprovalAnswered(call_id=request.call_id, answer="deny", by="interrupt")
        place = self._desk.open(session, request)  # before anybody can see the question, and answer it
        try:
            await self._journal.record(request)
            answer = await place
        finally:
            self._desk.settle(session, request, answer)
        return answer

    async def _say(self, request: ApprovalRequested, answer: ApprovalAnswered) -> ApprovalAnswered:
        await self._journal.record(request, answer)
        return answer
