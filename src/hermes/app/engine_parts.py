"""The parts that all engines of a process share under one set of settings."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.app.agent_files import caps_of, listed_agents, skill_texts, tools_of
from hermes.app.answering_model import AnsweringModel
from hermes.app.app import App
from hermes.app.delegate_tool import (
    MAX_DELEGATION_DEPTH,
    Delegation,
    delegate_for,
    depth,
)
from hermes.app.folder_notes import FolderNotes
from hermes.app.image_description import SessionPictures
from hermes.app.learning.learner import Learner
from hermes.app.learning.reviewer import ReviewDeps
from hermes.app.picture_tools import PicturePorts, SessionImageSpending
from hermes.app.prompt_files import PromptFile, PromptFiles
from hermes.app.session_service import SessionService
from hermes.app.session_titles import Titles
from hermes.app.session_tools import SessionTools, surroundings_of
from hermes.app.spending_caps import Spending
from hermes.app.undo import shadows_of
from hermes.core.budget import Cap, Price
from hermes.core.ports import Model, Tool, Veto
from hermes.core.turn import Runtime
from hermes.schema.events import SessionAgentChosen
from hermes.settings import Secrets
from hermes.tools.present_plan import PlanTool, StartWork
from hermes.tools.process.background import Processes
from hermes.tools.process.long_output import OutputFolder
from hermes.tools.process.session_commands import SessionCommands
from hermes.tools.shadow import ShadowFailed, ShadowKeeper

if TYPE_CHECKING:
    from hermes.app.engine import Engine


def plugin_veto(app: App) -> Veto | None:
    """What plugins say about each call, if any is enabled."""
    if app.plugins is None:
        return None
    from hermes.app.plugin_parts import PluginVeto

    return PluginVeto(app.plugins)


class EngineParts:
    """What the engines of a process share under one set of settings: tools, learning, spending and models.

    `engine_of` returns the engine of a session.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - what it is built from
        self,
        app: App,
        secrets: Secrets,
        engine_of: "Callable[[str], Engine]",
        service: Callable[[], SessionService],
        start_work: StartWork,
        choose: Callable[[str, PromptFile], None] = lambda *_: None,
        agent_of: Callable[[str], PromptFile | None] = lambda _: None,
    ) -> None:
        self.agent_of = agent_of
        """The file of the agent that a session works as."""
        self.choose = choose
        """Gives a session the model and the mode of an agent."""
        self.app = app
        self.secrets = secrets
        self.engine_of = engine_of
        self.shadows = shadows_of(app)
        self.prompt_files = PromptFiles(app.home.root, Path.home())
        self.command_of: Callable[[str], PromptFile | None] = lambda _: None
        """The command from a file that started the turn of a session."""
        self.keeper = ShadowKeeper(self.shadows)
        self.spending = Spending(app, self._price, self._agent_caps)
        self.titles = Titles(lambda session: engine_of(session).auxiliary)
        self._delegation = Delegation(app, service, self._begin_agent)
        digests = self._digest if app.settings.auxiliary.search != "off" else None
        pictures = PicturePorts(
            SessionPictures(engine_of, app.settings.media.vision.strip()),
            SessionImageSpending(app, self.spending),
        )
        self.tools = SessionTools(
            app, secrets, self._own_tools, digests, pictures=pictures
        )
        self.learner = Learner(
            app,
            ReviewDeps(
                model=self._reviewer,
                tools=self.tools.of,
                check_budget=self.spending.check,
                price=self._price,
                engine=self._review_engine,
                veto=partial(plugin_veto, app),
            ),
        )
        self.plan_tool: Tool = PlanTool(start_work).present_plan
        self.refused_checks: set[tuple[str, str]] = set()
        """Sessions, and the versions of a project's rules that their user did not agree to."""
        self._models: dict[str, AnsweringModel] = {}

    @cached_property
    def notes(self) -> FolderNotes:
        """Reads the notes of sub-folders, and reads again what a compaction removed."""
        return FolderNotes(
            self.app.home.root,
            self.learner.learning.skills.view,
        )

    def processes(self, session: str) -> Processes:
        """The background commands of a session; none where it has no such tool."""
        owner = getattr(self.tools.of(session).get("process"), "owner", None)
        return owner if isinstance(owner, Processes) else self._no_processes

    def running_children(self, session: str) -> dict[str, str]:
        """The sessions that work for a session now, with what they work on."""
        store = self.app.store
        return {
            one.id: f"child agent: {one.title or '(no title yet)'}"  # not translated
            for one in store.sessions.children(session)
            if store.leases.holder(one.id) is not None
        }

    def turn_diff(self, turn: str, cwd: Path) -> str:
        """What a turn changed in its folder; empty if that is not known."""
        try:
            return self.shadows.at(cwd).diff(turn)
        except (ShadowFailed, OSError):
            return ""

    @cached_property
    def _no_processes(self) -> Processes:
        around = surroundings_of(self.app)
        return Processes(SessionCommands(around), OutputFolder(around.readable[0]))

    def model(self, name: str) -> "AnsweringModel":
        """The model of that name, made on first use."""
        if name not in self._models:
            self._models[name] = AnsweringModel(self, name)
        return self._models[name]

    async def close(self) -> None:
        """Ends what tools left running, and closes the models."""
        await self.titles.close()
        await self.learner.close()
        await self.tools.close()
        for model in self._models.values():
            await model.close()

    def _begin_agent(self, child: str, name: str, cwd: Path) -> None:
        """Lets a child work as an agent from a file. Raises HermesError if there is no such agent."""
        file = self.prompt_files.find(cwd, "agent", name)
        self.choose(child, file)
        self.check_agent(child, file)
        self.app.record(child, SessionAgentChosen(agent=file.name))

    def check_agent(self, session: str, file: PromptFile) -> None:
        """Raises HermesError if a session can't work as an agent: no tool or skill of its file is there."""
        tools_of(file, self.session_tools(session))
        skill_texts(file, self.learner.learning.skills.view)

    def session_tools(self, session: str) -> Mapping[str, Tool]:
        """The tools of a session. A session that works for an agent has no tool that the agent lacks."""
        tools, origin = self.tools.of(session), self.app.store.sessions.origin
        while (info := origin(session)).kind == "child":
            session = info.parent
            file = self.agent_of(session)
            tools = file.offered(tools) if file is not None else tools
        return tools

    def _agent_caps(self, session: str) -> list[Cap]:
        file = self.agent_of(session)
        return caps_of(file) if file is not None else []

    async def _digest(self, session: str, page: str) -> str:
        from hermes.app.page_digest import digest

        return await digest(self.engine_of(session).auxiliary, session, page)

    def _price(self, session: str) -> Price | None:
        return self.engine_of(session).price

    def _review_engine(
        self, session: str, tools: Mapping[str, Tool]
    ) -> AbstractAsyncContextManager[Runtime] | None:
        return self.engine_of(session).review(session, tools)

    def _own_tools(self, session: str) -> tuple[Tool, ...]:
        """The tools that need the agent: delegation and learning. A local model is too small for them."""
        if self.engine_of(session).describe(session).local:
            return ()
        learned = self.learner.tools(self.app.person(session))
        if depth(self.app, session) >= MAX_DELEGATION_DEPTH:
            return learned
        return (self._delegate(session), *learned)

    def _delegate(self, session: str) -> Tool:
        """The tool for child agents. Somebody else's session is not told about the user's agents."""
        agents: list[tuple[str, str]] = []
        if not self.app.person(session):
            cwd = self.app.store.sessions.origin(session).working_directory
            agents = listed_agents(self.prompt_files.all(cwd, "agent"))
        return delegate_for(self._delegation.delegate, agents)

    @asynccontextmanager
    async def _reviewer(self, session: str) -> AsyncIterator[Model]:
        """The model that reviews: the one that answers, whose cache knows the conversation, unless another is named."""
        yield await self.engine_of(session).auxiliary.helper("review", session)
