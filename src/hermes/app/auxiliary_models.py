"""Who does the work on the side: titles, summaries, reviews, describing pictures, digests of long pages.

Each task has a model of its own: the one the user named, or the provider's cheapest that can do it. When it fails, the
model that answers steps in; that is an event, and a line in the log.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from functools import partial
from typing import Literal, TypeAlias

import msgspec

from hermes.app.app import App
from hermes.app.spending_caps import Spending
from hermes.core.budget import BudgetSpent, Metered, Price, request_tokens
from hermes.core.complete import answer
from hermes.errors import HermesError, ModelError
from hermes.providers.build import build_helper
from hermes.providers.cheapest_model import Need, cheapest
from hermes.providers.retry import Resilient
from hermes.providers.routing import Route, route_for
from hermes.schema.event import Event
from hermes.schema.events import AuxiliaryCalled
from hermes.schema.messages import AssistantMessage, Usage
from hermes.schema.model import ModelEvent, ModelRequest, Retrying
from hermes.settings import Secrets
from hermes.settings.redaction import mask
from hermes.settings.secrets import is_address_variable

log = logging.getLogger("hermes.app")

Task: TypeAlias = Literal["title", "summary", "review", "vision", "search"]

_NEEDS: dict[Task, Need] = {
    "title": Need(window=8_000),
    "summary": Need(window=100_000),
    "review": Need(window=200_000),
    "vision": Need(images=True),
    "search": Need(window=60_000),
}
_SHORTEST_SECRET = 8  # characters; shorter ones are in any text
_REST = 600.0  # seconds that a model which failed is not asked again


class NoModel(HermesError):
    """There is no model for a task."""


class Main(msgspec.Struct, frozen=True):
    """The model that answers."""

    route: Callable[[], Route]
    model: Callable[[], Resilient]


class CallWatch(msgspec.Struct, frozen=True):
    """What is done around the calls of a helper."""

    check: Callable[[int, Price | None], None]
    """Raises BudgetSpent when a call with so much input, at this price, could pass a cap."""
    guess: Callable[[Usage], None]
    """Hears of calls that nobody counted."""
    failed: Callable[[Resilient, str, Usage | None], Awaitable[None]]


class Helper:
    """The models for one task in one session as one: when the first fails, the next goes on. Implements `Model`."""

    def __init__(self, models: Sequence[Resilient], watch: CallWatch) -> None:
        self._models = list(models)
        self._watch = watch

    @property
    def provider(self) -> str:
        """Who is asked now."""
        return self._models[0].provider

    @property
    def name(self) -> str:
        """The model that is asked now."""
        return self._models[0].name

    @property
    def window(self) -> int:
        """What fits into a request, whoever answers it."""
        return min(model.facts.window for model in self._models)

    @property
    def has_substitute(self) -> bool:
        """Whether somebody goes on when the present model fails."""
        return len(self._models) > 1

    async def give_up(self, why: str, usage: Usage | None = None) -> bool:
        """The present model did not do. Whether another goes on in its place, which is noted then."""
        others = self.has_substitute
        if others or usage:
            await self._watch.failed(self._models[0], why, usage)
        if others:
            del self._models[0]
        return others

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        """As the model streams; after `Retrying`, the next one. Raises ModelError or BudgetSpent."""
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
    """The table of tasks and models of one process. Models are made on first use."""

    def __init__(
        self, app: App, secrets: Secrets, spending: Spending, main: Main
    ) -> None:
        self._app = app
        self._secrets = secrets
        self._spending = spending
        self._main = main
        self._made: dict[tuple[str, str, str], Resilient] = {}
        self._resting: dict[tuple[Task, str], float] = {}

    def wanted(self, task: Task) -> str:
        """What the settings say of a task."""
        return str(getattr(self._app.settings.auxiliary, task)).strip() or "off"

    def has_own(self, task: Task) -> bool:
        """Whether another model than the one that answers does a task."""
        try:
            return self._own(task) is not None
        except HermesError:
            return False

    async def helper(self, task: Task, session: str) -> Helper:
        """The model for a task, and the one that answers behind it. Raises HermesError when nobody can do it."""
        spending, main = self._spending, self._main.model()
        try:
            own = self._own(task)
        except HermesError as error:
            if task == "vision":
                raise
            called = AuxiliaryCalled(task=task, failure=error.message)
            await self._note_failure(task, session, self.wanted(task), called)
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
                "no model that can be asked does this.",
                hint=f"Name one in auxiliary.{task}.",
            )
        watch = CallWatch(
            partial(spending.check, session),
            partial(spending.guess, session),
            partial(self._failed, task, session),
        )
        return Helper(models, watch)

    async def ask(
        self, task: Task, session: str, request: ModelRequest
    ) -> AssistantMessage:
        """One answer; what it cost, or why there is none, is in the log. Raises HermesError."""
        helper = await self.helper(task, session)
        try:
            message = await answer(helper, request)
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
        """The text without the user's secrets, and without what has the shape of a key."""
        names = [name for name in self._secrets if not is_address_variable(name)]
        values = {
            value
            for name in names
            if len(value := self._secrets.get(name) or "") >= _SHORTEST_SECRET
        }
        for value in sorted(values, key=len, reverse=True):
            text = text.replace(value, "********")
        return mask(text)

    async def note(self, session: str, *events: Event) -> None:
        """Puts events into the session's log."""
        await asyncio.to_thread(self._app.record, session, *events)

    async def close(self) -> None:
        """Closes the models that were made."""
        for model in self._made.values():
            await model.close()
        self._made.clear()

    def _own(self, task: Task) -> Resilient | None:
        """The model of a task itself; None when that is the one that answers."""
        wanted, main, need = self.wanted(task), self._main.route(), _NEEDS[task]
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
            hint = f"If it does, set custom_providers.{route.provider}.models with images: true for it."
            raise HermesError(
                f"{_label(model)} is not known to see pictures (auxiliary.vision).",
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
        if task in ("summary", "vision", "search"):  # done for the turn that runs
            self._spending.spend(session, usage)
        await self._note_failure(task, session, _label(model), called)

    async def _note_failure(
        self, task: Task, session: str, label: str, called: AuxiliaryCalled
    ) -> None:
        """Says it in the session each time, and once in a while in the log."""
        now = self._app.clock.now()
        if self._resting.get((task, label), 0.0) <= now:
            log.warning("the model for %s (%s) failed: %s", task, label, called.failure)
        self._resting[task, label] = now + _REST
        await self.note(session, called)


def _label(model: Resilient) -> str:
    return f"{model.provider}:{model.name}"
