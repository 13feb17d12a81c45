"""Who runs the sessions of a process that serves many: one agent for each model asked for, made when it is needed."""

from collections.abc import Callable
from contextlib import ExitStack

import msgspec

from hermes.app.agent import Agent, ApprovalMode, ModelInfo
from hermes.app.app import App
from hermes.app.service import SessionService
from hermes.errors import SessionBusy
from hermes.settings import Secrets


class Choice(msgspec.Struct, frozen=True):
    """A model that can be asked for."""

    name: str
    provider: str = ""
    source: str = ""


class Place(msgspec.Struct, frozen=True):
    """What a session is given to: a model (empty for that of the settings), and whether somebody can be asked."""

    model: str = ""
    attended: bool = True


class Staff:
    """The agents. A session stays with the one it was given, as long as this process lives.

    With `place`, that says what each session is given to; then nothing is remembered here.
    """

    def __init__(self, app: App, secrets: Secrets, surface: str, place: Callable[[str], Place] | None = None) -> None:
        self._app = app
        self._secrets = secrets
        self._surface = surface
        self._place = place
        self._mode: ApprovalMode = "ask"
        self._agents: dict[Place, Agent] = {}
        self._old: list[Agent] = []
        self._chosen: dict[str, str] = {}
        self._attached = ExitStack()

    def agent(self, session: str = "") -> Agent:
        """The agent of a session; without one, that of the settings. Its questions can be answered on the surface."""
        for agent in self._old:
            if agent.service.works_on(session):
                return agent
        place = self._place(session) if self._place and session else Place(self._chosen.get(session, ""))
        agent = self._agents.get(place)
        if agent is None:
            agent = Agent(self._app, self._secrets, approvals=self._mode, model=place.model)
            if place.attended:
                self._attached.enter_context(agent.desk.attached(self._surface))
            self._agents[place] = agent
        return agent

    def service(self, session: str = "") -> SessionService:
        return self.agent(session).service

    def services(self) -> list[SessionService]:
        """Those that were needed so far."""
        return [agent.service for agent in (*self._old, *self._agents.values())]

    def choose(self, session: str, model: str) -> None:
        """Gives a session to another model, from its next turn on. Not while a turn runs."""
        if model == self._chosen.get(session, ""):
            return
        if self._app.store.leases.holder(session) is not None:
            raise SessionBusy(
                "A turn of this session is running.", hint="Wait for it or stop it, then change the model."
            )
        self._chosen[session] = model

    def use(self, *, approvals: ApprovalMode) -> None:
        """Changes what is asked about, in every session, from its next turn on."""
        self._mode = approvals
        for agent in self._agents.values():
            agent.use(approvals=approvals)

    def describe(self) -> ModelInfo:
        """The model of the settings. Raises when there is none."""
        return self.agent().describe()

    def choices(self) -> list[Choice]:
        """Models to pick from: of the settings, and those that answered before."""
        settings = self._app.settings
        found = [Choice(name, source="fallback") for name in settings.model.fallback]
        found += [
            Choice(f"{provider}:{model}", provider, "custom_providers")
            for provider, facts in settings.custom_providers.items()
            for model in facts.models
        ]
        if self._app.has_log:
            rows = self._app.store.sessions.usage()
            found += [
                Choice(f"{row.provider}:{row.model}", row.provider, "used") for row in reversed(rows) if row.model
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
