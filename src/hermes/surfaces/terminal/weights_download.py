"""Downloads the local model's weights, with the user's consent."""

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.errors import HermesError
from hermes.settings.load import environment, find_home, load
from hermes.surfaces.terminal.progress_line import (
    ProgressLine,
    bar,
    fits,
    fitted,
)
from hermes.surfaces.terminal.stderr_message import remark, say
from hermes.surfaces.terminal.style import stderr_style
from hermes.text.formats import time_left
from hermes.text.translation import shown_reason, translator

if TYPE_CHECKING:
    from hermes.providers.embedded import KnownModel, Progress, WeightsChoice

t = translator(__name__)


def have_weights(
    name: str, *, fetch: bool = False, may_ask: bool = True, verbose: bool = False
) -> None:
    """Makes sure that a run with the local model `name` has its weights. Leaves a file of the
    user's alone. Without a name, the machine decides which model.

    They are downloaded if requested (`--fetch`, HERMES_FETCH=1) or if a person at the terminal
    agrees.
    """
    if are_here(name):
        return
    agreed = is_requested(fetch=fetch)
    if not agreed and not (may_ask and _can_ask()):
        raise _not_downloaded(name)
    with stop_confirmed():
        fetch_weights(name, agreed=agreed, verbose=verbose)


def are_here(name: str) -> bool:
    """Returns whether the weights of a local model are on this machine; of any one if none is named."""
    from hermes.providers.embedded import find, find_best

    if not name:
        return find_best(models_folder()) is not None
    entry = local_models().get(name)
    return entry is None or find(entry, models_folder()) is not None


def is_requested(*, fetch: bool) -> bool:
    """Returns whether a download was agreed to beforehand: by `--fetch` or HERMES_FETCH=1."""
    return fetch or environment().get("HERMES_FETCH", "") not in {"", "0"}


def models_folder() -> Path:
    """Returns the cache that all homes share."""
    from hermes.providers.embedded import models_folder

    return models_folder(environment(), Path.home())


def local_models() -> "dict[str, KnownModel]":
    """Returns the local models by name: the catalogue's, and those pinned in the settings."""
    from hermes.providers.embedded import known_models

    return known_models(load(home=find_home()).local_models)


def choose_weights() -> "WeightsChoice":
    """Returns the local model for this machine and why. Asks the hub, for a few seconds at most."""
    from hermes.providers.embedded import choose_for_this_machine

    return choose_for_this_machine(models_folder(), environment())


def fetch_weights(
    name: str,
    *,
    agreed: bool,
    may_ask: bool = True,
    verbose: bool = False,
    choice: "WeightsChoice | None" = None,
) -> str:
    """Downloads a known model's weights, with a progress bar, and returns its name.

    Without a name, the machine decides, unless its `choice` is known. Raises HermesError without consent.
    """
    from hermes.providers.embedded import (
        ModelHub,
        WeightsChoice,
        fetch,
        model_hub,
        offer,
    )

    if choice is None:
        choice = WeightsChoice(local_models()[name], "") if name else choose_weights()
    entry = choice.entry
    hub = model_hub(environment()) if choice.hub_reachable else ModelHub("")
    plan = offer(entry, models_folder(), hub)
    if choice.reason:
        remark(
            t(
                "{sentence} To choose another one: hermes model add",
                sentence=choice.sentence,
            )
        )
    if agreed:
        remark(plan.statement)
    if verbose:
        for line in plan.details:
            remark(f"  {line}")
    if not agreed and not (may_ask and _can_ask() and _is_agreed(plan.question)):
        raise _not_downloaded(entry.id)
    bar = _Bar(verbose=verbose)
    bar.explain()
    try:
        for step in fetch(entry, models_folder(), hub=hub, verbose=verbose):
            bar.draw(step)
    finally:
        bar.end()
    return entry.id


@contextlib.contextmanager
def stop_confirmed() -> Iterator[None]:
    """Says at the command line that a download was stopped and what is kept. The screens say so themselves."""
    try:
        yield
    except KeyboardInterrupt:
        say(t("The download was stopped. What came so far is kept."), alarming=False)
        raise


