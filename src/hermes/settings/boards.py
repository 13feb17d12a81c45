"""The settings of boards and of the dispatcher that runs their cards."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from hermes.settings.section import AMOUNT, Section


class BoardSettings(Section, frozen=True):
    """Boards whose cards run by themselves; see `hermes kanban`. Limits are read again before each start of a card."""

    enabled: Annotated[
        bool,
        Meta(
            description="Let `hermes gateway run` and `hermes dashboard` run the cards of boards."
        ),
    ] = True
    max_running: Annotated[
        int, Meta(ge=0, le=1000, description="How many cards may run at once.")
    ] = 3
    max_per_agent: Annotated[
        int,
        Meta(
            ge=0,
            le=1000,
            description="How many cards of one assignee may run at once; 0 for no limit of its own.",
        ),
    ] = 0
    retries: Annotated[
        int,
        Meta(
            ge=1,
            le=100,
            description="Runs in a row that may end badly, for whatever reason, before a card is blocked.",
        ),
    ] = 3
    time_limit: Annotated[
        float, Meta(gt=0, le=604_800, description="Seconds that one run may take.")
    ] = 14_400.0
    cooldown: Annotated[
        float,
        Meta(
            ge=0,
            le=86_400,
            description="Seconds that a card waits after its model's quota was used up; longer each time.",
        ),
    ] = 300.0
    budget: Annotated[
        str,
        Meta(
            pattern=AMOUNT,
            description="The most that the runs of one card may use together, for cards that don't say; empty for no limit.",
        ),
    ] = ""
    approvals: Annotated[
        Literal["ask", "auto-edit", "plan", "full"],
        Meta(
            description="The approval mode of cards. Questions go to where the card was made, and to the dashboard."
        ),
    ] = "ask"
    assignee: Annotated[
        str,
        Meta(description="Who works on cards that name nobody: an agent, or `hermes`."),
    ] = "hermes"
    folder: Annotated[
        str,
        Meta(
            description="Where scratch folders of cards are made; empty for a folder beside Hermes' home."
        ),
    ] = ""
