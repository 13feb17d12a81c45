"""`hermes gateway run` killed at many moments: no message is lost, and no reply noted as arrived comes twice."""

import asyncio
from collections import Counter
from pathlib import Path

import msgspec
import pytest
from tests.fakes.telegram_server import TelegramServer
from tests.integration.gateway.harness import OWNER, until
from tests.integration.gateway.test_process import Service

from hermes.app import build
from hermes.schema.events import TurnEnded, TurnStarted
from hermes.schema.messages import AssistantMessage, UserMessage
from hermes.settings import Home, Settings
from hermes.testing.model_server import ModelServer, Recorded
from hermes.testing.scripted_responses import ScriptedResponse

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
