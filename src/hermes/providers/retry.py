"""`Resilient` makes one model of a chain of candidates. It retries, waits, rotates keys and falls back, and reports it."""

import asyncio
import contextlib
import random
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from types import TracebackType
from typing import Protocol, runtime_checkable

import msgspec

from hermes.errors import HermesError, LoginExpiredError, ModelError
from hermes.primitives.backoff import delay_s
from hermes.providers.adapter import ModelAdapter
from hermes.providers.catalogue import ModelFacts, Prices
from hermes.providers.credentials import CredentialRing
from hermes.providers.http_client import HttpTimeouts
from hermes.schema.model import LoginLost, ModelEvent, ModelRequest, Retrying
from hermes.text.translation import LoggedWords, translator

t = translator(__name__)

_FIRST_DELAY_S = 0.5
_MAX_DELAY_S = 20.0
_MIN_ATTEMPT_S = 5.0  # an attempt with less time than this is not worth making


class RetryLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of one answer: attempts per candidate, seconds of waiting, and seconds until giving up.

    A service that keeps failing has failed after `total` seconds. One that answers slowly has the time of its timeouts.
    """

    attempts: int = 4
    waiting: float = 60.0
    total: float = 90.0


class Plain(Protocol):
    """A model without keys or deadlines, such as the embedded one."""

    provider: str
    name: str

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]: ...


@runtime_checkable
class Closable(Protocol):
    """A model that holds connections or processes."""

    async def close(self) -> None: ...


@runtime_checkable
class Warmable(Protocol):
    """A model that can be made ready ahead of its first call."""

    async def warm(self) -> None: ...


class Candidate:
    """One model that may answer, with the keys it may use."""

    def __init__(
        self, model: ModelAdapter | Plain, keys: CredentialRing | None = None
    ) -> None:
        self.model = model
        self.keys = keys or CredentialRing()

    def open(
        self, request: ModelRequest, first_byte: float | None
    ) -> AsyncIterator[ModelEvent]:
        """Starts an attempt, perhaps with less time for its first byte than usual."""
        if not isinstance(self.model, ModelAdapter):
            return self.model.stream(request)
        deadlines: HttpTimeouts = self.model.deadlines
        if first_byte is not None and first_byte < deadlines.first_byte:
            deadlines = msgspec.structs.replace(deadlines, first_byte=first_byte)
        return self.model.stream(
            request, credential=self.keys.current, deadlines=deadlines
        )

    @property
    def facts(self) -> ModelFacts:
        """What is known about the model. A model without an address costs nothing."""
        model = self.model
        if not isinstance(model, ModelAdapter):
            return ModelFacts(prices=Prices(0.0, 0.0))
        facts, quirks = model.endpoint.facts, model.endpoint.quirks
        sees = facts.images and quirks.images
        return msgspec.structs.replace(facts, images=sees)

    async def close(self) -> None:
        """Closes what the model holds."""
        if isinstance(self.model, Closable):
            await self.model.close()


class _Course:
    """The failures of one answer so far."""

    def __init__(self, limits: RetryLimits, now: float) -> None:
        self.limits = limits
        self.since = now  # when the present run of failures began
        self.attempt = 1
        self.waited = 0.0
        self.failed: list[str] = []
        self.tries = 0
        self.keys_left = 0
        self.rotated = False
        self.renewed = False
        self.first_byte: float | None = None

    def enter(self, keys: int) -> None:
        """A new candidate."""
        self.tries = 0
        self.keys_left = keys - 1
        self.rotated = False
        self.renewed = False
        self.first_byte = None

    def left(self, now: float) -> float:
        return self.limits.total - (now - self.since)


class Resilient:
    """Implements the `Model` port. `Retrying` precedes each new attempt, and voids what was streamed before."""

    def __init__(
        self,
        candidates: tuple[Candidate, ...],
        limits: RetryLimits | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._candidates = candidates
        self._limits = limits or RetryLimits()
        self._clock = clock
        self._sleep = sleep
        self._chance = chance

    @property
    def provider(self) -> str:
        """The provider that answers first."""
        return self._candidates[0].model.provider

    @property
    def name(self) -> str:
        """The model that answers first."""
        return self._candidates[0].model.name

    @property
    def facts(self) -> ModelFacts:
        """What is known about the model that answers first."""
        return self._candidates[0].facts

    @property
    def dearest(self) -> Prices | None:
        """The most that a token may cost, whoever answers and whatever is cached; None if one's price is unknown."""
        every = [candidate.facts.prices for candidate in self._candidates]
        known = [prices for prices in every if prices is not None]
        if len(known) < len(every):
            return None
        reading = max(
            max(prices.input, prices.cache_write or 0.0, prices.cache_read or 0.0)
            for prices in known
        )
        return Prices(reading, max(prices.output for prices in known))

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """All that may answer, in order."""
        return self._candidates

    async def settle(self) -> bool:
        """Finds out which model answers first, if its server chooses. Returns whether that is known; the next call
        reports why it is not.
        """
        first = self._candidates[0]
        if isinstance(first.model, ModelAdapter):
            try:
                await first.model.settle(first.keys.current)
            except ModelError:
                return False
        return True

    async def warm(self) -> None:
        """Prepares the first call while a person types. Problems are left for that call to report."""
        model = self._candidates[0].model
        if isinstance(model, ModelAdapter):
            await asyncio.to_thread(model.warm)
        elif isinstance(model, Warmable):
            with contextlib.suppress(HermesError):
                await model.warm()

    async def close(self) -> None:
        """Closes connections and child processes."""
        for candidate in self._candidates:
            await candidate.close()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        """Streams a reply. Ends with `ReplyFinished`, or raises the last ModelError."""
        course = _Course(self._limits, self._clock())
        for place, candidate in enumerate(self._candidates):
            if place:
                request = msgspec.structs.replace(
                    request, model=""
                )  # that name belongs to the first
            course.enter(len(candidate.keys))
            following = (
                self._candidates[place + 1]
                if place + 1 < len(self._candidates)
                else None
            )
            while True:
                streamed = False
                try:
                    async with _Closing(
                        candidate.open(request, course.first_byte)
                    ) as events:
                        async for event in events:
                            streamed = True
                            yield event
                    return  # noqa: TRY300 - the end of the answer
                except ModelError as error:
                    failure = error
                if streamed and failure.reason != "timeout":
                    course.since = (
                        self._clock()
                    )  # it did answer: this failure begins a new run
                if isinstance(failure, LoginExpiredError) and failure.is_news:
                    yield _login_expired(failure, candidate)
                delay = self._again(course, candidate, failure)
                if delay is None:
                    break
                yield _retrying(course, failure, delay, candidate)
                if delay:
                    await self._sleep(delay)
            course.failed.append(failure.message)
            if following is None or not failure.fall_back:
                raise _final(failure, course)
            course.attempt += 1
            yield _retrying(course, failure, 0.0, following)

    def _again(
        self, course: _Course, candidate: Candidate, failure: ModelError
    ) -> float | None:
        """Returns the seconds to wait before the same candidate is tried again; None if it is not."""
        if failure.renewed and not course.renewed:
            course.renewed = True
            course.attempt += 1
            return 0.0
        if (
            failure.rotate_key
            and course.keys_left > 0
            and not (failure.rotate_once and course.rotated)
        ):
            course.keys_left -= 1
            course.rotated = True
            course.attempt += 1
            candidate.keys.rotate()
            return 0.0
        course.tries += 1
        if not failure.retryable or course.tries >= course.limits.attempts:
            return None
        delay = failure.retry_after
        if delay is None:
            longest = delay_s(course.tries, first_s=_FIRST_DELAY_S, max_s=_MAX_DELAY_S)
            delay = longest * (0.5 + self._chance() / 2)
        left = course.left(self._clock()) - delay
        if delay > course.limits.waiting - course.waited or left < _MIN_ATTEMPT_S:
            return None
        course.waited += delay
        course.first_byte = left
        course.keys_left = len(candidate.keys) - 1
        course.attempt += 1
        return delay


