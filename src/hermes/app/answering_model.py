"""A model that answers, with what belongs to it: its context window, its auxiliary models and its codex process."""

from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING

from hermes.app.auxiliary_models import AuxiliaryModels, MainModel
from hermes.app.project_notes import has_accepted_notes
from hermes.codex.engine_choice import codex_model
from hermes.core.context_window import ContextLimits, ContextWindow
from hermes.providers.build import build_model
from hermes.providers.retry import Resilient
from hermes.providers.routing import ModelRoute, chosen_route
from hermes.schema.events import Mode, SessionCompacted
from hermes.schema.messages import Message
from hermes.settings.load import environment

if TYPE_CHECKING:
    from hermes.app.engine_parts import EngineParts
    from hermes.codex.runtime import CodexEngine
    from hermes.core.compaction import CompactionCut


class AnsweringModel:
    """A model that answers, with its context window and the models that help it. All are made on first use."""

    def __init__(self, parts: "EngineParts", name: str) -> None:
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

    def codex_for(self, mode: Mode) -> "CodexEngine":
        """The codex process that runs turns in a mode."""
        return self.planning_codex if mode == "plan" else self.codex

    async def retire_other_codex(self, session: str, mode: Mode) -> None:
        """Ends the session's codex process of the other mode, which would miss what is said from now on."""
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
        """Closes whatever was created."""
        made = self.__dict__
        for name in ("codex", "planning_codex"):
            if name in made:
                await getattr(self, name).close()
        if "auxiliary" in made:
            await self.auxiliary.close()
        if "model" in made:
            await self.model.close()
