"""Delivers the results of jobs to a file, a session or a chat. Results for chats wait in the table of outgoing messages
until a gateway can deliver them; those for sessions wait until the store can be written."""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

import msgspec

from hermes.app.app import App
from hermes.app.outgoing import MessageOutbox
from hermes.app.schedules.job_run import SILENT, JobOutcome
from hermes.app.schedules.jobs import answer_of
from hermes.errors import (
    HermesError,
    SessionBusy,
    StoreBusy,
    StoreError,
    StoreFull,
    StoreUnreachable,
)
from hermes.primitives.tasks import BackgroundTasks
from hermes.schema.messages import UserMessage
from hermes.schema.schedules import NOWHERE, Instant, Job
from hermes.settings import atomic
from hermes.store.schedules import WAITING, ScheduleStore
from hermes.text.translation import shown_reason, translator

t = translator(__name__)

log = logging.getLogger("hermes.schedules")

_KEEP_S = 7 * 86_400.0
"""How long a result waits for the platform of its chat, or for the store."""
VIA_JOB = "job#"
"""How the `via` of a message with a result begins."""
_ROLE = "job-results"
"""The role of the process that puts waiting results into sessions: of several, one does, so none comes twice."""


class JobDeliveries:
    """Delivers the results of one home."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._tasks = BackgroundTasks("delivering results")

    def deliver(self, job: Job, instant: Instant, outcome: JobOutcome) -> str:
        """Delivers a result to a file or a session, or queues it for a chat. Never fails the run."""
        if job.deliver == NOWHERE or (
            outcome.text.strip() == SILENT and outcome.state == "done"
        ):
            return ""
        kind, _, place = job.deliver.partition(":")
        text = _report(job, outcome.state, outcome.reason, outcome.text)
        try:
            if kind == "file":
                return _write_to_file(place, text)
            if kind == "session":
                session = self._app.store.sessions.find(place).id
                return _add(self._app, session, _heading(job), text, _via(instant))
        except (HermesError, OSError, ValueError) as error:
            # ValueError: a path or a text that no file can have
            if _is_temporary(error):
                return WAITING
            log.warning("the result of job %s was not delivered: %s", job.id, error)
            return t.logged("not delivered: {reason}", reason=error)
        return WAITING

    def announce(self, job: Job, text: str) -> None:
        """Tells whoever gets the results of a job something about it: in a session, or in a chat. Never fails."""
        kind, _, place = job.deliver.partition(":")
        try:
            if kind == "session":
                put_into_session(self._app, place, _heading(job), text)
            elif kind not in (NOWHERE, "file"):
                MessageOutbox(self._app).queue(job.deliver, text)
        except HermesError as error:
            log.warning("nobody was told that job %s waits: %s", job.id, error)

    def begin(self) -> None:
        """Hands queued results to a gateway, in the background."""
        if not self._tasks:
            self._tasks.start(self._take_waiting())

    async def close(self) -> None:
        """Stops. The rest is delivered after the next start."""
        await self._tasks.close()

    @property
    def _table(self) -> ScheduleStore:
        return self._app.store.schedules

    async def _take_waiting(self) -> None:
        """Hands results for chats to a gateway, also those of other processes. The boundary of that task."""
        try:
            await asyncio.to_thread(self._hand_over)
        except StoreError as error:
            log.warning("results could not be delivered; will try again: %s", error)
        except Exception:
            log.exception("results could not be delivered; will try again")

    def _hand_over(self) -> None:
        """Puts results into the table of outgoing messages, and ends those that arrived or never will."""
        waiting = self._table.undelivered()
        if not waiting:
            return
        jobs = {job.id: job for job in self._table.jobs(removed=True)}
        known = self._app.store.sends.known([_message_name(one) for one in waiting])
        for_sessions: list[tuple[Job, Instant]] = []
        for instant in waiting:
            job, sent = jobs.get(instant.job), known.get(_message_name(instant))
            if job is None:
                self._give_up(instant, t.logged("its job can't be read"))
            elif job.deliver.startswith("session:"):
                for_sessions.append((job, instant))
            elif sent is None:
                self._attempt(self._queue, job, instant)
            elif sent.state == "sent":
                self._table.delivered(instant, job.deliver)
            elif sent.is_over:
                self._give_up(instant, sent.reason)
        if for_sessions:
            self._tell_sessions(for_sessions)

    def _tell_sessions(self, waiting: list[tuple[Job, Instant]]) -> None:
        roles = self._app.store.roles
        role = roles.take(_ROLE)
        if role is None:
            return
        try:
            for job, instant in waiting:
                self._attempt(self._tell_session, job, instant)
        finally:
            roles.release(role)

    def _attempt(
        self, hand_over: Callable[[Job, Instant], None], job: Job, instant: Instant
    ) -> None:
        """Hands one result over. After a failure it is tried again, at most for a week; the others don't wait for it."""
        try:
            hand_over(job, instant)
        except (HermesError, ValueError) as error:
            is_late = self._app.clock.now() > instant.ended + _KEEP_S
            if is_late or not _is_temporary(error):
                self._give_up(instant, str(error))
            else:
                log.info("the result of job %s waits: %s", job.id, error)

    def _tell_session(self, job: Job, instant: Instant) -> None:
        session = job.deliver.partition(":")[2]
        text = answer_of(self._app, instant.session)
        report = _report(job, instant.state, instant.reason, text)
        place = put_into_session(
            self._app, session, _heading(job), report, once=_via(instant)
        )
        self._table.delivered(instant, place)

    def _queue(self, job: Job, instant: Instant) -> None:
        text = answer_of(self._app, instant.session)
        report = _report(job, instant.state, instant.reason, text)
        MessageOutbox(self._app).queue(
            job.deliver, report, name=_message_name(instant), keep_s=_KEEP_S
        )

    def _give_up(self, instant: Instant, reason: str) -> None:
        log.warning("the result of job %s was not delivered: %s", instant.job, reason)
        delivery = t.logged("not delivered: {reason}", reason=reason)
        self._table.delivered(instant, delivery)


