"""Turning rough cards into specs and smaller cards, with a model."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

import msgspec

from hermes.app.agent import Agent
from hermes.app.boards.planning import CardPlanner
from hermes.commands.boards import actor
from hermes.commands.card_views import CardChange
from hermes.commands.cards import CardName
from hermes.commands.command import command
from hermes.commands.context import CommandContext
from hermes.commands.views import Block, line, table
from hermes.schema.boards import Card
from hermes.text.formats import first_line
from hermes.text.translation import translator

t = translator(__name__)


class CardGraph(msgspec.Struct, frozen=True, kw_only=True):
    """A card that was split, and the cards it waits for."""

    card: Card
    cards: list[Card]

    def view(self, _now: float) -> Iterable[Block]:
        made = t("{count:,} card", "{count:,} cards", count=len(self.cards))
        yield line(t("{id} waits for {made} now:", id=self.card.id, made=made))
        rows = [
            (one.id, one.status, one.assignee, first_line(one.title))
            for one in self.cards
        ]
        yield table((t("CARD"), t("STATUS"), t("AGENT"), t("TITLE")), rows)


@asynccontextmanager
async def _planner(context: CommandContext) -> AsyncIterator[CardPlanner]:
    """A planner with the agent of the chat, or one of its own."""
    if context.conversation is not None:
        yield CardPlanner(context.app, context.conversation.agent)
        return
    agent = Agent(context.app, context.secrets)
    try:
        yield CardPlanner(context.app, agent)
    finally:
        await agent.release()


@command("kanban specify", scope="approve")
async def specify_card(context: CommandContext, card: CardName) -> CardChange:
    """Let a model turn a rough card into a full description."""
    async with _planner(context) as planner:
        changed = await planner.specify(card, by=actor(context))
    return CardChange(card=changed, what="has a spec now")


@command("kanban decompose", scope="approve")
async def decompose_card(context: CommandContext, card: CardName) -> CardGraph:
    """Let a model split a card into smaller ones that must be done first."""
    async with _planner(context) as planner:
        changed, made = await planner.decompose(card, by=actor(context))
    return CardGraph(card=changed, cards=made)
