"""The settings of worktrees."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from hermes.settings.section import Section


class WorktreeSettings(Section, frozen=True):
    """Copies of a repository to work in (`hermes --worktree`)."""

    children: Annotated[
        bool,
        Meta(
            description="Tell the model that a child agent can work in a worktree of its own."
        ),
    ] = False
