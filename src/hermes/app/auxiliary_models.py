"""The models for auxiliary tasks: titles, summaries, reviews, image descriptions and digests of long pages.

Each task has its own model: the one that the user named, or the provider's cheapest that can do it. If it fails, the
main model takes over, and an event and a line in the log say so.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

from hermes.app.app import App
from hermes.app.spending_caps import Spending
from hermes.core.budget import BudgetSpent, Metered, Price, request_tokens
from hermes.core.complete import complete
from hermes.errors import HermesError, ModelError
from hermes.providers.build import build_helper
from hermes.providers.cheapest_model import Need, cheapest
from hermes.providers.retry import Resilient
from hermes.providers.routing import ModelRoute, route_for
from hermes.schema.event_base import Event
from hermes.schema.events import AuxiliaryCalled
from hermes.schema.messages import AssistantMessage, Usage
from hermes.schema.model import ModelEvent, ModelRequest, Retrying
from hermes.settings import Secrets
from hermes.settings.redaction import mask
from hermes.settings.secrets import is_address_variable
from hermes.text.translation import translator

if TYPE_CHECKING:
    from hermes.plugins.agent_plugins import AgentPlugins

t = translator(__name__)


log = logging.getLogger("hermes.app")

Task: TypeAlias = Literal[
    "title", "summary", "review", "vision", "search", "judge", "cards"
]

_NEEDS: dict[Task, Need] = {
    "title": Need(window=8_000),
    "summary": Need(window=100_000),
    "review": Need(window=200_000),
    "vision": Need(images=True),
    "search": Need(window=60_000),
    "judge": Need(window=30_000),
    "cards": Need(window=60_000),
}
_MIN_REDACTED_SECRET_CHARS = 8  # shorter ones occur in any text
_FAILED_MODEL_PAUSE_S = 600.0  # before a model that failed is asked again


class NoModel(HermesError):
    """No model can do a task."""


class MainModel(msgspec.Struct, frozen=True):
    """The main model, which answers."""

    route: Callable[[], ModelRoute]
    model: Callable[[], Resilient]


class CallWatch(msgspec.Struct, frozen=True):
    """Callbacks around the calls of a task's model."""

    check: Callable[[int, Price | None], None]
    """Raises BudgetSpent when a call with so much input, at this price, could pass a cap."""
    guess: Callable[[Usage], None]
    """Receives the estimated usage of calls that the provider did not count."""
    failed: Callable[[Resilient, str, Usage | None], Awaitable[None]]


class TaskModel:
    """The models for one task in one session, as one model: if the first fails, the next takes over. Implements `Model`."""

    def __init__(self, models: Sequence[Resilient], watch: CallWatch) -> None:
        self._models = list(models)
        self._watch = watch

    @property
    def provider(self) -> str:
        """The provider of the current model."""
        return self._models[0].provider

    @property
    def name(self) -> str:
        """The name of the current model."""
        return self._models[0].name

    @property
    def window(self) -> int:
        """How many tokens fit into a request, whichever model answers it."""
        return min(model.facts.window for model in self._models)

    @property
    def has_substitute(self) -> bool:
        """Whether another model takes over if the current one fails."""
        return len(self._models) > 1

    async def give_up(self, why: str, usage: Usage | None = None) -> bool:
        """Gives up the current model. Returns whether another takes over; the log says so then."""
        others = self.has_substitute
        if others or usage:
            await self._watch.failed(self._models[0], why, usage)
        if others:
            del self._models[0]
        return others

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        """Streams as the model does. After `Retrying` comes the next model. Raises ModelError or BudgetSpent."""
        while True:
            model = self._models[0]
            prices = model.dearest
            price = Price(prices.input / 1e6, prices.output / 1e6) if prices else None
            try:
                self._watch.check(request_tokens(request), price)
                async with aclosing(
                    Metered(model, self._watch.guess).stream(request)
                ) as events:
                    async for event in events:
                        yield event
                return  # noqa: TRY300 - the end of the answer
            except (ModelError, BudgetSpent) as error:
                failure = error
            if not await self.give_up(failure.message):
                raise failure
            reason = failure.reason if isinstance(failure, ModelError) else "budget"
            yield Retrying(reason, failure.message, 2, 0.0, self.provider, self.name)


