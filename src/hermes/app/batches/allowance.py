"""Divides the budget of a batch among the rows that run at once, so that all of them together can't pass it."""

import math

from hermes.app.batches.batch import BatchOptions
from hermes.app.batches.row_state import RowState
from hermes.core.budget import Unit, parse_amount
from hermes.errors import UsageError
from hermes.text.translation import translator

t = translator(__name__)


class Allowance:
    """What is left of a batch's budget. A row that begins is granted a part, and gives back what it did not use."""

    def __init__(self, options: BatchOptions) -> None:
        self._row = parse_amount(options.row_budget) if options.row_budget else None
        self._total = parse_amount(options.budget) if options.budget else None
        self._used = 0.0
        self._granted: dict[int, float] = {}
        if self._row and self._total and self._row[0] != self._total[0]:
            raise UsageError(
                t.later(
                    "--budget and --row-budget must both be dollars, or both tokens."
                )
            )

    def count(self, state: RowState) -> None:
        """Adds what a row has used so far, in all attempts."""
        usd = state.cost_usd + state.earlier_usd
        tokens = state.tokens + state.earlier_tokens
        self._used += usd if self._unit == "usd" else tokens

    @property
    def _unit(self) -> Unit:
        return self._total[0] if self._total else "usd"

    @property
    def left(self) -> float:
        """What no row has used or been granted."""
        if self._total is None:
            return math.inf
        return self._total[1] - self._used - sum(self._granted.values())

    @property
    def is_untouched(self) -> bool:
        """Whether no row has used any of it."""
        return self._used == 0

    @property
    def is_spent(self) -> bool:
        """Whether no other row can begin, because none that runs will give anything back."""
        return not self._granted

    def grant(self, number: int, used: float, idle_workers: int) -> str | None:
        """The cap of a row's session; empty for none, None if nothing is left now. `used` is what it used before."""
        if self._total is None:
            return self._written(*self._row) if self._row else ""
        share = self.left / max(1, idle_workers)
        if self._row:  # all of it or nothing: a row is not cut short by what others use
            share = max(0.0, self._row[1] - used)
        if self.left <= 0 or share > self.left:
            return None
        self._granted[number] = share
        return self._written(self._unit, used + share)

    def release(self, number: int) -> None:
        """Takes back the grant of a row that does not begin after all."""
        self._granted.pop(number, None)

    def settle(self, number: int, before: float, after: RowState) -> None:
        """Takes back the grant of a row, and counts what it has used since `before`."""
        self._granted.pop(number, None)
        now = after.cost_usd if self._unit == "usd" else after.tokens
        self._used += max(0.0, now - before)

    def used_by(self, state: RowState) -> float:
        """What an attempt has used, in the unit of the budget."""
        return state.cost_usd if self._unit == "usd" else float(state.tokens)

    @staticmethod
    def _written(unit: Unit, amount: float) -> str:
        return f"${amount:.6f}" if unit == "usd" else f"{int(amount)} tokens"
