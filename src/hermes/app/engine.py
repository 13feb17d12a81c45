"""Engines: what runs the turns of a session. An engine is fixed: another model or mode is another engine."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from hermes.app.agent_files import caps_of, listed_agents, skill_texts, tools_of
from hermes.app.app import App
from hermes.app.auxiliary_models import AuxiliaryModels, MainModel
from hermes.app.delegate_tool import (
    MAX_DELEGATION_DEPTH,
    WORKTREE_HINT,
    Delegation,
    delegate_for,
    depth,
)
from hermes.app.folder_notes import FolderNotes
from hermes.app.image_description import ImageDescriber, SessionPictures
from hermes.app.learning.learner import Learner
from hermes.app.learning.reviewer import NobodyToAsk, ReviewDeps, ReviewPolicy
from hermes.app.model_info import EngineName, ModelInfo
from hermes.app.picture_tools import PicturePorts, SessionImageSpending
from hermes.app.project_notes import (
    has_accepted_notes,
    read_identity,
    read_project_files,
)
from hermes.app.prompt_files import PromptFile, PromptFiles
from hermes.app.session_service import SessionService
from hermes.app.session_titles import Titles
from hermes.app.session_tools import SessionTools, surroundings_of
from hermes.app.spending_caps import Spending
from hermes.app.turn_checks import CheckDeps, CheckedRuntime, TurnChecks
from hermes.app.undo import shadows_of
from hermes.codex.engine_choice import CODEX, codex_model, is_on
from hermes.core.accepted_plan import PLAN_TOOL
from hermes.core.budget import Cap, Metered, Price, TurnBudget
from hermes.core.calls import CallRunner
from hermes.core.context_window import ContextLimits, ContextWindow
from hermes.core.history import ConversationHistory
from hermes.core.ports import Approver, Model, PolicyDecision, Tool, Veto
from hermes.core.prompt import system_prompt
from hermes.core.turn import NativeRuntime, Runtime
from hermes.providers.build import build_model
from hermes.providers.retry import Resilient
from hermes.providers.routing import ModelRoute, chosen_route
from hermes.schema.events import (
    ApprovalRequested,
    Mode,
    RuleCheck,
    SessionAgentChosen,
    SessionCompacted,
    SessionPrompted,
)
from hermes.schema.messages import AssistantMessage, Message
from hermes.schema.model import ModelRequest
from hermes.schema.tool_spec import ToolSpec
from hermes.settings import Secrets
from hermes.settings.load import environment
from hermes.store.log_row import Row
from hermes.tools.policy import ApprovalPolicy, Circumstances
from hermes.tools.present_plan import PlanTool, StartWork
from hermes.tools.process.background import Processes
from hermes.tools.process.long_output import OutputFolder
from hermes.tools.process.session_commands import SessionCommands
from hermes.tools.sandbox import find_sandbox
from hermes.tools.shadow import ShadowFailed, ShadowKeeper
from hermes.tools.toolsets import BATCH_SURFACE, SURFACES

if TYPE_CHECKING:
    from hermes.app.goals.pursuit import GoalServices
    from hermes.codex.runtime import CodexEngine
    from hermes.core.compaction import CompactionCut

ApprovalMode: TypeAlias = Mode


CLOSING_TOOLS = frozenset(
    f"kanban_{what}"
    for what in ("show", "heartbeat", "comment", "complete", "block", "request_review", "request_changes")
)  # fmt: skip
"""What every worker of a card has."""


class EngineChoice(msgspec.Struct, frozen=True):
    """What a session runs on: a model (empty for that of the settings), whether somebody can be asked, and what is
    asked about (None for the mode of the whole process)."""

    model: str = ""
    attended: bool = True
    approvals: ApprovalMode | None = None


def plugin_veto(app: App) -> Veto | None:
    """What plugins say about each call, if any is enabled."""
    if app.plugins is None:
        return None
    from hermes.app.plugin_parts import PluginVeto

    return PluginVeto(app.plugins)


class CurrentPolicy:
    """Implements the `Policy` port with the policy that is current at each call: the mode may change in a turn."""

    def __init__(self, current: Callable[[], ApprovalPolicy]) -> None:
        self._current = current

    def judge(
        self, tool: Tool, arguments: Mapping[str, Any], cwd: Path
    ) -> PolicyDecision:
        """Decides about a call."""
        return self._current().judge(tool, arguments, cwd)

    def remember(self, request: ApprovalRequested, rule: str = "") -> None:
        """Allows calls of this shape or scope from now on."""
        self._current().remember(request, rule)

    def check(
        self, command: str, folder: Path, *, workspace: Path | None = None
    ) -> PolicyDecision:
        """Decides about a command that codex wants to run."""
        return self._current().check(command, folder, workspace=workspace)

    def check_files(
        self, paths: tuple[Path, ...], workspace: Path, *, below: tuple[Path, ...] = ()
    ) -> PolicyDecision:
        """Decides about changes to files that codex wants to make."""
        return self._current().check_files(paths, workspace, below=below)

    def check_host(self, host: str) -> PolicyDecision:
        """Decides whether codex may reach a host."""
        return self._current().check_host(host)

    def check_tool(self, name: str) -> PolicyDecision:
        """Decides about a call that codex wants to make to a tool of an MCP server."""
        return self._current().check_tool(name)


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
        """Reads the notes of sub-folders, and again what a compaction removed."""
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
            one.id: f"child agent: {one.title or '(no title yet)'}"
            for one in store.sessions.children(session)
            if store.leases.holder(one.id) is not None
        }

    def turn_diff(self, turn: str, cwd: Path) -> str:
        """What a turn changed in its folder; empty if that can't be told."""
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
        """The tools of a session. What works for an agent has no tool that the agent has not."""
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


