"""`kill -9` in the middle of a turn with ten tools, at each of them: nothing lost, nothing run twice, doubts stated.

`KILL_ROUNDS=5` in the environment does it more often than the gate has time for.
"""

import asyncio
import contextlib
import os
import random
from collections import Counter
from pathlib import Path

import msgspec
import pytest

from hermes.schema.events import ToolStarted, TurnEnded
from hermes.schema.messages import AssistantMessage, ToolFinished
from hermes.store import open_store
from hermes.testing.installed import InstalledHermes
from hermes.testing.model_server import ModelServer, Recorded
from hermes.testing.scripted_responses import ScriptedResponse, ServedCall

TOOLS = 10
KILLS = TOOLS * int(os.environ.get("KILL_ROUNDS", "1"))


def respond(request: Recorded) -> ScriptedResponse:
    """Ten commands that each leave a mark, then an answer; "go on" is only answered."""
    messages = msgspec.json.decode(request.body)["messages"]
    asked = max(
        index for index, message in enumerate(messages) if message["role"] == "user"
    )
    if messages[asked]["content"] == "go on":
        return ScriptedResponse(text="I see what happened.")
    done = sum(message["role"] == "tool" for message in messages[asked:])
    if done == TOOLS:
        return ScriptedResponse(text="all done")
    arguments = msgspec.json.encode({"command": f"echo {done} >> marks.txt"}).decode()
    return ScriptedResponse(
        calls=(ServedCall(name="terminal", arguments=arguments, id=f"call-{done}"),)
    )


class Watched:
    """Answers, and tells when it has been asked for the given time."""

    def __init__(self, request: int) -> None:
        self._left = request
        self.asked = asyncio.Event()

    def __call__(self, request: Recorded) -> ScriptedResponse:
        self._left -= 1
        if self._left <= 0:
            self.asked.set()
        return respond(request)


async def kill_in_the_middle(
    hermes: InstalledHermes, asked: asyncio.Event, delay: float
) -> None:
    """Kills Hermes a moment after it has asked."""
    running = await hermes.start("-z", "ten marks", "--approvals", "full")
    assert running.stdin is not None
    running.stdin.close()
    await asyncio.wait_for(asked.wait(), 60)
    await asyncio.sleep(delay)
    with contextlib.suppress(
        ProcessLookupError
    ):  # done already: the last moments of a turn are moments too
        running.kill()
    await running.communicate()


def check(home: Path, work: Path) -> str:
    """What the log says of the killed turn; raises when it does not agree with what really happened."""
    marks = (
        Counter((work / "marks.txt").read_text().split())
        if (work / "marks.txt").exists()
        else Counter()
    )
    assert all(count == 1 for count in marks.values()), f"something ran twice: {marks}"
    with open_store(home / "state.db") as store:
        assert store.check().problems == []
        session = store.sessions.find("last")
        events = [row.event for row in store.log.every_event(session.id)]
    started = {event.call_id for event in events if isinstance(event, ToolStarted)}
    results = {
        event.call_id: event for event in events if isinstance(event, ToolFinished)
    }
    calls = {
        call.id
        for event in events
        if isinstance(event, AssistantMessage)
        for call in event.tool_calls
    }
    assert {f"call-{mark}" for mark in marks} <= started, (
        "an effect came before its intent"
    )
    assert calls == set(results), "a call has no result"
    for mark in marks:
        result = results[f"call-{mark}"]
        assert result.ok or "Outcome unknown" in result.text
    ends = [event.reason for event in events if isinstance(event, TurnEnded)]
    assert ends[-1] == "done"
    return ends[0]


async def one(folder: Path, request: int, delay: float) -> str:
    answers = Watched(request)
    async with ModelServer(respond=answers) as server:
        hermes = InstalledHermes(folder, server.url)
        await kill_in_the_middle(hermes, answers.asked, delay)
        resumed = await hermes.run("-z", "go on", "--resume", "last")
        assert (resumed.code, resumed.out) == (0, "I see what happened.\n"), resumed.err
        return await asyncio.to_thread(check, hermes.home, hermes.work)


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_a_turn_killed_at_each_of_its_tools_loses_nothing_and_repeats_nothing(
    tmp_path: Path,
) -> None:
    chance = random.Random(7)
    ends: Counter[str] = Counter()
    for number in range(0, KILLS, 2):
        runs = [
            one(
                tmp_path / str(number + i),
                (number + i) % TOOLS + 1,
                chance.uniform(0, 0.03),
            )
            for i in range(2)
        ]
        ends.update(await asyncio.gather(*runs))
    assert ends["crashed"] > KILLS // 2, ends
