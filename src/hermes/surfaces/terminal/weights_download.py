"""The weights of the local model: whether they are there, and fetching them once somebody agreed."""

import sys
import time
from pathlib import Path

from hermes.errors import HermesError, ModelError
from hermes.settings.load import environment
from hermes.surfaces.terminal.stderr_message import say
from hermes.surfaces.terminal.style import stderr_style, terminal_width
from hermes.surfaces.terminal.text import cut


def have_weights(name: str, *, fetch: bool = False, may_ask: bool = True) -> None:
    """Sees to it that a run with the local model `name` has its weights. A file of the user's own is left to itself.

    They are fetched when that was asked for (`--fetch`, HERMES_FETCH=1), or when a person at the terminal agrees.
    """
    from hermes.providers.embedded import CATALOGUE, DEFAULT, find

    entry = CATALOGUE.get(name or DEFAULT)
    if entry is None or find(entry, models_folder()) is not None:
        return
    wanted = fetch or environment().get("HERMES_FETCH", "") not in {"", "0"}
    fetch_weights(entry.id, agreed=wanted, may_ask=may_ask)


def models_folder() -> Path:
    """The cache that all homes share."""
    from hermes.providers.embedded import models_folder

    return models_folder(environment(), Path.home())


def fetch_weights(name: str, *, agreed: bool, may_ask: bool = True) -> None:
    """Fetches the weights of a known model, with a progress bar; HermesError when nobody agreed."""
    from hermes.providers.embedded import CATALOGUE, fetch, offer

    entry, folder = CATALOGUE[name], models_folder()
    question = offer(entry, folder).question
    if not agreed and not (may_ask and _is_agreed(question)):
        hint = f"Fetch it with: hermes model add {name}   or connect a model you have: hermes setup"
        raise HermesError(
            f"The local model is not here yet ({entry.size / 1e6:,.0f} MB).", hint=hint
        )
    if agreed:
        say(
            question.replace("Fetch ", "Fetching ", 1).removesuffix("?") + ".",
            alarming=False,
        )
    bar = _Bar()
    try:
        for step in fetch(entry, folder):
            bar.draw(step.source, step.done, step.total)
    except KeyboardInterrupt:
        bar.end()
        say(
            "Stopped. What was fetched is kept, and fetching goes on there.",
            alarming=False,
        )
        raise
    except ModelError:
        bar.end()
        raise
    bar.end()


def _is_agreed(question: str) -> bool:
    """Asks at the terminal; nobody there means no."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    print(stderr_style().bold(question), file=sys.stderr)
    try:
        print("[Y/n] ", end="", file=sys.stderr, flush=True)
        return sys.stdin.readline().strip().lower() in {"", "y", "yes"}
    except KeyboardInterrupt:
        print(file=sys.stderr)
        raise


class _Bar:
    """Progress on stderr: a bar that is drawn again in its place, or a line now and then where that can't be done."""

    def __init__(self) -> None:
        self._live = sys.stderr.isatty() and environment().get("TERM", "dumb") != "dumb"
        self._drawn = 0.0
        self._tenth = -1
        self._begun: tuple[float, int] | None = None

    def draw(self, source: str, done: int, total: int) -> None:
        now = time.monotonic()
        self._begun = self._begun or (now, done)
        if self._live and (now - self._drawn >= 0.1 or done == total):
            self._drawn = now
            text = bar_text(
                source,
                done,
                total,
                self._rate(now, done),
                terminal_width(sys.stderr) - 1,
            )
            print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
        elif not self._live and total and done * 10 // total != self._tenth:
            self._tenth = done * 10 // total
            print(
                f"{done / 1e6:,.0f} of {total / 1e6:,.0f} MB ({source})",
                file=sys.stderr,
                flush=True,
            )

    def end(self) -> None:
        if self._live and self._drawn:
            print(file=sys.stderr, flush=True)

    def _rate(self, now: float, done: int) -> float:
        since, at_first = self._begun or (now, done)
        return (done - at_first) / (now - since) if now > since else 0.0


def bar_text(source: str, done: int, total: int, rate: float, columns: int) -> str:
    """`[#####-----] 48 %  536 of 1,117 MB  12 MB/s  where from`, as much of it as fits."""
    if not total:
        return cut(f"waiting {done} s: {source}", columns)
    share = min(1.0, done / total)
    size = max(5, min(30, columns // 4))
    filled = int(share * size)
    speed = f"  {rate / 1e6:.1f} MB/s" if rate > 0 else ""
    text = f"[{'#' * filled}{'-' * (size - filled)}] {share:4.0%}  {done / 1e6:,.0f} of {total / 1e6:,.0f} MB{speed}"
    return cut(f"{text}  {source}", columns)
