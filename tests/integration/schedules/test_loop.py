"""The loop on a real database with a clock of its own: every planned instant ends, once, with its reason."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import apsw
import msgspec
import pytest
from tests.fakes.store_engines import sqlite_database

from hermes.app import App, build
from hermes.app.schedules.jobs import JobBook, JobDraft
from hermes.app.schedules.scheduler import ScheduleLoop
from hermes.errors import HermesError
from hermes.events import Bus
from hermes.schema.events import SessionCreated
from hermes.schema.messages import UserMessage
from hermes.schema.schedules import Instant, Job
from hermes.settings import Home, Secrets, Settings
from hermes.settings.gateway import ScheduleSettings as Section
from hermes.settings.sections import StoreSettings
from hermes.store.leases import LEASE_TTL_S, this_process
from hermes.store.log_row import checksum
from hermes.store.schedules import CUT_OFF
from hermes.store.schedules import ScheduleStore as Table
from hermes.testing import FakeClock
from hermes.testing.fixtures import FakeIds
from hermes.testing.model_server import ModelServer, Recorded
from hermes.testing.scripted_responses import ScriptedResponse, ServedCall, ServerFault

MONDAY = datetime(2026, 11, 16, 8, 0, tzinfo=ZoneInfo("Europe/Berlin")).timestamp()
HOUR, DAY = 3_600.0, 86_400.0


class Bench:
    """An app with a clock that the test moves, a model that is scripted, and a loop."""

    def __init__(self, app: App, clock: FakeClock, server: ModelServer) -> None:
        self.app = app
        self.clock = clock
        self.server = server
        self.secrets = Secrets(
            {}, {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "sk-test"}
        )
        self.book = JobBook(app)
        self.delivered: list[tuple[str, str]] = []
        self.told: list[dict[str, Any]] = []
        app.bus.subscribe("schedule.*", lambda event: self.told.append(dict(event)))
        self.loop = ScheduleLoop(app, self.secrets)

    def _deliver(self) -> None:
        """Does what a gateway does with the messages that wait for it."""
        sends = self.app.store.sends
        for one in sends.open():
            if one.target == "email:nobody":
                sends.end(one.id, "failed", "there is no such chat")
            else:
                sends.end(one.id, "sent")
                self.delivered.append((one.target, one.body))

    def job(self, schedule: str = "every day at 9:00", **more: Any) -> Job:
        number = len(self.book.store.jobs()) + 1
        name = "something" if number == 1 else f"something {number}"
        return self.book.add(
            JobDraft(schedule=schedule, prompt="tell me something", name=name, **more)
        )[0]

    async def until_idle(self) -> None:
        """Looks until nothing is due and nothing runs."""
        async with asyncio.timeout(60):
            while True:
                await self.loop.step()
                if not self.loop.running:
                    await self.loop._deliveries._tasks.join()
                    self._deliver()
                    self.loop._deliveries.begin()
                    await self.loop._deliveries._tasks.join()
                    return
                while self.loop.running:
                    await asyncio.wait({*self.loop._runs.values()})
                    await asyncio.sleep(0)

    async def at(self, hours: float) -> None:
        """Goes to an hour of that Monday, and does what is due. The loop has been asleep since."""
        self.clock.advance(MONDAY + (hours - 8) * HOUR - self.clock.now())
        await self.until_idle()

    def history(self) -> list[tuple[str, float, str]]:
        """State, hour of that Monday, and cause, the oldest first."""
        rows = self.app.store.schedules.history(limit=1000)
        return [
            (one.state, round((one.due - MONDAY) / HOUR + 8, 2), one.cause)
            for one in reversed(rows)
        ]


@asynccontextmanager
async def bench(
    tmp_path: Path,
    *replies: ScriptedResponse | str,
    settings: Settings | None = None,
    clock: FakeClock | None = None,
    store_url: str = "",
) -> AsyncIterator[Bench]:
    clock = clock or FakeClock(MONDAY)
    section = Section(timezone="Europe/Berlin")
    store = StoreSettings(url=store_url)
    settings = settings or Settings(schedules=section, store=store)
    async with ModelServer(*(replies or ("Something.",)), repeat=True) as server:
        with build(settings, Home(tmp_path / "home"), bus=Bus(), clock=clock) as app:
            made = Bench(app, clock, server)
            yield made
            await made.loop.close()


async def test_a_due_job_runs_as_a_session_of_its_own_and_the_next_instant_is_planned(
    tmp_path: Path,
) -> None:
    async with bench(tmp_path) as b:
        job = b.job()
        await b.at(8.9)
        assert b.history() == []
        await b.at(9)
        (done,) = b.app.store.schedules.history()
        assert (done.state, done.reason, done.cause) == ("done", "", "schedule")
        info = b.app.store.sessions.find(done.session)
        assert (info.surface, info.title) == ("cron", "something")
        request = msgspec.json.decode(b.server.posts[-1].body)
        said = request["messages"][-1]["content"]
        assert "every day at 9:00" in str(said)
        assert "tell me something" in str(said)
        (planned,) = b.app.store.schedules.planned()
        assert planned.due == MONDAY + HOUR + DAY
        assert [event["type"] for event in b.told] == [
            "schedule.changed",
            "schedule.started",
            "schedule.ended",
        ]
        assert b.told[-1]["session"] == done.session
        assert b.told[0]["job"] == job.id


async def test_what_was_missed_is_caught_up_on_by_the_policy_of_the_job(
    tmp_path: Path,
) -> None:
    async with bench(tmp_path) as b:
        for policy in ("skip", "once", "all"):
            b.job("every hour", catch_up=policy)
        await b.at(8)
        await b.at(11.5)  # 9:00, 10:00 and 11:00 went by
        by_job = {job.id: job.catch_up for job in b.book.store.jobs()}
        found = {
            policy: sorted(
                (one.due, one.state, one.cause) for one in b.book.store.history(job)
            )
            for job, policy in by_job.items()
        }
        hours = [MONDAY + HOUR * number for number in (1, 2, 3)]
        missed = [(hour, "missed", "schedule") for hour in hours]
        done = [(hour, "done", "catch-up") for hour in hours]
        assert found == {"skip": missed, "once": [*missed[:2], done[2]], "all": done}
        assert {one.due for one in b.book.store.planned()} == {MONDAY + 4 * HOUR}
        reasons = {
            one.reason for one in b.book.store.history() if one.state == "missed"
        }
        assert reasons == {
            "nothing ran the schedules at that time; later ones are caught up on",
            "nothing ran the schedules at that time; catch-up is off for this job",
        }


async def test_a_long_absence_becomes_one_row_that_counts_and_catching_up_is_bounded(
    tmp_path: Path,
) -> None:
    async with bench(tmp_path) as b:
        job = b.job("*/5 * * * *", catch_up="all")
        await b.at(8 + 24)
        rows = b.book.store.history(job.id, limit=1000)
        (missed,) = [one for one in rows if one.state == "missed"]
        assert (missed.repeats, missed.due) == (288 - 10, MONDAY + 300)
        assert "278 instants in a row" in missed.reason
        assert [one.state for one in rows if one.cause == "catch-up"] == ["done"] * 10


async def test_a_little_late_is_on_time(tmp_path: Path) -> None:
    async with bench(tmp_path) as b:
        b.job("every hour", catch_up="skip")
        await b.at(9 + 60 / 3600)
        assert b.history() == [("done", 9, "schedule")]


async def test_a_run_that_takes_too_long_is_stopped_and_the_next_one_meanwhile_is_skipped(
    tmp_path: Path,
) -> None:
    async with bench(tmp_path, ScriptedResponse(fault=ServerFault(hang="body"))) as b:
        b.job("every hour", timeout=3.0)
        b.clock.advance(HOUR)
        await b.loop.step()
        await asyncio.wait_for(b.server.hanging.wait(), 20)
        b.clock.advance(30)
        b.book.store.renew(b.book.store.running()[0])
        b.clock.advance(HOUR - 30)
        renewed = b.book.store.running()[0]
        assert b.book.store.renew(renewed)  # the heartbeat, which has a real clock
        await b.loop.step()
        assert ("skipped", 10.0, "schedule") in b.history()
        await b.until_idle()
        states = {one.due: (one.state, one.reason) for one in b.book.store.history()}
        assert states[MONDAY + HOUR] == (
            "failed",
            "stopped: it took longer than 3 seconds",
        )
        assert states[MONDAY + 2 * HOUR] == (
            "skipped",
            "the previous run had not ended",
        )
        assert b.book.store.planned()[0].due == MONDAY + 3 * HOUR


async def test_of_two_loops_one_runs_an_instant(tmp_path: Path, store_url: str) -> None:
    async with bench(tmp_path, store_url=store_url) as b:
        for _ in range(5):
            b.job("every hour")
        others = [ScheduleLoop(b.app, b.secrets) for _ in range(3)]
        b.clock.advance(HOUR)
        await asyncio.gather(b.loop.step(), *(other.step() for other in others))
        runs = [run for loop in (b.loop, *others) for run in loop._runs.values()]
        await asyncio.wait(runs, timeout=30)
        assert [one[0] for one in b.history()] == ["done"] * 5
        assert len(b.server.posts) == 5
        for other in others:
            await other.close()


async def test_a_run_whose_process_is_gone_has_failed_and_is_not_run_again(
    tmp_path: Path,
) -> None:
    async with bench(tmp_path) as b:
        job = b.job("every hour")
        dead = Table(b.app.store._db, b.clock, owner="elsewhere:1:unknown")
        b.clock.advance(HOUR)
        instant = b.book.store.planned()[0]
        coming = Instant(job.id, instant.due + HOUR, instant.due + HOUR, "schedule")
        assert dead.claim(instant, lambda found: (found, coming))
        await b.until_idle()
        assert [one[0] for one in b.history()] == [
            "running"
        ]  # its heartbeat may still come
        b.clock.advance(LEASE_TTL_S + 1)
        await b.until_idle()
        assert [(one.state, one.reason) for one in b.book.store.history()] == [
            ("failed", CUT_OFF)
        ]
        assert not dead.end(instant, "done")
        assert b.server.posts == []
        assert b.told[-1]["reason"] == CUT_OFF


async def test_a_run_that_a_killed_process_left_ends_at_once(
    tmp_path: Path, store_url: str
) -> None:
    async with bench(tmp_path, store_url=store_url) as b:
        b.job("every hour")
        host, _, birth = this_process().rsplit(":", 2)
        killed = Table(b.app.store._db, b.clock, owner=f"{host}:999999999:{birth}")
        b.clock.advance(HOUR)
        assert killed.claim(b.book.store.planned()[0])
        await b.until_idle()
        assert [(one.state, one.reason) for one in b.book.store.history()] == [
            ("failed", CUT_OFF)
        ]


async def test_a_run_whose_end_could_not_be_saved_ends_later_and_the_job_goes_on(
    tmp_path: Path,
) -> None:
    refusals = iter([1, 1])

    def refuse(connection: apsw.Connection) -> None:
        connection.create_scalar_function("refused", lambda: next(refusals, 0), 0)
        connection.execute("""CREATE TEMP TRIGGER refuse BEFORE UPDATE ON main.instants
        WHEN NEW.state = 'done' AND refused() BEGIN SELECT RAISE(ABORT, 'no space left'); END""")

    async with bench(tmp_path) as b:
        sqlite_database(b.app.store).write(refuse)
        b.job("every hour")
        for hour in (9, 10):
            await b.at(hour)
        assert next(refusals, None) is None
        assert b.history() == [("done", 9.0, "schedule"), ("done", 10.0, "schedule")]


async def test_a_machine_that_sleeps_does_not_end_its_running_job(
    tmp_path: Path,
) -> None:
    async with bench(tmp_path, ScriptedResponse(fault=ServerFault(hang="body"))) as b:
        b.job("every hour")
        b.clock.advance(HOUR)
        await b.loop.step()
        await asyncio.wait_for(b.server.hanging.wait(), 20)
        for slept in (8 * HOUR, -12 * HOUR):
            b.clock.advance(slept)
            await b.loop.step()
            assert [one.state for one in b.book.store.running()] == ["running"]
        assert b.loop.running == 1
        assert not any(
            "the process ended" in event.get("reason", "") for event in b.told
        )


async def test_what_needs_approval_is_not_done_as_nobody_is_there(
    tmp_path: Path,
) -> None:
    (tmp_path / "work").mkdir()
    call = ServedCall("write_file", '{"path": "new.txt", "content": "x"}')
    async with bench(
        tmp_path, ScriptedResponse(calls=(call,)), "I could not write it."
    ) as b:
        b.job("every hour", cwd=str(tmp_path / "work"), deliver="telegram:42")
        await b.at(9)
        (done,) = b.book.store.history()
        assert (done.state, done.reason) == (
            "done",
            "1 call was not made: nobody was there to approve it",
        )
        assert b.delivered == [
            ("telegram:42", f"I could not write it.\n\n({done.reason}.)")
        ]
        assert not (tmp_path / "work" / "new.txt").exists()


async def test_a_budget_is_a_hard_cap_of_the_run(tmp_path: Path) -> None:
    async with bench(tmp_path) as b:
        b.job("every hour", budget="100 tokens")
        await b.at(9)
        (failed,) = b.book.store.history()
        assert failed.state == "failed"
        assert "100" in failed.reason
        assert b.server.posts == []


async def test_only_the_toolsets_of_the_job_are_offered(tmp_path: Path) -> None:
    async with bench(tmp_path) as b:
        b.job("every hour", toolsets=("web",))
        await b.at(9)
        tools = {
            one["function"]["name"]
            for one in msgspec.json.decode(b.server.posts[0].body)["tools"]
        }
        assert tools == {"web_search", "web_fetch"}


async def test_results_go_to_a_file_a_session_or_a_chat(tmp_path: Path) -> None:
    async with bench(tmp_path) as b:
        other = b.app.begin(SessionCreated(surface="tui")).session
        b.job("every hour", deliver=f"file:{tmp_path}/out/result.md")
        b.job("every hour", deliver=f"session:{other}")
        b.job("every hour", deliver="telegram:42")
        b.job("every hour", deliver="email:nobody")
        gone = b.app.begin(SessionCreated(surface="tui")).session
        b.job("every hour", deliver=f"session:{gone}")
        b.app.store.sessions.delete(gone)
        await b.at(9)
        assert (tmp_path / "out" / "result.md").read_text() == "Something.\n"
        words = [
            row.event.text
            for row in b.app.store.log.every_event(other)
            if isinstance(row.event, UserMessage)
        ]
        assert words == ["[Scheduled: something 2]\n\nSomething."]
        assert b.delivered == [("telegram:42", "Something.")]
        by_target = {
            job.deliver: b.book.store.history(job.id)[0] for job in b.book.store.jobs()
        }
        assert {one.state for one in by_target.values()} == {"done"}
        assert by_target["telegram:42"].delivery == "telegram:42"
        assert (
            by_target["email:nobody"].delivery == "not delivered: there is no such chat"
        )
        assert by_target[f"session:{gone}"].delivery.startswith(
            "not delivered: there is no session"
        )
        await b.until_idle()
        assert len(b.delivered) == 1


def let_disk_be_full(b: Bench, times: int, *sessions: str) -> None:
    """The next so many messages of a user don't fit on the disk, in each of the sessions."""
    left = dict.fromkeys(sessions, times)

    def refused(session: str, role: str | None) -> int:
        if role == "user" and left.get(session, 0):
            left[session] -= 1
            raise apsw.FullError("no space left")
        return 0

    def refuse(connection: apsw.Connection) -> None:
        connection.create_scalar_function("refused", refused, 2)
        connection.execute("""CREATE TEMP TRIGGER refuse BEFORE INSERT ON main.events
        WHEN refused(NEW.session, NEW.role) BEGIN SELECT 1; END""")

    sqlite_database(b.app.store).write(refuse)