def _not_downloaded(name: str) -> HermesError:
    """Says what to do without a model and without anybody to ask."""
    if name:
        hint = t(
            "Download it with: hermes model add {name} (or allow it with --fetch or HERMES_FETCH=1)",
            name=name,
        )
        return HermesError(
            t("The local model {name} is not downloaded yet.", name=name), hint=hint
        )
    hint = t(
        "Connect one at a terminal: hermes setup\n"
        "Or in a script: hermes setup --provider NAME < file-with-the-key, or set a key such as ANTHROPIC_API_KEY\n"
        "Or download a small local model, no account needed: hermes model add base (or --fetch, or HERMES_FETCH=1)"
    )
    return HermesError(
        t("No model is connected, and there is no terminal to ask in."), hint=hint
    )


def _can_ask() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def _is_agreed(question: str) -> bool:
    """Asks at the terminal."""
    print(stderr_style().bold(question), file=sys.stderr)
    try:
        print("[Y/n] ", end="", file=sys.stderr, flush=True)
        return sys.stdin.readline().strip().lower() in {"", "y", "yes"}
    except KeyboardInterrupt:
        print(file=sys.stderr)
        raise


class _Bar:
    """Progress on stderr: a bar redrawn in place, or a line now and then."""

    def __init__(self, *, verbose: bool) -> None:
        self._line = ProgressLine()
        self._verbose = verbose
        self._tenth = ("", -1)

    def explain(self) -> None:
        """Says before the first step how to stop, to whoever watches."""
        if self._line.is_live:
            remark(t("Ctrl-C stops; the next download continues where it stopped."))

    def draw(self, step: "Progress") -> None:
        if step.notice:
            self.end()
            remark(step.notice)
            return
        if self._line.is_live:
            text = bar_text(step, self._line.columns, verbose=self._verbose)
            self._line.draw(text, now=step.done == step.total)
        elif step.total:
            self._print_tenth(step)

    def end(self) -> None:
        self._line.end()

    def _print_tenth(self, step: "Progress") -> None:
        """Prints a line for each tenth of the file, and one when it is checked."""
        tenth = ("", step.done * 10 // step.total)
        from hermes.providers.embedded.download_progress import CHECKING

        if step.source == CHECKING:
            tenth = (step.source, 0)
        if tenth == self._tenth:
            return
        self._tenth = tenth
        where = (
            step.detail if self._verbose and step.detail else shown_reason(step.source)
        )
        text = f"{_megabytes(step)} ({where})"
        print(text, file=sys.stderr, flush=True)


def _megabytes(step: "Progress") -> str:
    return t(
        "{done:,.0f} of {total:,.0f} MB", done=step.done / 1e6, total=step.total / 1e6
    )


def bar_text(step: "Progress", columns: int, *, verbose: bool = False) -> str:
    """Formats progress as `[#####-----] 48%  536 of 1,117 MB  12.0 MB/s  48 s left  source`.

    On a narrow screen the source, the speed and the megabytes give way, in this order.
    """
    if not step.total:
        return fitted(
            [
                t(
                    "waiting {seconds} s: {source}",
                    seconds=step.done,
                    source=shown_reason(step.source),
                )
            ],
            columns,
        )
    share, megabytes = bar(step.done / step.total, columns), _megabytes(step)
    speed = (
        f"{step.bytes_per_second / 1e6:.1f} MB/s" if step.bytes_per_second > 0 else ""
    )
    left = (
        t("{time} left", time=time_left(step.seconds_left)) if step.seconds_left else ""
    )
    where = step.detail if verbose and step.detail else shown_reason(step.source)
    whole, shorter = [share, megabytes, speed, left], [share, megabytes, left]
    if fits(whole, columns):
        return fitted([*whole, where], columns)
    return fitted(shorter if fits(shorter, columns) else [share, left], columns)
