"""A review and memory writes in between leave each request the beginning of the next, to the byte."""

import asyncio
import itertools
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hermes.app import build
from hermes.app.agent import Agent
from hermes.events import Bus
from hermes.schema.events import SessionCreated
from hermes.schema.learning import LearningReviewed
from hermes.settings import Home, Secrets, Settings
from hermes.settings.sections import Learning, Model
from hermes.testing.model_server import ModelServer, Recorded
from hermes.testing.served import Served, ServedCall

REVIEW = "Hermes itself says this"
NOTE = '{"edits": [{"action": "add", "text": "note %s"}]}'


def respond(request: Recorded) -> Served:
    body = request.body.decode()
    if REVIEW in body:
        return Served(text="done") if "Noted." in body else Served(calls=(ServedCall("memory", NOTE % "of a review"),))
    messages = msgspec.json.decode(request.body).get("messages") or msgspec.json.decode(request.body)["input"]
    asked = sum("question" in str(message.get("content")) for message in messages)
    if asked % 2 and f"note {asked}" not in body:
        return Served(calls=(ServedCall("memory", NOTE % asked, id=f"c{asked}"),))
    return Served(text=f"answer {asked}")


def prefix(body: bytes) -> bytes:
    request = msgspec.json.decode(body)
    messages = request.get("messages") or request.get("input")
    for blocks in (request.get("system"), *(message.get("content") for message in messages)):
        for block in blocks if isinstance(blocks, list) else ():
            block.pop("cache_control", None)
    parts = [request.get("system"), request.get("instructions"), request.get("tools")]
    return msgspec.json.encode([parts, messages])[:-2]


@pytest.mark.parametrize("api", ["chat", "responses", "anthropic"])
async def test_a_review_is_asked_on_the_parents_bytes_and_changes_none_of_them(api: Any, tmp_path: Path) -> None:
    settings = Settings(model=Model(api=api), learning=Learning(turns=3))
    async with ModelServer(respond=respond) as server:
        with build(settings, Home(tmp_path / "home"), bus=Bus()) as app:
            agent = Agent(app, Secrets({}, {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "sk-test"}))
            agent.learner.start()
            session = app.begin(SessionCreated(surface="test", cwd=str(tmp_path))).session
            for turn in range(8):
                await agent.service.submit(session, f"question {turn}")
                await agent.service.idle(session)
                async with asyncio.timeout(20):
                    await agent.learner.idle()
            reviews = [row for row in app.store.log.every_event(session) if isinstance(row.event, LearningReviewed)]
            await agent.close()
    assert len(reviews) == 2
    bodies = [request.body for request in server.posts]
    turns = [prefix(body) for body in bodies if REVIEW.encode() not in body]
    for one, two in itertools.pairwise(turns):
        assert two.startswith(one)
    before = b""
    for body in bodies:
        if REVIEW.encode() in body:
            assert prefix(body).startswith(before)
        before = prefix(body)