def let_results_wait(b: Bench) -> None:
    """Leaves the results as they are if an error came right after they were saved."""
    change = "UPDATE instants SET delivery = 'waiting' WHERE state = 'done'"
    sqlite_database(b.app.store).write(
        lambda connection: connection.execute(change).fetchall()
    )


def said_in(b: Bench, session: str) -> list[str]:
    rows = b.app.store.log.every_event(session)
    return [one.event.text for one in rows if isinstance(one.event, UserMessage)]


async def test_a_result_for_a_session_is_delivered_once_the_store_takes_it(
    tmp_path: Path,
) -> None:
    async with bench(tmp_path) as b:
        other = b.app.begin(SessionCreated(surface="tui")).session
        let_disk_be_full(b, 1, other)
        job = b.job("every hour", deliver=f"session:{other}")
        await b.at(9)
        await b.until_idle()
        assert b.book.store.history(job.id)[0].delivery == f"session:{other}"
        assert said_in(b, other) == ["[Scheduled: something]\n\nSomething."]


async def test_a_session_that_can_not_be_read_does_not_hold_up_the_results_of_others(
    tmp_path: Path,
) -> None:
    async with bench(tmp_path) as b:
        bad, good = (b.app.begin(SessionCreated(surface="tui")).session for _ in "ab")
        b.app.record(bad, UserMessage(text="hello"))
        *_, row = b.app.store.log.every_event(bad)
        crc = checksum(row._replace(type="agent.message.future"))
        change = "UPDATE events SET type = 'agent.message.future', crc = ? WHERE session = ? AND seq = ?"
        values = (crc, bad, row.seq)
        sqlite_database(b.app.store).write(
            lambda connection: connection.execute(change, values).fetchall()
        )
        jobs = [
            b.job("every hour", deliver=f"session:{one}") for one in (bad, good, bad)
        ]
        await b.at(9)
        let_results_wait(b)
        await b.until_idle()
        found = [b.book.store.history(job.id)[0].delivery for job in jobs]
        assert found[1] == f"session:{good}"
        for one in (found[0], found[2]):
            assert one.startswith("not delivered: session")
            assert "has a message of a newer Hermes" in one


