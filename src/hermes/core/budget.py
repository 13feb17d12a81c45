"""Hard caps on tokens and money. A call that could exceed a cap is not made, and its reply is limited to what is left.

Before a call, the most that it can use is claimed, so that several processes can't exceed a cap together. One
uncertainty remains: the input is estimated, because a provider counts it only afterwards.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable
from contextlib import aclosing
from typing import Literal, TypeAlias

import msgspec

from hermes.core.ports import Model
from hermes.errors import HermesError
from hermes.primitives.backoff import Backoff
from hermes.schema.messages import AssistantMessage, Message, Usage
from hermes.schema.model import (
    ModelEvent,
    ModelRequest,
    ReasoningPiece,
    ReplyFinished,
    Retrying,
    TextDelta,
)
from hermes.schema.tool_spec import ToolSpec
from hermes.text.translation import Later, translator

t = translator(__name__)

Unit: TypeAlias = Literal["usd", "tokens"]

_AMOUNT = r"(?a)(\$)?\s*(\d+(?:\.\d+)?)\s*([kKmM])?\s*(usd|dollars?|tokens?)?"
_MIN_OUTPUT_TOKENS = 16  # a smaller reply is not worth a request
IMAGE_TOKENS = 1_500  # roughly the tokens of a large image
_UNBOUNDED_TOKENS = 2**31
_MAX_CLAIMED_TOKENS = 32_768  # of output by one call, so that others have room
_USUAL_REPLY_TOKENS = (
    8_192  # a call that needs less than this may claim all that is left
)
_MAX_CLAIMS = 8  # attempts while other calls make claims at the same moment


class BudgetSpent(HermesError):
    """The next call could exceed a cap."""


class BudgetClaimed(BudgetSpent):
    """The next call could exceed a cap, but only because of claims that other calls may not use up."""


class Price(msgspec.Struct, frozen=True):
    """The most that a token may cost in dollars, whichever model answers."""

    input: float
    output: float

    def of(self, usage: Usage) -> float:
        """What the usage costs at most."""
        return usage.input_tokens * self.input + usage.output_tokens * self.output


class Cap(msgspec.Struct):
    """A limit in one scope (turn, session, day), with what is used of it and what others have claimed."""

    scope: str
    unit: Unit
    limit: float
    used: float = 0.0
    claimed: float = 0.0
    grants: dict[int, float] = {}
    """What the running calls of this turn may use, by the budget that granted it. Other scopes use claims."""
    owner: str = ""
    """Where the limit comes from, if not from the settings."""
    hint: str | Later = ""
    """How the user can raise it."""
    key: str = ""
    """What it applies to, such as the id of a card."""

    def __str__(self) -> str:
        limit = (
            f"${self.limit:g}" if self.unit == "usd" else f"{self.limit:,.0f} tokens"
        )
        return f"{limit} per {self.scope}"

    def refused(self, need: float) -> BudgetSpent:
        """The error for a call that would need this much."""
        unclaimed = self.limit - self.used
        left = max(0.0, unclaimed - self.claimed - sum(self.grants.values()))
        if self.unit == "usd":
            state = t.later(
                "the next call needs about {need}; {left} of {limit} are left",
                need=f"${need:.4f}",
                left=f"${left:.4f}",
                limit=f"${self.limit:g}",
            )
        else:
            state = t.later(
                "the next call needs about {need} tokens; {left} of {limit} are left",
                need=f"{need:,.0f}",
                left=f"{left:,.0f}",
                limit=f"{self.limit:,.0f}",
            )
        if unclaimed >= need:
            state = t.later(
                "{state}; calls in progress have reserved the rest", state=state
            )
        kind = BudgetClaimed if unclaimed >= need else BudgetSpent
        return kind(self._stopped_before(state), hint=self._how_to_raise())

    def _stopped_before(self, state: Later) -> Later:
        if self.owner:
            return t.later(
                "stopped before exceeding the budget of {owner}: {state}.",
                owner=self.owner,
                state=state,
            )
        return t.later(
            "stopped before exceeding the cap per {scope}: {state}.",
            scope=self.scope,
            state=state,
        )

    def _how_to_raise(self) -> str | Later:
        if self.scope == "goal":
            return t.later("Set the goal again with a higher `budget:` to continue.")
        setting = f"budget.per_{self.scope}"
        return self.hint or t.later("Raise {setting} to continue.", setting=setting)


def parse_amount(text: str) -> tuple[Unit, float]:
    """Parses `$2.50`, `2.5 usd`, `200k` or `50000 tokens`. Raises ValueError for anything else."""
    found = re.fullmatch(_AMOUNT, text.strip())
    if not found or (found[1] and (found[4] or "usd").startswith("token")):
        raise ValueError(
            t.logged(
                "{text} is not an amount: write $2.50 or 200k tokens", text=repr(text)
            )
        )
    value = float(found[2]) * {"k": 1e3, "m": 1e6}.get((found[3] or "").lower(), 1)
    dollars = found[1] or (found[4] and not found[4].startswith("token"))
    return ("usd", value) if dollars else ("tokens", value)


async def _claim_nothing(usage: Usage) -> None:
    """Does nothing: if only the caps of this turn count, there is nobody to inform."""


class StepCount(msgspec.Struct):
    """How many model calls a turn and the children that work for it have made."""

    used: int = 0


class TurnBudget:
    """The caps and the steps of one turn, shared with the children it starts.

    `refresh` returns what is used of a cap by now, also by other turns and processes, and what those have claimed. It
    is called before each call. `claim` tells the others the most that the next call can use.
    """

    def __init__(
        self,
        caps: list[Cap] | None = None,
        price: Price | None = None,
        *,
        refresh: Callable[[Cap], tuple[float, float]] | None = None,
        claim: Callable[[Usage], Awaitable[None]] | None = None,
        steps: StepCount | None = None,
    ) -> None:
        self._caps = caps or []
        self._steps = steps or StepCount()
        self._price = price
        self._refresh = refresh
        self._claim = claim
        self.used = Usage(cost_usd=0.0)

    def child(
        self,
        refresh: Callable[[Cap], tuple[float, float]] | None,
        claim: Callable[[Usage], Awaitable[None]] | None,
    ) -> "TurnBudget":
        """A budget for work done for the same turn: the same caps and steps, with its own count and claims."""
        return TurnBudget(
            self._caps, self._price, refresh=refresh, claim=claim, steps=self._steps
        )

    @property
    def has_caps(self) -> bool:
        """Whether anything but its steps is limited."""
        return bool(self._caps)

    def take_step(self, limit: int) -> bool:
        """Counts one more step of the turn and its children. Returns False if that would be more than `limit`."""
        if self._steps.used >= limit:
            return False
        self._steps.used += 1
        return True

    def within(self, caps: list[Cap], price: Price | None) -> "TurnBudget":
        """The same budget under further caps."""
        return TurnBudget(
            [*self._caps, *caps],
            price,
            refresh=self._refresh,
            claim=self._claim,
            steps=self._steps,
        )

    def at(self, price: Price | None) -> "TurnBudget":
        """The same budget at another model's price; None if the price is unknown."""
        return TurnBudget(
            self._caps,
            price,
            refresh=self._refresh,
            claim=self._claim,
            steps=self._steps,
        )

    def room(self, input_tokens: int) -> int | None:
        """How many tokens the next reply may have after an input of about this size; None if there is no cap."""
        rooms = [self._room_under(cap, input_tokens) for cap in self._caps]
        return min(rooms) if rooms else None

    async def reserve(self, input_tokens: int) -> int | None:
        """As `room`, and claims it."""
        claim = self._claim or _claim_nothing
        backoff = Backoff(0.02, 0.5, jitter=0.9)
        for _ in range(_MAX_CLAIMS - 1):
            try:
                return await self._claim_room(input_tokens, claim)
            except BudgetClaimed:
                self.release()
                await claim(Usage(cost_usd=0.0))
                await asyncio.sleep(backoff.next_s())
        try:
            return await self._claim_room(input_tokens, claim)
        except BudgetClaimed:
            self.release()
            raise

    async def _claim_room(
        self, input_tokens: int, claim: Callable[[Usage], Awaitable[None]]
    ) -> int | None:
        """Claims up to half of what is left, and looks again: calls that claim at the same moment all see each
        other's claims, and halve their own until all fit."""
        room = self.room(input_tokens)
        if room is None:
            return None
        granted = _share(room)
        while True:
            most = self._most(input_tokens, granted)
            self._grant(most)
            await claim(most)
            try:
                room = self.room(input_tokens) or 0
            except BudgetClaimed:
                if granted <= _MIN_OUTPUT_TOKENS:
                    raise
                granted = max(_MIN_OUTPUT_TOKENS, granted // 2)
                continue
            if room < granted:
                granted = _share(room)
                await claim(self._most(input_tokens, granted))
            return granted

    def _most(self, input_tokens: int, output_tokens: int) -> Usage:
        """The most that a call can use and cost."""
        usage = Usage(input_tokens=input_tokens, output_tokens=output_tokens)
        cost = self._price.of(usage) if self._price else 0.0
        return msgspec.structs.replace(usage, cost_usd=cost)

    def release(self) -> None:
        """Returns what was granted to a call that has ended."""
        for cap in self._caps:
            cap.grants.pop(id(self), None)

    def _grant(self, usage: Usage) -> None:
        for cap in self._caps:
            if cap.scope in ("turn", "goal"):
                tokens = usage.input_tokens + usage.output_tokens
                cap.grants[id(self)] = (
                    tokens if cap.unit == "tokens" else usage.cost_usd or 0.0
                )

    def spend(self, usage: Usage | None) -> None:
        """Counts the usage of a call. For a call without a count, `guess` is used."""
        if usage is None:
            return
        self.used = add(self.used, usage)
        self.guess(usage)

    def guess(self, usage: Usage) -> None:
        """Counts an estimate, towards the caps alone."""
        self.release()
        for cap in self._caps:
            if cap.unit == "tokens":
                cap.used += usage.input_tokens + usage.output_tokens
            elif usage.cost_usd is not None:
                cap.used += usage.cost_usd
            elif self._price:
                cap.used += self._price.of(usage)

    def _room_under(self, cap: Cap, input_tokens: int) -> int:
        if self._refresh:  # never less than before, as the log may lag behind this turn
            used, cap.claimed = self._refresh(cap)
            cap.used = max(cap.used, used)
        granted = sum(
            amount for owner, amount in cap.grants.items() if owner != id(self)
        )
        left = cap.limit - cap.used - cap.claimed - granted
        if cap.unit == "tokens":
            if left < input_tokens + _MIN_OUTPUT_TOKENS:
                raise cap.refused(input_tokens + _MIN_OUTPUT_TOKENS)
            return int(left - input_tokens)
        if self._price is None:
            hint = t.later(
                "Give the prices of the model and its fallbacks in custom_providers, or set the cap in tokens."
            )
            raise BudgetSpent(
                t.later(
                    "the cap in dollars ({cap}) can't be enforced: a model's price is unknown",
                    cap=cap,
                ),
                hint=hint,
            )
        need = self._price.of(
            Usage(input_tokens=input_tokens, output_tokens=_MIN_OUTPUT_TOKENS)
        )
        if need and left < need:
            raise cap.refused(need)
        if self._price.output <= 0:
            return _UNBOUNDED_TOKENS
        return int((left - input_tokens * self._price.input) / self._price.output)


def _share(room: int) -> int:
    """The part of the remaining tokens that one call claims: half of them, so that others can call too."""
    return min(room, max(room // 2, _USUAL_REPLY_TOKENS), _MAX_CLAIMED_TOKENS)


class Metered:
    """Wraps a model so that every call is counted: `guess` receives an estimate if the provider counted nothing."""

    def __init__(self, model: Model, guess: Callable[[Usage], None]) -> None:
        self._model = model
        self._guess = guess

    @property
    def provider(self) -> str:
        """The provider that answers first."""
        return self._model.provider

    @property
    def name(self) -> str:
        """The model that answers first."""
        return self._model.name

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        """Streams as the model does. A call that is cancelled in the middle is estimated too."""
        written = 0
        counted = False
        try:
            async with aclosing(_generator(self._model.stream(request))) as events:
                async for event in events:
                    if isinstance(event, TextDelta | ReasoningPiece):
                        written += estimate_tokens(event.text)
                    elif (
                        isinstance(event, Retrying) and written
                    ):  # part of the failed attempt was answered
                        self._guess(
                            Usage(
                                input_tokens=request_tokens(request),
                                output_tokens=written,
                            )
                        )
                        written = 0
                    elif isinstance(event, ReplyFinished):
                        counted = event.message.usage is not None
                        written = max(1, reply_tokens(event.message))
                    yield event
        finally:
            if written and not counted:
                self._guess(
                    Usage(input_tokens=request_tokens(request), output_tokens=written)
                )


async def _generator(events: AsyncIterator[ModelEvent]) -> AsyncGenerator[ModelEvent]:
    """The events of a stream, which is closed at the end."""
    try:
        async for event in events:
            yield event
    finally:
        if isinstance(events, AsyncGenerator):
            await events.aclose()


def estimate_tokens(text: str) -> int:
    """A cautious estimate: a token has about three letters of English, or one Chinese character."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // 3)


def reply_tokens(message: AssistantMessage) -> int:
    """About how many tokens a reply has."""
    calls = sum(
        estimate_tokens(call.name) + estimate_tokens(call.arguments)
        for call in message.tool_calls
    )
    return estimate_tokens(message.text) + estimate_tokens(message.reasoning) + calls


def request_tokens(request: ModelRequest) -> int:
    """About how many tokens a request has: the last count, and an estimate for what came since."""
    total = 0
    for message in reversed(request.messages):
        if isinstance(message, AssistantMessage) and message.usage:
            return message.usage.input_tokens + message.usage.output_tokens + total
        total += message_tokens(message)
    return (
        total + sum(map(estimate_tokens, request.system)) + tool_tokens(request.tools)
    )


def message_tokens(message: Message) -> int:
    """About how many tokens a message has."""
    if isinstance(message, AssistantMessage):
        return reply_tokens(message)
    return estimate_tokens(message.text) + IMAGE_TOKENS * len(message.images)


def tool_tokens(tools: Iterable[ToolSpec]) -> int:
    """About how many tokens the tools' descriptions have."""
    return sum(estimate_tokens(msgspec.json.encode(tool).decode()) for tool in tools)


def add(one: Usage, two: Usage) -> Usage:
    """The sum. Its cost is unknown if one of the costs is."""
    known = one.cost_usd is not None and two.cost_usd is not None
    return Usage(
        input_tokens=one.input_tokens + two.input_tokens,
        output_tokens=one.output_tokens + two.output_tokens,
        cache_read_tokens=one.cache_read_tokens + two.cache_read_tokens,
        cache_write_tokens=one.cache_write_tokens + two.cache_write_tokens,
        reasoning_tokens=one.reasoning_tokens + two.reasoning_tokens,
        cost_usd=(one.cost_usd or 0.0) + (two.cost_usd or 0.0) if known else None,
    )
