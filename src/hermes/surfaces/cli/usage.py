"""`hermes usage`: tokens and money, by day and model."""

import argparse
import time
from collections.abc import Sequence
from typing import Any

import msgspec

from hermes.app import build
from hermes.errors import SessionNotFound
from hermes.settings.load import find_home, load
from hermes.store.sessions import UsageRow
from hermes.surfaces.terminal.text import (
    TextScreen,
    cut,
    one_line,
    stdout_screen,
    table,
)

_DAY = 86400.0


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--days",
        metavar="N",
        type=_days,
        default=30,
        help="the last N days (default: 30)",
    )
    parser.add_argument(
        "--session",
        metavar="ID",
        default="",
        help="only this session: its id, its title, or last",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    home = find_home()
    with build(load(home=home), home) as app:
        if not app.has_log:
            if args.session:
                raise SessionNotFound(
                    "there are no sessions yet", hint='Begin one: hermes "hello"'
                )
            rows: Sequence[UsageRow] = ()
        else:
            session = app.store.sessions.find(args.session).id if args.session else ""
            first = time.strftime(
                "%Y-%m-%d", time.gmtime(app.clock.now() - (args.days - 1) * _DAY)
            )
            rows = app.store.sessions.usage(session=session, since_day=first)
    if args.json:
        print(
            msgspec.json.format(msgspec.json.encode(document(rows)), indent=2).decode()
        )
        return 0
    screen = stdout_screen()
    for line in (
        lines_of(rows, screen) if rows else ["No model was asked in that time."]
    ):
        print(line)
    return 0


def document(rows: Sequence[UsageRow]) -> dict[str, Any]:
    """Everything, for a script."""
    return {"days": [msgspec.to_builtins(row) for row in rows], "total": _total(rows)}


def lines_of(rows: Sequence[UsageRow], screen: TextScreen) -> list[str]:
    """A table with a total; on a narrow screen two lines for each row."""
    total = _total(rows)
    calls, read, written, cost = (
        total["calls"],
        total["input_tokens"],
        total["output_tokens"],
        dollars(total["cost_usd"]),
    )
    if screen.is_narrow:
        lines = [line for row in rows for line in _narrow(row, screen)]
        lines += [
            screen.style.bold(f"total  {cost}"),
            f"  {calls:,} calls, {read:,} in, {written:,} out",
        ]
    else:
        cells = [
            ("DAY (UTC)", "MODEL", "CALLS", "TOKENS IN", "CACHED", "TOKENS OUT", "COST")
        ]
        cells += [_cells(row) for row in rows]
        cells += [("total", "", f"{calls:,}", f"{read:,}", "", f"{written:,}", cost)]
        lines = table(cells, right=(2, 3, 4, 5, 6))
        lines = [
            screen.style.bold(line) if index in {0, len(lines) - 1} else line
            for index, line in enumerate(lines)
        ]
    return lines + _unpriced(rows, screen)


def dollars(amount: float) -> str:
    """An amount of any size; small ones with more digits."""
    return f"${amount:,.2f}" if amount >= 1 or amount == 0 else f"${amount:.4f}"


def _cells(row: UsageRow) -> tuple[str, ...]:
    cost = (
        "?"
        if row.unpriced_calls and not row.cost_usd
        else dollars(row.cost_usd) + ("+" * bool(row.unpriced_calls))
    )
    return (
        row.day,
        cut(_name(row), 34),
        f"{row.calls:,}",
        f"{row.input_tokens:,}",
        f"{row.cache_read_tokens:,}",
        f"{row.output_tokens:,}",
        cost,
    )


def _narrow(row: UsageRow, screen: TextScreen) -> list[str]:
    cells = _cells(row)
    head = cut(f"{row.day}  {cells[6]}  {_name(row)}", screen.columns)
    return [head, f"  {cells[2]} calls, {cells[3]} in, {cells[5]} out"]


def _unpriced(rows: Sequence[UsageRow], screen: TextScreen) -> list[str]:
    """Calls whose price is not known are named, never taken for free."""
    names = sorted({_name(row) for row in rows if row.unpriced_calls})
    if not names:
        return []
    calls = sum(row.unpriced_calls for row in rows)
    text = f"\nThe price of {calls:,} calls is not known and not in the total: {', '.join(names)}."
    hint = (
        "Give it in custom_providers.NAME.models.MODEL: input_price and output_price."
    )
    return [screen.style.yellow(text), screen.style.dim(hint)]


def _name(row: UsageRow) -> str:
    return one_line(f"{row.provider}:{row.model}" if row.provider else row.model)


def _total(rows: Sequence[UsageRow]) -> dict[str, Any]:
    names = (
        "calls",
        "input_tokens",
        "output_tokens",
        "cache_read_tokens",
        "cache_write_tokens",
        "reasoning_tokens",
    )
    total: dict[str, Any] = {
        name: sum(getattr(row, name) for row in rows) for name in names
    }
    return total | {
        "cost_usd": sum(row.cost_usd for row in rows),
        "unpriced_calls": sum(row.unpriced_calls for row in rows),
    }


def _days(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 36500:
        raise argparse.ArgumentTypeError(f"expected a number of days, not {text!r}")
    return int(text)