class _Closing:
    """Closes a stream at once when it is left, not when it is garbage-collected."""

    def __init__(self, events: AsyncIterator[ModelEvent]) -> None:
        self._events = events

    async def __aenter__(self) -> AsyncIterator[ModelEvent]:
        return self._events

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(self._events, AsyncGenerator):
            await self._events.aclose()


def _retrying(
    course: _Course, failure: ModelError, delay: float, candidate: Candidate
) -> Retrying:
    model = candidate.model
    return Retrying(
        failure.reason,
        failure.message,
        course.attempt,
        delay,
        model.provider,
        model.name,
        failure.request_id,
        failure.timing,
    )


def _login_expired(failure: LoginExpiredError, candidate: Candidate) -> LoginLost:
    return LoginLost(
        candidate.model.provider, failure.account, failure.message, failure.command
    )


def _final(failure: ModelError, course: _Course) -> ModelError:
    """Returns the last failure, with those of earlier candidates and the number of attempts."""
    message = "\n".join(dict.fromkeys(course.failed))
    if course.attempt > 1:
        message = t.logged(
            "{failure} (after {number} attempts in all)",
            failure=message,
            number=course.attempt,
        )
    if failure.request_id:
        message += f" [request {failure.request_id}: {failure.timing}]"
    final = ModelError(
        LoggedWords(message),
        hint=failure.hint_words,
        reason=failure.reason,
        retryable=failure.retryable,
        compress=failure.compress,
        rotate_key=failure.rotate_key,
        rotate_once=failure.rotate_once,
        fall_back=failure.fall_back,
        retry_after=failure.retry_after,
        status=failure.status,
        request_id=failure.request_id,
        timing=failure.timing,
    )
    final.__cause__ = failure
    return final
