"""Measures redaction: ordinary lines, clean lines that look like secrets, and text made to be slow.

The floor is one search for a fixed pattern in the same run, to tell a slow machine from slow code.
"""

import re
import sys
import time
import timeit
from pathlib import Path

from hermes.settings.redaction import mask

MAX_CLEAN_US = 2.0
MAX_HOSTILE_MS = 50.0
_REPEATS, _CALLS = 1_000, 20
_LOOK_ALIKES = Path(__file__).with_name("redaction_lines.txt")
_ORDINARY = (
    "Finished the request for /api/sessions in 12 ms; 3 rows, 0 errors, next in 5 s (worker 7)",
    "2026-11-16 13:49:14,123 4242 INFO hermes.app.session_runner: the turn ended after 3 calls",
    "12 passed, 1 failed in 3.21s",
    "drwxr-xr-x  4 me  staff   128 Nov 16 13:49 src",
)
_HOSTILE_UNITS = (
    "sk-", "password=", "token: ", "://@", "eyJa", "-----BEGIN PRIVATE KEY-----\n", "a1B2" * 8 + "\n", "Cookie: a=",
    "curl -u ", '\\"', "authorization: ", 'password="', "ghp_Ab1\n", "<password>", "--token ", "token=", "TOKEN_A_",
    "mysql ", "://a:", "%3D", "docker login ", "a", "A1", "token=a1", "AAAA", "QUFBQUFB", "-", "sk-a\n", "bearer a",
    "identified by '", "&token=", "?sig=", "://a@", "<token>a", "PASSWORD=", "eyJhbGciOiJIUzI1NiJ9.", "12345678:",
    "cookie: ", "set-cookie:", "sk-a'+'", "\u200b", "mysql -p", "login user password ", "xoxb-1-",
)  # fmt: skip


def main(_options: list[str]) -> int:
    """Prints the figures. The exit code is 1 if a bar is missed."""
    floor = _microseconds(re.compile(r"[0-9a-f]{40}").search, _ORDINARY[0])
    ordinary = max(_microseconds(mask, line) for line in _ORDINARY)
    lines = _LOOK_ALIKES.read_text().splitlines()
    costs = sorted(((_microseconds(mask, line), line) for line in lines), reverse=True)
    over = [cost for cost, _ in costs if cost > MAX_CLEAN_US]
    median = costs[len(costs) // 2][0]
    print(f"floor (one search): {floor:.2f} us")
    print(f"ordinary line, slowest: {ordinary:.2f} us ({ordinary / floor:.1f}x)")
    print(f"look-alike line, median: {median:.2f} us ({median / floor:.1f}x)")
    print(f"look-alike lines over {MAX_CLEAN_US} us: {len(over)} of {len(lines)}")
    for cost, line in costs[:10]:
        print(f"  {cost:6.2f} us ({cost / floor:.1f}x)  {line[:90]}")
    hostile = sorted(((_hostile(unit), unit) for unit in _HOSTILE_UNITS), reverse=True)
    for cost, unit in hostile[:5]:
        print(f"  {cost:6.0f} ms for 100 KB of {unit!r}")
    return int(ordinary > MAX_CLEAN_US or bool(over) or hostile[0][0] > MAX_HOSTILE_MS)


def _microseconds(function: object, line: str) -> float:
    timer = timeit.Timer("f(line)", globals={"f": function, "line": line})
    return min(timer.repeat(_REPEATS, _CALLS)) / _CALLS * 1e6


def _hostile(unit: str) -> float:
    """Milliseconds of CPU time for 100 KB."""
    text = unit * (100_000 // len(unit))
    start = time.process_time()
    mask(text)
    return (time.process_time() - start) * 1000


if __name__ == "__main__":
    sys.exit(main([]))
