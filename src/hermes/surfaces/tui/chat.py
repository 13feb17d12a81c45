"""Starts the chat: prints the banner and the prompt first, and only then loads what a conversation
needs.
"""

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.codex.engine_choice import CODEX, codex_model, is_on
from hermes.providers.routing import ModelRoute
from hermes.settings.load import environment
from hermes.surfaces.terminal.open_agent import (
    as_agent,
    begin,
    begin_as,
    choose_model,
    find_target,
    in_worktree,
    open_app,
    with_kept_model,
)
from hermes.surfaces.terminal.run_options import RunOptions
from hermes.surfaces.terminal.signals import interruptible
from hermes.surfaces.terminal.style import stdout_style, terminal_width
from hermes.surfaces.terminal.tool_line import marks_for
from hermes.surfaces.tui.banner import banner
from hermes.surfaces.tui.early_keys import early_keys
from hermes.text.translation import translator

if TYPE_CHECKING:
    from hermes.app import App
    from hermes.surfaces.tui.past import ShownPast

t = translator(__name__)


def chat(question: RunOptions) -> int:
    """Runs the chat until the person leaves. Returns the exit code."""
    with open_app(question) as app, ExitStack() as restored:
        is_live = _can_redraw() and app.settings.display.layout != "linear"
        keys = restored.enter_context(early_keys()) if is_live else None
        question = in_worktree(app, question)
        target = find_target(app, question)
        question = as_agent(app, target, question)
        with interruptible():
            model = choose_model(app, with_kept_model(app, target, question))
        session = begin(app, target, "cli")
        begin_as(app, session, question.agent)
        style, columns = stdout_style(), max(20, terminal_width())
        mode = t("approvals: {mode}", mode=question.approvals)
        facts = f"{tilde(target.cwd)} · {mode}"
        if is_on(app.settings.model):
            model = ModelRoute(
                provider=CODEX, model=codex_model(app.settings.model, question.model)
            )
        if keys is not None and keys.typed:
            print("\r\x1b[K", end="")  # the terminal has shown it already
        for line in banner(
            model,
            session,
            style,
            columns,
            resumed=target.before is not None,
            facts=facts,
        ):
            print(line)
        typed, past = "", None
        if keys is not None:
            # The prompt appears before the code that draws it is loaded; keys typed meanwhile are not lost.
            restored.enter_context(interruptible())
            if question.resume:
                past = _show_past(app, session)
            keys.leave_to_screen()
            typed = keys.typed
            print(style.bold(marks_for(sys.stdout.encoding).prompt), end="", flush=True)
        from hermes.surfaces.tui.run import converse

        return converse(app, session, question, is_live=is_live, typed=typed, past=past)


def _show_past(app: "App", session: str) -> "ShownPast":
    """Shows where a resumed session stopped."""
    from hermes.surfaces.tui.past import EarlyScreen, show_past

    quiet = app.settings.display.layout == "quiet"
    return show_past(app, session, EarlyScreen(), quiet=quiet)


def _can_redraw() -> bool:
    """Whether the terminal can move its cursor, and has keys."""
    is_terminal = sys.stdout.isatty() and sys.stdin is not None and sys.stdin.isatty()
    return is_terminal and environment().get("TERM", "dumb") != "dumb"


def tilde(path: Path) -> str:
    """Returns a path with the home directory written as `~`."""
    home = Path.home()
    return (
        f"~/{path.relative_to(home)}"
        if path.is_relative_to(home) and path != home
        else str(path)
    )
