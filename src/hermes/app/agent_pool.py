"""Agents for sessions that run by themselves: jobs, cards and rows of a batch. Each has limits of its own.

Sessions with the same limits share an agent; the last one closes it.
"""

from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager

import msgspec

from hermes.app.agent import Agent
from hermes.app.app import App
from hermes.app.engine import ApprovalMode
from hermes.core.budget import parse_amount
from hermes.settings import Secrets, Settings
from hermes.settings.boards import BoardSettings
from hermes.tools.toolsets import TOOLSETS


class SessionLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What a session runs with. Empty values leave the settings as they are."""

    model: str = ""
    approvals: ApprovalMode = "ask"
    budget: str = ""
    """The cap of the session."""
    toolsets: tuple[str, ...] = ()
    """The only sets of tools that it is offered."""
    max_steps: int = 0
    boards: BoardSettings | None = None
    """How cards run, where the settings changed since this process started."""


class AgentPool:
    """The agents of running sessions. With a `surface`, their questions wait for an answer; else they are denied."""

    def __init__(self, app: App, secrets: Secrets, surface: str = "") -> None:
        self._app = app
        self.secrets = secrets
        self._surface = surface
        self._agents: dict[SessionLimits, tuple[Agent, ExitStack]] = {}
        self._users: dict[SessionLimits, int] = {}

    @asynccontextmanager
    async def agent(self, limits: SessionLimits) -> AsyncIterator[Agent]:
        """An agent whose sessions run within these limits."""
        if limits not in self._agents:
            self._agents[limits] = self._make(limits)
        self._users[limits] = self._users.get(limits, 0) + 1
        agent, stack = self._agents[limits]
        try:
            yield agent
        finally:
            self._users[limits] -= 1
            if not self._users[limits]:
                del self._agents[limits], self._users[limits]
                stack.close()
                await agent.close()

    def _make(self, limits: SessionLimits) -> tuple[Agent, ExitStack]:
        app = self._app.with_settings(limited(self._app.settings, limits))
        mode, model = limits.approvals, limits.model
        agent = Agent(app, self.secrets, approvals=mode, model=model)
        stack = ExitStack()
        if self._surface:
            stack.enter_context(agent.questions.attached(self._surface))
        return agent, stack


def limited(settings: Settings, limits: SessionLimits) -> Settings:
    """The settings of a session with these limits."""
    budget, tools = settings.budget, settings.tools
    if limits.budget:
        budget = msgspec.structs.replace(budget, per_session=limits.budget)
    if limits.max_steps:
        most = min(limits.max_steps, budget.max_steps)
        budget = msgspec.structs.replace(budget, max_steps=most)
    if limits.toolsets:
        others = tuple(one.name for one in TOOLSETS if one.name not in limits.toolsets)
        tools = msgspec.structs.replace(
            tools, enabled=limits.toolsets, disabled=(*tools.disabled, *others)
        )
    boards = limits.boards or settings.boards
    return msgspec.structs.replace(settings, budget=budget, tools=tools, boards=boards)


def session_cap(budget: str, setting: str) -> str:
    """The cap of a session: its budget, which does not raise that of the settings."""
    if not (budget and setting):
        return budget or setting
    (unit, most), (other_unit, other_most) = parse_amount(budget), parse_amount(setting)
    return setting if unit == other_unit and other_most < most else budget
