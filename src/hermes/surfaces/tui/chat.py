"""`hermes` at a terminal: says who speaks, draws the prompt, and only then loads what a conversation needs."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

from hermes.codex.engine_choice import CODEX, codex_model, is_on
from hermes.providers.routing import Route
from hermes.settings.load import environment
from hermes.surfaces.terminal.open_agent import (
    begin,
    choose_model,
    find_place,
    open_app,
)
from hermes.surfaces.terminal.run_options import RunOptions
from hermes.surfaces.terminal.signals import interruptible
from hermes.surfaces.terminal.style import stdout_style, terminal_width
from hermes.surfaces.terminal.tool_line import marks_for
from hermes.surfaces.tui.banner import banner


def chat(question: RunOptions) -> int:
    """Talks until the person leaves. Returns the exit code."""
    with open_app(question) as app:
        place = find_place(app, question)
        with interruptible():
            model = choose_model(app, question)
        session = begin(app, place, "cli")
        style, columns = stdout_style(), max(20, terminal_width())
        facts = f"{tilde(place.cwd)} · approvals: {question.approvals}"
        if is_on(app.settings.model):
            model = Route(
                provider=CODEX, model=codex_model(app.settings.model, question.model)
            )
        for line in banner(
            model,
            session,
            style,
            columns,
            resumed=place.before is not None,
            facts=facts,
        ):
            print(line)
        is_live = sys.stdout.isatty() and environment().get("TERM", "dumb") != "dumb"
        with interruptible() if is_live else nullcontext(), _keys_kept(on=is_live):
            # The prompt is there before what draws it is loaded; what is typed meanwhile is not lost.
            print(
                style.bold(marks_for(sys.stdout.encoding).prompt) if is_live else "",
                end="",
                flush=True,
            )
            from hermes.surfaces.tui.run import converse

            return converse(app, session, question, is_live=is_live)


def tilde(path: Path) -> str:
    """A path as people write it."""
    home = Path.home()
    return (
        f"~/{path.relative_to(home)}"
        if path.is_relative_to(home) and path != home
        else str(path)
    )


@contextmanager
def _keys_kept(*, on: bool) -> Iterator[None]:
    """Lets the terminal keep every key as it is, unechoed, until somebody reads it; afterwards it is as before."""
    if not on:
        yield
        return
    import termios

    fd = sys.stdin.fileno()
    before, now = termios.tcgetattr(fd), termios.tcgetattr(fd)
    now[0] &= ~(
        termios.IXON | termios.IXOFF | termios.ICRNL | termios.INLCR | termios.IGNCR
    )
    now[3] &= ~(termios.ECHO | termios.ICANON | termios.IEXTEN | termios.ISIG)
    termios.tcsetattr(fd, termios.TCSANOW, now)
    try:
        yield
    finally:
        with suppress(termios.error):  # it is gone
            termios.tcsetattr(fd, termios.TCSADRAIN, before)
