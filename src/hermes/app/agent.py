"""`Agent`: the sessions of one process, and the engine that each of them runs on."""

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, cast, get_args

import msgspec

from hermes.app.app import App
from hermes.app.approvals import PendingQuestions
from hermes.app.engine import ApprovalMode, Engine, EngineChoice
from hermes.app.engine_parts import EngineParts
from hermes.app.learning.learner import Learner
from hermes.app.model_info import EngineName, ModelInfo, kept_model
from hermes.app.prompt_files import PromptFile, PromptFiles, stricter
from hermes.app.session_runner import RunnerDeps
from hermes.app.session_service import SessionService
from hermes.app.session_tools import SessionTools
from hermes.core.answers import approval_hash
from hermes.core.history import ConversationHistory
from hermes.core.ports import Tool
from hermes.errors import HermesError, SessionBusy, SettingsError
from hermes.primitives.recent import RecentDict
from hermes.primitives.tasks import BackgroundTasks
from hermes.providers.build import build_model
from hermes.providers.retry import Resilient
from hermes.schema.events import (
    ApprovalRequested,
    ModeChanged,
    SessionAgentChosen,
    SessionCompacted,
    SessionModelChosen,
)
from hermes.settings import Secrets
from hermes.text.translation import translator
from hermes.tools.policy import ApprovalPolicy

if TYPE_CHECKING:
    from hermes.app.goals.pursuit import GoalPursuit
    from hermes.app.server_messages import ServerMessage
    from hermes.app.turn_placement import TurnPlacement
    from hermes.core.context_usage import Context
    from hermes.tools.files.open_buffers import OpenBuffers

t = translator(__name__)


_CARRY_OUT_PLAN = "Carry out the plan that I accepted, and keep the todo list up to date."  # not translated
_MAX_KNOWN_MODES = 4_096  # of sessions; one that was dropped is read from the log again


class ModelChoice(msgspec.Struct, frozen=True):
    """A model to choose from."""

    name: str
    provider: str = ""
    source: str = ""


_MAX_PREPARED = 256


class _AgentLimits(msgspec.Struct, frozen=True):
    """What the file of a session's agent says. Without a file there is no agent, or its file is gone."""

    model: str = ""
    mode: ApprovalMode | None = None
    file: PromptFile | None = None


def _limits_of(file: PromptFile) -> _AgentLimits:
    known = file.mode in get_args(ApprovalMode)
    mode = cast("ApprovalMode", file.mode) if known else None
    return _AgentLimits(file.model, mode, file)


