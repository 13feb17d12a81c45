"""Puts the agent together: model, tools, policy, prompt and caps, from the settings. The model is made on first use."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec

from hermes.app.app import App
from hermes.app.approvals import Desk
from hermes.app.auxiliary_models import AuxiliaryModels, Main
from hermes.app.compaction import compress, context_of, summarise
from hermes.app.delegate_tool import DEEPEST, Delegation, depth
from hermes.app.image_description import ImageDescriber
from hermes.app.learning.learner import Learner
from hermes.app.learning.reviewer import Circle, Nobody, OnlyLearning
from hermes.app.page_digest import digest
from hermes.app.partial_text import PartialText
from hermes.app.project_notes import read_project_files
from hermes.app.session_runner import Workshop
from hermes.app.session_service import SessionService
from hermes.app.session_titles import Titles
from hermes.app.session_tools import SessionTools
from hermes.app.spending_caps import Spending
from hermes.app.undo import shadows_of
from hermes.codex.engine_choice import CODEX, codex_model, is_on
from hermes.core.answers import approval_hash
from hermes.core.budget import Metered, Price
from hermes.core.calls import CallRunner
from hermes.core.context_usage import Context
from hermes.core.context_window import ContextLimits, Room
from hermes.core.ports import Approver, Model, PolicyDecision, Tool
from hermes.core.prompt import system_prompt
from hermes.core.runtime import Runtime
from hermes.core.turn import NativeRuntime
from hermes.providers.build import build_model
from hermes.providers.retry import Resilient
from hermes.providers.routing import chosen_route
from hermes.schema.event import Event, payload_of
from hermes.schema.events import ApprovalRequested, SessionCompacted, SessionPrompted
from hermes.settings import Secrets
from hermes.settings.load import environment
from hermes.store.log_row import Row
from hermes.tools.policy import ApprovalPolicy, Circumstances
from hermes.tools.sandbox import find_sandbox
from hermes.tools.shadow import ShadowKeeper
from hermes.tools.toolsets import SURFACES

if TYPE_CHECKING:
    from hermes.codex.runtime import CodexEngine

ApprovalMode: TypeAlias = Literal["ask", "auto-edit", "full"]
Engine: TypeAlias = Literal["native", "codex"]


class ModelInfo(msgspec.Struct, frozen=True):
    """Which model answers."""

    provider: str
    name: str

    @property
    def local(self) -> bool:
        """Whether it runs inside Hermes, on this machine."""
        return self.provider == "embedded"

    @property
    def engine(self) -> Engine:
        """Who runs the turns."""
        return "codex" if self.provider == CODEX else "native"

    @property
    def label(self) -> str:
        """The model that answers; with another engine than Hermes' own, its name comes first."""
        return (
            f"{CODEX} {self.name}".strip()
            if self.engine == "codex"
            else self.name or self.provider
        )


class CurrentPolicy:
    """Implements the `Policy` port with whichever policy is current for each call: the mode may change in a turn."""

    def __init__(self, current: Callable[[], ApprovalPolicy]) -> None:
        self._current = current

    def judge(
        self, tool: Tool, arguments: Mapping[str, Any], cwd: Path
    ) -> PolicyDecision:
        """What may be done with this call."""
        return self._current().judge(tool, arguments, cwd)

    def remember(self, request: ApprovalRequested) -> None:
        """Allows calls of exactly this shape from now on."""
        self._current().remember(request)

    def check(
        self, command: str, folder: Path, *, workspace: Path | None = None
    ) -> PolicyDecision:
        """Judges a command that another engine wants to run."""
        return self._current().check(command, folder, workspace=workspace)

    def check_files(
        self, paths: tuple[Path, ...], workspace: Path, *, below: tuple[Path, ...] = ()
    ) -> PolicyDecision:
        """Judges changes to files that another engine wants to make."""
        return self._current().check_files(paths, workspace, below=below)

    def check_host(self, host: str) -> PolicyDecision:
        """Judges whether another engine may reach a host."""
        return self._current().check_host(host)

    def check_tool(self, name: str) -> PolicyDecision:
        """Judges a call that another engine wants to make to a tool of an MCP server."""
        return self._current().check_tool(name)


