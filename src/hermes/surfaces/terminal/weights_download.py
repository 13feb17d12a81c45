"""Downloads the local model's weights, with the user's consent."""

import sys
import time
from pathlib import Path

from hermes.errors import HermesError, ModelError
from hermes.settings.load import environment
from hermes.surfaces.terminal.stderr_message import say
from hermes.surfaces.terminal.style import stderr_style, terminal_width
from hermes.surfaces.terminal.text import cut


def have_weights(name: str, *, fetch: bool = False, may_ask: bool = True) -> None:
    """Makes sure that a run with the local model `name` has its weights. Leaves a file of the
    user's alone.

    They are downloaded if requested (`--fetch`, HERMES_FETCH=1) or if a person at the terminal
    agrees.
    """
    from hermes.providers.embedded import CATALOGUE, DEFAULT, find

    entry = CATALOGUE.get(name or DEFAULT)
    if entry is None or find(entry, models_folder()) is not None:
        return
    wanted = fetch or environment().get("HERMES_FETCH", "") not in {"", "0"}
    fetch_weights(entry.id, agreed=wanted, may_ask=may_ask)


def models_folder() -> Path:
    """Returns the cache that all homes share."""
    from hermes.providers.embedded import models_folder

    return models_folder(environment(), Path.home())


def fetch_weights(name: str, *, agreed: bool, may_ask: bool = True) -> None:
    """Downloads a known model's weights, with a progress bar. Raises HermesError without consent."""
    from hermes.providers.embedded import CATALOGUE, fetch, offer

    entry, folder = CATALOGUE[name], models_folder()
    question = offer(entry, folder).question
    if not agreed and not (may_ask and _is_agreed(question)):
        hint = f"Fetch it with: hermes model add {name}   or connect a model you have: hermes setup"
        raise HermesError(
            f"The local model is not downloaded yet ({entry.size / 1e6:,.0f} MB).",
            hint=hint,
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
            "Stopped. The part downloaded so far is kept, and the next download continues there.",
            alarming=False,
        )
        raise
    except ModelError:
        bar.end()
        raise
    bar.end()


def _is_agreed(question: str) -> bool:
    """Asks at the terminal. Without one, the answer is no."""
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
    """Progress on stderr: a bar redrawn in place, or a line now and then."""

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
    """Formats progress as `[#####-----] 48 %  536 of 1,117 MB  12 MB/s  source`, as much as fits."""
    if not total:
        return cut(f"waiting {done} s: {source}", columns)
    share = min(1.0, done / total)
    size = max(5, min(30, columns // 4))
    filled = int(share * size)
    speed = f"  {rate / 1e6:.1f} MB/s" if rate > 0 else ""
    text = f"[{'#' * filled}{'-' * (size - filled)}] {share:4.0%}  {done / 1e6:,.0f} of {total / 1e6:,.0f} MB{speed}"
    return cut(f"{text}  {source}", columns)
