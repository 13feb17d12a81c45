"""Delivers the results of jobs to a file, a session or a chat. Results for chats wait in a table until a process can
deliver them."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeAlias

import msgspec

from hermes.app.app import App
from hermes.app.outgoing import MessageOutbox
from hermes.app.schedules.job_run import SILENT, JobOutcome
from hermes.app.schedules.jobs import answer_of
from hermes.errors import HermesError, in_sentences
from hermes.primitives.tasks import BackgroundTasks
from hermes.schema.messages import UserMessage
from hermes.schema.schedules import NOWHERE, Instant, Job
from hermes.settings import atomic
from hermes.store.schedules import WAITING, ScheduleStore
from hermes.text.translation import shown_reason, translator

t = translator(__name__)

log = logging.getLogger("hermes.schedules")

Deliver: TypeAlias = Callable[[str, str], Awaitable[None]]
"""Delivers a text to a chat, such as `telegram:123`. Returns when it has arrived, and raises HermesError if it can't be
delivered."""


class JobDeliveries:
    """Delivers the results of one home. Without `deliver`, those for chats are left to other processes."""

    def __init__(self, app: App, deliver: Deliver | None) -> None:
        self._app = app
        self._deliver = deliver
        self._tasks = BackgroundTasks("delivering results")

    def deliver(self, job: Job, outcome: JobOutcome) -> str:
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
                return put_into_session(
                    self._app, place, f"Scheduled: {job.name}", text
                )
        except (
            HermesError,
            OSError,
            ValueError,
        ) as error:  # ValueError: a path or a text that no file can have
            log.warning("the result of job %s was not delivered: %s", job.id, error)
            return t.logged("not delivered: {reason}", reason=error)
        return WAITING

    def announce(self, job: Job, text: str) -> None:
        """Tells whoever gets the results of a job something about it: in a session, or in a chat. Never fails."""
        kind, _, place = job.deliver.partition(":")
        try:
            if kind == "session":
                put_into_session(self._app, place, f"Scheduled: {job.name}", text)
            elif kind not in (NOWHERE, "file"):
                MessageOutbox(self._app).queue(job.deliver, text)
        except HermesError as error:
            log.warning("nobody was told that job %s waits: %s", job.id, error)

    def begin(self) -> None:
        """Delivers queued results in the background, so that a platform that does not answer delays no job."""
        if self._deliver is not None and not self._tasks:
            self._tasks.start(self._take_waiting(self._deliver))

    async def close(self) -> None:
        """Stops. The rest is delivered after the next start."""
        await self._tasks.close()

    @property
    def _table(self) -> ScheduleStore:
        return self._app.store.schedules

    async def _take_waiting(self, deliver: Deliver) -> None:
        """Delivers results to their chats, also those of other processes. The boundary of that task."""
        try:
            while waiting := await asyncio.to_thread(self._table.undelivered):
                jobs = {
                    job.id: job
                    for job in await asyncio.to_thread(self._table.jobs, removed=True)
                }
                for instant in waiting:
                    await self._deliver_queued(deliver, jobs.get(instant.job), instant)
        except Exception:
            log.exception("results could not be delivered; will try again")

    async def _deliver_queued(
        self, deliver: Deliver, job: Job | None, instant: Instant
    ) -> None:
        if job is None:
            await asyncio.to_thread(
                self._table.delivered,
                instant,
                t.logged("not delivered: its job can't be read"),
            )
            return
        text = await asyncio.to_thread(answer_of, self._app, instant.session)
        try:
            await deliver(
                job.deliver, _report(job, instant.state, instant.reason, text)
            )
            delivery = job.deliver
        except HermesError as error:
            log.warning(
                "the result of job %s was not delivered: %s",
                job.id,
                in_sentences(error),
            )
            delivery = t.logged("not delivered: {reason}", reason=error.message)
        await asyncio.to_thread(self._table.delivered, instant, delivery)


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
    if not once or not _is_in_session(app, info.id, once):
        app.record(info.id, UserMessage(text=f"[{heading}]\n\n{text}", via=once))
    return f"session:{info.id}"


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
    first = info.root if info.kind == "child" else session
    binding = app.store.chats.of_session(first)
    if binding is None:
        return f"session:{first}"
    chat = msgspec.json.decode(binding.chat, type=_Chat)
    return f"{chat.platform}:{chat.id}{f'/{chat.thread}' if chat.thread else ''}"
