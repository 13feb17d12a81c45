"""The agent as it is put together from settings, against a fake model service on loopback."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from hermes.app import build
from hermes.app.agent import Agent
from hermes.events import Bus
from hermes.schema.events import SessionCreated, TurnEnded
from hermes.settings import Home, Secrets, Settings
from hermes.settings.sections import Auxiliary, Budget
from hermes.testing.model_server import ModelServer
from hermes.testing.served import Served


def secrets(server: ModelServer) -> Secrets:
    return Secrets({}, {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "sk-test"})


async def test_a_model_of_its_own_finds_a_title_and_what_it_took_is_counted(tmp_path: Path) -> None:
    settings = Settings(auxiliary=Auxiliary(title="small-1"))
    async with ModelServer("It is a test.", "Testing things") as server:
        bus = Bus()
        with build(settings, Home(tmp_path), bus=bus) as app:
            agent = Agent(app, secrets(server))
            session = app.begin(SessionCreated(surface="test", cwd=str(tmp_path))).session
            titled: asyncio.Queue[Mapping[str, Any]] = asyncio.Queue()
            bus.subscribe("session.titled", _into(titled))
            await agent.service.submit(session, "what is it?")
            await agent.service.idle(session)
            first, second = [await asyncio.wait_for(titled.get(), 20) for _ in range(2)]
            assert (first["title"], first["by"]) == ("what is it?", "hermes")
            assert (second["title"], second["by"]) == ("Testing things", "model")
            assert {row.model for row in app.store.sessions.usage()} == {"fake-1", "small-1"}
            await agent.service.close()


async def test_project_notes_are_capped_marked_and_sent_the_same_in_every_request(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("Use tabs.\n" + "x" * 20_000)
    async with ModelServer("one", "two") as server:
        with build(Settings(), Home(tmp_path / "home"), bus=Bus()) as app:
            agent = Agent(app, secrets(server))
            session = app.begin(SessionCreated(surface="test", cwd=str(tmp_path))).session
            for text in ("first", "second"):
                await agent.service.submit(session, text)
                await agent.service.idle(session)
                (tmp_path / "AGENTS.md").write_text("Use spaces.")
            await agent.service.close()
        systems = [msgspec.json.decode(request.body)["messages"][0] for request in server.posts]
    assert systems[0] == systems[1]
    assert '<project-notes file="AGENTS.md">' in str(systems[0])
    assert "more characters in AGENTS.md" in str(systems[0])


async def test_a_cap_for_the_session_counts_what_earlier_turns_used(tmp_path: Path) -> None:
    settings = Settings(budget=Budget(per_session="3000 tokens"))
    async with ModelServer(Served(text="one", input_tokens=2000, output_tokens=100), repeat=True) as server:
        with build(settings, Home(tmp_path), bus=Bus()) as app:
            agent = Agent(app, secrets(server))
            session = app.begin(SessionCreated(surface="test", cwd=str(tmp_path))).session
            ends: list[TurnEnded | None] = []
            for text in ("first", "second"):
                await agent.service.submit(session, text)
                ends.append(await agent.service.idle(session))
            await agent.service.close()
            used = sum(row.input_tokens + row.output_tokens for row in app.store.sessions.usage())
        assert [end.reason if end else "" for end in ends] == ["done", "budget"]
        assert used <= 3000
        assert len(server.posts) == 1


def _into(queue: "asyncio.Queue[Mapping[str, Any]]") -> Any:
    loop = asyncio.get_running_loop()

    def see(event: Mapping[str, Any]) -> None:
        loop.call_soon_threadsafe(queue.put_nowait, event)

    return see
