"""`hermes cron` as processes: making and changing jobs, running them, and dying while one runs."""

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec

from hermes.app import build
from hermes.app.schedules.jobs import JobBook, JobDraft
from hermes.schema.schedules import Instant
from hermes.settings import Home, Settings
from hermes.store import open_store
from hermes.testing.installed import InstalledHermes
from hermes.testing.model_server import ModelServer
from hermes.testing.scripted_responses import ScriptedResponse, ServedCall, ServerFault

_PATIENCE = 60.0


async def data(hermes: InstalledHermes, *arguments: str) -> Any:
    done = await hermes.run("cron", *arguments, "--json", TZ="Europe/Berlin")
    assert done.code == 0, done.err
    return msgspec.json.decode(done.out)


def add(hermes: InstalledHermes, *names: str) -> None:
    """Makes jobs that nothing runs for now."""
    with build(Settings(), Home(hermes.home)) as app:
        for name in names:
            JobBook(app).add(JobDraft(schedule="in 3 weeks", prompt="check", name=name))


def history(hermes: InstalledHermes) -> list[Instant]:
    with open_store(hermes.home / "state.db") as store:
        return store.schedules.history()


async def line(process: asyncio.subprocess.Process, words: str) -> str:
    """Reads what a process prints, until a line holds these words."""
    assert process.stdout is not None
    async with asyncio.timeout(_PATIENCE):
        while words not in (said := (await process.stdout.readline()).decode()):
            assert said, f"it ended without {words!r}"
    return said


async def until(look: Callable[[], Awaitable[Any]]) -> Any:
    """Looks again and again, until there is something."""
    async with asyncio.timeout(_PATIENCE):
        while not (found := await look()):  # noqa: ASYNC110 - what another process does
            await asyncio.sleep(0.05)
    return found


async def test_a_job_is_made_shown_changed_paused_and_removed(tmp_path: Path) -> None:
    hermes = InstalledHermes(tmp_path)
    nothing = await hermes.run("cron")
    assert (nothing.code, "There are no jobs yet" in nothing.out) == (0, True)
    assert not hermes.home.exists()  # looking makes nothing
    made = await hermes.run(
        "cron",
        "add",
        "every weekday at 9",
        "what is new?",
        "--name",
        "news",
        TZ="Europe/Berlin",
    )
    assert made.code == 0
    assert "Next run: in " in made.out
    assert " 09:00 (Europe/Berlin)" in made.out
    assert "hermes gateway run" in made.out
    (job,) = (await data(hermes, "list"))["jobs"]
    assert (job["schedule"], job["state"], job["cwd"]) == (
        "every weekday at 9",
        "active",
        str(hermes.work),
    )
    listed = await hermes.run("cron", "list")
    assert "news" in listed.out
    assert "every weekday at 9" in listed.out
    changed = await data(
        hermes,
        "edit",
        "news",
        "--schedule",
        "every 2 hours",
        "--timeout",
        "10m",
        "--budget",
        "$0.5",
    )
    assert (changed["rule"]["seconds"], changed["timeout"], changed["budget"]) == (
        7200,
        600,
        "$0.5",
    )
    assert (await data(hermes, "pause", job["id"][:3]))["state"] == "paused"
    assert "paused: by you" in (await hermes.run("cron", "list")).out
    assert (await data(hermes, "resume", "news"))["state"] == "active"
    shown = await hermes.run("cron", "show", "news")
    assert "stopped after 10 minutes, at most $0.5" in shown.out
    to_chat = await hermes.run("cron", "edit", "news", "--deliver", "telegram:1")
    assert "telegram is not connected" in to_chat.out
    assert "hermes config set TELEGRAM_BOT_TOKEN" in to_chat.out
    assert (await hermes.run("cron", "remove", "news")).code == 0
    assert (await data(hermes, "list"))["jobs"] == []
    reasons = {one["reason"] for one in (await data(hermes, "history"))["history"]}
    assert "the job was removed" in reasons


async def test_wrong_words_are_answered_with_what_was_understood(
    tmp_path: Path,
) -> None:
    hermes = InstalledHermes(tmp_path)
    for words, said in (
        (("add", "every blue moon", "sing"), "Understood “every”"),
        (("add", "every day at 9", "x", "--budget", "lots"), "not an amount"),
        (("add", "every day at 9", "x", "--tools", "magic"), "no toolset"),
        (("add", "every day at 9", "x", "--zone", "Mars/City"), "Unknown time zone"),
        (("edit", "nothing", "--name", "x"), "no job"),
        (("next", "sometime"), "can't be read"),
    ):
        done = await hermes.run("cron", *words)
        code = 1 if said == "no job" else 2
        assert (done.code, said in done.err) == (code, True), done.err


async def test_when_a_schedule_would_run(tmp_path: Path) -> None:
    hermes = InstalledHermes(tmp_path)
    done = await hermes.run(
        "cron", "next", "0 12 * * *", "--zone", "Asia/Tokyo", "--count", "3"
    )
    assert done.out.count(" 12:00  in ") == 3
    assert "(Asia/Tokyo)" in done.out
    assert not hermes.home.exists()


