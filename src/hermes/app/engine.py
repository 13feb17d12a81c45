"""Engines, which run the turns of a session. An engine never changes: another model or mode needs another engine."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from hermes.app.agent_files import skill_texts, tools_of
from hermes.app.auxiliary_models import AuxiliaryModels
from hermes.app.delegate_tool import WORKTREE_HINT
from hermes.app.engine_parts import EngineParts, plugin_veto
from hermes.app.image_description import ImageDescriber
from hermes.app.learning.reviewer import NobodyToAsk, ReviewPolicy
from hermes.app.model_info import EngineName, ModelInfo
from hermes.app.project_notes import read_identity, read_project_files
from hermes.app.prompt_files import PromptFile
from hermes.app.session_tools import surroundings_of
from hermes.app.turn_checks import CheckDeps, CheckedRuntime, TurnChecks
from hermes.codex.engine_choice import CODEX, codex_model, is_on
from hermes.core.accepted_plan import PLAN_TOOL
from hermes.core.budget import Metered, Price, TurnBudget
from hermes.core.calls import CallRunner
from hermes.core.history import ConversationHistory
from hermes.core.ports import Approver, PolicyDecision, Tool
from hermes.core.prompt import system_prompt
from hermes.core.turn import NativeRuntime, Runtime
from hermes.providers.retry import Resilient
from hermes.schema.events import ApprovalRequested, Mode, RuleCheck, SessionPrompted
from hermes.schema.messages import AssistantMessage
from hermes.schema.model import ModelRequest
from hermes.schema.tool_spec import ToolSpec
from hermes.settings.load import environment
from hermes.store.log_row import Row
from hermes.text.translation import translator
from hermes.tools.policy import ApprovalPolicy, Circumstances
from hermes.tools.sandbox import find_sandbox
from hermes.tools.toolsets import BATCH_SURFACE, SURFACES

t = translator(__name__)


if TYPE_CHECKING:
    from hermes.app.goals.pursuit import GoalServices

ApprovalMode: TypeAlias = Mode


CLOSING_TOOLS = frozenset(
    f"kanban_{what}"
    for what in ("show", "heartbeat", "comment", "complete", "block", "request_review", "request_changes")
)  # fmt: skip
"""What every worker of a card has."""


class EngineChoice(msgspec.Struct, frozen=True):
    """What a session runs on: a model (empty for that of the settings), whether somebody can be asked, and the approval
    mode (None for that of the whole process).
    """

    model: str = ""
    attended: bool = True
    approvals: ApprovalMode | None = None


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
        """The approval mode."""

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

        async def find_blind() -> str:
            if not await model.settle() or model.facts.images:
                return ""
            return f"{model.provider}:{model.name}"

        native = NativeRuntime(
            Metered(model, partial(parts.spending.guess, session)),
            CallRunner(tools, policy, approvals, keeper, plugin_veto(self._app)),
            max_steps=self._max_steps(session),
            context=self._answering.room,
            sight=ImageDescriber(
                self.auxiliary,
                ocr=self._app.settings.media.vision != "off",
                find_blind=find_blind,
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
        """Runs the command of a goal in the session's sandbox. For somebody else's goal, it runs only if it needs no
        approval.
        """
        if self._app.person(session):
            decision = await asyncio.to_thread(self.guest_policy.check, command, cwd)
            if decision.verdict != "allow":
                why = t.logged("it would need the owner's approval")
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
        """Those tools that are allowed by the command that started the turn."""
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
        """The parts of the prompt about the session's agent, its skills, and worktrees."""
        parts: list[str] = []
        if agent:
            file = self._agent_file(session, agent)
            skills = skill_texts(file, self._parts.learner.learning.skills.view)
            text = f"In this session you work as the agent {agent}:\n\n{file.body}"  # not translated
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