async def test_a_result_that_no_session_took_for_a_week_is_given_up(
    tmp_path: Path,
) -> None:
    async with bench(tmp_path) as b:
        other = b.app.begin(SessionCreated(surface="tui")).session
        let_disk_be_full(b, 1000, other)
        job = b.job(deliver=f"session:{other}")
        await b.at(9)
        for days, delivery in ((6, "waiting"), (2, "not delivered: not saved")):
            b.clock.advance(days * DAY)
            b.loop._deliveries.begin()
            await b.loop._deliveries._tasks.join()
            (found,) = b.book.store.history(job.id)
            assert found.delivery.startswith(delivery)


async def test_a_result_that_was_saved_before_an_error_is_not_added_again(
    tmp_path: Path,
) -> None:
    async with bench(tmp_path) as b:
        other = b.app.begin(SessionCreated(surface="tui")).session
        job = b.job(deliver=f"session:{other}")
        await b.at(9)
        let_results_wait(b)
        await b.until_idle()
        assert b.book.store.history(job.id)[0].delivery == f"session:{other}"
        assert len(said_in(b, other)) == 1


async def test_a_result_waits_for_somebody_who_can_take_it_to_its_chat(
    tmp_path: Path,
) -> None:
    async with bench(tmp_path) as b:
        b.job("every hour", deliver="telegram:42")
        alone = ScheduleLoop(b.app, b.secrets)
        b.clock.advance(HOUR)
        await alone.step()
        await asyncio.wait({*alone._runs.values()}, timeout=30)
        assert b.book.store.history()[0].delivery == "waiting"
        await b.until_idle()
        assert b.delivered == [("telegram:42", "Something.")]
        assert b.book.store.undelivered() == []


