"""Starts the chat: prints the banner and the prompt first, and only then loads what a conversation
needs.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

from hermes.codex.engine_choice import CODEX, codex_model, is_on
from hermes.providers.routing import ModelRoute
from hermes.settings.load import environment
from hermes.surfaces.terminal.open_agent import (
    as_agent,
    begin,
    begin_as,
    choose_model,
    find_target,
    open_app,
)
from hermes.surfaces.terminal.run_options import RunOptions
from hermes.surfaces.terminal.signals import interruptible
from hermes.surfaces.terminal.style import stdout_style, terminal_width
from hermes.surfaces.terminal.tool_line import marks_for
from hermes.surfaces.tui.banner import banner


def chat(question: RunOptions) -> int:
    """Runs the chat until the person leaves. Returns the exit code."""
    with open_app(question) as app:
        target = find_target(app, question)
        question = as_agent(app, target, question)
        with interruptible():
            model = choose_model(app, question)
        session = begin(app, target, "cli")
        begin_as(app, session, question.agent)
        style, columns = stdout_style(), max(20, terminal_width())
        facts = f"{tilde(target.cwd)} · approvals: {question.approvals}"
        if is_on(app.settings.model):
            model = ModelRoute(
                provider=CODEX, model=codex_model(app.settings.model, question.model)
            )
        for line in banner(
            model,
            session,
            style,
            columns,
            resumed=target.before is not None,
            facts=facts,
        ):
            print(line)
        is_live = sys.stdout.isatty() and environment().get("TERM", "dumb") != "dumb"
        is_live = is_live and app.settings.display.layout != "linear"
        with interruptible() if is_live else nullcontext(), _raw_keys(on=is_live):
            # The prompt appears before the code that draws it is loaded; keys typed meanwhile are not lost.
            print(
                style.bold(marks_for(sys.stdout.encoding).prompt) if is_live else "",
                end="",
                flush=True,
            )
            from hermes.surfaces.tui.run import converse

            return converse(app, session, question, is_live=is_live)


def tilde(path: Path) -> str:
    """Returns a path with the home directory written as `~`."""
    home = Path.home()
    return (
        f"~/{path.relative_to(home)}"
        if path.is_relative_to(home) and path != home
        else str(path)
    )


@contextmanager
def _raw_keys(*, on: bool) -> Iterator[None]:
    """Turns off echo and line editing, so that keys typed early wait unchanged in the terminal's
    buffer.

    Restores the terminal's settings on exit.
    """
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
        with suppress(termios.error):  # the terminal is gone
            termios.tcsetattr(fd, termios.TCSADRAIN, before)
