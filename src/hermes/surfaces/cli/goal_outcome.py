"""How a goal ended that a script worked towards: what is said about it, and the exit code."""

from hermes.app import App
from hermes.app.goals.waking import who_wakes
from hermes.app.session_journal import read_history
from hermes.surfaces.cli.answer import DONE, FAILED, INTERRUPTED, REFUSED
from hermes.surfaces.terminal.stderr_message import say
from hermes.text.translation import shown_reason, translator

t = translator(__name__)


def report_goal(app: App, session: str) -> int:
    """Says on stderr why a goal was not reached, and returns the exit code."""
    progress = read_history(app.store, session).goal
    if progress.status == "done":
        return DONE
    again = f"Continue: hermes --resume {session}"
    if progress.status == "waiting":
        waits = t("The goal waits. {why}", why=shown_reason(progress.why)).rstrip()
        say(waits, shown_reason(who_wakes(app, session)), alarming=False)
        return FAILED
    if progress.was_stopped:
        say(t("Stopped. Everything up to then was saved."), again, alarming=False)
        return INTERRUPTED
    needs_you = progress.last is not None and progress.last.verdict == "needs_you"
    say(
        t("The goal was not reached. {why}", why=shown_reason(progress.why)).rstrip(),
        again,
    )
    return REFUSED if needs_you else FAILED
