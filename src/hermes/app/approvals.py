"""Where questions wait for a person. Any surface that is attached can answer; the first answer counts.

A question has an end: after `patience` seconds it counts as answered with no, and the log says so.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeAlias

import msgspec

from hermes.app.session_log import SessionJournal
from hermes.core.answers import Answer, Request, approval_hash, misfit
from hermes.core.ports import Clock, SystemClock
from hermes.errors import AnsweredAlready
from hermes.schema.events import (
    ApprovalAnswered,
    ApprovalRequested,
    QuestionAnswered,
    QuestionAsked,
)

Waiting: TypeAlias = asyncio.Future[Answer]


class Desk:
    """The open questions of this process, and who could answer them."""

    def __init__(self, *, clock: Clock | None = None, patience: float = 0.0) -> None:
        self._surfaces: list[str] = []
        self._open: dict[tuple[str, str], tuple[Request, Waiting]] = {}
        self._awaited: dict[tuple[str, str], list[asyncio.Future[Waiting]]] = {}
        self._clock = clock or SystemClock()
        self.patience = patience
        """Seconds a question waits; 0 for ever."""

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

    def end(self) -> float:
        """When a question that is asked now expires, in unix seconds; 0 for never."""
        return self._clock.now() + self.patience if self.patience else 0.0

    def left(self, request: Request) -> float | None:
        """Seconds a question still waits; None for ever."""
        return (
            max(0.0, request.expires - self._clock.now()) if request.expires else None
        )

    def sessions(self) -> set[str]:
        """The sessions that have an open question here."""
        return {session for session, _ in self._open}

    def waits(self, session: str) -> bool:
        """Whether a session has an open question here."""
        return any(place == session for place, _ in self._open)

    def open(self, session: str, request: Request) -> Waiting:
        """A place for the answer."""
        future: Waiting = asyncio.get_running_loop().create_future()
        self._open[session, request.call_id] = (request, future)
        for waiter in self._awaited.get((session, request.call_id), ()):
            if not waiter.done():
                waiter.set_result(future)
        return future

    async def opened(self, session: str, call_id: str) -> Waiting:
        """The future that gets the answer to a question, once the question is asked."""
        if (found := self.find(session, call_id)) is not None:
            return found
        waiter: asyncio.Future[Waiting] = asyncio.get_running_loop().create_future()
        waiters = self._awaited.setdefault((session, call_id), [])
        waiters.append(waiter)
        try:
            return await waiter
        finally:
            waiters.remove(waiter)
            if not waiters:
                del self._awaited[session, call_id]

    def forget(self, session: str, request: Request) -> None:
        """The question is settled."""
        self._open.pop((session, request.call_id), None)

    def find(self, session: str, call_id: str) -> Waiting | None:
        """The place for an answer; None when the question is not open here (any more)."""
        _, future = self._open.get((session, call_id), (None, None))
        return future

    def resolve(self, session: str, answer: Answer) -> None:
        """Hands over an answer that was written into the log; a second one, or one that does not fit, is ignored."""
        request, future = self._open.get((session, answer.call_id), (None, None))
        if request is None or future is None or misfit(request, answer):
            return
        del self._open[session, answer.call_id]
        if not future.done():
            future.set_result(answer)


class SessionApprovals:
    """Implements the `Approvals` port for one session."""

    def __init__(self, desk: Desk, journal: SessionJournal) -> None:
        self._desk = desk
        self._journal = journal
        self._turns: dict[str, asyncio.Lock] = {}

    async def ask(self, request: ApprovalRequested) -> ApprovalAnswered:
        """Waits for the first answer; denies at once when nobody can be asked."""
        if request.memorable and not self._journal.history.allowed.isdisjoint(
            (request.shape, request.scope)
        ):
            remembered = ApprovalAnswered(
                call_id=request.call_id,
                answer="session",
                by="remembered",
                shown=approval_hash(request),
            )
            await self._journal.record(request, remembered)
            return remembered
        answer = await self._wait(
            request, ApprovalAnswered(call_id=request.call_id, answer="deny")
        )
        assert isinstance(answer, ApprovalAnswered)  # noqa: S101 - the desk hands back what belongs to the request
        return answer

    async def question(self, request: QuestionAsked) -> QuestionAnswered:
        """The same for a question with an answer in words."""
        answer = await self._wait(request, QuestionAnswered(call_id=request.call_id))
        assert isinstance(answer, QuestionAnswered)  # noqa: S101 - as above
        return answer

    async def _wait(self, request: Request, no: Answer) -> Answer:
        """One question of a call at a time: they are told apart by its id."""
        async with self._turns.setdefault(request.call_id, asyncio.Lock()):
            return await self._answered(request, no)

    async def _answered(self, request: Request, no: Answer) -> Answer:
        """Records the question and waits; `no` is the answer when there is nobody, or nobody answers in time."""
        session = self._journal.session
        if not self._desk.anybody:
            nobody = msgspec.structs.replace(no, by="nobody")
            await self._journal.record(request, nobody)
            return nobody
        before = self._journal.history.asked_calls.get(
            request.call_id
        )  # by a process that ended since
        request = msgspec.structs.replace(
            request, expires=before.expires if before else self._desk.end()
        )
        place = self._desk.open(
            session, request
        )  # before anybody can see the question, and answer it
        try:
            await self._journal.record(request)
            async with asyncio.timeout(self._desk.left(request)):
                return await asyncio.shield(place)
        except TimeoutError:
            if place.done():
                return place.result()
            expired = msgspec.structs.replace(no, by="expired")
            try:
                await self._journal.record(expired)
            except AnsweredAlready:  # at the last moment; the runner hears of it as soon as it looks into the log
                return await place
            return expired
        finally:
            self._desk.forget(session, request)
