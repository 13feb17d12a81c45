"""A card that the real codex program works on: it closes its card with tools that Hermes lends it."""

import asyncio
import os
from pathlib import Path

import msgspec
import pytest
from tests.fakes.codex_program import config_for, installed_codex
from tests.integration.boards.harness import board_bench

from hermes.app.boards.listing import card_details
from hermes.schema.events import ToolStarted
from hermes.settings.models import ModelSettings
from hermes.settings.sections import CodexSettings
from hermes.testing.fetched import NotFetched
from hermes.testing.model_server import Recorded
from hermes.testing.scripted_responses import ScriptedResponse, ServedCall


@pytest.fixture(scope="session")
def codex() -> Path:
    try:
        return installed_codex()
    except NotFetched as why:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(why))


def _lent(name: str, **arguments: str) -> ScriptedResponse:
    text = msgspec.json.encode(arguments).decode()
    return ScriptedResponse(calls=(ServedCall(name, text, name, "mcp__hermes"),))


def _respond(request: Recorded) -> ScriptedResponse:
    if b"The card is closed" in request.body:
        return ScriptedResponse(text="Bye.")
    if b"Noted." in request.body:
        return _lent("kanban_complete", summary="codex did it")
    return _lent("kanban_heartbeat", note="on it")


async def test_codex_closes_its_card_with_lent_tools(
    tmp_path: Path, codex: Path
) -> None:
    home = tmp_path / "codex-home"
    await asyncio.to_thread(home.mkdir)
    sections = {
        "model": ModelSettings(openai_runtime="codex_app_server"),
        "codex": CodexSettings(binary=str(codex), home=str(home)),
    }
    async with board_bench(tmp_path, respond=_respond, sections=sections) as b:
        config = config_for(b.server.url)
        await asyncio.to_thread((home / "config.toml").write_text, config)
        card = b.card("ask codex", body="the details")
        await b.work()
        details = card_details(b.boards, card.id)
        (run,) = details.runs
        assert (run.outcome, run.reason) == ("completed", "")
        assert b.now(card).result == "codex did it"
        rows = b.app.store.log.every_event(run.session)
        started = [row.event.name for row in rows if isinstance(row.event, ToolStarted)]
        ran = [name for name in started if name.startswith("kanban_")]
        assert ran == ["kanban_heartbeat", "kanban_complete"]
        assert any(b"the details" in post.body for post in b.server.posts)