class AuxiliaryModels:
    """The models of all auxiliary tasks beside one main model. They are made on first use."""

    def __init__(
        self, app: App, secrets: Secrets, spending: Spending, main: MainModel
    ) -> None:
        self._app = app
        self.context_engine = app.settings.compression.engine
        """A plugin's context engine that summarises instead of a model."""
        self._secrets = secrets
        self._spending = spending
        self._main = main
        self._made: dict[tuple[str, str, str], Resilient] = {}
        self._resting: dict[tuple[Task, str], float] = {}

    def setting_of(self, task: Task) -> str:
        """The setting of a task. A model named in `media.vision` looks at pictures in place of `auxiliary.vision`."""
        named = self._app.settings.media.vision.strip()
        if task == "vision" and named != "auto":
            return "off" if named == "ocr" else named
        return str(getattr(self._app.settings.auxiliary, task)).strip() or "off"

    @property
    def plugins(self) -> "AgentPlugins | None":
        """What enabled plugins add to the agent."""
        return self._app.plugins

    def has_own(self, task: Task) -> bool:
        """Whether another model than the main one does a task."""
        try:
            return self._own_model(task) is not None
        except HermesError:
            return False

    async def helper(self, task: Task, session: str) -> TaskModel:
        """The model for a task, with the main model as its substitute. Raises HermesError if no model can do it."""
        spending, main = self._spending, self._main.model()
        try:
            own = self._own_model(task)
        except HermesError as error:
            if task == "vision":
                raise
            called = AuxiliaryCalled(task=task, failure=error.message)
            await self._note_failure(task, session, self.setting_of(task), called)
            own = None
        if (
            own is not None
            and self._resting.get((task, _label(own)), 0.0) > self._app.clock.now()
        ):
            own = None
        models = [
            *([own] if own is not None else []),
            *([main] if main.facts.images or not _NEEDS[task].images else []),
        ]
        if not models:
            raise NoModel(
                t.later("no available model can do this."),
                hint=t.later("Name one in auxiliary.{task}.", task=task),
            )
        watch = CallWatch(
            partial(spending.check, session),
            partial(spending.guess, session),
            partial(self._failed, task, session),
        )
        return TaskModel(models, watch)

    async def ask(
        self, task: Task, session: str, request: ModelRequest
    ) -> AssistantMessage:
        """Asks for one answer. The log says what it cost, or why there is none. Raises HermesError."""
        helper = await self.helper(task, session)
        try:
            message = await complete(helper, request)
        except (ModelError, BudgetSpent) as error:
            called = AuxiliaryCalled(
                task=task,
                provider=helper.provider,
                model=helper.name,
                failure=error.message,
            )
            await self.note(session, called)
            raise
        if task != "title":
            self._spending.spend(session, message.usage)
        called = AuxiliaryCalled(
            task=task,
            provider=message.provider,
            model=message.model,
            usage=message.usage,
        )
        await self.note(session, called)
        return message

    def redact(self, text: str) -> str:
        """The text without the user's secrets, and without anything that looks like a key."""
        names = [name for name in self._secrets if not is_address_variable(name)]
        values = {
            value
            for name in names
            if len(value := self._secrets.get(name) or "") >= _MIN_REDACTED_SECRET_CHARS
        }
        for value in sorted(values, key=len, reverse=True):
            text = text.replace(value, "********")
        return mask(text)

    async def note(self, session: str, *events: Event) -> None:
        """Writes events to the session's log."""
        await asyncio.to_thread(self._app.record, session, *events)

    async def close(self) -> None:
        """Closes the models that were made."""
        for model in self._made.values():
            await model.close()
        self._made.clear()

    def _own_model(self, task: Task) -> Resilient | None:
        """The model of a task; None if that is the main model."""
        wanted, main, need = self.setting_of(task), self._main.route(), _NEEDS[task]
        if wanted in ("main", "off"):
            return None
        if wanted == "auto":
            most = self._main.model().facts.window
            route = cheapest(
                main, msgspec.structs.replace(need, window=min(need.window, most))
            )
        else:
            route = route_for(self._app.settings, self._secrets, wanted, main)
        if route is None or route == main:
            return None
        place = (route.provider, route.base_url, route.model)
        model = self._made.get(place)
        if model is None:
            self._made[place] = model = build_helper(
                route, self._app.settings, self._secrets
            )
        if need.images and not model.facts.images:
            hint = t.later(
                "If it does, set custom_providers.{provider}.models with images: true for it.",
                provider=route.provider,
            )
            raise HermesError(
                t.later(
                    "{label} is not known to read images (auxiliary.vision).",
                    label=_label(model),
                ),
                hint=hint,
            )
        return model

    async def _failed(
        self, task: Task, session: str, model: Resilient, why: str, usage: Usage | None
    ) -> None:
        called = AuxiliaryCalled(
            task=task,
            provider=model.provider,
            model=model.name,
            usage=usage,
            failure=why,
        )
        if task in ("summary", "vision", "search"):  # done for the running turn
            self._spending.spend(session, usage)
        await self._note_failure(task, session, _label(model), called)

    async def _note_failure(
        self, task: Task, session: str, label: str, called: AuxiliaryCalled
    ) -> None:
        """Records a failure in the session each time, and in the process's log once in a while."""
        now = self._app.clock.now()
        if self._resting.get((task, label), 0.0) <= now:
            log.warning("the model for %s (%s) failed: %s", task, label, called.failure)
        self._resting[task, label] = now + _FAILED_MODEL_PAUSE_S
        await self.note(session, called)


def _label(model: Resilient) -> str:
    return f"{model.provider}:{model.name}"
