"""`Learner`: gives sessions their memory and skills, and reviews conversations in the background.

A review repeats the last request and adds one message, so nearly all of it is in the provider's cache. It runs beside
the user's turns and writes one event when it is done. If it is killed, it writes nothing.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from hermes.app.app import App
from hermes.app.learning.remote_lease import remote_lease
from hermes.app.learning.reviewer import Review, ReviewDeps, ReviewTools
from hermes.app.learning.tools import ConversationChanges, LearningTools, changed
from hermes.core.history import ConversationHistory
from hermes.core.ports import Tool
from hermes.errors import HermesError, SessionNotFound
from hermes.events.envelope import is_foreign
from hermes.learning.change import Change, Provenance
from hermes.learning.learning_service import LearningService, open_learning, unused
from hermes.learning.proposals import Proposal
from hermes.learning.review import (
    ALLOWED,
    ReviewChanges,
    ReviewCounter,
    ReviewOutcome,
    apply_changes,
    lease,
)
from hermes.learning.untrusted_text import UntrustedText
from hermes.primitives.recent import RecentDict
from hermes.primitives.tasks import BackgroundTasks
from hermes.schema.event_base import Event
from hermes.schema.events import AuxiliaryCalled, TurnEnded
from hermes.schema.learning import LearningReviewed
from hermes.settings.load import environment
from hermes.store.log_row import Row

log = logging.getLogger("hermes.learning")

_MAX_COUNTED_SESSIONS = 256  # sessions whose counts are kept


class Learner:
    """Memory, skills and reviews of one process."""

    def __init__(self, app: App, deps: ReviewDeps | None = None) -> None:
        self._app = app
        self._deps = deps
        self._settings = app.settings.learning
        self._tallies: RecentDict[str, ReviewCounter] = RecentDict(
            _MAX_COUNTED_SESSIONS
        )
        self._taint = UntrustedText()
        self._tasks = BackgroundTasks("a review")
        self._handle: Any = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._mine: Callable[[str], bool] = lambda _: True
        self.learning: LearningService = open_learning(
            app.home,
            self._settings,
            environment(),
            clock=app.clock,
            exclusive_remote=remote_lease(app.settings, lambda: app.store),
        )

    def tools(self, person: str = "") -> tuple[Tool, ...]:
        """Returns the tools of a conversation. Anyone but the user has a separate memory and can't change skills."""
        learning = self._of(person)
        landing = ConversationChanges(
            learning, mode=self._settings.mode, record=self._record, taint=self._doubt
        )
        tools = LearningTools(learning, landing, self._app.clock).all()
        return (
            tuple(tool for tool in tools if tool.spec.name != "skill_manage")
            if person
            else tools
        )

    def _of(self, person: str) -> LearningService:
        if not person:
            return self.learning
        return open_learning(
            self._app.home,
            self._settings,
            environment(),
            clock=self._app.clock,
            person=person,
        )

    def prompt(self, person: str = "") -> str:
        """Returns the memory and skills in a new session's system prompt; empty if there are none."""
        parts = {
            "Memory": self._of(person).memory.snapshot,
            "Skills": self.learning.skills.index,
        }
        return "\n\n".join(
            filter(None, (self._part(name, make) for name, make in parts.items()))
        )

    def _part(self, name: str, make: Callable[[], str]) -> str:
        """Returns one part of the prompt. If it can't be read, the text says so, and the other part is still used."""
        try:
            return make()
        except (HermesError, OSError) as error:
            log.warning("%s is not in the prompt: %s", name.lower(), error)
            return f"[{name} could not be read: {error}]"  # not translated

    def decide(self, proposal: str, *, keep: bool) -> Proposal:
        """Applies or rejects a proposal, as the user decided. Raises LearningError if that fails."""
        decided = (
            self.learning.approve(proposal) if keep else self.learning.reject(proposal)
        )
        if keep and decided.origin.session:
            with contextlib.suppress(SessionNotFound):  # its session has been deleted
                self._record(
                    decided.origin.session,
                    changed(decided.change, decided.hash, decided.id),
                )
        return decided

    def start(
        self,
        mine: Callable[[str], bool] = lambda _: True,
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        """Starts reviewing conversations that are due. For long-running surfaces: one answer leaves no time for it.

        `mine` decides whether a session is reviewed. `loop` is where reviews run, by default the running loop.
        """
        if (
            self._settings.mode == "off"
            or self._handle is not None
            or self._deps is None
        ):
            return
        self._mine = mine
        self._loop = loop or asyncio.get_running_loop()
        self._handle = self._app.bus.subscribe(TurnEnded.topic, self._ended)

    async def close(self) -> None:
        """Stops running reviews. They leave nothing behind, and their conversations are still due."""
        if self._handle is not None:
            self._app.bus.unsubscribe(self._handle)
            self._handle = None
        await self._tasks.close()

    async def idle(self) -> None:
        """Waits until no review runs."""
        await self._tasks.join()

    async def review(self, session: str) -> LearningReviewed | None:
        """Reviews a session now, due or not. Returns None if there is nothing to do, or another review runs."""
        with lease(self._app.home.root / "learning") as alone:
            return await self._review(session) if alone else None

    def _ended(self, event: Mapping[str, Any]) -> None:
        """Handles the end of a turn. Other processes review their own turns."""
        session = event.get("session_id")
        if not isinstance(session, str) or is_foreign(event) or self._loop is None:
            return
        if self._may_be_due(session, event.get("seq")) and self._mine(session):
            self._loop.call_soon_threadsafe(self._begin, session)

    def _may_be_due(self, session: str, seq: object) -> bool:
        """Returns False if a review can't be due, even if every other row up to this one were a turn."""
        if not isinstance(seq, int):
            return True
        tally = self._tallies.get(session) or ReviewCounter()
        new = seq - tally.seq
        return (
            tally.turns + (new + 1) // 2 >= self._settings.turns
            or tally.iterations + new >= self._settings.iterations
        )

    def _begin(self, session: str) -> None:
        self._tasks.start(self._consider(session))

    async def _consider(self, session: str) -> None:
        """Reviews a session if that is due. Errors are logged, and the user's work continues."""
        try:
            if await asyncio.to_thread(self._is_due, session):
                await self.review(session)
        except HermesError as error:
            log.warning("session %s was not reviewed: %s", session, error)
        except Exception:
            log.exception("the review of session %s failed", session)

    def _is_due(self, session: str) -> bool:
        store = self._app.store
        try:
            is_child = store.sessions.origin(session).kind == "child"
            if is_child or self._app.person(session):
                return False  # nothing is learned from other people
        except SessionNotFound:
            return False
        tally = self._tallies.get_or_make(session, ReviewCounter)
        rows = store.log.rows_after(session, tally.seq)
        for row in rows:
            tally.add(row.seq, row.event)
        return tally.due(self._settings.turns, self._settings.iterations)

    async def _review(self, session: str) -> LearningReviewed | None:
        history, upto = await asyncio.to_thread(self._history, session)
        names = (
            {spec.name for spec in history.prompt.tools} if history.prompt else set()
        )
        if not history.messages or not names >= ALLOWED or self._deps is None:
            return None
        stage = ReviewChanges(self.learning)
        tools = LearningTools(
            self.learning, ReviewTools(stage), self._app.clock, counted=False
        )
        reviewing = Review(self._deps, tools.all())
        try:
            ended = await reviewing.run(session, history, self._settings.budget)
        except asyncio.CancelledError:
            if (used := reviewing.called.usage) and used.input_tokens:
                await asyncio.to_thread(self._record, session, reviewing.called)
            raise
        work = asyncio.to_thread(
            self._record_review, session, reviewing.called, ended, stage.changes, upto
        )
        landing = asyncio.ensure_future(work)
        try:
            return await asyncio.shield(landing)
        except (
            asyncio.CancelledError
        ):  # changes that have begun are completed, including their event
            await landing
            raise

    def _record_review(
        self,
        session: str,
        called: AuxiliaryCalled,
        ended: TurnEnded,
        changes: list[Change],
        upto: int,
    ) -> LearningReviewed:
        """Records the end of a review, whatever its outcome: its cost is spent, and it is not due again."""
        reviewed = LearningReviewed(upto=upto, failure=ended.detail or ended.reason)
        if ended.reason in ("done", "budget"):
            try:
                outcome = self._apply_changes(session, changes)
            except HermesError as error:
                reviewed = LearningReviewed(upto=upto, failure=error.message)
            else:
                failures = [
                    *([ended.detail] if ended.reason == "budget" else []),
                    *outcome.lost,
                ]
                reviewed = LearningReviewed(
                    summary=outcome.summary,
                    proposals=outcome.proposals,
                    changes=outcome.changes,
                    upto=upto,
                    failure=" ".join(failures),
                )
        self._app.record(session, called, reviewed)
        return reviewed

    def _apply_changes(self, session: str, changes: list[Change]) -> ReviewOutcome:
        doubt = self._taint.of(self._events(session), whole=True) if changes else ""
        auto = self._settings.mode == "auto"
        outcome = apply_changes(
            self.learning,
            changes,
            Provenance("review", session),
            auto=auto,
            doubt=doubt,
        )
        old: list[Change] = [
            *unused(self.learning, self._app.clock.now(), self._settings.retire_after)
        ]
        retired = apply_changes(
            self.learning, old, Provenance("hermes"), auto=auto, doubt=""
        )
        return ReviewOutcome(
            (*outcome.proposals, *retired.proposals),
            (*outcome.changes, *retired.changes),
            (*outcome.titles, *retired.titles),
            (*outcome.lost, *retired.lost),
        )

    def _history(self, session: str) -> tuple[ConversationHistory, int]:
        """Returns the conversation up to its last finished turn, and the row of that end."""
        history, upto = ConversationHistory(), 0
        since: list[Row] = []
        for row in self._app.store.log.every_event(session):
            since.append(row)
            if isinstance(row.event, TurnEnded):
                for one in since:
                    history.add(one.seq, one.event, one.turn)
                since.clear()
                upto = row.seq
        history.waiting.clear()
        return history, upto

    def _doubt(self, session: str) -> str:
        return self._taint.of(self._events(session))

    def _events(self, session: str) -> Iterator[Event | None]:
        return (row.event for row in self._app.store.log.every_event(session))

    def _record(self, session: str, event: Event) -> None:
        self._app.record(session, event)
