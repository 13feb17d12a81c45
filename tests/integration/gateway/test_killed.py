"""`hermes gateway run` killed at many moments: no message is lost, and no reply noted as arrived comes twice."""

import asyncio
from collections import Counter
from pathlib import Path

import msgspec
import pytest
from tests.fakes.telegram_server import Failure, TelegramServer
from tests.integration.gateway.harness import OWNER, until
from tests.integration.gateway.test_process import Service

from hermes.app import App, build
from hermes.schema.events import TurnEnded, TurnStarted
from hermes.schema.goals import ChildEnded
from hermes.schema.messages import AssistantMessage, UserMessage
from hermes.settings import Home, Settings
from hermes.testing.model_server import ModelServer, Recorded
from hermes.testing.scripted_responses import ScriptedResponse, ServerFault

_MOMENTS = 20
_RESTARTED = "restarted during this turn"
_STEP = 0.012  # seconds between two moments, counted from when the message can be seen


def _respond(request: Recorded) -> ScriptedResponse:
    return ScriptedResponse(
        text=f"answer to {msgspec.json.decode(request.body)['messages'][-1]['content']}",
        chunk=4,
        delay=0.02,
    )


def _unnoted(home: Home) -> Counter[str]:
    """What was to be sent, and is not noted as arrived: if it has arrived all the same, it will do so twice."""
    with build(Settings(), home) as app:
        binding = app.store.chats.find(f"telegram/{OWNER}")
        if binding is None:
            return Counter()
        found: Counter[str] = Counter()
        for row in app.store.log.every_event(binding.session):
            pieces = app.store.chats.pieces(binding.key, binding.session, row.seq)
            if any(piece.state == "sent" for piece in pieces):
                continue
            if isinstance(row.event, AssistantMessage):
                found[row.event.text] += 1
            elif isinstance(row.event, TurnEnded) and row.event.reason == "crashed":
                found[_RESTARTED] += 1
        return found


@pytest.mark.timeout(300)
async def test_a_kill_at_any_moment_loses_no_message_and_doubles_no_reply(
    tmp_path: Path,
) -> None:
    async with TelegramServer() as telegram, ModelServer(respond=_respond) as model:
        service = Service(tmp_path, telegram, model, while_busy="queue")
        unnoted: Counter[str] = Counter()
        for moment in range(_MOMENTS):
            async with service.running() as process:
                await until(
                    lambda: f":{process.pid}:" in service.status().get("owner", "")
                )
                await service.until_platform(
                    lambda one: one.get("state") == "connected"
                )
                telegram.say(f"message {moment}.")
                await asyncio.sleep(moment * _STEP)
                process.kill()
                await process.wait()
            unnoted.update(_unnoted(Home(service.hermes.home)))
        async with service.running():
            telegram.say("the last one.")
            await telegram.sees("answer to the last one.")
        with build(Settings(), Home(service.hermes.home)) as app:
            binding = app.store.chats.find(f"telegram/{OWNER}")
            assert binding is not None
            rows = list(app.store.log.every_event(binding.session))
    said = {
        row.seq: row.event.text for row in rows if isinstance(row.event, UserMessage)
    }
    assert sorted(said.values()) == sorted(
        [*(f"message {one}." for one in range(_MOMENTS)), "the last one."]
    )
    taken = [
        seq
        for row in rows
        if isinstance(row.event, TurnStarted)
        for seq in row.event.inputs
    ]
    assert sorted(taken) == sorted(said)
    seen = telegram.texts()
    replies = Counter(
        row.event.text for row in rows if isinstance(row.event, AssistantMessage)
    )
    for (
        text,
        times,
    ) in replies.items():  # of replies that were cut off, several may read the same
        assert times <= seen.count(text) <= times + unnoted[text], seen
    crashed = sum(
        isinstance(row.event, TurnEnded) and row.event.reason == "crashed"
        for row in rows
    )
    assert (
        crashed
        <= sum(_RESTARTED in text for text in seen)
        <= crashed + unnoted[_RESTARTED]
    ), seen


def _is_review_over(app: App) -> bool:
    binding = app.store.chats.find(f"telegram/{OWNER}")
    assert binding is not None
    return app.store.log.latest(binding.session, ChildEnded.topic) is not None


@pytest.mark.parametrize("is_done", [True, False])
async def test_how_a_review_ended_is_sent_after_a_kill(
    tmp_path: Path, is_done: bool
) -> None:
    """Whether the reviewer had finished and the chat could not be reached, or was cut off."""

    def respond(request: Recorded) -> ScriptedResponse:
        if b"You review changes" not in request.body:
            return ScriptedResponse(text="hello")
        if not is_done:
            return ScriptedResponse(text="...", fault=ServerFault(hang="head"))
        return ScriptedResponse(text="a.py:3: high: it divides by zero", delay=1.0)

    async with TelegramServer() as telegram, ModelServer(respond=respond) as model:
        service = Service(tmp_path, telegram, model)
        async with service.running() as process:
            telegram.say("hi")
            await telegram.sees("hello")
            telegram.say("/review")
            await telegram.sees("A fresh reviewer is looking at the changes.")
            if is_done:
                down = [Failure(500, "down")] * 1000
                telegram.failures["sendMessage"] = down
                with build(Settings(), Home(service.hermes.home)) as app:
                    await until(lambda: _is_review_over(app))
            else:
                await asyncio.wait_for(model.hanging.wait(), 30)
            process.kill()
            await process.wait()
        telegram.failures.clear()
        async with service.running():
            if is_done:
                found = await telegram.sees("a.py:3: high: it divides by zero")
                assert "/review fix" in found.text
            else:
                found = await telegram.sees("Review: crashed")