async def test_a_job_with_nothing_to_tell_delivers_nothing_and_a_failure_is_told(
    tmp_path: Path,
) -> None:
    silent, refused = (
        ScriptedResponse(text="[SILENT]"),
        ScriptedResponse(fault=ServerFault(status=401, message="no key")),
    )
    async with bench(tmp_path, silent, refused) as b:
        b.job("every hour", deliver="telegram:42")
        await b.at(9)
        assert b.delivered == []
        await b.at(10)
        (told,) = b.delivered
        assert told[1].startswith("The scheduled job “something” failed: ")


async def test_a_job_that_runs_so_many_times_ends(tmp_path: Path) -> None:
    async with bench(tmp_path) as b:
        job = b.job("every hour", times=2)
        for hour in (9, 10, 11):
            await b.at(hour)
        assert [one[0] for one in b.history()] == ["done", "done"]
        assert b.book.store.find(job.id).paused == "it has made all its runs"
        assert b.book.store.planned() == []
        _, planned = b.book.resume(job.id)
        assert planned.due == MONDAY + 4 * HOUR


async def test_a_job_that_has_lost_its_plan_gets_another(tmp_path: Path) -> None:
    async with bench(tmp_path) as b:
        b.job("every hour")
        b.app.store._db.write(
            lambda connection: connection.execute("DELETE FROM instants").fetchall()
        )
        await b.at(8)
        assert [one.due for one in b.book.store.planned()] == [MONDAY + HOUR]


