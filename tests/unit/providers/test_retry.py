"""Retries, waiting, keys and fallbacks, on a clock that nobody waits for."""

from collections.abc import AsyncIterator

import pytest

from hermes.errors import ModelError
from hermes.providers.credentials import ApiKey, CredentialRing
from hermes.providers.retry import Candidate, Plain, Resilient, RetryLimits
from hermes.schema.messages import UserMessage
from hermes.schema.model import (
    ModelEvent,
    ModelRequest,
    ReplyFinished,
    Retrying,
    TextDelta,
)
from hermes.testing import Reply, ScriptedModel

REQUEST = ModelRequest(system=(), messages=(UserMessage(text="hi"),), model="special")


class Time:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def failure(reason: str = "server", **flags: object) -> ModelError:
    known = {"retryable": True, "fall_back": True, **flags}
    return ModelError(
        f"it failed: {reason}",
        reason=reason,
        retryable=bool(known["retryable"]),
        rotate_key=bool(known.get("rotate_key")),
        rotate_once=bool(known.get("rotate_once")),
        fall_back=bool(known["fall_back"]),
        retry_after=float(str(known["retry_after"]))
        if "retry_after" in known
        else None,
    )


def resilient(
    time: Time, *models: Plain, limits: RetryLimits | None = None, keys: int = 1
) -> Resilient:
    ring = tuple(ApiKey(f"secret-{n}", name=f"key-{n}") for n in range(keys))
    candidates = tuple(Candidate(model, CredentialRing(ring)) for model in models)
    return Resilient(
        candidates, limits, clock=time, sleep=time.sleep, chance=lambda: 1.0
    )


async def collect(model: Resilient) -> list[ModelEvent]:
    return [event async for event in model.stream(REQUEST)]


def retries(events: list[ModelEvent]) -> list[Retrying]:
    return [event for event in events if isinstance(event, Retrying)]


async def test_a_failure_that_passes_is_retried_and_said() -> None:
    time = Time()
    model = ScriptedModel(Reply(text="half", error=failure()), "whole")
    events = await collect(resilient(time, model))
    assert isinstance(events[-1], ReplyFinished)
    assert events[-1].message.text == "whole"
    (again,) = retries(events)
    assert (again.reason, again.attempt, again.delay) == ("server", 2, 0.5)
    assert [type(event) for event in events].index(
        Retrying
    ) == 1  # after the half that is void


async def test_waits_grow_and_are_jittered() -> None:
    time = Time()
    model = ScriptedModel(*(Reply(error=failure()) for _ in range(3)), "ok")
    await collect(resilient(time, model))
    assert time.slept == [0.5, 1.0, 2.0]


async def test_the_wait_that_the_provider_asks_for_is_kept() -> None:
    time = Time()
    model = ScriptedModel(Reply(error=failure("rate_limited", retry_after=7.5)), "ok")
    await collect(resilient(time, model))
    assert time.slept == [7.5]


async def test_a_wait_longer_than_our_patience_is_not_begun() -> None:
    time = Time()
    model = ScriptedModel(Reply(error=failure("rate_limited", retry_after=3600)))
    with pytest.raises(ModelError) as caught:
        await collect(resilient(time, model))
    assert (caught.value.reason, caught.value.retry_after, time.slept) == (
        "rate_limited",
        3600,
        [],
    )


async def test_all_waits_together_are_bounded() -> None:
    time = Time()
    model = ScriptedModel(
        *(Reply(error=failure("rate_limited", retry_after=25)) for _ in range(3))
    )
    with pytest.raises(ModelError):
        await collect(resilient(time, model))
    assert time.slept == [25, 25]


async def test_what_can_not_pass_is_not_retried() -> None:
    time = Time()
    model = ScriptedModel(Reply(error=failure("auth", retryable=False)))
    with pytest.raises(ModelError, match=r"it failed: auth$"):
        await collect(resilient(time, model))
    assert time.slept == []