def _is_temporary(error: Exception) -> bool:
    """Whether a later attempt may succeed: the store was busy or full, or could not be reached."""
    return isinstance(error, StoreBusy | StoreFull | StoreUnreachable | SessionBusy)


def _heading(job: Job) -> str:
    return f"Scheduled: {job.name}"


def _message_name(instant: Instant) -> str:
    """The id of the message with a result, so that it is sent once."""
    return f"{instant.job}-{instant.due!r}"


def _via(instant: Instant) -> str:
    """The name of a result in a session, so that it is added once."""
    return f"{VIA_JOB}{_message_name(instant)}"


def _report(job: Job, state: str, reason: str, text: str) -> str:
    """The text that the recipient reads."""
    if state == "done":
        answer = text or t("{name}: done, without an answer.", name=job.name)
        return f"{answer}\n\n({shown_reason(reason)}.)" if reason else answer
    failure = t(
        "The scheduled job “{name}” failed: {reason}",
        name=job.name,
        reason=shown_reason(reason),
    )
    return f"{failure}\n\n{text}" if text else failure


def _write_to_file(path: str, text: str) -> str:
    """Writes a result to a file, replacing the one before. Returns the path."""
    target = Path(path).expanduser()
    target.parent.mkdir(parents=True, exist_ok=True)
    atomic.replace(target, f"{text}\n")
    return f"file:{target}"


def put_into_session(
    app: App, session: str, heading: str, text: str, *, once: str = ""
) -> str:
    """Adds a result to another session, which answers it in its next turn. Returns where.

    With `once`, a name for the result, it is not added again if a process added it that was killed right after.
    """
    info = app.store.sessions.find(session)
    if once and _is_in_session(app, info.id, once):
        return f"session:{info.id}"
    return _add(app, info.id, heading, text, once)


def _add(app: App, session: str, heading: str, text: str, via: str) -> str:
    app.record(session, UserMessage(text=f"[{heading}]\n\n{text}", via=via))
    return f"session:{session}"


def _is_in_session(app: App, session: str, via: str) -> bool:
    return any(
        isinstance(message, UserMessage) and message.via == via
        for message in app.store.log.messages(session)
    )


class _Chat(msgspec.Struct):
    """A chat, as the gateway stores it."""

    platform: str
    id: str
    thread: str = ""


def delivery_target(app: App, session: str) -> str:
    """Where results for a session go: its chat, or the session itself. A child has those of its root."""
    info = app.store.sessions.find(session)
    first = info.top or session
    binding = app.store.chats.of_session(first)
    if binding is None:
        return f"session:{first}"
    chat = msgspec.json.decode(binding.chat, type=_Chat)
    return f"{chat.platform}:{chat.id}{f'/{chat.thread}' if chat.thread else ''}"
