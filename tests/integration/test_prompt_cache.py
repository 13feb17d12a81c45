"""The bytes sent for one request begin the bytes of the next: providers' prompt caches then hit every time."""

import itertools
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hermes.app import build
from hermes.app.agent import Agent
from hermes.events import Bus
from hermes.schema.events import SessionCreated
from hermes.settings import Home, Secrets, Settings
from hermes.settings.sections import Model
from hermes.testing.model_server import ModelServer
from hermes.testing.served import Served, ServedCall

TURNS = 50


def replies() -> list[Served]:
    """Turns with tools, with several at once, with errors, with thinking and without."""
    script: list[Served] = []
    for turn in range(TURNS):
        if turn % 3 == 0:
            script.append(Served(calls=(ServedCall("read_file", '{"path": "a.txt"}'),), reasoning="hm" * (turn % 2)))
        if turn % 7 == 0:
            calls = (ServedCall("list_files", "{}"), ServedCall("read_file", '{"path": "missing"}'))
            script.append(Served(calls=calls))
        if turn % 5 == 0:
            todo = '{"items": [{"text": "test", "status": "pending"}]}'
            script.append(Served(text="Let me note that.", calls=(ServedCall("todo", todo),)))
        script.append(Served(text=f"answer {turn}"))
    return script


@pytest.mark.parametrize("api", ["chat", "responses", "anthropic"])
async def test_each_request_begins_with_all_of_the_one_before(api: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello\n")
    settings = Settings(model=Model(api=api))  # type: ignore[arg-type]
    async with ModelServer(*replies()) as server:
        variables = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "sk-test"}
        with build(settings, Home(tmp_path / "home"), bus=Bus()) as app:
            agent = Agent(app, Secrets({}, variables))
            session = app.begin(SessionCreated(surface="test", cwd=str(tmp_path))).session
            for turn in range(TURNS):
                delivery: Any = "steer" if turn % 4 == 1 else "queue"
                await agent.service.submit(session, f"question {turn}", delivery=delivery)
                await agent.service.idle(session)
            await agent.service.close()
            await agent.model.close()
        bodies = [_prefix(request.body) for request in server.posts]
    assert len(bodies) > TURNS
    for number, (one, two) in enumerate(itertools.pairwise(bodies)):
        assert two.startswith(one), f"request {number + 2} does not begin with request {number + 1}"


def _prefix(body: bytes) -> bytes:
    """A request as far as a cache can use it: up to its last message, without the markers of the cache itself."""
    request = msgspec.json.decode(body)
    parts = [request.get("system"), request.get("instructions"), request.get("tools")]
    messages = request.get("messages") or request.get("input")
    for message in messages:
        content = message.get("content")
        for block in content if isinstance(content, list) else ():
            block.pop("cache_control", None)
    for block in request.get("system") if isinstance(request.get("system"), list) else ():
        block.pop("cache_control", None)
    return msgspec.json.encode([parts, messages])[:-2]