async def test_pausing_editing_and_removing_end_what_was_planned_with_a_reason(
    tmp_path: Path,
) -> None:
    async with bench(tmp_path) as b:
        job = b.job("every hour")
        b.book.pause("something")
        assert b.book.store.planned() == []
        assert b.book.store.history()[0].reason == "the job was paused"
        b.book.resume(job.id)
        assert [one.due for one in b.book.store.planned()] == [MONDAY + HOUR]
        b.book.edit(job.id, name="else")
        assert [one.due for one in b.book.store.planned()] == [MONDAY + HOUR]
        b.book.edit(job.id, schedule="every day at 7:00")
        assert [one.due for one in b.book.store.planned()] == [MONDAY + 23 * HOUR]
        assert [one.reason for one in b.book.store.history()] == ["the job was changed"]
        b.book.remove(job.id[:4])
        assert b.book.store.jobs() == []
        await b.at(9)
        assert {one[0] for one in b.history()} == {"skipped"}
        assert b.server.posts == []


async def test_a_run_by_hand_is_done_also_while_paused_and_leaves_the_plan_alone(
    tmp_path: Path,
) -> None:
    async with bench(tmp_path) as b:
        job = b.job("every day at 9:00")
        b.book.pause(job.id)
        b.book.store.plan(b.book.by_hand(job.id)[1])
        await b.until_idle()
        assert [one[::2] for one in b.history() if one[0] == "done"] == [
            ("done", "hand")
        ]
        assert b.book.store.planned() == []