class AnsweringModel:
    """A model that answers, with its context window and the models that help it. All are made on first use."""

    def __init__(self, parts: EngineParts, name: str) -> None:
        self._parts = parts
        self._app = parts.app
        self.name = name

    @property
    def route(self) -> ModelRoute:
        """Where the model is reached."""
        return chosen_route(self._app.settings, self._parts.secrets, self.name)

    @cached_property
    def model(self) -> Resilient:
        """The model, with its fallbacks. Raises HermesError if the settings name none that can be used."""
        return build_model(self._app.settings, self._parts.secrets, model=self.name)

    @cached_property
    def auxiliary(self) -> AuxiliaryModels:
        """The models for titles, summaries, reviews, images and digests."""
        main = MainModel(lambda: self.route, lambda: self.model)
        parts = self._parts
        return AuxiliaryModels(self._app, parts.secrets, parts.spending, main)

    @cached_property
    def room(self) -> ContextWindow:
        """Keeps conversations inside the model's context window."""
        settings = self._app.settings.compression
        limits = ContextLimits(
            self.model.facts.window,
            settings.threshold,
            settings.protect_first_n,
            settings.protect_last_n,
        )
        return ContextWindow(self._summarise, limits, self._app.clock)

    async def _summarise(
        self, session: str, messages: Sequence[Message], cut: "CompactionCut"
    ) -> SessionCompacted:
        from hermes.app.compaction import summarise

        return await summarise(self.auxiliary, session, messages, cut)

    @cached_property
    def codex(self) -> "CodexEngine":
        """The codex process that runs turns with this model."""
        return self._codex(environment())

    @cached_property
    def planning_codex(self) -> "CodexEngine":
        """The same for plan mode: what it runs can only read."""
        from hermes.codex.environment import SECURITY_MODE

        return self._codex({**environment(), SECURITY_MODE: "approval-required"})

    def codex_for(self, mode: ApprovalMode) -> "CodexEngine":
        """The codex process that runs turns in a mode."""
        return self.planning_codex if mode == "plan" else self.codex

    async def retire_other_codex(self, session: str, mode: ApprovalMode) -> None:
        """Ends a session's process of the other mode: it does not know what is said from now on."""
        other = "codex" if mode == "plan" else "planning_codex"
        if other in self.__dict__:
            await getattr(self, other).retire(session)

    def _codex(self, environ: Mapping[str, str]) -> "CodexEngine":
        from hermes.codex.runtime import CodexEngine, EngineSettings
        from hermes.codex.tools_server import serve_command

        settings = self._app.settings
        return CodexEngine(
            EngineSettings(
                codex=settings.codex,
                environ=environ,
                secret=self._parts.secrets.get,
                model=codex_model(settings.model, self.name),
                max_steps=settings.budget.max_steps,
                run_folder=self._app.home.root / "run",
                lend_command=serve_command(),
                may_read_notes=partial(has_accepted_notes, self._app.home.root),
            )
        )

    async def close(self) -> None:
        """Closes what was made."""
        made = self.__dict__
        for name in ("codex", "planning_codex"):
            if name in made:
                await getattr(self, name).close()
        if "auxiliary" in made:
            await self.auxiliary.close()
        if "model" in made:
            await self.model.close()


