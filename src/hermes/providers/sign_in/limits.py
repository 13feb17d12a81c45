"""What providers tell about an account's limits: in headers of their answers, or when asked.

The last that was seen of each account is kept in the cache, for other processes to show. Nothing in it is secret.
"""

import re
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from hermes.primitives.files import make_private_folder, replace_file
from hermes.primitives.untyped import object_in
from hermes.providers.sign_in.states import AccountLimit

_MIN_WRITE_INTERVAL_S = 30.0
_DURATION = r"(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?)s)?(?:(\d+)ms)?"


def limits_in(headers: Mapping[str, str], now: float) -> tuple[AccountLimit, ...]:
    """Returns the limits that the headers of an answer tell: ChatGPT's plan, or the usual x-ratelimit ones."""
    return (*_of_chatgpt(headers, now), *_of_rate(headers, now))


def _of_chatgpt(headers: Mapping[str, str], now: float) -> Iterable[AccountLimit]:
    for window in ("primary", "secondary"):
        prefix = f"x-codex-{window}"
        used = _number(headers.get(f"{prefix}-used-percent"))
        minutes = _number(headers.get(f"{prefix}-window-minutes"))
        if used is None or not minutes:
            continue
        yield AccountLimit(
            name=window_name(minutes * 60),
            used_percent=used,
            resets_at=_reset(headers, prefix, now),
            seen_at=now,
        )


def _reset(headers: Mapping[str, str], prefix: str, now: float) -> float | None:
    after = _number(headers.get(f"{prefix}-reset-after-seconds"))
    if after is not None:
        return now + after
    return _number(headers.get(f"{prefix}-reset-at"))


def _of_rate(headers: Mapping[str, str], now: float) -> Iterable[AccountLimit]:
    for what in ("requests", "tokens"):
        limit = _number(headers.get(f"x-ratelimit-limit-{what}"))
        left = _number(headers.get(f"x-ratelimit-remaining-{what}"))
        if limit is None or left is None:
            continue
        wait = _duration(headers.get(f"x-ratelimit-reset-{what}", ""))
        yield AccountLimit(
            name=what,
            remaining=left,
            limit=limit,
            resets_at=None if wait is None else now + wait,
            seen_at=now,
        )


def window_name(seconds: float) -> str:
    """What a window is called: `5-hour window`, `7-day window`."""
    hours = round(seconds / 3600)
    return (
        f"{hours // 24}-day window" if hours >= 48 else f"{max(hours, 1)}-hour window"
    )


def chatgpt_limits(document: Mapping[str, Any], now: float) -> tuple[AccountLimit, ...]:
    """Returns the limits in ChatGPT's answer about an account's usage."""
    rate = object_in(document, "rate_limit")
    found: list[AccountLimit] = []
    for key in ("primary_window", "secondary_window"):
        window = object_in(rate, key)
        if not window:
            continue
        after = _number(window.get("reset_after_seconds"))
        found.append(
            AccountLimit(
                name=window_name(_number(window.get("limit_window_seconds")) or 0),
                used_percent=_number(window.get("used_percent")),
                resets_at=now + after
                if after is not None
                else _number(window.get("reset_at")),
                seen_at=now,
            )
        )
    return tuple(found)


def openrouter_limits(
    document: Mapping[str, Any], now: float
) -> tuple[AccountLimit, ...]:
    """Returns the limit of an OpenRouter key, in dollars."""
    data = document.get("data")
    if not isinstance(data, Mapping):
        return ()
    limit, left = _number(data.get("limit")), _number(data.get("limit_remaining"))
    if left is None:
        return ()
    return (AccountLimit(name="dollars", remaining=left, limit=limit, seen_at=now),)


def _number(value: object) -> float | None:
    try:
        number = float(str(value))
    except ValueError:
        return None
    return number if 0 <= number < 1e15 else None


def _duration(text: str) -> float | None:
    """Seconds of `1m30.5s`, `20ms` or `3`."""
    if (plain := _number(text)) is not None:
        return plain
    match = re.fullmatch(_DURATION, text.strip())
    if not text or match is None or not any(match.groups()):
        return None
    hours, minutes, seconds, milliseconds = (float(one or 0) for one in match.groups())
    return hours * 3600 + minutes * 60 + seconds + milliseconds / 1000


class SeenLimits:
    """The limits that were last seen, by account, in a file of the cache."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "account_limits.json"
        self._written: dict[str, float] = {}

    def read(self) -> dict[str, tuple[AccountLimit, ...]]:
        try:
            content = self._path.read_bytes()
            return msgspec.json.decode(
                content, type=dict[str, tuple[AccountLimit, ...]]
            )
        except (OSError, msgspec.DecodeError):
            return {}

    def note(self, account: str, headers: Mapping[str, str]) -> None:
        """Keeps what headers tell, now and then. A file that can't be written is no reason to fail a call."""
        now = time.time()
        found = limits_in(headers, now)
        if not found or now - self._written.get(account, 0.0) < _MIN_WRITE_INTERVAL_S:
            return
        self._written[account] = now
        self.put(account, found)

    def put(self, account: str, limits: tuple[AccountLimit, ...]) -> None:
        try:
            make_private_folder(self._path.parent)
            content = msgspec.json.encode(self.read() | {account: limits})
            replace_file(self._path, content, durable=False, alone=False)
        except OSError:
            return