async def test_a_loop_that_is_stopped_says_so_of_what_ran(tmp_path: Path) -> None:
    async with bench(tmp_path, ScriptedResponse(fault=ServerFault(hang="body"))) as b:
        b.job("every hour")
        b.clock.advance(HOUR)
        stop = asyncio.Event()
        running = asyncio.ensure_future(b.loop.run(stop))
        await asyncio.wait_for(b.server.hanging.wait(), 20)
        stop.set()
        await asyncio.wait_for(running, 20)
        assert [(one.state, one.reason) for one in b.book.store.history()] == [
            ("failed", "Hermes was stopped while it ran")
        ]


async def test_the_loop_notices_a_job_that_another_process_makes(
    tmp_path: Path,
) -> None:
    async with bench(tmp_path) as b:
        stop = asyncio.Event()
        ended: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        b.app.bus.subscribe(
            "schedule.ended", lambda event: ended.put_nowait(dict(event))
        )
        running = asyncio.ensure_future(b.loop.run(stop))
        await asyncio.sleep(0)
        b.job("every hour")
        b.clock.advance(HOUR)
        assert (await asyncio.wait_for(ended.get(), 20))["state"] == "done"
        stop.set()
        await asyncio.wait_for(running, 20)


async def test_at_most_so_many_jobs_run_side_by_side_and_none_is_lost(
    tmp_path: Path,
) -> None:
    seen: list[int] = []
    loops: list[ScheduleLoop] = []

    def respond(_: Recorded) -> ScriptedResponse:
        seen.append(loops[0].running)
        return ScriptedResponse(text="ok")

    clock = FakeClock(MONDAY)
    settings = Settings(schedules=Section(timezone="UTC", at_once=2))
    async with ModelServer(respond=respond) as server:
        with build(settings, Home(tmp_path / "home"), bus=Bus(), clock=clock) as app:
            b = Bench(app, clock, server)
            loops.append(b.loop)
            for _ in range(6):
                b.job("every hour", catch_up="skip")
            clock.advance(HOUR)
            await b.until_idle()
            assert [one[0] for one in b.history()] == ["done"] * 6
            assert max(seen) == 2


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"budget": "lots"}, "not an amount"),
        ({"deliver": "somewhere"}, "can't deliver"),
        ({"deliver": "fax:1"}, "can't deliver to 'fax:1'"),
        ({"deliver": "telegram:"}, "can't deliver"),
        ({"deliver": "session:nowhere"}, "no session"),
        ({"toolsets": ("magic",)}, "no toolset"),
        ({"timeout": -1.0}, "up to a day"),
        ({"schedule": "now and then"}, "can't be read"),
    ],
)
async def test_a_job_that_can_not_be_kept_is_refused(
    tmp_path: Path, change: dict[str, Any], words: str
) -> None:
    async with bench(tmp_path) as b:
        made: Callable[..., Any] = b.job
        with pytest.raises(HermesError, match=words):
            made(**change)
        assert b.book.store.jobs() == []


async def test_a_name_belongs_to_one_job(tmp_path: Path) -> None:
    async with bench(tmp_path) as b:
        first = b.job()
        with pytest.raises(
            HermesError, match="There is already a job called 'Something'"
        ):
            b.book.add(JobDraft(schedule="every hour", prompt="x", name="Something"))
        second = b.job()
        with pytest.raises(
            HermesError, match="There is already a job called 'something'"
        ):
            b.book.edit(second.id, name="something")
        b.book.edit(first.id, name="something", prompt="the same name")
        unnamed = [
            b.book.add(JobDraft(schedule="every hour", prompt="look"))[0].name
            for _ in range(3)
        ]
        assert unnamed == ["look", "look (2)", "look (3)"]