class Agent:
    """Everything a turn needs, for all sessions of one process."""

    def __init__(
        self,
        app: App,
        secrets: Secrets,
        *,
        approvals: ApprovalMode = "ask",
        model: str = "",
    ) -> None:
        self._app = app
        self._secrets = secrets
        self._mode: ApprovalMode = approvals
        self._modes: dict[
            str, ApprovalMode
        ] = {}  # of sessions whose turn runs with another one than the agent's
        self._policies: dict[tuple[ApprovalMode, bool], ApprovalPolicy] = {}
        self._model_name = model
        self.shadows = shadows_of(app)
        self._keeper = ShadowKeeper(self.shadows)
        self._spending = Spending(app, self._price)
        self._delegation = Delegation(app, lambda: self.service)
        route = partial(chosen_route, app.settings, secrets)
        main = Main(lambda: route(self._model_name), lambda: self.model)
        self._auxiliary = AuxiliaryModels(app, secrets, self._spending, main)
        self._titles = Titles(self._auxiliary)
        digesting = self._auxiliary.wanted("search") != "off"
        self.toolbox = SessionTools(
            app,
            secrets,
            self._own_tools,
            partial(digest, self._auxiliary) if digesting else None,
        )
        self._is_keyless = lambda: route(self._model_name).embedded
        circle = Circle(
            self._reviewer,
            self.tools,
            self._spending.check,
            self._price,
            self._codex_review,
        )
        self.learner = Learner(app, circle)
        self._outdated: list[Resilient] = []
        self.desk = Desk(clock=app.clock, patience=app.settings.approvals.timeout)

    @cached_property
    def model(self) -> Resilient:
        """The model the settings ask for, with its fallbacks."""
        return build_model(self._app.settings, self._secrets, model=self._model_name)

    def tools(self, session: str) -> Mapping[str, Tool]:
        """What the model can do in a session."""
        return self.toolbox.of(session)

    def _own_tools(self, session: str) -> tuple[Tool, ...]:
        """Tools that are made of the agent itself."""
        is_local = self.describe(session).local
        may_delegate = depth(self._app, session) < DEEPEST and not is_local
        learned = () if is_local else self.learner.tools(self._app.person(session))
        return (*((self._delegation.delegate,) if may_delegate else ()), *learned)

    @cached_property
    def service(self) -> SessionService:
        """The sessions of this process, ready to work, and seen from outside."""
        app = self._app
        app.go_live(self._secrets)
        workshop = Workshop(
            store=app.store,
            ids=app.ids,
            desk=self.desk,
            runtime=self._runtime,
            prompt=self._prompt,
            budget=self._spending.budget,
            publish=self._publish,
            snapshot=app.snapshot
            if app.settings.sessions.write_json_snapshots
            else None,
            title=self._titles.begin,
            show=self._show,
            errors=app.errors,
            finish=self._keeper.finish,
            partial=partial(PartialText, app.home),
        )
        return SessionService(app, workshop)

    @cached_property
    def _room(self) -> Room:
        """Keeps conversations inside the model's window."""
        settings = self._app.settings.compression
        limits = ContextLimits(
            self.model.facts.window,
            settings.threshold,
            settings.protect_first_n,
            settings.protect_last_n,
        )
        return Room(partial(summarise, self._auxiliary), limits, self._app.clock)

    async def close(self) -> None:
        """Ends what runs and everything it started; what waits is answered when its session is resumed."""
        await self.service.close()
        await self.release()

    async def release(self) -> None:
        """Ends what tools left running, and the models."""
        await self._titles.close()
        await self.learner.close()
        await self.toolbox.close()
        if "_codex" in self.__dict__:
            await self._codex.close()
        await self._auxiliary.close()
        for model in (
            *([self.model] if "model" in self.__dict__ else []),
            *self._outdated,
        ):
            await model.close()

    def use(
        self, *, approvals: ApprovalMode | None = None, model: str | None = None
    ) -> None:
        """Changes what is asked about, from the next call on, or which model answers, from the next turn on. The old
        model is closed later. `settle_allowed` answers what is asked at this moment."""
        if approvals is not None:
            self._mode = approvals
            self._modes.clear()
        if model is not None:
            build_model(
                self._app.settings, self._secrets, model=model
            )  # raises before anything is changed
            self._model_name = model
            if "model" in self.__dict__:
                self._outdated.append(self.model)
            for name in ("model", "_room"):
                self.__dict__.pop(name, None)
            self._policies.clear()

    def use_in(self, session: str, approvals: ApprovalMode | None) -> None:
        """Changes what is asked about in one session, from the next call of its running turn on; None: as elsewhere."""
        if approvals is None:
            self._modes.pop(session, None)
        else:
            self._modes[session] = approvals

    async def settle_allowed(self, *, by: str) -> int:
        """Answers the open requests that would not be asked about any more, after the mode was changed. How many."""
        settled = 0
        for session in self.desk.sessions():
            cwd = Path(self._app.store.sessions.origin(session).cwd or ".")
            for asked in await self.service.pending(session):
                if isinstance(asked, ApprovalRequested) and self._allows(
                    session, asked, cwd
                ):
                    settled += await self.service.answer(
                        session,
                        asked.call_id,
                        "once",
                        by=by,
                        shown=approval_hash(asked),
                    )
        return settled

    def _allows(self, session: str, asked: ApprovalRequested, cwd: Path) -> bool:
        """Whether the current policy would run, without asking, a call that is waiting for an answer."""
        try:
            arguments = msgspec.json.decode(
                asked.arguments or "{}", type=dict[str, Any]
            )
        except msgspec.MsgspecError:
            return False
        policy = self._policy_of(session)
        if asked.shape.startswith(
            "codex "
        ):  # one of codex's own tools, which may have the name of one of Hermes'
            from hermes.codex.approvals import would_run

            return would_run(asked.name, arguments, policy, cwd)
        tool = self.tools(session).get(asked.name)
        return (
            tool is not None and policy.judge(tool, arguments, cwd).verdict == "allow"
        )

    @property
    def policy(self) -> ApprovalPolicy:
        """Decides about every call of the user's own sessions."""
        return self._policy(self._mode, guest=False)

    def _policy_of(self, session: str) -> ApprovalPolicy:
        return self._policy(
            self._modes.get(session, self._mode), guest=bool(self._app.person(session))
        )

    def _policy(self, mode: ApprovalMode, *, guest: bool) -> ApprovalPolicy:
        if (mode, guest) not in self._policies:
            self._policies[mode, guest] = self._make_policy(mode, guest=guest)
        return self._policies[mode, guest]

    def _make_policy(self, mode: ApprovalMode, *, guest: bool) -> ApprovalPolicy:
        variables = environment()
        return ApprovalPolicy(
            mode,
            Circumstances(
                self._app.home.root,
                Path.home(),
                sandboxed=lambda: (
                    find_sandbox(variables.get("PATH", ""), Path.home()).kind != "none"
                ),
                strict=self._described("native" if guest else self.engine).local
                and mode != "full",
                guest=guest,
                environment=variables,
            ),
        )

    def describe(self, session: str = "") -> ModelInfo:
        """Which model answers first, in a session or in those of the user."""
        return self._described(self.engine_of(session) if session else self.engine)

    def _described(self, engine: Engine) -> ModelInfo:
        if engine == "codex":
            return ModelInfo(
                CODEX, codex_model(self._app.settings.model, self._model_name)
            )
        return ModelInfo(self.model.provider, self.model.name)

    async def compress(self, session: str) -> SessionCompacted:
        """Makes room in a conversation now. Raises NotCompacted, SessionBusy or BudgetSpent; then nothing changed."""
        return await compress(self._app, self._auxiliary, session)

    def context(self, session: str) -> Context:
        """What fills the model's window."""
        return context_of(self._app, session, self.model.facts.window)

    @property
    def engine(self) -> Engine:
        """Who runs the user's turns."""
        return "codex" if is_on(self._app.settings.model) else "native"

    @cached_property
    def _codex(self) -> "CodexEngine":
        from hermes.codex.runtime import CodexEngine, EngineSettings
        from hermes.codex.tools_server import serve_command

        settings, variables = self._app.settings, environment()
        return CodexEngine(
            EngineSettings(
                codex=settings.codex,
                environ=variables,
                secret=self._secrets.get,
                model=codex_model(settings.model, self._model_name),
                max_steps=settings.budget.max_steps,
                run_folder=self._app.home.root / "run",
                lend_command=serve_command(),
            )
        )

    def _codex_runtime(self, session: str, approvals: Approver) -> Runtime:
        from hermes.codex.tool_lending import Lending

        policy = CurrentPolicy(partial(self._policy_of, session))
        lending = Lending(self.tools(session), policy, approvals, self._keeper)
        return self._codex.runtime(
            session, approvals, judge=policy, keeper=self._keeper, lending=lending
        )

    def engine_of(self, session: str) -> Engine:
        """Who runs a session's turns. Codex reads files by its own rules, so it works for the user alone."""
        return "native" if self._app.person(session) else self.engine

    def _runtime(self, session: str, approvals: Approver) -> Runtime:
        if self.engine_of(session) == "codex":
            return self._codex_runtime(session, approvals)
        settings = self._app.settings
        policy = CurrentPolicy(partial(self._policy_of, session))
        calls = CallRunner(self.tools(session), policy, approvals, self._keeper)
        model = Metered(self.model, partial(self._spending.guess, session))
        blind = (
            ""
            if self.model.facts.images
            else f"{self.model.provider}:{self.model.name}"
        )
        sight = ImageDescriber(self._auxiliary, blind)
        return NativeRuntime(
            model,
            calls,
            max_steps=settings.budget.max_steps,
            context=self._room,
            sight=sight,
        )

    async def _prompt(self, session: str, cwd: Path) -> SessionPrompted:
        await self.toolbox.prepare()
        project = read_project_files(cwd, self._app.home.root)
        system = system_prompt(
            cwd, date=self._spending.today(), project=project, chat=self._chat(session)
        )
        person = self._app.person(session)
        if (
            learned := ""
            if self.describe(session).local
            else await asyncio.to_thread(self.learner.prompt, person)
        ):
            system = (*system[:-1], learned, system[-1])
        return SessionPrompted(
            system=system,
            tools=tuple(tool.spec for tool in self.tools(session).values()),
        )

    def _chat(self, session: str) -> str:
        """The chat app that a session was begun in; empty for none."""
        info = self._app.store.sessions.origin(session)
        return (
            info.surface
            if info.kind == "root" and info.surface not in {"", "recovered", *SURFACES}
            else ""
        )

    @asynccontextmanager
    async def _reviewer(self, session: str) -> AsyncIterator[Model]:
        """The model that reviews: the one that answers, whose cache knows the conversation, unless another is named."""
        yield await self._auxiliary.helper("review", session)

    def _codex_review(
        self, session: str, tools: Mapping[str, Tool]
    ) -> AbstractAsyncContextManager[Runtime] | None:
        """Codex as the reviewer, for users with a codex login and no key: the local model is too small for reviews."""
        wanted = self._auxiliary.wanted("review")
        if (
            self.engine_of(session) != "codex"
            or wanted not in ("main", "auto")
            or not self._is_keyless()
        ):
            return None
        from hermes.codex.runtime import Company
        from hermes.codex.tool_lending import Lending

        policy, nobody = OnlyLearning(), Nobody()
        return self._codex.aside(
            Company(nobody, policy, Lending(tools, policy, nobody))
        )

    def _price(self) -> Price | None:
        prices = self.model.dearest
        return Price(prices.input / 1e6, prices.output / 1e6) if prices else None

    def _publish(self, row: Row, *, foreign: bool = False) -> None:
        self._app.publish(row, foreign=foreign)
        self._spending.written(row)

    def _show(self, session: str, turn: str, event: Event) -> None:
        payload = payload_of(event) | {"session_id": session, "turn_id": turn}
        self._app.bus.publish(event.topic, payload)
