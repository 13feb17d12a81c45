"""Jobs and their planned instants.

Each instant is written before it runs and ends exactly once. Only one of the processes that run schedules runs it.
"""

import logging
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import msgspec

from hermes.core.ports import Clock
from hermes.errors import NotFound, UsageError
from hermes.schema.schedules import Instant, Job, State
from hermes.store.leases import LEASE_TTL_S, this_process
from hermes.store.ports import SqlDatabase
from hermes.store.sql import SqlConnection
from hermes.text.translation import translator

t = translator(__name__)


log = logging.getLogger("hermes.store")

Planned = TypeVar("Planned", bound=Instant | None)

WAITING = "waiting"
"""The delivery state of a result that has not reached its chat yet."""

CUT_OFF = t.logged("the process ended while it ran")
_FIELDS = ", ".join(Instant.__struct_fields__)
_LATEST = "CASE WHEN began >= ended AND began >= due THEN began WHEN ended >= due THEN ended ELSE due END"
_PLACES = ", ".join("?" for _ in Instant.__struct_fields__)
# An instant that never ran may be planned again: it was given up too early, or by a clock that was ahead.
_WRITE = f"""
INSERT INTO instants ({_FIELDS}) VALUES ({_PLACES})
ON CONFLICT (job, due) DO UPDATE SET
  starts = excluded.starts, cause = excluded.cause, state = excluded.state, reason = excluded.reason,
  repeats = excluded.repeats, ended = excluded.ended
WHERE instants.state = 'planned' OR (instants.state IN ('skipped', 'missed') AND excluded.state = 'planned')
"""  # noqa: S608 - our own names


