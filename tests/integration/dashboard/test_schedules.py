"""Jobs over the API: made, tried out, changed, run, removed, by whoever may; and what became of each instant."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
from tests.integration.dashboard.harness import PATIENCE, Harness, opened

from hermes.app.schedules.jobs import JobBook, JobDraft
from hermes.app.schedules.scheduler import ScheduleLoop
from hermes.schema.schedules import Instant
from hermes.settings import Secrets, Settings
from hermes.settings.models import ModelSettings
from hermes.store.schedules import CUT_OFF, ScheduleStore
from hermes.testing.model_server import ModelServer
from hermes.testing.scripted_responses import ScriptedResponse, ServerFault

_NEW = {
    "schedule": "every weekday at 9",
    "prompt": "look at the inbox",
    "zone": "Europe/Berlin",
    "name": "inbox",
}


async def _until(
    look: Callable[[], Awaitable[Any]], fits: Callable[[Any], bool]
) -> Any:
    async with asyncio.timeout(PATIENCE):
        while not fits(found := await look()):  # noqa: ASYNC110 - a client can only ask again
            await asyncio.sleep(0.02)
    return found


async def test_a_job_is_made_changed_paused_resumed_and_removed(
    harness: Harness, tmp_path: Path
) -> None:
    assert (await harness.call("GET", "/api/schedules", scope="observe"))["jobs"] == []
    more = {
        "timeout": "10m",
        "jitter": "90",
        "budget": "$0.50",
        "tools": "files, web",
        "times": 3,
    }
    made = await harness.call(
        "POST",
        "/api/schedules",
        _NEW | more | {"deliver": f"file:{tmp_path}/a/../r.md"},
    )
    path = f"/api/schedules/{made['id']}"
    assert (made["name"], made["state"], made["zone"], made["by"]) == (
        "inbox",
        "active",
        "Europe/Berlin",
        "user",
    )
    assert (made["timeout"], made["jitter"], made["tools"]) == (
        "10 minutes",
        "90 seconds",
        "files, web",
    )
    assert made["deliver"] == f"file:{tmp_path}/r.md"
    assert made["cwd"] == str(harness.served.board.folder)
    assert made["next"] > harness.app.clock.now()
    view = await harness.call("GET", path, scope="observe")
    assert (len(view["next"]), view["history"], view["job"]["id"]) == (
        5,
        [],
        made["id"],
    )

    paused = await harness.call("POST", f"{path}/pause", scope="approve")
    assert (paused["state"], paused["paused"], paused["next"], paused["last"]) == (
        "paused",
        "by you",
        None,
        None,
    )
    view = await harness.call("GET", path)
    assert view["next"] == []
    assert [(one["state"], one["reason"]) for one in view["history"]] == [
        ("skipped", "the job was paused")
    ]
    assert (await harness.call("POST", f"{path}/resume", scope="approve"))[
        "state"
    ] == "active"

    edited = await harness.call(
        "PATCH", path, {"schedule": "every 2 hours", "tools": "", "deliver": "none"}
    )
    assert (edited["schedule"], edited["tools"], edited["deliver"]) == (
        "every 2 hours",
        "",
        "none",
    )
    assert (edited["name"], edited["budget"]) == ("inbox", "$0.50")
    await harness.call("DELETE", path)
    assert (await harness.call("GET", "/api/schedules"))["jobs"] == []
    assert (await harness.ask("GET", path)).status_code == 404
    (removed,) = JobBook(harness.app).store.jobs(removed=True)
    assert removed.removed


async def test_what_cannot_be_kept_is_refused_with_a_reason(harness: Harness) -> None:
    wrong: tuple[tuple[dict[str, Any], str], ...] = (
        ({"prompt": "x"}, "The schedule is empty"),
        ({"schedule": "every day at 9"}, "The task is empty"),
        (_NEW | {"schedule": "every blue moon"}, "Understood “every”"),
        (_NEW | {"zone": "Mars/Base"}, "Unknown time zone"),
        (_NEW | {"deliver": "the moon"}, "can't deliver to"),
        (_NEW | {"budget": "a lot"}, "a lot"),
        (_NEW | {"timeout": "soon"}, "not a duration"),
        (_NEW | {"tools": "magic"}, "no toolset"),
        (_NEW | {"cwd": "/no/such/folder"}, "There is no folder"),
        (_NEW | {"times": -1}, "less than once"),
    )
    for body, reason in wrong:
        answer = await harness.ask("POST", "/api/schedules", body)
        assert (answer.status_code, reason in answer.json()["error"]) == (400, True), (
            answer.text
        )
    assert (
        await harness.ask("POST", "/api/schedules", _NEW | {"colour": "red"})
    ).status_code == 422
    assert (await harness.call("GET", "/api/schedules"))["jobs"] == []
    made = await harness.call("POST", "/api/schedules", _NEW)
    nothing = await harness.ask("PATCH", f"/api/schedules/{made['id']}", {})
    assert (
        nothing.status_code,
        "What should be changed" in nothing.json()["error"],
    ) == (
        400,
        True,
    )
    assert (await harness.ask("POST", "/api/schedules/none/run")).status_code == 404


async def test_a_schedule_is_tried_out_before_it_is_used(harness: Harness) -> None:
    async def meaning(**body: str) -> dict[str, Any]:
        return await harness.call(
            "POST", "/api/schedules/preview", body, scope="observe"
        )

    known = await meaning(schedule="0 9 * * 1-5", zone="Europe/Berlin")
    assert (known["zone"], len(known["next"]), known["problem"]) == (
        "Europe/Berlin",
        5,
        "",
    )
    assert (await meaning(schedule="every day at 9 in Asia/Tokyo"))[
        "zone"
    ] == "Asia/Tokyo"
    assert len((await meaning(schedule="in 20 minutes"))["next"]) == 1
    half = await meaning(schedule="every weekday at")
    assert (half["next"], half["problem"]) == (
        [],
        "Understood “every weekday at”; then a time such as 9:00 or 5:30pm is missing.",
    )
    assert "every 2 hours" in half["hint"]
    assert (
        not harness.app.has_log
        or (await harness.call("GET", "/api/schedules"))["jobs"] == []
    )


async def test_who_may_only_look_or_approve_makes_no_jobs(harness: Harness) -> None:
    made = await harness.call("POST", "/api/schedules", _NEW)
    path = f"/api/schedules/{made['id']}"
    for scope in ("observe", "chat", "approve"):
        for method, place, body in (
            ("POST", "/api/schedules", _NEW),
            ("PATCH", path, {"name": "x"}),
            ("DELETE", path, None),
        ):
            assert (
                await harness.ask(method, place, body, scope=scope)
            ).status_code == 403, (scope, method)
    for action in ("pause", "resume", "run"):
        assert (
            await harness.ask("POST", f"{path}/{action}", scope="chat")
        ).status_code == 403
    (kept,) = (await harness.call("GET", "/api/schedules", scope="observe"))["jobs"]
    assert kept == made


def _using(server: ModelServer) -> tuple[Settings, Secrets]:
    secrets = Secrets({}, {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "sk-test"})
    return Settings(model=ModelSettings(default="gpt-5")), secrets


async def test_a_job_is_run_at_once_and_leads_to_its_session(tmp_path: Path) -> None:
    async with (
        ModelServer("All is well.") as server,
        opened(tmp_path, *_using(server)) as harness,
    ):
        made = await harness.call(
            "POST", "/api/schedules", _NEW | {"deliver": f"file:{tmp_path}/result.md"}
        )
        path = f"/api/schedules/{made['id']}"
        await harness.call("POST", f"{path}/run", scope="approve")
        view = await _until(
            lambda: harness.call("GET", path),
            lambda found: found["job"]["last"] is not None,
        )
        (run,) = view["history"]
        assert (run["state"], run["cause"], run["reason"]) == ("done", "hand", "")
        assert (view["job"]["last"], view["job"]["next"]) == (run, made["next"])
        assert (tmp_path / "result.md").read_text() == "All is well.\n"
        session = harness.app.store.sessions.find(run["session"])
        assert (session.title, session.surface) == ("inbox", "cron")


async def test_a_job_that_runs_is_not_run_twice_and_ends_with_the_dashboard(
    tmp_path: Path,
) -> None:
    async with ModelServer(
        ScriptedResponse(text="slow", fault=ServerFault(hang="head"))
    ) as server:
        async with opened(tmp_path, *_using(server)) as harness:
            made = await harness.call("POST", "/api/schedules", _NEW)
            path = f"/api/schedules/{made['id']}"
            assert (await harness.call("POST", f"{path}/run"))["running"]
            second = await harness.ask("POST", f"{path}/run")
            assert (second.status_code, second.json()["error"]) == (
                409,
                "inbox is running.",
            )
            await asyncio.wait_for(server.hanging.wait(), PATIENCE)
        async with opened(tmp_path) as harness:
            (run,) = (await harness.call("GET", path))["history"]
            assert (run["state"], run["reason"]) == (
                "failed",
                "Hermes was stopped while it ran",
            )


async def test_a_run_that_a_killed_process_left_is_over(harness: Harness) -> None:
    book = JobBook(harness.app)
    job, _ = book.add(JobDraft(schedule="every day at 9", prompt="x", name="left"))
    other = ScheduleStore(
        harness.app.store._db,
        harness.app.clock,
        owner=f"{socket.gethostname()}:1:not-its-birth",
    )
    now = harness.app.clock.now()
    assert other.claim(Instant(job.id, now, now, "hand")) is not None
    (row,) = (await harness.call("GET", "/api/schedules"))["jobs"]
    assert (row["running"], row["last"]["state"], row["last"]["reason"]) == (
        False,
        "failed",
        CUT_OFF,
    )


async def test_the_list_says_whether_a_process_runs_what_is_due(
    harness: Harness,
) -> None:
    async def watched() -> bool:
        return (await harness.call("GET", "/api/schedules", scope="observe"))["watched"]

    assert not await watched()
    stop = asyncio.Event()
    running = [
        asyncio.create_task(ScheduleLoop(harness.app, Secrets({}, {})).run(stop))
        for _ in range(2)
    ]
    await _until(watched, bool)
    running[0].cancel()
    await asyncio.wait({running[0]})
    assert await watched()
    stop.set()
    await running[1]
    assert not await watched()


async def test_last_is_how_it_ended_and_not_what_was_given_up(harness: Harness) -> None:
    book, now = JobBook(harness.app), harness.app.clock.now()
    job, planned = book.add(
        JobDraft(schedule="every day at 9", prompt="x", name="daily")
    )
    assert planned is not None
    old = Instant(
        job.id,
        now - 200.0,
        now - 200.0,
        "schedule",
        "missed",
        "nothing ran",
        ended=now - 100.0,
    )
    new = msgspec.structs.replace(
        old, due=now - 50.0, state="skipped", reason="busy", ended=now - 50.0
    )
    book.store.close((old, new))
    book.pause(job.id)
    (row,) = (await harness.call("GET", "/api/schedules"))["jobs"]
    assert (row["last"]["state"], row["last"]["reason"]) == ("skipped", "busy")
    history = (await harness.call("GET", f"/api/schedules/{job.id}?limit=2"))["history"]
    assert [one["reason"] for one in history] == ["the job was paused", "busy"]