async def test_a_change_of_the_job_while_it_is_claimed_is_not_lost(
    tmp_path: Path,
    store_url: str,
) -> None:
    async with bench(tmp_path, store_url=store_url) as b:
        seen = b.job("every hour", times=1)
        b.clock.advance(HOUR)
        instant = b.book.store.planned()[0]
        changed = msgspec.structs.replace(seen, name="renamed", times=3)
        b.book.store.put(changed, dropped="", following=instant)
        assert b.loop.claim(seen, instant) is not None
        job = b.book.store.find(seen.id)
        assert (job.name, job.times) == ("renamed", 2)
        assert [one.due for one in b.book.store.planned()] == [MONDAY + 2 * HOUR]


class _Interrupted(FakeClock):
    """Something happens when somebody next looks at it."""

    meanwhile: Callable[[], object] | None = None

    # pyrefly: ignore[missing-override-decorator]
    def now(self) -> float:
        happens, self.meanwhile = self.meanwhile, None
        if happens is not None:
            happens()
        return super().now()


async def test_a_run_that_begins_while_the_job_is_changed_counts(
    tmp_path: Path,
) -> None:
    clock = _Interrupted(MONDAY)
    async with bench(tmp_path, clock=clock) as b:
        seen = b.job("every hour", times=4)
        changes: list[Callable[[str], object]] = [
            lambda name: b.book.edit(name, name="renamed"),
            lambda name: b.book.edit(name, schedule="every 2 hours"),
            b.book.pause,
            b.book.resume,
        ]
        for left, change in zip((3, 2, 1, 1), changes, strict=True):
            clock.advance(2 * HOUR)
            planned = b.book.store.planned()
            clock.meanwhile = lambda planned=planned: [
                b.loop.claim(seen, one) for one in planned
            ]
            change(seen.id)
            for one in b.book.store.running():
                b.book.store.end(one, "done")
            job = b.book.store.find(seen.id)
            assert (job.name, job.times) == ("renamed", left)
        job = b.book.store.find(seen.id)
        assert (job.paused, job.schedule) == ("", "every 2 hours")


async def test_a_job_that_is_removed_while_it_is_changed_stays_removed(
    tmp_path: Path,
) -> None:
    clock = _Interrupted(MONDAY)
    async with bench(tmp_path, clock=clock) as b:
        job = b.job("every hour")
        clock.meanwhile = lambda: b.book.remove(job.id)
        with pytest.raises(HermesError, match="There is no job"):
            b.book.edit(job.id, name="renamed")
        assert b.book.store.jobs() == []
        assert b.book.store.planned() == []


async def test_an_instant_is_claimed_once_and_a_job_runs_once_at_a_time(
    tmp_path: Path,
    store_url: str,
) -> None:
    async with bench(tmp_path, store_url=store_url) as b:
        job, store = b.job("every hour"), b.book.store
        first, second = (
            Instant(job.id, MONDAY + number, MONDAY + number, "catch-up")
            for number in (1.0, 2.0)
        )
        store.plan(first, second)
        taken = store.claim(first)
        assert taken is not None
        assert store.claim(first) is None
        assert store.claim(second) is None  # the job runs
        assert store.end(taken, "done")
        assert store.claim(first) is None  # it is over
        assert store.claim(second) is not None


async def test_a_job_that_has_to_wait_for_others_is_not_missed(tmp_path: Path) -> None:
    settings = Settings(schedules=Section(timezone="UTC", at_once=1))
    async with bench(
        tmp_path,
        ScriptedResponse(fault=ServerFault(hang="body")),
        "Fine.",
        settings=settings,
    ) as b:
        for _ in range(2):
            b.job("every hour", catch_up="skip")
        b.clock.advance(HOUR)
        await b.loop.step()
        await asyncio.wait_for(b.server.hanging.wait(), 20)
        for _ in range(5):  # longer than an instant may be late
            b.clock.advance(30)
            b.book.store.renew(b.book.store.running()[0])
            await b.loop.step()
        assert [one[0] for one in b.history()] == ["running"]
        for run in b.loop._runs.values():
            run.cancel()
        await asyncio.wait({*b.loop._runs.values()}, timeout=30)
        await b.until_idle()
        assert sorted(one[0] for one in b.history()) == ["done", "failed"]