class ScheduleStore:
    """The schedules of one database."""

    def __init__(self, database: SqlDatabase, clock: Clock, *, owner: str = "") -> None:
        self._db = database
        self._clock = clock
        self._owner = owner or this_process()
        self.has_put = False
        """Whether this process has saved a job."""

    def jobs(self, *, removed: bool = False) -> list[Job]:
        """Returns the jobs, oldest first."""
        rows = self._rows("SELECT id, data FROM jobs", ())
        found = [job for name, data in rows if (job := _read(name, data)) is not None]
        return sorted(
            (job for job in found if removed or not job.removed),
            key=lambda job: (job.created, job.id),
        )

    def any(self) -> bool:
        """Returns whether there is a job."""
        return bool(self.jobs())

    def find(self, name: str) -> Job:
        """Returns the job with that id, start of an id, or name."""
        jobs = self.jobs()
        found = [job for job in jobs if name in (job.id, job.name)]
        found = found or [job for job in jobs if name and job.id.startswith(name)]
        found = found or [job for job in jobs if job.name.casefold() == name.casefold()]
        if len(found) == 1:
            return found[0]
        if not found:
            raise NotFound(
                t.later("There is no job {name!r}.", name=name),
                hint=t.later("`hermes cron list` lists them."),
            )
        ids = ", ".join(job.id for job in found)
        raise UsageError(
            t.later("{name!r} may be any of: {ids}.", name=name, ids=ids),
            hint=t.later("Give the id."),
        )

    def put(self, job: Job, *, dropped: str, following: Instant | None) -> None:
        """Saves a job. Its planned instants end as skipped, for the given reason; `following` is
        planned instead.
        """
        now = self._clock.now()
        self._db.write(
            lambda connection: _replan(connection, job, following, (dropped, now))
        )
        self.has_put = True

    def change(
        self,
        name: str,
        change: Callable[[Job], Job],
        plan: Callable[[Job], Planned],
        *,
        dropped: str,
    ) -> tuple[Job, Planned]:
        """Changes the current state of a job and plans it again, as `put` does.

        Returns the job and what is planned. Raises NotFound if it is gone.
        """
        now = self._clock.now()

        def write(connection: SqlConnection) -> tuple[Job, Planned]:
            self._db.lock(connection, "schedules")
            job = _job(connection, name)
            if job is None or job.removed:
                raise NotFound(
                    t.later("There is no job {name!r} any more.", name=name),
                    hint=t.later("Nothing was changed."),
                )
            changed = change(job)
            planned = plan(changed)
            _replan(connection, changed, planned, (dropped, now))
            return changed, planned

        return self._db.write(write)

    def plan(self, *planned: Instant) -> None:
        """Saves instants to run."""
        self._db.write(lambda connection: [_write(connection, one) for one in planned])

    def planned(self, job: str = "") -> list[Instant]:
        """Returns the planned instants, next first."""
        return self._select(
            "WHERE state = 'planned' AND (?1 = '' OR job = ?1) ORDER BY starts, due",
            (job,),
        )

    def due(self, now: float) -> list[Instant]:
        """Returns the instants that are due, most overdue first."""
        return self._select(
            "WHERE state = 'planned' AND starts <= ? ORDER BY starts, due", (now,)
        )

    def coming(self, now: float) -> float | None:
        """Returns when the next instant starts that is not due yet."""
        return self._rows(
            "SELECT min(starts) FROM instants WHERE state = 'planned' AND starts > ?",
            (now,),
        )[0][0]

    def note_waiting(self, instant: Instant, why: str) -> bool:
        """Records why a due instant does not run yet. Returns False if that was already recorded."""
        query = """UPDATE instants SET reason = ? WHERE job = ? AND due = ? AND state = 'planned' AND reason = ''"""
        return self._change(query, (why, instant.job, instant.due))

    def running(self) -> list[Instant]:
        """Returns the running instants, here or elsewhere."""
        return self._select("WHERE state = 'running' ORDER BY began", ())

    def claim(
        self,
        instant: Instant,
        after: Callable[[Job], tuple[Job, Instant | None]] | None = None,
    ) -> Instant | None:
        """Claims an instant to run it here, and plans the next one; None if it is not available.

        A job runs once at a time. `after` computes the job's state after this run, and the next instants.
        """
        now = self._clock.now()
        taken = msgspec.structs.replace(
            instant, state="running", owner=self._owner, began=now, session=""
        )

        def take(connection: SqlConnection) -> Instant | None:
            self._db.lock(connection, "schedules")
            expires = self._db.lease_time(connection, self._clock) + LEASE_TTL_S
            busy = connection.execute(
                "SELECT 1 FROM instants WHERE job = ? AND state = 'running'",
                (instant.job,),
            ).get
            query = """UPDATE instants SET state = 'running', owner = ?, expires = ?, began = ?
            WHERE job = ? AND due = ? AND state = 'planned' RETURNING 1"""
            if busy:
                return None
            if instant.cause == "hand":  # due now, and never planned before
                _write(connection, instant)
            values = (taken.owner, expires, now, instant.job, instant.due)
            if connection.execute(query, values).get is None:
                return None
            if after is not None and (job := _job(connection, instant.job)) is not None:
                changed, following = after(job)
                _put(connection, changed)
                if following is not None:
                    _write(connection, following)
            return msgspec.structs.replace(taken, expires=expires)

        return self._db.write(take)

    def close(self, ended: Iterable[Instant], planned: Iterable[Instant] = ()) -> None:
        """Ends instants that never ran, and plans others, all or none. Ended and running ones stay
        as they are.
        """

        def write(connection: SqlConnection) -> None:
            for instant in (*ended, *planned):
                _write(connection, instant)

        self._db.write(write)

    def renew(self, instant: Instant) -> bool:
        """Extends a run (the heartbeat). Returns False if it is no longer ours."""
        query = "UPDATE instants SET expires = ? WHERE job = ? AND due = ? AND state = 'running' AND owner = ? RETURNING 1"

        def job(connection: SqlConnection) -> bool:
            expires = self._db.lease_time(connection, self._clock) + LEASE_TTL_S
            values = (expires, instant.job, instant.due, self._owner)
            return connection.execute(query, values).get is not None

        return self._db.write(job)

    def belongs_to(self, instant: Instant, session: str) -> None:
        """Records the session that does the work."""
        query = (
            "UPDATE instants SET session = ? WHERE job = ? AND due = ? AND owner = ?"
        )
        self._change(query, (session, instant.job, instant.due, self._owner))

    def end(
        self, instant: Instant, state: State, reason: str = "", delivery: str = ""
    ) -> bool:
        """Ends a run of this process. Returns False if it has already ended."""
        query = """UPDATE instants SET state = ?, reason = ?, delivery = ?, ended = ?, expires = 0
        WHERE job = ? AND due = ? AND state = 'running' AND owner = ?"""
        values = (
            state,
            reason,
            delivery,
            self._clock.now(),
            instant.job,
            instant.due,
            self._owner,
        )
        return self._change(query, values)

    def settle(self) -> list[Instant]:
        """Ends and returns runs whose process is gone. Runs nothing again."""
        now = self._clock.now()
        judged = self._db.read(lambda one: self._db.lease_time(one, self._clock))
        gone = [
            one
            for one in self.running()
            if not self._db.holds(one.owner, one.expires, judged)
        ]
        query = """UPDATE instants SET state = 'failed', reason = ?, ended = ?
        WHERE job = ? AND due = ? AND state = 'running' AND owner = ? AND expires = ?"""
        return [
            msgspec.structs.replace(one, state="failed", reason=CUT_OFF, ended=now)
            for one in gone
            if self._change(
                query, (CUT_OFF, now, one.job, one.due, one.owner, one.expires)
            )
        ]

    def history(self, job: str = "", *, limit: int = 50) -> list[Instant]:
        """Returns past and running instants, newest first."""
        where = f"WHERE state != 'planned' AND (?1 = '' OR job = ?1) ORDER BY {_LATEST} DESC LIMIT ?2"
        return self._select(where, (job, limit))

    def latest(self) -> list[Instant]:
        """Returns each job's last result. Instants cancelled before their time, as by a change, do
        not count.
        """
        query = f"""SELECT {_FIELDS} FROM (
          SELECT {_FIELDS}, row_number() OVER (PARTITION BY job ORDER BY ended DESC, due DESC) AS place
          FROM instants WHERE state NOT IN ('planned', 'running') AND due <= ended
        ) AS ended WHERE place = 1"""  # noqa: S608 - our own names
        return [Instant(*row) for row in self._rows(query, ())]

    def undelivered(self) -> list[Instant]:
        """Returns results that have not reached their chat."""
        return self._select("WHERE delivery = ? ORDER BY ended", (WAITING,))

    def delivered(self, instant: Instant, delivery: str) -> bool:
        """Records the delivery of a result. Returns False if another process was faster."""
        query = "UPDATE instants SET delivery = ? WHERE job = ? AND due = ? AND delivery = ?"
        return self._change(query, (delivery, instant.job, instant.due, WAITING))

    def forget(self, before: float) -> int:
        """Deletes instants that ended before a time, and removed jobs without instants."""

        def clear(connection: SqlConnection) -> int:
            query = "DELETE FROM instants WHERE state NOT IN ('planned', 'running') AND ended < ? AND delivery != ? RETURNING 1"
            return len(connection.execute(query, (before, WAITING)).fetchall())

        return self._db.write(clear)

    def _select(self, rest: str, values: tuple[Any, ...]) -> list[Instant]:
        return [
            Instant(*row)
            for row in self._rows(f"SELECT {_FIELDS} FROM instants {rest}", values)  # noqa: S608
        ]

    def _rows(self, query: str, values: tuple[Any, ...]) -> list[Any]:
        return self._db.run_on_reader(
            lambda connection: connection.execute(query, values).fetchall()
        )

    def _change(self, query: str, values: tuple[Any, ...]) -> bool:
        def run(connection: SqlConnection) -> bool:
            changed = connection.execute(f"{query} RETURNING 1", values)
            return changed.get is not None

        return self._db.write(run)


