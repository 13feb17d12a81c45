"""The bytes sent for one request begin the bytes of the next: providers' prompt caches then hit every time.

Fifty turns with tools, several at once, errors, thinking, steering into running turns, memory writes, pictures and
reviews in between.
"""

import asyncio
import base64
import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hermes.app import build
from hermes.app.agent import Agent
from hermes.events import Bus
from hermes.schema.events import SessionCreated, Steered
from hermes.schema.learning import LearningReviewed
from hermes.schema.messages import Image, ToolFinished
from hermes.settings import Home, Secrets, Settings
from hermes.settings.models import CustomModel, CustomProvider, ModelSettings
from hermes.settings.sections import LearningSettings
from hermes.testing.model_server import ModelServer, Recorded
from hermes.testing.scripted_responses import ScriptedResponse, ServedCall

TURNS = 50
REVIEW = b"Hermes itself says this"
GIF = base64.b64decode("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7")
NOTE = '{"edits": [{"action": "add", "text": "note %s"}]}'
TODO = '{"items": [{"text": "test", "status": "pending"}]}'


def steps(turn: int) -> list[ScriptedResponse]:
    """What the model says in one turn."""
    said: list[ScriptedResponse] = []
    if turn % 3 == 0:
        said.append(
            ScriptedResponse(
                calls=(ServedCall("read_file", '{"path": "a.txt"}'),),
                reasoning="hm" * (turn % 2),
            )
        )
    if turn % 7 == 0:
        said.append(
            ScriptedResponse(
                calls=(
                    ServedCall("list_files", "{}"),
                    ServedCall("read_file", '{"path": "missing"}'),
                )
            )
        )
    if turn % 5 == 0:
        said.append(
            ScriptedResponse(
                text="Let me note that.", calls=(ServedCall("todo", TODO),)
            )
        )
    if turn % 6 == 1:
        said.append(ScriptedResponse(calls=(ServedCall("memory", NOTE % turn),)))
    return [*said, ScriptedResponse(text=f"answer {turn}")]


class Script:
    """Answers turns in order, and reviews beside them."""

    def __init__(self) -> None:
        self._steps = [step for turn in range(TURNS) for step in steps(turn)]

    def __call__(self, request: Recorded) -> ScriptedResponse:
        if REVIEW not in request.body:
            return (
                self._steps.pop(0)
                if self._steps
                else ScriptedResponse(text="as I said")
            )  # steered after the last answer
        learned = b"Noted." in request.body
        return (
            ScriptedResponse(text="done")
            if learned
            else ScriptedResponse(calls=(ServedCall("memory", NOTE % "of a review"),))
        )


@pytest.mark.parametrize("api", ["chat", "responses", "anthropic"])
async def test_each_request_begins_with_all_of_the_one_before(
    api: Any, tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_text("hello\n")
    (tmp_path / "dot.gif").write_bytes(GIF)
    picture = Image(source=str(tmp_path / "dot.gif"), media_type="image/gif")
    async with ModelServer(respond=Script()) as server:
        mine = CustomProvider(
            base_url=server.url,
            api=api,
            models={"m": CustomModel(window=900_000, images=True)},
        )
        settings = Settings(
            model=ModelSettings(provider="mine", default="m"),
            custom_providers={"mine": mine},
            learning=LearningSettings(turns=10),
        )
        with build(settings, Home(tmp_path / "home"), bus=Bus()) as app:
            agent = Agent(app, Secrets({}, {}))
            agent.learner.start()
            session = app.begin(
                SessionCreated(surface="test", cwd=str(tmp_path))
            ).session
            steering: list[asyncio.Task[Any]] = []

            def steer(event: Mapping[str, Any]) -> None:
                if event["name"] == "todo":
                    words = agent.service.submit(
                        session, "and quickly", delivery="steer"
                    )
                    steering.append(asyncio.get_running_loop().create_task(words))

            app.bus.subscribe("agent.tool.started", steer)
            for turn in range(TURNS):
                images = (picture,) if turn % 8 == 2 else ()
                await agent.service.submit(session, f"question {turn}", images=images)
                await agent.service.idle(session)
                async with asyncio.timeout(30):
                    await agent.learner.idle()
            events = [row.event for row in app.store.log.every_event(session)]
            await agent.close()
    assert [type(event).__name__ for event in events].count("TurnEnded") == TURNS
    assert sum(isinstance(event, Steered) for event in events) >= 5
    assert (
        sum(
            isinstance(event, LearningReviewed) and not event.failure
            for event in events
        )
        >= 4
    )
    assert (
        sum(
            isinstance(event, ToolFinished) and event.name == "memory" and event.ok
            for event in events
        )
        >= 8
    )
    _compare([request.body for request in server.posts])


def _compare(bodies: list[bytes]) -> None:
    """Each request of the conversation begins the next; each review begins with the request before it."""
    turns = [prefix(body) for body in bodies if REVIEW not in body]
    assert len(turns) > TURNS
    for number, (one, two) in enumerate(itertools.pairwise(turns)):
        assert two.startswith(one), (
            f"request {number + 2} does not begin with request {number + 1}"
        )
    reviews = [(one, two) for one, two in itertools.pairwise(bodies) if REVIEW in two]
    assert reviews
    for one, two in reviews:
        assert prefix(two).startswith(prefix(one))


def prefix(body: bytes) -> bytes:
    """A request as far as a cache can use it: up to its last message, without the markers of the cache itself."""
    request = msgspec.json.decode(body)
    messages = request.get("messages") or request.get("input")
    for blocks in (
        request.get("system"),
        *(message.get("content") for message in messages),
    ):
        for block in blocks if isinstance(blocks, list) else ():
            block.pop("cache_control", None)
    parts = [request.get("system"), request.get("instructions"), request.get("tools")]
    return msgspec.json.encode([parts, messages])[:-2]
