"""The settings of goals."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from hermes.settings.section import AMOUNT, Section


class GoalSettings(Section, frozen=True):
    """Limits of goals (`/goal`). One goal can have others: `turns:` and `budget:` lines."""

    max_turns: Annotated[
        int,
        Meta(ge=1, le=10_000, description="Turns after which a goal pauses."),
    ] = 20
    budget: Annotated[
        str,
        Meta(
            pattern=AMOUNT,
            description="The most that a goal may use, such as `$2` or `500k tokens`; empty for no cap of its own.",
        ),
    ] = ""