async def test_a_job_is_run_by_hand_and_its_answer_is_printed_and_kept(
    tmp_path: Path,
) -> None:
    async with ModelServer("All is well.") as server:
        hermes = InstalledHermes(tmp_path, server.url)
        await hermes.run("cron", "add", "in 3 weeks", "check", "--name", "check")
        done = await hermes.run("cron", "run", "check")
        assert (done.code, done.out) == (0, "All is well.\n"), done.err
        (ran,) = (await data(hermes, "history", "check"))["history"]
        assert (ran["state"], ran["cause"], ran["answer"]) == (
            "done",
            "hand",
            "All is well.",
        )
        assert (
            "All is well." in (await hermes.run("sessions", "show", ran["session"])).out
        )
        assert (await data(hermes, "list"))["jobs"][0]["state"] == "active"


async def test_a_job_that_fails_says_why_with_its_exit_code(tmp_path: Path) -> None:
    async with ModelServer(
        ScriptedResponse(fault=ServerFault(status=401, message="bad key")), repeat=True
    ) as server:
        hermes = InstalledHermes(tmp_path, server.url)
        await hermes.run("cron", "add", "in 3 weeks", "check", "--name", "check")
        done = await hermes.run("cron", "run", "check")
        assert (done.code, done.out) == (1, "")
        assert "failed" in done.err


async def test_a_call_that_nobody_approved_shows_in_the_exit_code(
    tmp_path: Path,
) -> None:
    call = ServedCall(name="write_file", arguments='{"path": "a.txt", "content": "x"}')
    async with ModelServer(
        ScriptedResponse(calls=(call,)), "I could not write it."
    ) as server:
        hermes = InstalledHermes(tmp_path, server.url)
        await hermes.run("cron", "add", "in 3 weeks", "check", "--name", "check")
        done = await hermes.run("cron", "run", "check")
        assert (done.code, done.out) == (3, "I could not write it.\n")
        assert "1 call was not made: nobody was there to approve it" in done.err


async def test_a_job_that_was_running_when_its_process_was_killed_has_failed(
    tmp_path: Path,
) -> None:
    async with ModelServer(
        ScriptedResponse(fault=ServerFault(hang="body")), "Fine.", "Fine."
    ) as server:
        hermes = InstalledHermes(tmp_path, server.url)
        add(hermes, "check")
        victim = await hermes.start("cron", "run", "check")
        await asyncio.wait_for(server.hanging.wait(), _PATIENCE)
        assert [one.state for one in history(hermes)] == ["running"]
        os.kill(victim.pid, signal.SIGKILL)
        await victim.communicate()
        daemon = await hermes.start("cron", "daemon")
        await line(daemon, "the process ended while it ran")
        (failed,) = history(hermes)
        assert (failed.state, failed.reason) == (
            "failed",
            "the process ended while it ran",
        )
        assert len(server.posts) == 1  # it was not run again
        second = await hermes.run("cron", "run", "check")
        assert (second.code, second.out) == (0, "Fine.\n")
        daemon.send_signal(signal.SIGTERM)
        _, err = await asyncio.wait_for(daemon.communicate(), _PATIENCE)
        assert (daemon.returncode, err.decode()) == (0, "")


async def test_ctrl_c_stops_a_run_and_the_history_says_so(tmp_path: Path) -> None:
    async with ModelServer(ScriptedResponse(fault=ServerFault(hang="body"))) as server:
        hermes = InstalledHermes(tmp_path, server.url)
        add(hermes, "check")
        running = await hermes.start("cron", "run", "check")
        await asyncio.wait_for(server.hanging.wait(), _PATIENCE)
        running.send_signal(signal.SIGINT)
        _, err = await asyncio.wait_for(running.communicate(), _PATIENCE)
        assert (running.returncode, "stopped while it ran" in err.decode()) == (
            1,
            True,
        ), err
        assert [one.reason for one in history(hermes)] == [
            "Hermes was stopped while it ran"
        ]


async def test_of_two_daemons_one_runs_each_job(tmp_path: Path) -> None:
    async with ModelServer("Fine.", repeat=True) as server:
        hermes = InstalledHermes(tmp_path, server.url)
        add(hermes, *(f"check{number}" for number in range(6)))
        daemons = [await hermes.start("cron", "daemon") for _ in range(2)]
        for daemon in daemons:
            assert daemon.stdout is not None
            await asyncio.wait_for(daemon.stdout.readline(), _PATIENCE)
        with open_store(hermes.home / "state.db") as store:
            now = time.time()
            store.schedules.plan(
                *(Instant(job.id, now, now, "hand") for job in store.schedules.jobs())
            )

            async def all_done() -> bool:
                return [one.state for one in store.schedules.history()] == ["done"] * 6

            await until(all_done)
        said = ""
        for daemon in daemons:
            daemon.send_signal(signal.SIGTERM)
            out, err = await asyncio.wait_for(daemon.communicate(), _PATIENCE)
            assert (daemon.returncode, err.decode()) == (0, "")
            said += out.decode()
        assert (said.count("  runs\n"), said.count("  done\n"), len(server.posts)) == (
            6,
            6,
            6,
        )