async def test_a_job_whose_time_zone_is_gone_rests_and_holds_up_no_other(
    tmp_path: Path,
) -> None:
    async with bench(tmp_path) as b:
        lost, fine = b.job(), b.job()
        gone = msgspec.structs.replace(lost, zone="Atlantis/Capital")
        (planned, _) = b.app.store.schedules.planned()
        b.app.store.schedules.put(
            gone, dropped="", following=msgspec.structs.replace(planned, job=lost.id)
        )
        await b.at(9)
        assert [one.state for one in b.app.store.schedules.history(fine.id)] == ["done"]
        (ended,) = b.app.store.schedules.history(lost.id)
        assert (ended.state, "Atlantis/Capital" in ended.reason) == ("skipped", True)
        assert "Atlantis/Capital" in b.app.store.schedules.find(lost.id).paused


async def test_a_clock_that_was_ahead_and_is_set_back_keeps_no_job_from_running(
    tmp_path: Path,
) -> None:
    async with bench(tmp_path) as b:
        b.job()
        await b.at(9)
        await b.at(9 + 24 * 365)  # somebody set the year wrong
        assert b.app.store.schedules.planned()[0].due > MONDAY + 365 * DAY
        await b.at(10)
        (planned,) = b.app.store.schedules.planned()
        assert planned.due == MONDAY + HOUR + DAY
        await b.at(9 + 24)
        assert [
            one.due for one in b.app.store.schedules.history() if one.state == "done"
        ].count(planned.due) == 1


@pytest.mark.parametrize("back", [6.0, 5.5, 24 * 365])
async def test_an_interval_goes_on_after_the_clock_is_set_back(
    tmp_path: Path, back: float
) -> None:
    async with bench(tmp_path) as b:
        b.job("every hour")
        for hour in range(9, 15):
            await b.at(hour)
        assert len(b.server.posts) == 6
        await b.at(14 - back)
        for hour in range(1, 4):
            await b.at(14 - back + hour + 0.5)
            assert len(b.server.posts) == 6 + hour
        assert {state for state, *_ in b.history()} <= {"done", "skipped"}


@pytest.mark.parametrize(
    "schedule", ["every hour", "every day at 9:00", "every 2 days at 9:00"]
)
async def test_a_job_that_was_made_while_the_clock_was_ahead_runs(
    tmp_path: Path, schedule: str
) -> None:
    async with bench(tmp_path) as b:
        b.clock.advance(365 * DAY)
        b.job(schedule)
        await b.at(8)
        await b.at(8 + 49)
        assert len(b.server.posts) >= 1


async def test_an_hour_that_comes_twice_runs_nothing_twice(tmp_path: Path) -> None:
    async with bench(tmp_path) as b:
        b.job()
        await b.at(9)
        await b.at(8.9)
        await b.at(9.1)
        assert [state for state, *_ in b.history()] == ["done"]
        assert [one.due for one in b.app.store.schedules.planned()] == [
            MONDAY + HOUR + DAY
        ]


class RepeatedIds(FakeIds):
    """Makes each id of a session twice, as chance may."""

    def __init__(self) -> None:
        super().__init__()
        self._again: list[str] = []

    # pyrefly: ignore[missing-override-decorator]
    def session(self) -> str:
        if self._again:
            return self._again.pop()
        self._again.append(super().session())
        return self._again[0]


def test_a_job_never_replaces_another_whose_id_came_again(tmp_path: Path) -> None:
    with build(Settings(), Home(tmp_path), bus=Bus(), ids=RepeatedIds()) as app:
        book = JobBook(app)
        drafts = [JobDraft(schedule="every hour", prompt=text) for text in "abc"]
        made = [book.add(draft)[0] for draft in drafts]
        assert [job.prompt for job in book.store.jobs()] == ["a", "b", "c"]
        assert len({job.id for job in made}) == 3


async def test_a_result_that_the_store_could_not_take_is_delivered_later(
    tmp_path: Path,
) -> None:
    async with bench(tmp_path) as b:
        b.job("every hour", deliver="telegram:42")
        database = sqlite_database(b.app.store)

        def refused() -> int:
            raise apsw.FullError("no space left")

        def refuse(connection: apsw.Connection) -> None:
            connection.create_scalar_function("refused", refused, 0)
            connection.execute(
                "CREATE TEMP TRIGGER busy BEFORE INSERT ON main.gateway_sends BEGIN SELECT refused(); END"
            )

        database.write(refuse)
        await b.at(9)
        assert b.delivered == []
        database.write(lambda connection: connection.execute("DROP TRIGGER busy").fetchall())  # fmt: skip
        await b.until_idle()
        assert b.delivered == [("telegram:42", "Something.")]
