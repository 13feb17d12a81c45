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
    if seconds >= DAY_S:
        return t("{count} d", count=round(seconds / DAY_S))
    if seconds >= 3600:
        return t("{count} h", count=round(seconds / 3600))
    if seconds >= 60:
        return t("{count} min", count=round(seconds / 60))
    return t("{count} s", count=max(0, round(seconds)))


def duration(seconds: float) -> str:
    """How long something took: `12 ms`, `3.4 s` or `2 min 5 s`."""
    if seconds < 1:
        return t("{count} ms", count=f"{max(seconds, 0) * 1000:.0f}")
    if seconds < 60:
        return t("{count} s", count=f"{seconds:.1f}")
    minutes, rest = divmod(int(seconds), 60)
    return t("{minutes} min {seconds} s", minutes=minutes, seconds=rest)


def time_left(seconds: float) -> str:
    """How long something will take: `48 s`, `3 min`, `1 h 20 min`."""
    if seconds < 3600:
        return short_duration(max(1, seconds))
    hours, rest = divmod(int(seconds), 3600)
    return t("{hours} h {minutes} min", hours=hours, minutes=rest // 60)