class Agent:
    """Runs the sessions of one process.

    `surface` names a surface that serves many sessions and can answer questions. `choice_of` returns what a session
    runs on; without it, that is what `choose` was told. With `keeps_models`, that is what the log says, so a model that
    was chosen in any process answers.
    """

    def __init__(  # noqa: PLR0913 - the others have defaults
        self,
        app: App,
        secrets: Secrets,
        *,
        approvals: ApprovalMode = "ask",
        model: str = "",
        surface: str = "",
        choice_of: Callable[[str], EngineChoice] | None = None,
        keeps_models: bool = True,
    ) -> None:
        self._app = app
        self.tools_of: Callable[[str], tuple[Tool, ...]] = lambda _: ()
        """The surface's own tools for a session, which replace ours of the same name. Set it before the first turn."""
        self.buffers_of: Callable[[str], OpenBuffers | None] = lambda _: None
        """The editor that a session runs in, if it lends its unsaved files. Set it before the first turn."""
        self._secrets = secrets
        self._surface = surface
        self._mode: ApprovalMode = approvals
        self._default = EngineChoice(model)
        self._keeps_models = keeps_models and choice_of is None and not model
        self._kept_models: RecentDict[str, str] = RecentDict(_MAX_KNOWN_MODES)
        """The models that were chosen for sessions, in any process; empty for none."""
        self._choice_of = choice_of
        self._prepared: RecentDict[str, EngineChoice] = RecentDict(_MAX_PREPARED)
        self._chosen: dict[str, EngineChoice] = {}
        self._modes: RecentDict[str, ApprovalMode | None] = RecentDict(_MAX_KNOWN_MODES)
        self._agents: RecentDict[str, _AgentLimits] = RecentDict(_MAX_KNOWN_MODES)
        """What the files of the sessions' agents say."""
        self._turn_commands: dict[str, PromptFile] = {}
        """The commands from files that started the running turns."""
        self._engines: dict[tuple[EngineChoice, ApprovalMode], Engine] = {}
        self._making = threading.Lock()
        self._made: EngineParts | None = None
        self._old_parts: list[EngineParts] = []
        self._attached = ExitStack()
        self._loop = asyncio.get_running_loop() if surface else None
        timeout_s = app.settings.approvals.timeout
        self.questions = PendingQuestions(clock=app.clock, timeout_s=timeout_s)
        """The questions that wait for a person in this process."""
        self.background = BackgroundTasks("reporting the end of background work")
        """Reports of work beside the conversations."""
        if surface:
            self._attached.enter_context(self.questions.attached(surface))

    @cached_property
    def service(self) -> SessionService:
        """Runs the sessions. From its first use on, the exporters of this process run."""
        self._app.go_live(self._secrets, self._surface or "terminal")
        return SessionService(
            RunnerDeps(
                app=self._app,
                questions=self.questions,
                engine=self.engine,
                keep_files=self._keep_files,
                prepare=self._prepare,
                begin_turn=self._begin_turn,
                placement=self._placement(),
                goals=self._goals,
            )
        )

    def _goals(self) -> "GoalPursuit":
        from hermes.app.goals.pursuit import GoalPursuit

        return GoalPursuit(self._app, self.engine().goal_services())

    async def _prepare(self, session: str, history: ConversationHistory) -> None:
        """Reads what the next turn needs, without blocking the event loop."""
        await self._app.store.call(self._read_choice, session, history)
        await self.engine(session).retire_other_codex(session)

    async def _begin_turn(self, session: str, texts: Sequence[str]) -> None:
        """Lets the turn run as the file of a command says, if a command started it."""
        self._turn_commands.pop(session, None)
        if any(text.startswith("/") for text in texts):
            file = await asyncio.to_thread(self._command_file, session, texts)
            if file is not None:
                self._turn_commands[session] = file

    def _command_file(self, session: str, texts: Sequence[str]) -> PromptFile | None:
        from hermes.app.command_turns import command_of

        cwd = self._app.store.sessions.origin(session).working_directory
        return command_of(self.prompt_files, cwd, texts)

    def check_command(self, file: PromptFile) -> None:
        """Raises HermesError if the model that a command's file names is not there."""
        if file.model:
            build_model(self._app.settings, self._secrets, model=file.model)

    def _read_choice(self, session: str, history: ConversationHistory) -> None:
        root = self._app.top(session)
        self._app.person(session)
        self._app.person(root)
        self._app.store.has_jobs  # noqa: B018 - remembered for a moment
        if self._choice_of is not None:
            self._prepared[root] = self._choice_of(root)
        self._modes.setdefault(root, None)
        self.read_model(root, history.model if root == session else None)
        if root == session:
            is_planned = history.mode == "plan"
            if (self._modes[root] == "plan") != is_planned:
                self._read_mode(root)  # the history may be older than the choice
        else:
            self._read_mode(root)
            self._agents.pop(root, None)
            self._limits(root)
        # Any process may have chosen another agent.
        self._agents[session] = self._limits_of_agent(session, history.agent)

    def forget_choice(self, session: str) -> None:
        """Forgets what a session runs on, because `choice_of` now returns something else."""
        self._prepared.pop(session, None)

    def _placement(self) -> "TurnPlacement | None":
        """Gateways and dashboards may leave turns to workers; a worker and a terminal run their own."""
        if self._surface not in {"gateway", "dashboard"}:
            return None
        from hermes.app.turn_placement import TurnPlacement

        return TurnPlacement(self._app, lambda session: session in self._chosen)

    async def _keep_files(self, turn: str, cwd: Path) -> None:
        await self._parts.keeper.finish(turn, cwd)

    @property
    def _parts(self) -> EngineParts:
        with self._making:
            if self._made is None:
                app, secrets = self._app, self._secrets
                parts = EngineParts(
                    app,
                    secrets,
                    self.engine,
                    lambda: self.service,
                    self._start_planned_work,
                    self._choose_agent,
                    self._agent_file,
                )
                parts.command_of = self._turn_commands.get
                parts.tools.surface_tools = self.tools_of
                parts.tools.buffers_of = parts.keeper.buffers_of = self.buffers_of
                if self._surface:
                    parts.learner.start(self._is_attended, self._loop)
                self._made = parts
            return self._made

    def _is_attended(self, session: str) -> bool:
        """Whether this process runs a session in which somebody can be asked."""
        return self.service.works_on(session) and self._choice(session).attended

    def engine(self, session: str = "") -> Engine:
        """The engine that runs a session's next turn; without a session, that of new sessions."""
        choice = self._choice(session)
        mode = choice.approvals or self._mode
        engine = self._engines.get((choice, mode))
        if engine is None:
            engine = self._engines[choice, mode] = Engine(self._parts, choice, mode)
        return engine

    def _choice(self, session: str) -> EngineChoice:
        """What a session runs on. A child runs on what its root does, unless it works as an agent."""
        if not session:
            return self._default
        child, session = session, self._app.top(session)
        choice = self._chosen.get(session)
        if choice is None or self._keeps_models:
            choice = self._kept_choice(session)
        if self._choice_of is not None:
            prepared = self._prepared.get(session)
            is_current = prepared and self.service.works_on(session)
            choice = prepared if prepared and is_current else self._choice_of(session)
        choice = self._as_root_agent(session, choice)
        if (file := self._turn_commands.get(session)) is not None:
            from hermes.app.command_turns import with_command

            choice = with_command(choice, choice.approvals or self._mode, file)
        return choice if child == session else self._as_agent(child, choice)

    def _kept_choice(self, session: str) -> EngineChoice:
        """The model that was chosen for a session, or the default."""
        if not self._keeps_models:
            return self._default
        if session not in self._kept_models:
            self.read_model(session)
        kept = self._kept_models.get(session)
        return _changed(self._default, kept, None) if kept else self._default

    def read_model(self, session: str, logged: str | None = None) -> None:
        """Reads which model was chosen for a session: any process may have chosen another.

        `logged` is what the history of the session says, if it is at hand: what is known already is not read again.
        """
        if self._keeps_models and (
            logged is None or logged != self._kept_models.get(session)
        ):
            self._kept_models[session] = kept_model(self._app, session)

    def _as_root_agent(self, session: str, choice: EngineChoice) -> EngineChoice:
        """What a root session runs on. The model and the mode of its agent hold where nobody has chosen others; its
        mode only if it is stricter."""
        mode, limits = self._mode_of(session), self._limits(session)
        if limits.model and not choice.model:
            choice = _changed(choice, limits.model, None)
        if mode is None and choice.approvals is None and limits.mode is not None:
            mode = limits.mode if stricter(limits.mode, self._mode) else None
        return _changed(choice, None, mode)

    def _as_agent(self, child: str, choice: EngineChoice) -> EngineChoice:
        """What a child runs on: its agent's model, and the strictest mode of its agent, of those it works for, and of
        its root."""
        own, mode = self._limits(child).model, choice.approvals or self._mode
        origin = self._app.store.sessions.origin
        session = child
        while (info := origin(session)).kind == "child":
            limit = self._limits(session).mode
            if limit is not None and stricter(limit, mode):
                mode = limit
            session = info.parent
        return _changed(choice, own or None, mode)

    def _limits(self, session: str) -> "_AgentLimits":
        """What the file of a session's agent says. An agent whose file is gone may only read."""
        if session not in self._agents:
            logged = None
            if self._app.has_log:
                logged = self._app.store.log.latest(session, SessionAgentChosen.topic)
            name = logged.agent if isinstance(logged, SessionAgentChosen) else ""
            self._agents[session] = self._limits_of_agent(session, name)
        return self._agents[session]

    def _limits_of_agent(self, session: str, name: str) -> "_AgentLimits":
        """What the file of that agent says to a session; nothing without an agent."""
        if not name:
            return _AgentLimits()
        cwd = self._app.store.sessions.origin(session).working_directory
        try:
            return _limits_of(self.prompt_files.find(cwd, "agent", name))
        except HermesError:
            return _AgentLimits(mode="plan")

    def _agent_file(self, session: str) -> PromptFile | None:
        return self._limits(session).file

    def check_agent(self, session: str, file: PromptFile) -> None:
        """Raises HermesError if a session can't work as an agent: its model, tools or skills are not there."""
        self._check_model(file)
        self._parts.check_agent(session, file)

    def _mode_of(self, session: str) -> ApprovalMode | None:
        """The mode that was chosen for a session in this process. A choice of an earlier process applies only if it was
        `plan`, which needs no trust.
        """
        if session not in self._modes:
            self._modes[session] = None
            self._read_mode(session)
        return self._modes.get(session)

    def _read_mode(self, session: str) -> None:
        """Reads whether the session is in plan mode, which holds in every process."""
        logged = None
        if self._app.has_log:
            logged = self._app.store.log.latest(session, ModeChanged.topic)
        is_planned = isinstance(logged, ModeChanged) and logged.mode == "plan"
        self._note_plan_mode(session, is_planned)

    def _note_plan_mode(self, session: str, is_planned: bool) -> None:
        if is_planned or self._modes.get(session) == "plan":
            self._modes[session] = "plan" if is_planned else None

    def _choose_agent(self, session: str, file: PromptFile) -> None:
        """Gives a child the model of its agent, and its mode if that allows less. A model that is not there is an error."""
        self._check_model(file)
        self._agents[session] = _limits_of(file)

    def _check_model(self, file: PromptFile) -> None:
        if not file.model:
            return
        try:
            build_model(self._app.settings, self._secrets, model=file.model)
        except HermesError as error:
            why = f"{file.place('model')}: {error.message}"
            raise SettingsError(why, hint=error.hint) from error

    @property
    def prompt_files(self) -> PromptFiles:
        """The commands and agents from files."""
        return self._parts.prompt_files

    @property
    def model(self) -> Resilient:
        """The model that answers in new sessions."""
        return self.engine().model

    @property
    def policy(self) -> ApprovalPolicy:
        """Decides about the calls of the user's own sessions."""
        return self.engine().policy

    @property
    def learner(self) -> Learner:
        """Gives sessions their memory and skills."""
        return self._parts.learner

    @property
    def toolbox(self) -> SessionTools:
        """The tools of all sessions."""
        return self._parts.tools

    async def with_server_texts(self, message: str) -> "ServerMessage":
        """A person's message with the prompts and resources of MCP servers that it names."""
        from hermes.app.server_messages import with_server_texts

        return await with_server_texts(self._parts.tools.servers, message)

    def names_resource(self, name: str) -> bool:
        """Whether a name after `@` means a resource of an MCP server."""
        servers = self._parts.tools.servers
        if servers is None:
            return False
        from hermes.app.server_messages import names_resource

        return names_resource(name, servers.has)

    def tools(self, session: str) -> Mapping[str, Tool]:
        """The tools of a session."""
        return self._parts.tools.of(session)

    def describe(self, session: str = "") -> ModelInfo:
        """Names the model that answers in a session, or in new ones. Raises HermesError if there is none."""
        return self.engine(session).describe(session)

    def engine_name(self, session: str = "") -> EngineName:
        """Which program runs a session's turns."""
        return self.engine(session).name(session)

    def chosen_model(self, session: str) -> str:
        """The model that was chosen for a session; empty for that of the settings."""
        return self._choice(session).model

    def mode(self, session: str) -> ApprovalMode:
        """The approval mode of a session."""
        return self._choice(session).approvals or self._mode

    def use(
        self, *, approvals: ApprovalMode | None = None, model: str | None = None
    ) -> None:
        """Changes the mode, from the next call on, or the model, from the next turn on, where nothing else was chosen.

        `settle_allowed` answers the questions that are open.
        """
        if model is not None:
            # Raises before anything is changed.
            build_model(self._app.settings, self._secrets, model=model)
            self._default = EngineChoice(model)
        if approvals is not None:
            self._mode = approvals

    def choose(
        self,
        session: str,
        model: str | None = None,
        approvals: ApprovalMode | None = None,
    ) -> None:
        """Changes the model or the mode of a session.

        A turn that runs here keeps its model; the next one has the new one. Raises SessionBusy while another process
        runs a turn, or while the mode of a running turn would change.
        """
        now = self._choice(session)
        wanted = _changed(now, model, approvals)
        same_mode = (wanted.approvals or self._mode) == (now.approvals or self._mode)
        if wanted.model == now.model and same_mode:
            return
        waits_for_turn = same_mode and self.service.works_on(session)
        if not waits_for_turn and self._app.store.leases.holder(session) is not None:
            what = t.later("what is asked about")
            if wanted.model != now.model:
                what = t.later("the model")
            raise SessionBusy(
                t.later("A turn of this session is running."),
                hint=t.later("Wait for it or stop it, then change {what}.", what=what),
            )
        self._chosen[session] = msgspec.structs.replace(wanted, approvals=None)
        if wanted.model != now.model:
            self._record_model(session, wanted.model)
        if approvals is not None:
            self._modes[session] = approvals

    def keep_model(self, session: str, model: str) -> None:
        """Lets a model answer in a session, also when it is resumed; empty for that of the settings."""
        self._chosen[session] = msgspec.structs.replace(
            self._choice(session), model=model, approvals=None
        )
        self._record_model(session, model)

    def _record_model(self, session: str, model: str) -> None:
        self._app.record(session, SessionModelChosen(model=model))
        if self._keeps_models:
            self._kept_models[session] = model

    async def set_mode(self, session: str, approvals: ApprovalMode) -> None:
        """Changes the mode of a session, also in a turn that runs here, and answers questions that need no answer now.

        Raises SessionBusy while another process runs the turn.
        """
        session = self._app.top(session)
        if not self.service.works_on(session):
            await asyncio.to_thread(self.choose, session, None, approvals)
        await self.service.note_mode(session, approvals, by=self._surface or "cli")
        self._modes[session] = approvals
        if self.service.works_on(session):
            await self.settle_allowed(by=self._surface or "cli")

    async def _start_planned_work(self, session: str, mode: ApprovalMode) -> bool:
        """Starts the work on an accepted plan in a mode. Returns whether it begins in a turn of its own: what codex may do
        is fixed when its process starts.
        """
        await self.set_mode(session, mode)
        if self.engine(session).name(session) != "codex":
            return False
        await self.service.submit(session, _CARRY_OUT_PLAN)
        return True

    async def settle_allowed(self, *, by: str) -> int:
        """Answers the open requests that need no answer in the current mode. Returns how many."""
        settled = 0
        for session in self.questions.sessions():
            engine = self.engine(session)
            cwd = self._app.store.sessions.origin(session).working_directory
            for asked in await self.service.pending(session):
                if isinstance(asked, ApprovalRequested) and engine.allows(
                    session, asked, cwd
                ):
                    shown = approval_hash(asked)
                    settled += await self.service.answer(
                        session, asked.call_id, "once", by=by, shown=shown
                    )
        return settled

    def choices(self) -> list[ModelChoice]:
        """Models to choose from: those of the settings, and those that answered before."""
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

    async def compress(self, session: str) -> SessionCompacted:
        """Compresses a conversation now. Raises NotCompacted, SessionBusy or BudgetSpent; then nothing changed."""
        from hermes.app.compaction import compress

        engine = self.engine(session)
        notes = None if engine.describe(session).local else self._parts.notes
        return await compress(self._app, engine.auxiliary, session, notes)

    def context(self, session: str) -> "Context":
        """What fills the model's context window."""
        from hermes.app.compaction import context_of

        window = self.engine(session).model.facts.window
        return context_of(self._app, session, window)

    async def renew(self, secrets: Secrets) -> None:
        """Uses new settings from the next turn on. Turns that run keep the old ones."""
        self._secrets = secrets
        self._engines.clear()
        parts, self._made = self._made, None
        if parts is not None:
            await parts.learner.close()  # the new one reviews
            self._old_parts.append(parts)
        if not self.service.turns:
            await self._close_old_parts()

    async def close(self) -> None:
        """Ends the running turns and everything they started. Waiting messages are answered when their session is
        resumed.
        """
        await self.service.close()
        await self.release()

    async def release(self) -> None:
        """Ends what tools left running, and closes the models."""
        await self.background.close()
        await self._close_old_parts()
        if self._made is not None:
            await self._made.close()
        self._attached.close()

    async def _close_old_parts(self) -> None:
        while self._old_parts:
            await self._old_parts.pop().close()


def _changed(
    choice: EngineChoice, model: str | None, approvals: ApprovalMode | None
) -> EngineChoice:
    """The choice with another model or mode; None leaves one as it is."""
    return msgspec.structs.replace(
        choice,
        model=choice.model if model is None else model,
        approvals=choice.approvals if approvals is None else approvals,
    )