def _read(name: str, data: str) -> Job | None:
    try:
        return msgspec.json.decode(data, type=Job)
    except (
        msgspec.MsgspecError
    ) as error:  # perhaps written by a newer Hermes; the others still run
        log.error(  # noqa: TRY400 - the message is enough
            "the job %s can't be read and does not run: %s", name, error
        )
        return None


def _put(connection: SqlConnection, job: Job) -> None:
    connection.execute(
        "INSERT INTO jobs (id, data) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET data = excluded.data",
        (job.id, msgspec.json.encode(job).decode()),
    )


def _job(connection: SqlConnection, name: str) -> Job | None:
    """Returns the current state of a job."""
    data = connection.execute("SELECT data FROM jobs WHERE id = ?", (name,)).get
    return None if data is None else _read(name, str(data))


def _replan(
    connection: SqlConnection,
    job: Job,
    following: Instant | None,
    dropped: tuple[str, float],
) -> None:
    """Saves a job, and plans `following` instead of what was planned; `dropped` says why, and when."""
    query = "UPDATE instants SET state = 'skipped', reason = ?, ended = ? WHERE job = ? AND state = 'planned'"
    connection.execute(query, (*dropped, job.id))
    _put(connection, job)
    if following is not None:
        _write(connection, following)


def _write(connection: SqlConnection, instant: Instant) -> None:
    connection.execute(_WRITE, msgspec.structs.astuple(instant))
