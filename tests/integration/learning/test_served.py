"""Conversations in a process that serves many are reviewed too: once each, and those of other processes not at all."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from hermes.app import App, build
from hermes.app.agent import Agent
from hermes.app.engine import EngineChoice
from hermes.events import Bus
from hermes.schema.events import SessionCreated, TurnEnded
from hermes.schema.learning import LearningReviewed
from hermes.settings import Home, Secrets, Settings
from hermes.settings.sections import LearningSettings
from hermes.testing.model_server import ModelServer, Recorded
from hermes.testing.scripted_responses import ScriptedResponse


def respond(request: Recorded) -> ScriptedResponse:
    return ScriptedResponse(
        text="done" if b"Hermes itself says this" in request.body else "fine"
    )


@asynccontextmanager
async def served(root: Path, place: EngineChoice) -> AsyncIterator[tuple[App, Agent]]:
    async with ModelServer(respond=respond) as server:
        with build(
            Settings(learning=LearningSettings(turns=1)), Home(root / "home"), bus=Bus()
        ) as app:
            secrets = Secrets(
                {}, {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "sk-test"}
            )
            made = Agent(
                app, secrets, surface="dashboard", choice_of=lambda session: place
            )
            try:
                yield app, made
            finally:
                await made.close()


def reviews(app: App, session: str) -> int:
    return sum(
        isinstance(row.event, LearningReviewed)
        for row in app.store.log.every_event(session)
    )


@pytest.mark.parametrize(("attended", "wanted"), [(True, 1), (False, 0)])
async def test_a_conversation_is_reviewed_once_where_somebody_is_there(
    tmp_path: Path, attended: bool, wanted: int
) -> None:
    async with served(tmp_path, EngineChoice(attended=attended)) as (app, made):
        session = app.begin(
            SessionCreated(surface="dashboard", cwd=str(tmp_path))
        ).session
        await made.service.submit(session, "hello")
        async with asyncio.timeout(20):
            await made.service.idle(session)
            await asyncio.sleep(0)
            await made.learner.idle()
        assert reviews(app, session) == wanted


async def test_what_another_process_ran_is_that_processs_business(
    tmp_path: Path,
) -> None:
    async with served(tmp_path, EngineChoice()) as (app, made):
        session = app.begin(SessionCreated(surface="cli", cwd=str(tmp_path))).session
        await made.service.submit(session, "hello")
        async with asyncio.timeout(20):
            await made.service.idle(session)
            await asyncio.sleep(0)
            await made.learner.idle()
        before = reviews(app, session)
        row = app.store.log.append(session, TurnEnded(reason="done"))[0]
        app.writer.publish(row, foreign=True)
        async with asyncio.timeout(20):
            await asyncio.sleep(0)
            await made.learner.idle()
        assert reviews(app, session) == before == 1