async def test_a_permanent_failure_ends_after_four_attempts_with_its_own_words() -> (
    None
):
    time = Time()
    model = ScriptedModel(*(Reply(error=failure()) for _ in range(4)))
    with pytest.raises(
        ModelError, match=r"it failed: server \(after 4 attempts in all\)"
    ):
        await collect(resilient(time, model))
    assert time.now - 1000.0 <= 90


async def test_the_next_key_is_used_at_once_and_kept_for_later_calls() -> None:
    time = Time()
    wrong = failure("auth", retryable=False, rotate_key=True)
    model = ScriptedModel(Reply(error=wrong), "ok")
    chain = resilient(time, model, keys=2)
    (again,) = retries(await collect(chain))
    assert (again.delay, time.slept) == (0.0, [])
    assert chain.candidates[0].keys.current.name == "key-1"


async def test_each_key_is_tried_once_when_all_are_wrong() -> None:
    time = Time()
    wrong = failure("auth", retryable=False, rotate_key=True, fall_back=False)
    model = ScriptedModel(*(Reply(error=wrong) for _ in range(3)))
    with pytest.raises(ModelError, match="after 3 attempts"):
        await collect(resilient(time, model, keys=3))


async def test_a_plain_refusal_does_not_use_up_all_keys() -> None:
    time = Time()
    plain = failure(
        "auth", retryable=False, rotate_key=True, rotate_once=True, fall_back=False
    )
    model = ScriptedModel(*(Reply(error=plain) for _ in range(5)))
    with pytest.raises(ModelError, match="after 2 attempts"):
        await collect(resilient(time, model, keys=5))


async def test_the_next_candidate_answers_when_the_first_can_not() -> None:
    time = Time()
    first = ScriptedModel(
        Reply(error=failure("billing", retryable=False)), provider="one"
    )
    second = ScriptedModel("from two", provider="two", name="second")
    events = await collect(resilient(time, first, second))
    (again,) = retries(events)
    assert (again.provider, again.model, again.reason) == ("two", "second", "billing")
    assert isinstance(events[-1], ReplyFinished)
    assert (
        second.requests[0].model == ""
    )  # the name that was asked for belongs to the first


async def test_a_failure_that_is_about_the_request_does_not_fall_back() -> None:
    time = Time()
    first = ScriptedModel(
        Reply(error=failure("too_long", retryable=False, fall_back=False))
    )
    second = ScriptedModel("never")
    with pytest.raises(ModelError):
        await collect(resilient(time, first, second))
    assert second.left == 1


async def test_when_all_fail_each_is_named() -> None:
    time = Time()
    first = ScriptedModel(Reply(error=failure("auth", retryable=False)))
    second = ScriptedModel(Reply(error=failure("billing", retryable=False)))
    with pytest.raises(ModelError, match="it failed: auth\nit failed: billing"):
        await collect(resilient(time, first, second))


class Slow:
    """Takes its time before it answers or fails."""

    def __init__(self, time: Time, seconds: float, model: ScriptedModel) -> None:
        self.provider = model.provider
        self.name = model.name
        self._time = time
        self._seconds = seconds
        self._model = model

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        self._time.now += self._seconds
        async for event in self._model.stream(request):
            yield event


async def test_a_service_that_hangs_has_failed_within_its_patience() -> None:
    time = Time()
    model = ScriptedModel(*(Reply(error=failure("timeout")) for _ in range(2)))
    with pytest.raises(ModelError):
        await collect(resilient(time, Slow(time, 60, model)))
    assert (
        model.left == 0
    )  # a second attempt with the half minute that was left, and no third


async def test_a_long_answer_that_was_cut_is_worth_another_attempt() -> None:
    time = Time()
    model = ScriptedModel(Reply(text="long ago", error=failure("connection")), "whole")
    events = await collect(resilient(time, Slow(time, 200, model)))
    assert isinstance(events[-1], ReplyFinished)
    assert any(isinstance(event, TextDelta) for event in events)


def test_a_key_ring_shows_nothing() -> None:
    ring = CredentialRing((ApiKey("sk-secret"), ApiKey("sk-other")))
    assert "secret" not in repr(ring)
    assert "secret" not in repr(Candidate(ScriptedModel(), ring))
    assert "secret" not in repr(ring.current)
