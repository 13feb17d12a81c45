"""Times, amounts and numbers in words, the same on every surface."""

import time

from hermes.text.translation import translator

t = translator(__name__)

DAY_S = 86_400.0


def count(number: int, noun: str) -> str:
    """`1 row`, `2,000 rows`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def short_number(number: int) -> str:
    """`950`, `12k`, `1M`, `1.5M`."""
    if number < 1_000:
        return str(number)
    if number < 999_500:
        return f"{number / 1_000:.0f}k"
    return f"{number / 1_000_000:.1f}".removesuffix(".0") + "M"


def ago(ts: float, now: float) -> str:
    """When, in a few words: how long ago, or the day."""
    passed = now - ts
    if not -60 < passed < 30 * DAY_S:
        return moment(ts, "%Y-%m-%d")
    if passed >= DAY_S:
        return t("{count} d ago", count=int(passed / DAY_S))
    if passed >= 3600:
        return t("{count} h ago", count=int(passed / 3600))
    if passed >= 60:
        return t("{count} min ago", count=int(passed / 60))
    return t("just now")


def moment(ts: float, form: str = "%Y-%m-%d %H:%M") -> str:
    """A time of the log in this machine's time zone."""
    try:
        return time.strftime(form, time.localtime(ts))
    except (OverflowError, ValueError, OSError):  # an imported file may hold any number
        return "?"


def money(usd: float) -> str:
    """An amount; nothing for none."""
    if usd <= 0:
        return ""
    return f"${usd:,.2f}" if usd >= 0.01 else "<$0.01"


def dollars(amount: float) -> str:
    """An amount of any size; small ones with more digits."""
    return f"${amount:,.2f}" if amount >= 1 or amount == 0 else f"${amount:.4f}"


def first_line(text: str) -> str:
    """All of a short text on one line; the beginning of a long one."""
    return " ".join(text[:2000].split())


def short_duration(seconds: float) -> str:
    """`3 h` or `2 d`: a duration in its largest unit."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{round(seconds / size)} {unit}"
    return f"{max(0, round(seconds))} s"
