"""One request and many steps: room is made inside the turn, and every request holds what the user asked for."""

from pathlib import Path
from typing import Any

import msgspec

from hermes.app import build
from hermes.app.agent import Agent
from hermes.events import Bus
from hermes.schema.events import SessionCompacted, SessionCreated
from hermes.settings import Home, Secrets, Settings
from hermes.settings.models import CustomModel, CustomProvider, ModelSettings
from hermes.settings.sections import LearningSettings
from hermes.testing.model_server import ModelServer, Recorded
from hermes.testing.scripted_responses import ScriptedResponse, ServedCall

STEPS = 60
SUMMARY = "## Goal\nSweep the house, as the user asked. The rooms were listed one by one.\n## Done\nSome rooms."


class Sweeper:
    """Lists a room in each step, and remembers what it was shown."""

    def __init__(self) -> None:
        self.shown: list[list[dict[str, Any]]] = []

    def __call__(self, request: Recorded) -> ScriptedResponse:
        if b"You keep the notes of a working conversation" in request.body:
            return ScriptedResponse(text=SUMMARY)
        messages: list[dict[str, Any]] = msgspec.json.decode(request.body)["messages"]
        if "sweep the house" not in str(messages):
            return ScriptedResponse(text="hello")
        self.shown.append(messages)
        step = len(self.shown)
        if step > STEPS:
            return ScriptedResponse(text="swept")
        room = msgspec.json.encode(
            {"items": [{"text": f"room {step} {'y' * 200}", "status": "pending"}]}
        ).decode()
        tokens = len(request.body) // 4
        return ScriptedResponse(
            text="x" * 300,
            calls=(ServedCall("todo", room, id=f"c{step}"),),
            input_tokens=tokens,
        )


async def test_a_turn_that_outgrows_the_window_goes_on_and_keeps_its_request(
    tmp_path: Path,
) -> None:
    sweeper = Sweeper()
    async with ModelServer(respond=sweeper) as server:
        mine = CustomProvider(
            base_url=server.url, api="chat", models={"m": CustomModel(window=12_000)}
        )
        settings = Settings(
            model=ModelSettings(provider="mine", default="m"),
            custom_providers={"mine": mine},
            learning=LearningSettings(mode="off"),
        )
        with build(settings, Home(tmp_path / "home"), bus=Bus()) as app:
            agent = Agent(app, Secrets({}, {}))
            session = app.begin(
                SessionCreated(surface="test", cwd=str(tmp_path))
            ).session
            for words in ("hello", "good morning", "sweep the house"):
                await agent.service.submit(session, words)
                ended = await agent.service.idle(session)
            events = [row.event for row in app.store.log.every_event(session)]
            await agent.close()
    assert ended
    assert ended.reason == "done"
    assert sum(isinstance(event, SessionCompacted) for event in events) >= 2
    for messages in sweeper.shown:
        said = [message["content"] for message in messages if message["role"] == "user"]
        assert sum("sweep the house" in str(words) for words in said) == 1
        calls = [
            call["id"]
            for message in messages
            for call in message.get("tool_calls") or ()
        ]
        assert calls == [
            message["tool_call_id"] for message in messages if message["role"] == "tool"
        ]
