"""`specify` and `decompose` with a scripted model: a good answer changes the board, any other changes nothing."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hermes.app import build
from hermes.app.agent import Agent
from hermes.app.boards.board_service import Boards
from hermes.app.boards.card_draft import CardDraft
from hermes.app.boards.planning import CardPlanner
from hermes.errors import HermesError
from hermes.events import Bus
from hermes.settings import Home, Secrets, Settings
from hermes.testing.model_server import ModelServer


@asynccontextmanager
async def planning(
    tmp_path: Path, *replies: str
) -> AsyncIterator[tuple[Boards, CardPlanner]]:
    async with ModelServer(*replies, repeat=True) as server:
        with build(Settings(), Home(tmp_path / "home"), bus=Bus()) as app:
            keys = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "sk-test"}
            agent = Agent(app, Secrets({}, keys))
            yield Boards(app), CardPlanner(app, agent)
            await agent.release()


def plan(*cards: dict[str, Any]) -> str:
    return msgspec.json.encode({"cards": cards}).decode()


def planned(key: str, *parents: str, assignee: str = "hermes") -> dict[str, Any]:
    return {"key": key, "title": f"do {key}", "assignee": assignee, "parents": parents}


async def test_a_rough_card_becomes_a_spec_and_leaves_triage(tmp_path: Path) -> None:
    answer = (
        'Here it is:\n```json\n{"title": "Fix it", "body": "## Goal\\nIt works."}\n```'
    )
    async with planning(tmp_path, answer) as (boards, planner):
        rough = boards.create("", CardDraft(title="it is broken", triage=True))
        card = await planner.specify(rough.id, by="test")
        assert (card.title, card.body) == ("Fix it", "## Goal\nIt works.")
        assert card.status == "ready"


async def test_a_card_becomes_a_graph_and_waits_for_its_leaves(tmp_path: Path) -> None:
    answer = plan(planned("a"), planned("b", "a", assignee="nobody"), planned("c", "a"))
    async with planning(tmp_path, answer) as (boards, planner):
        rough = boards.create("", CardDraft(title="all of it", triage=True))
        card, made = await planner.decompose(rough.id, by="test")
        a, b, c = made
        assert [one.status for one in made] == ["ready", "todo", "todo"]
        assert b.assignee == "hermes", "an unknown agent becomes the default"
        assert card.status == "todo"
        assert set(boards.read(lambda reader: reader.parents(card.id))) == {b.id, c.id}
        assert boards.read(lambda reader: reader.parents(b.id)) == [a.id]


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ("I would rather not.", "it has no JSON"),
        ('{"cards": "many"}', "Expected `array`"),
        ('{"cards": []}', "length >= 1"),
        (plan(planned("a", "b"), planned("b", "a")), "in a circle"),
        (plan(planned("a", "z")), "no card 'z'"),
        (plan(planned("a"), planned("a")), "the same key"),
    ],
)
async def test_an_answer_that_makes_no_sense_is_refused_and_nothing_is_changed(
    tmp_path: Path, answer: str, why: str
) -> None:
    async with planning(tmp_path, answer) as (boards, planner):
        rough = boards.create("", CardDraft(title="all of it", triage=True))
        before = boards.read(lambda reader: (reader.cards(), reader.last_entry()))
        with pytest.raises(HermesError, match=why):
            await planner.decompose(rough.id, by="test")
        assert boards.read(lambda r: (r.cards(), r.last_entry())) == before
