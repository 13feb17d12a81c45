"""Who runs the sessions of a process that serves many: an agent for each model and each way of asking, when needed."""

import asyncio
from collections.abc import Callable
from contextlib import ExitStack

import msgspec

from hermes.app.agent import Agent, ApprovalMode, ModelInfo
from hermes.app.app import App
from hermes.app.session_service import SessionService
from hermes.errors import SessionBusy
from hermes.settings import Secrets


class ModelChoice(msgspec.Struct, frozen=True):
    """A model that can be asked for."""

    name: str
    provider: str = ""
    source: str = ""


class EngineKey(msgspec.Struct, frozen=True):
    """What a session is given to: a model (empty for that of the settings), whether somebody can be asked, and what
    is asked about (None for what the whole staff does)."""

    model: str = ""
    attended: bool = True
    approvals: ApprovalMode | None = None


class Staff:
    """The agents. A session stays with the one it was given, as long as this process lives.

    With `place`, that says what each session is given to; then nothing is remembered here.
    """

    def __init__(
        self,
        app: App,
        secrets: Secrets,
        surface: str,
        place: Callable[[str], EngineKey] | None = None,
    ) -> None:
        self._app = app
        self._secrets = secrets
        self._surface = surface
        self._place = place
        self._mode: ApprovalMode = "ask"
        self._agents: dict[EngineKey, Agent] = {}
        self._old: list[Agent] = []
        self._chosen: dict[str, EngineKey] = {}
        self._running: dict[
            str, Agent
        ] = {}  # whose turn runs on with an agent that is no longer chosen
        self._attached = ExitStack()

    def agent(self, session: str = "") -> Agent:
        """The agent of a session; without one, that of the settings. Its questions can be answered on the surface."""
        for agent in (*self._old, *filter(None, (self._running.get(session),))):
            if agent.service.works_on(session):
                return agent
        if (before := self._running.pop(session, None)) is not None:
            before.use_in(session, None)
        place = (
            self._place(session)
            if self._place and session
            else self._chosen.get(session, EngineKey())
        )
        agent = self._agents.get(place)
        if agent is None:
            agent = Agent(
                self._app,
                self._secrets,
                approvals=place.approvals or self._mode,
                model=place.model,
            )
            if place.attended:
                self._attached.enter_context(agent.desk.attached(self._surface))
                agent.learner.start(
                    mine=lambda session: agent.service.works_on(session)  # noqa: PLW0108
                )
            self._agents[place] = agent
        return agent

    def service(self, session: str = "") -> SessionService:
        return self.agent(session).service

    def services(self) -> list[SessionService]:
        """Those that were needed so far."""
        return [agent.service for agent in (*self._old, *self._agents.values())]

    async def set_mode(self, session: str, approvals: ApprovalMode) -> None:
        """Changes what is asked about in a session at once, also in a turn that runs here, and settles open requests
        that need no answer any more. Raises SessionBusy while another process runs the turn."""
        agent = self.agent(session)
        if not agent.service.works_on(session):
            await asyncio.to_thread(self.choose, session, None, approvals)
            return
        now = self._chosen.get(session, EngineKey())
        agent.use_in(session, approvals)
        self._running[session] = agent
        self._chosen[session] = msgspec.structs.replace(now, approvals=approvals)
        await agent.settle_allowed(by=self._surface)

    def choose(
        self,
        session: str,
        model: str | None = None,
        approvals: ApprovalMode | None = None,
    ) -> None:
        """Gives a session to another model, or changes what is asked about, from its next turn on.

        Not while a turn runs.
        """
        now = self._chosen.get(session, EngineKey())
        wanted = EngineKey(
            now.model if model is None else model,
            approvals=now.approvals if approvals is None else approvals,
        )
        if (wanted.model, wanted.approvals or self._mode) == (
            now.model,
            now.approvals or self._mode,
        ):
            return
        if self._app.store.leases.holder(session) is not None:
            what = "the model" if wanted.model != now.model else "what is asked about"
            raise SessionBusy(
                "A turn of this session is running.",
                hint=f"Wait for it or stop it, then change {what}.",
            )
        self._chosen[session] = wanted

    def approvals(self, session: str) -> ApprovalMode:
        """What is asked about in a session, from its next turn on."""
        return self._chosen.get(session, EngineKey()).approvals or self._mode

    def use(self, *, approvals: ApprovalMode) -> None:
        """Changes what is asked about from the next call on, in every session where nothing else was chosen."""
        self._mode = approvals
        for place, agent in self._agents.items():
            if place.approvals is None:
                agent.use(approvals=approvals)

    async def settle_allowed(self) -> None:
        """Answers open requests that would not be asked about any more."""
        for agent in list(self._agents.values()):
            await agent.settle_allowed(by=self._surface)

    def describe(self) -> ModelInfo:
        """The model of the settings. Raises when there is none."""
        return self.agent().describe()

    def choices(self) -> list[ModelChoice]:
        """Models to pick from: of the settings, and those that answered before."""
        settings = self._app.settings
        found = [
            ModelChoice(name, source="fallback") for name in settings.model.fallback
        ]
        found += [
            ModelChoice(f"{provider}:{model}", provider, "custom_providers")
            for provider, facts in settings.custom_providers.items()
            for model in facts.models
        ]
        if self._app.has_log:
            rows = self._app.store.sessions.usage()
            found += [
                ModelChoice(f"{row.provider}:{row.model}", row.provider, "used")
                for row in reversed(rows)
                if row.model
            ]
        return list({choice.name: choice for choice in reversed(found)}.values())[::-1]

    async def renew(self, secrets: Secrets) -> None:
        """New settings count from the next turn on. Turns that run go on as they began."""
        self._secrets = secrets
        self._old += self._agents.values()
        self._agents.clear()
        for agent in [agent for agent in self._old if not agent.service.turns]:
            self._old.remove(agent)
            await agent.release()

    async def close(self) -> None:
        """Ends what runs. What waits is answered when its session is resumed."""
        for agent in (*self._old, *self._agents.values()):
            await agent.close()
        self._attached.close()
