"""`hermes batch` as processes: resumed after `kill -9` and Ctrl-C, within its budget, with nobody to ask."""

import asyncio
import re
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec

from hermes.app.batches.batch_runner import CONTINUE
from hermes.store import open_store
from hermes.testing.installed import FinishedRun, InstalledHermes
from hermes.testing.model_server import ModelServer, Recorded
from hermes.testing.scripted_responses import ScriptedResponse, ServedCall

_TIMEOUT_S = 60.0
MARKS = 2  # commands that each row runs


def body_of(request: Recorded) -> dict[str, Any]:
    return msgspec.json.decode(request.body)


def row_of(request: Recorded) -> str:
    """The row that a request is about: the rows have equal prompts, but folders of their own."""
    found = re.search(r"/(\d{5}(?:\.\d)?)\. System", request.body.decode())
    assert found is not None
    return found[1]


def marking(request: Recorded) -> ScriptedResponse:
    """Two commands that each leave a mark, then an answer. What has a result is not called again."""
    messages = body_of(request)["messages"]
    done = sum(message["role"] == "tool" for message in messages)
    if done == MARKS:
        return ScriptedResponse(text="The answer is 42.", reasoning="easy")
    arguments = msgspec.json.encode({"command": f"echo {done} >> marks.txt"}).decode()
    call = ServedCall(name="terminal", arguments=arguments, id=f"call-{done}")
    return ScriptedResponse(calls=(call,))


def write_dataset(hermes: InstalledHermes, rows: int, **fields: str) -> None:
    row = msgspec.json.encode({"prompt": "what is six times seven?", **fields})
    (hermes.work / "tasks.jsonl").write_bytes((row + b"\n") * rows)


async def batch(hermes: InstalledHermes, *arguments: str) -> FinishedRun:
    return await hermes.run("batch", *arguments)


async def status(hermes: InstalledHermes) -> dict[str, Any]:
    done = await batch(hermes, "status", "tasks", "--json")
    return msgspec.json.decode(done.out)


async def test_a_batch_that_is_killed_again_and_again_pays_for_nothing_twice(
    tmp_path: Path,
) -> None:
    """Six rows with the same prompt, two at a time, and `kill -9` at three requests."""
    rows, workers, kills = 6, 2, (3, 5, 4)
    asked = asyncio.Event()
    left = 0

    def respond(request: Recorded) -> ScriptedResponse:
        nonlocal left
        left -= 1
        if left == 0:
            asked.set()
        return marking(request)

    async with ModelServer(respond=respond) as server:
        hermes = InstalledHermes(tmp_path, server.url)
        write_dataset(hermes, rows, expected="42")
        command = ("batch", "run", "tasks.jsonl", "--workers", str(workers))
        for number in kills:
            left = number
            asked.clear()
            process = await hermes.start(*command)
            await asyncio.wait_for(asked.wait(), _TIMEOUT_S)
            process.kill()
            await process.communicate()
            command = ("batch", "resume", "tasks")
        done = await batch(hermes, "resume", "tasks")
        assert done.code == 0, done.err
        requests = len(server.posts)
        again = await batch(hermes, "resume", "tasks")
        assert again.code == 0, again.err
        assert len(server.posts) == requests, "a finished batch asks for nothing"
        needed = rows * (MARKS + 1)
        assert needed <= requests <= needed + len(kills) * workers
        found = await status(hermes)
        assert found["counts"] == {"done": rows}
        assert (found["scored"], found["mean_score"]) == (rows, 1.0)
        exported = await batch(hermes, "export", "tasks", "--finished")
    check_rows(hermes, rows)
    lines = [msgspec.json.decode(line) for line in exported.out.splitlines()]
    assert [one["row"] for one in lines] == list(range(1, rows + 1))
    assert all(one["completed"] and one["score"] == 1 for one in lines)


def check_rows(hermes: InstalledHermes, rows: int) -> None:
    """Each row has one session, in which every command ran once."""
    folder = hermes.home.with_name("home-batches") / "tasks"
    for one in sorted(folder.iterdir()):
        marks = Counter((one / "marks.txt").read_text().split())
        assert all(times == 1 for times in marks.values()), f"{one}: {marks}"
    with open_store(hermes.home / "state.db") as store:
        assert store.check().problems == []
        assert store.check().sessions == rows
        assert store.sessions.recent() == [], "rows are in no list of conversations"


