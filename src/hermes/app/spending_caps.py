"""The caps of the settings, compared with the usage in the log, the claims of running calls, and estimated usage."""

import asyncio
import time
from collections.abc import Callable
from weakref import WeakValueDictionary

import msgspec

from hermes.app.app import App
from hermes.core.budget import Cap, Price, TurnBudget, add, parse_amount
from hermes.primitives.recent import RecentDict
from hermes.schema.messages import AssistantMessage, Usage
from hermes.store.log_row import Row
from hermes.store.sessions import UsageRow

_CLAIMED = ("session", "day", "card", "board")
"""The scopes of caps that several turns and processes use up together."""
_MAX_GUESSES = 4_096  # of sessions and days


class Spending:
    """The budgets of all sessions of one process. `price` returns the most that a token can cost in a session, `more`
    the caps of the agent that a session works as."""

    def __init__(
        self,
        app: App,
        price: Callable[[str], Price | None],
        more: Callable[[str], list[Cap]] = lambda _: [],
    ) -> None:
        self._more = more
        self._app = app
        self._price = price
        self._caps = {
            scope: text for scope, text in app.settings.budget.caps().items() if text
        }
        self._budgets: WeakValueDictionary[str, TurnBudget] = WeakValueDictionary()
        self._guessed: RecentDict[str, Usage] = RecentDict(_MAX_GUESSES)
        self._claimed: set[str] = set()

    def budget(self, session: str, goal: Cap | None = None) -> TurnBudget:
        """The caps of a turn that begins in a session. Their usage is looked up before each call.

        A child shares the caps and the steps of the turn that it works for, and its usage counts for its root. `goal` is
        the cap of the goal that the turn works towards.
        """
        budget, more = self._new_budget(session, goal), self._more(session)
        if more:
            budget = budget.within(more, self._price(session))
        self._budgets[session] = budget
        return budget

    def check(self, session: str, input_tokens: int, *prices: Price | None) -> None:
        """Raises BudgetSpent if an auxiliary call could pass a cap. `prices` are those of other models than the main one.

        The caps of a running turn apply to it too; the turn keeps its own count.
        """
        running = self._budgets.get(session)
        side = (
            running.child(self._refresh(session), None)
            if running is not None
            else self._new_budget(session)
        )
        for price in prices:
            side = side.at(price)
        side.room(input_tokens)

    def spend(self, session: str, usage: Usage | None) -> None:
        """Counts an auxiliary call towards the turn that it was made for."""
        running = self._budgets.get(session)
        if running is not None and running.has_caps:
            running.spend(usage)

    def _new_budget(self, session: str, goal: Cap | None = None) -> TurnBudget:
        caps = [_cap(scope, text) for scope, text in self._caps.items()]
        caps += [goal] if goal is not None else []
        caps += self._card_caps(session)
        above = self._above(session)
        if not caps and above is None:
            return TurnBudget()
        refresh = self._refresh(session)

        async def claim(usage: Usage) -> None:
            self._claimed.add(session)
            await asyncio.to_thread(
                self._app.store.claims.make, session, self.today(), usage
            )

        claiming = claim if any(cap.scope in _CLAIMED for cap in caps) else None
        if above is not None:  # an agent may have a model of its own, at another price
            return above.child(refresh, claiming).at(self._price(session))
        return TurnBudget(caps, self._price(session), refresh=refresh, claim=claiming)

    def _card_caps(self, session: str) -> list[Cap]:
        """The caps of a session that works on a card."""
        if self._app.store.sessions.origin(session).surface != "kanban":
            return []
        from hermes.app.boards.card_budgets import card_caps

        default = self._app.settings.boards.budget
        return self._app.store.boards.read(
            lambda reader: card_caps(reader, session, default)
        )

    def _spent_on_cards(
        self, cap: Cap, session: str, first: str
    ) -> tuple[float, float]:
        """What the runs that share a cap have used by now, and what the others of them have claimed."""
        from hermes.app.boards.card_budgets import capped_sessions

        store, now = self._app.store, self._app.clock.now()
        sessions = store.boards.read(lambda reader: capped_sessions(reader, cap, now))
        claimed = store.claims.of_families(session, sessions)
        cost, tokens = store.boards.read(lambda reader: reader.spent(sessions))
        guessed = self._guessed.get(first, Usage())
        if cap.unit == "usd":
            return cost + (guessed.cost_usd or 0.0), claimed[1]
        guessed_tokens = guessed.input_tokens + guessed.output_tokens
        return float(tokens + guessed_tokens), float(claimed[0])

    def _above(self, session: str) -> TurnBudget | None:
        """The budget of the turn that a session works for. A person's background work is nobody's turn."""
        origin = self._app.store.sessions.origin(session)
        if origin.kind != "child" or origin.surface in ("background", "review"):
            return None
        return self._budgets.get(origin.parent)

    def _refresh(self, session: str) -> Callable[[Cap], tuple[float, float]]:
        info = self._app.store.sessions.find(session)
        first = info.top or session
        return lambda cap: self._spent(cap, session, first)

    def written(self, row: Row) -> None:
        """Releases what was claimed for a reply, once the reply's row, with its usage, is on disk."""
        if row.session in self._claimed and row.type in (
            AssistantMessage.topic,
            "agent.turn.ended",
        ):
            self._claimed.discard(row.session)
            self._app.store.claims.release(row.session)

    def guess(self, session: str, usage: Usage) -> None:
        """Counts a call that its provider did not count. It is in no log, so other processes do not know of it."""
        budget = self._budgets.get(session)
        if budget is None or not budget.has_caps:
            return
        price = self._price(session)
        usage = msgspec.structs.replace(
            usage, cost_usd=price.of(usage) if price else 0.0
        )
        budget.guess(usage)
        for key in (session, self.today()):
            self._guessed[key] = add(self._guessed.get(key, Usage(cost_usd=0.0)), usage)

    def today(self) -> str:
        """The day (UTC) for the caps per day."""
        return time.strftime("%Y-%m-%d", time.gmtime(self._app.clock.now()))

    def _spent(self, cap: Cap, session: str, first: str) -> tuple[float, float]:
        """What the lineage of `first`, or the day, has used by now, and what others have claimed."""
        if cap.scope in ("turn", "goal"):
            return 0.0, 0.0
        if cap.scope in ("card", "board"):
            return self._spent_on_cards(cap, session, first)
        today = self.today()
        store = self._app.store
        of_session = cap.scope == "session"
        # Claims first: one is released only after its usage is in the log, so nothing is missed between the two.
        claimed = store.claims.of_others(
            session, today, family=first if of_session else ""
        )
        rows = (
            store.sessions.usage(session=first)
            if of_session
            else store.sessions.usage(since_day=today)
        )
        guessed = self._guessed.get(first if of_session else today, Usage())
        if cap.unit == "usd":
            cost = sum(_cost(row, self._price(session)) for row in rows)
            return cost + (guessed.cost_usd or 0.0), claimed[1]
        tokens = sum(row.input_tokens + row.output_tokens for row in rows)
        return float(tokens + guessed.input_tokens + guessed.output_tokens), float(
            claimed[0]
        )


def _cost(row: UsageRow, price: Price | None) -> float:
    """What a row of the usage cost. Calls without a known price count as the most they can have cost."""
    if not row.unpriced_calls or price is None:
        return row.cost_usd
    used = Usage(input_tokens=row.input_tokens, output_tokens=row.output_tokens)
    return row.cost_usd + price.of(used) * row.unpriced_calls / row.calls


def _cap(scope: str, text: str) -> Cap:
    unit, limit = parse_amount(text)
    return Cap(scope, unit, limit)
