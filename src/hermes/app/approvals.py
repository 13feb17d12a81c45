"""Questions that wait for a person: requests for approval and questions of tools.

Any surface that is attached can answer; the first answer counts. A question expires after `timeout_s`: it then counts
as denied, and the log says so.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeAlias

import msgspec

from hermes.app.session_journal import SessionJournal
from hermes.core.answers import Answer, Request, approval_hash, misfit
from hermes.core.ports import Clock, SystemClock
from hermes.errors import AnsweredAlready
from hermes.schema.events import (
    ApprovalAnswered,
    ApprovalRequested,
    QuestionAnswered,
    QuestionAsked,
)

AnswerFuture: TypeAlias = asyncio.Future[Answer]


class PendingQuestions:
    """The open questions of this process, and the surfaces that can answer them."""

    def __init__(self, *, clock: Clock | None = None, timeout_s: float = 0.0) -> None:
        self._surfaces: list[str] = []
        self._open: dict[tuple[str, str], tuple[Request, AnswerFuture]] = {}
        self._awaited: dict[tuple[str, str], list[asyncio.Future[AnswerFuture]]] = {}
        self._clock = clock or SystemClock()
        self.timeout_s = timeout_s
        """How long a question waits; 0 for ever."""

    @property
    def has_surface(self) -> bool:
        """Whether a surface is attached that can ask a person."""
        return bool(self._surfaces)

    @contextmanager
    def attached(self, surface: str) -> Iterator[None]:
        """Inside, this surface can answer."""
        self._surfaces.append(surface)
        try:
            yield
        finally:
            self._surfaces.remove(surface)

    def expiry(self) -> float:
        """When a question that is asked now expires, in Unix seconds; 0 for never."""
        if self.timeout_s:
            return self._clock.now() + self.timeout_s
        return 0.0

    def seconds_left(self, request: Request) -> float | None:
        """How long a question still waits; None for ever."""
        if not request.expires:
            return None
        return max(0.0, request.expires - self._clock.now())

    def sessions(self) -> set[str]:
        """The sessions that have an open question here."""
        return {session for session, _ in self._open}

    def waits(self, session: str) -> bool:
        """Whether a session has an open question here."""
        return any(one == session for one, _ in self._open)

    def open(self, session: str, request: Request) -> AnswerFuture:
        """Opens a question. Returns the future that receives the answer."""
        answer: AnswerFuture = asyncio.get_running_loop().create_future()
        self._open[session, request.call_id] = (request, answer)
        for waiter in self._awaited.get((session, request.call_id), ()):
            if not waiter.done():
                waiter.set_result(answer)
        return answer

    async def opened(self, session: str, call_id: str) -> AnswerFuture:
        """Waits until a question is open. Returns the future that receives its answer."""
        if (found := self.find(session, call_id)) is not None:
            return found
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[AnswerFuture] = loop.create_future()
        waiters = self._awaited.setdefault((session, call_id), [])
        waiters.append(waiter)
        try:
            return await waiter
        finally:
            waiters.remove(waiter)
            if not waiters:
                del self._awaited[session, call_id]

    def close(self, session: str, request: Request) -> None:
        """Closes a question that is settled."""
        self._open.pop((session, request.call_id), None)

    def find(self, session: str, call_id: str) -> AnswerFuture | None:
        """The future of a question; None when it is not open here."""
        _, answer = self._open.get((session, call_id), (None, None))
        return answer

    def resolve(self, session: str, answer: Answer) -> None:
        """Passes on an answer that is in the log. A second answer, or one that does not fit, is ignored."""
        request, waiting = self._open.get((session, answer.call_id), (None, None))
        if request is None or waiting is None or misfit(request, answer):
            return
        del self._open[session, answer.call_id]
        if not waiting.done():
            waiting.set_result(answer)


class SessionApprovals:
    """Implements the `Approver` port for one session. Nobody is asked in a session that is not `attended`."""

    def __init__(
        self,
        questions: PendingQuestions,
        journal: SessionJournal,
        *,
        attended: bool = True,
    ) -> None:
        self._questions = questions
        self._journal = journal
        self._attended = attended
        self._locks: dict[str, asyncio.Lock] = {}

    async def ask(self, request: ApprovalRequested) -> ApprovalAnswered:
        """Waits for the first answer. Denies at once when nobody can be asked."""
        history = self._journal.history
        similar = history.approved[request.scope or request.shape]
        request = msgspec.structs.replace(request, similar=similar)
        allowed = history.allowed
        covered = not allowed.isdisjoint((request.shape, request.scope))
        if request.memorable and covered:
            remembered = ApprovalAnswered(
                call_id=request.call_id,
                answer="session",
                by="remembered",
                shown=approval_hash(request),
            )
            await self._journal.record(request, remembered)
            return remembered
        denied = ApprovalAnswered(call_id=request.call_id, answer="deny")
        answer = await self._ask_once(request, denied)
        assert isinstance(answer, ApprovalAnswered)  # noqa: S101 - `resolve` checks that they fit
        return answer

    async def question(self, request: QuestionAsked) -> QuestionAnswered:
        """The same for a question that is answered with text."""
        empty = QuestionAnswered(call_id=request.call_id)
        answer = await self._ask_once(request, empty)
        assert isinstance(answer, QuestionAnswered)  # noqa: S101 - as above
        return answer

    async def _ask_once(self, request: Request, refusal: Answer) -> Answer:
        """Asks one question of a call at a time, because questions are told apart by the call's id."""
        async with self._locks.setdefault(request.call_id, asyncio.Lock()):
            return await self._wait(request, refusal)

    async def _wait(self, request: Request, refusal: Answer) -> Answer:
        """Records the question and waits. `refusal` is the answer if nobody can be asked, or nobody answers in time."""
        questions, journal = self._questions, self._journal
        if not (self._attended and questions.has_surface):
            nobody = msgspec.structs.replace(refusal, by="nobody")
            await journal.record(request, nobody)
            return nobody
        # A process that ended since may have asked the same question.
        before = journal.history.asked_calls.get(request.call_id)
        expires = before.expires if before else questions.expiry()
        request = msgspec.structs.replace(request, expires=expires)
        # Opened before anybody can see the question and answer it.
        waiting = questions.open(journal.session, request)
        try:
            await journal.record(request)
            async with asyncio.timeout(questions.seconds_left(request)):
                return await asyncio.shield(waiting)
        except TimeoutError:
            if waiting.done():
                return waiting.result()
            expired = msgspec.structs.replace(refusal, by="expired")
            try:
                await journal.record(expired)
            except AnsweredAlready:  # at the last moment; the runner will read it
                return await waiting
            return expired
        finally:
            questions.close(journal.session, request)