async def test_ctrl_c_stops_in_order_and_resume_goes_on_where_it_was(
    tmp_path: Path,
) -> None:
    asked = asyncio.Event()

    def respond(request: Recorded) -> ScriptedResponse:
        said = [one["content"] for one in body_of(request)["messages"]]
        if asked.is_set():
            return ScriptedResponse(text="done")
        if any(one == "0" for one in said):
            raise AssertionError
        asked.set()
        return ScriptedResponse(text="slow " * 200, delay=0.5)

    async with ModelServer(respond=respond) as server:
        hermes = InstalledHermes(tmp_path, server.url)
        write_dataset(hermes, 2)
        process = await hermes.start("batch", "run", "tasks.jsonl", "--workers", "1")
        await asyncio.wait_for(asked.wait(), _TIMEOUT_S)
        process.send_signal(signal.SIGINT)
        out, err = await asyncio.wait_for(process.communicate(), _TIMEOUT_S)
        assert process.returncode == 130, err
        assert b"1 begun, 1 waiting" in out
        assert b"hermes batch resume tasks" in out
        done = await batch(hermes, "resume", "tasks")
        assert done.code == 0, done.err
        texts = [body_of(one)["messages"][-1]["content"] for one in server.posts[1:]]
        assert CONTINUE in texts, "the first row went on in its session"
        assert len(texts) == 2


async def test_a_budget_that_pays_for_no_call_is_called_too_small(
    tmp_path: Path,
) -> None:
    async with ModelServer("ok", repeat=True) as server:
        hermes = InstalledHermes(tmp_path, server.url)
        write_dataset(hermes, 2)
        done = await batch(hermes, "run", "tasks.jsonl", "--budget", "400 tokens")
        assert done.code == 1
        assert "too small for one model call" in done.out + done.err
        assert not server.posts


async def test_a_batch_stops_before_its_budget_is_passed_and_goes_on_with_a_higher_one(
    tmp_path: Path,
) -> None:
    answer = ScriptedResponse(text="ok", input_tokens=4_000, output_tokens=50)
    async with ModelServer(answer, repeat=True) as server:
        hermes = InstalledHermes(tmp_path, server.url)
        write_dataset(hermes, 12)
        options = ("--workers", "3", "--budget", "30k tokens")
        first = await batch(hermes, "run", "tasks.jsonl", *options)
        assert first.code == 1
        assert "the budget of 30k tokens is used up" in first.out + first.err, first
        found = await status(hermes)
        assert 0 < found["tokens"] <= 30_000
        assert 0 < found["counts"]["done"] < 12
        second = await batch(hermes, "resume", "tasks", "--budget", "1m tokens")
        assert second.code == 0, second.out + second.err
        assert len(server.posts) == 12


async def test_what_needs_an_approval_is_denied_and_rows_stay_in_their_folders(
    tmp_path: Path,
) -> None:
    outside = tmp_path / "outside.txt"

    def respond(request: Recorded) -> ScriptedResponse:
        messages = body_of(request)["messages"]
        if messages[-1]["role"] == "tool":
            return ScriptedResponse(text="I was not allowed to.")
        command = msgspec.json.encode({"command": f"echo x > {outside}"}).decode()
        return ScriptedResponse(
            calls=(ServedCall(name="terminal", arguments=command, id="c"),)
        )

    async with ModelServer(respond=respond) as server:
        hermes = InstalledHermes(tmp_path, server.url)
        write_dataset(hermes, 1)
        (hermes.home / "memories").mkdir(parents=True)
        (hermes.home / "memories" / "MEMORY.md").write_text("- the safe is 1234\n")
        done = await batch(hermes, "run", "tasks.jsonl", "--check", "test -f gone")
        assert done.code == 0, done.err
        assert not outside.exists()
        assert b"1234" not in server.posts[0].body, "memory is not for trajectories"
        found = await status(hermes)
        assert found["mean_score"] == 0.0


async def test_a_dead_key_stops_the_batch_and_costs_no_second_try_of_each_row(
    tmp_path: Path,
) -> None:
    from hermes.testing.scripted_responses import ServerFault

    broken = ScriptedResponse(fault=ServerFault(status=401, message="bad key"))
    async with ModelServer(broken, repeat=True) as server:
        hermes = InstalledHermes(tmp_path, server.url)
        write_dataset(hermes, 20)
        done = await batch(hermes, "run", "tasks.jsonl", "--workers", "1")
        assert done.code == 1
        assert "and so would the others" in done.out
        assert len(server.posts) == 1
        found = await status(hermes)
        assert found["counts"] == {"waiting": 19, "failed": 1}


async def test_a_session_is_exported_in_each_format(tmp_path: Path) -> None:
    async with ModelServer("Hello.") as server:
        hermes = InstalledHermes(tmp_path, server.url)
        said = await hermes.run(
            "-z", "hi", HERMES_SESSIONS_WRITE_JSON_SNAPSHOTS="true",
            HERMES_SESSIONS_JSON_SNAPSHOT_FORMAT="messages",
        )  # fmt: skip
        assert said.code == 0, said.err
        (snapshot,) = (hermes.home / "sessions").iterdir()
        content = msgspec.json.decode(snapshot.read_bytes())
        assert [one["role"] for one in content["messages"]] == ["user", "assistant"]
        keys = {"sharegpt": "conversations", "openai": "messages", "atif": "steps"}
        for form, key in keys.items():
            done = await hermes.run("sessions", "export", "last", "--format", form)
            document = msgspec.json.decode(done.out)
            assert "Hello." in msgspec.json.encode(document[key]).decode()