class Engine:
    """Runs the turns of the sessions that share one choice. Implements `TurnEngine`."""

    def __init__(
        self, parts: EngineParts, choice: EngineChoice, mode: ApprovalMode
    ) -> None:
        self._parts = parts
        self._app = parts.app
        self._answering = parts.model(choice.model)
        self.choice = choice
        self.mode: ApprovalMode = mode
        """What is asked about."""

    @property
    def attended(self) -> bool:
        """Whether somebody can be asked."""
        return self.choice.attended

    @property
    def model(self) -> Resilient:
        """The model that answers in the native engine."""
        return self._answering.model

    @property
    def auxiliary(self) -> AuxiliaryModels:
        """The models that help it."""
        return self._answering.auxiliary

    @property
    def price(self) -> Price | None:
        """The most that a token can cost; None if that is not known."""
        prices = self.model.dearest
        if prices:
            return Price(prices.input / 1e6, prices.output / 1e6)
        return None

    def name(self, session: str = "") -> EngineName:
        """Which program runs a session's turns. Codex reads files by its own rules, so it works for the user alone."""
        if session and self._app.person(session):
            return "native"
        return "codex" if is_on(self._app.settings.model) else "native"

    def describe(self, session: str = "") -> ModelInfo:
        """Names the model that answers in a session, or in a new session of the user."""
        return self._describe(self.name(session))

    def _describe(self, engine: EngineName) -> ModelInfo:
        if engine == "native":
            return ModelInfo(self.model.provider, self.model.name)
        model = codex_model(self._app.settings.model, self._answering.name)
        return ModelInfo(CODEX, model)

    @cached_property
    def policy(self) -> ApprovalPolicy:
        """Decides about the calls of the user's own sessions."""
        return self._make_policy(guest=False)

    @cached_property
    def guest_policy(self) -> ApprovalPolicy:
        """Decides about the calls of sessions that work for somebody else."""
        return self._make_policy(guest=True)

    def policy_for(self, session: str) -> ApprovalPolicy:
        """Decides about the calls of a session."""
        return self.guest_policy if self._app.person(session) else self.policy

    def _make_policy(self, *, guest: bool) -> ApprovalPolicy:
        variables = environment()
        info = self._describe("native") if guest else self.describe()
        return ApprovalPolicy(
            self.mode,
            Circumstances(
                self._app.home.root,
                Path.home(),
                sandboxed=lambda: (
                    find_sandbox(variables.get("PATH", ""), Path.home()).kind != "none"
                ),
                strict=info.local and self.mode != "full",
                guest=guest,
                environment=variables,
            ),
        )

    def allows(self, session: str, asked: ApprovalRequested, cwd: Path) -> bool:
        """Whether a call that waits for an answer would now run without a question."""
        try:
            arguments = msgspec.json.decode(
                asked.arguments or "{}", type=dict[str, Any]
            )
        except msgspec.MsgspecError:
            return False
        policy = self.policy_for(session)
        # Codex has tools of its own, some with the name of one of Hermes' tools.
        if asked.shape.startswith("codex "):
            from hermes.codex.approvals import would_run

            return would_run(asked.name, arguments, policy, cwd)
        tool = self._parts.tools.of(session).get(asked.name)
        if tool is None:
            return False
        return policy.judge(tool, arguments, cwd).verdict == "allow"

    def runtime(self, session: str, approvals: Approver, agent: str = "") -> Runtime:
        """What runs the next turn of a session, which may work as an agent from a file."""
        parts = self._parts
        policy = CurrentPolicy(lambda: parts.engine_of(session).policy_for(session))
        tools, keeper = self._callable(session, agent), parts.keeper
        if self.name(session) == "codex":
            from hermes.codex.tool_lending import LendingContext

            if self.mode != "plan":
                tools = self._of_command(session, self._tools(session, agent))
            lending = LendingContext(
                tools, policy, approvals, keeper, plugin_veto(self._app)
            )
            own = self._answering.codex_for(self.mode).runtime(
                session, approvals, judge=policy, keeper=keeper, lending=lending
            )
            # Codex gets no second look: its thread takes only what the user says.
            return CheckedRuntime(own, self._checks(session, approvals), repairs=0)
        model = self.model
        blind = "" if model.facts.images else f"{model.provider}:{model.name}"
        native = NativeRuntime(
            Metered(model, partial(parts.spending.guess, session)),
            CallRunner(tools, policy, approvals, keeper, plugin_veto(self._app)),
            max_steps=self._max_steps(session),
            context=self._answering.room,
            sight=ImageDescriber(
                self.auxiliary, blind, ocr=self._app.settings.media.vision != "off"
            ),
            notes=None if self.describe(session).local else parts.notes,
            adapted=partial(self.adapted, session),
        )
        return CheckedRuntime(native, self._checks(session, approvals))

    def _max_steps(self, session: str) -> int:
        """How many calls of the model a turn may make."""
        file = self._parts.agent_of(session)
        allowed = self._app.settings.budget.max_steps
        return min(allowed, file.budget.steps or allowed) if file else allowed

    def _checks(self, session: str, approvals: Approver) -> TurnChecks:
        """Checks the turns of a session by the rules of its project."""
        parts = self._parts
        deps = CheckDeps(
            CurrentPolicy(lambda: parts.engine_of(session).policy_for(session)),
            approvals,
            parts.keeper,
            parts.shadows,
            surroundings_of(self._app),
            parts.refused_checks,
            self._app.settings.lsp,
        )
        return TurnChecks(deps)

    async def verify(self, session: str, cwd: Path, command: str) -> RuleCheck:
        """Runs the command of a goal in the session's sandbox. Of somebody else's goal, only what needs no approval."""
        if self._app.person(session):
            decision = await asyncio.to_thread(self.guest_policy.check, command, cwd)
            if decision.verdict != "allow":
                why = "it would need the owner's approval"
                return RuleCheck(command=command, outcome="not_run", detail=why)
        checks = self._checks(session, NobodyToAsk())
        return await checks.run_command(session, cwd, command)

    def goal_services(self) -> "GoalServices":
        """What goals need; the engine of each session answers for it."""
        from hermes.app.goals.pursuit import GoalServices

        parts = self._parts
        of = parts.engine_of

        async def ask(session: str, request: ModelRequest) -> AssistantMessage:
            return await of(session).auxiliary.ask("judge", session, request)

        async def verify(session: str, cwd: Path, command: str) -> RuleCheck:
            return await of(session).verify(session, cwd, command)

        return GoalServices(
            ask=ask,
            verify=verify,
            diff=parts.turn_diff,
            processes=lambda session: parts.processes(session).running(),
            children=parts.running_children,
            budget=parts.spending.budget,
            process_end=lambda session, name: parts.processes(session).end_of(name),
        )

    def _callable(self, session: str, agent: str) -> Mapping[str, Tool]:
        """The tools that a session's calls can reach. A plan that waits may be answered in any mode."""
        tools, plan = self._tools(session, agent), self._parts.plan_tool
        tools = self._of_command(session, tools)
        if self._is_child(session):
            return tools
        return {**tools, plan.spec.name: plan}

    def _of_command(
        self, session: str, tools: Mapping[str, Tool]
    ) -> Mapping[str, Tool]:
        """Those of the tools that the command allows which started the turn."""
        file = self._parts.command_of(self._app.top(session))
        return file.offered(tools) if file is not None else tools

    def review(
        self, session: str, tools: Mapping[str, Tool]
    ) -> AbstractAsyncContextManager[Runtime] | None:
        """Codex as the reviewer, for users with a codex login and no key: the local model is too small for reviews."""
        wanted = self.auxiliary.setting_of("review")
        if self.name(session) != "codex" or wanted not in ("main", "auto"):
            return None
        if not self._answering.route.embedded:
            return None
        from hermes.codex.runtime import CodexTurnServices
        from hermes.codex.tool_lending import LendingContext

        policy, nobody = ReviewPolicy(), NobodyToAsk()
        lending = LendingContext(tools, policy, nobody, veto=plugin_veto(self._app))
        return self._answering.codex.run_outside_sessions(
            CodexTurnServices(nobody, policy, lending)
        )

    def adapted(self, session: str, prompt: SessionPrompted) -> SessionPrompted:
        """The prompt as the session needs it now: with the tools that joined, and in plan mode with the one that ends it."""
        plans = self.mode == "plan" and self.attended and not self._is_child(session)
        tools = tuple(one for one in prompt.tools if one.name != PLAN_TOOL)
        tools += self._joined(session, prompt)
        if plans:
            tools += (self._parts.plan_tool.spec,)
        if tools == prompt.tools:
            return prompt
        return msgspec.structs.replace(prompt, tools=tools)

    def _joined(self, session: str, prompt: SessionPrompted) -> tuple[ToolSpec, ...]:
        """The tools that joined and are not in the prompt yet. An agent gets only those that its file names."""
        known = {one.name for one in prompt.tools}
        joined = self._parts.tools.joined(session)
        new = [name for name in joined if name not in known]
        if not new:
            return ()
        allowed = self._tools(session, prompt.agent)
        return tuple(joined[name].spec for name in new if name in allowed)

    async def retire_other_codex(self, session: str) -> None:
        """Ends codex's process of the other mode before a turn."""
        if self.name(session) == "codex":
            await self._answering.retire_other_codex(session, self.mode)

    def _is_child(self, session: str) -> bool:
        return self._app.store.sessions.origin(session).kind == "child"

    def _tools(self, session: str, agent: str) -> Mapping[str, Tool]:
        """The tools of a session; an agent gets those of them that its file names."""
        tools = self._parts.session_tools(session)
        if not agent:
            return tools
        # A worker can always look at its card and close it, whatever its file names. It makes cards, which others do
        # with more tools than it has, only if its file says so.
        closing = {name: one for name, one in tools.items() if name in CLOSING_TOOLS}
        return {**tools_of(self._agent_file(session, agent), tools), **closing}

    def _agent_file(self, session: str, name: str) -> PromptFile:
        cwd = self._app.store.sessions.origin(session).working_directory
        return self._parts.prompt_files.find(cwd, "agent", name)

    async def prompt(self, session: str, cwd: Path, agent: str = "") -> SessionPrompted:
        """The system prompt and the tools of a new session, or of one that works as another agent from now on."""
        parts, app = self._parts, self._app
        await parts.tools.prepare()
        is_local = self.describe(session).local
        system = system_prompt(
            cwd,
            date=parts.spending.today(),
            project=read_project_files(cwd, app.home.root),
            chat=self._chat(session),
            identity="" if is_local else read_identity(app.home.root),
        )
        surface = app.store.sessions.origin(app.top(session)).surface
        if not is_local and surface != BATCH_SURFACE:
            person = app.person(session)
            learned = await asyncio.to_thread(parts.learner.prompt, person)
            if learned:
                system = (*system[:-1], learned, system[-1])
        tools = await asyncio.to_thread(self._tools, session, agent)
        more = await asyncio.to_thread(self._agent_parts, session, agent, tools)
        shown = parts.tools.shown(tools, lambda: self._window(session))
        prompt = SessionPrompted(
            system=(*system[:-1], *more, system[-1]),
            tools=tuple(tool.spec for tool in shown.values()),
            agent=agent,
        )
        return self.adapted(session, prompt)

    def _window(self, session: str) -> int | None:
        """The context window of the model that answers in a session, in tokens. Codex looks after its own."""
        if self.name(session) == "codex":
            return None
        return self.model.facts.window

    def _agent_parts(
        self, session: str, agent: str, tools: Mapping[str, Tool]
    ) -> list[str]:
        """The parts of the prompt about the agent from a file that the session is, with its skills, and about worktrees."""
        parts: list[str] = []
        if agent:
            file = self._agent_file(session, agent)
            skills = skill_texts(file, self._parts.learner.learning.skills.view)
            text = f"In this session you work as the agent {agent}:\n\n{file.body}"
            parts.append("\n\n".join((text, *skills)))
        if self._app.settings.worktrees.children and "delegate" in tools:
            parts.append(WORKTREE_HINT)
        return parts

    def _chat(self, session: str) -> str:
        """The chat app that a session was begun in; empty if it was begun elsewhere."""
        info = self._app.store.sessions.origin(session)
        elsewhere = info.surface in {"", "recovered", *SURFACES}
        return "" if info.kind != "root" or elsewhere else info.surface

    def check_budget(self, session: str, tokens: int) -> None:
        """Raises BudgetSpent if a call beside the turns could pass a cap."""
        self._parts.spending.check(session, tokens)

    def budget(self, session: str) -> TurnBudget:
        """The caps of a turn that begins in a session."""
        return self._parts.spending.budget(session)

    def written(self, row: Row) -> None:
        """Releases what was claimed for a reply that is in the log."""
        self._parts.spending.written(row)

    def title(self, session: str, history: ConversationHistory) -> None:
        """Looks for a better title in the background."""
        self._parts.titles.begin(session, history)
