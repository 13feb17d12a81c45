"""Filing sessions: pins, folders and the archive. All surfaces of a home share them."""

from collections.abc import Callable, Sequence
from typing import Annotated

from hermes.commands.command import Arg, command
from hermes.commands.context import CommandContext
from hermes.commands.sessions import open_log
from hermes.commands.views import TextResult, message
from hermes.errors import UsageError
from hermes.schema.event_base import payload_of
from hermes.schema.events import SessionMarked
from hermes.text.translation import translator

t = translator(__name__)


MAX_FOLDER_CHARACTERS = 80

Sessions = Annotated[tuple[str, ...], Arg("which sessions", metavar="ID")]


def _mark(
    context: CommandContext,
    sessions: Sequence[str],
    work: Callable[[list[str]], None],
    done: str,
) -> TextResult:
    store = open_log(context)
    found = [*dict.fromkeys(store.sessions.find(name).id for name in sessions)]
    work(found)
    event = SessionMarked(sessions=tuple(found))
    context.app.bus.publish(event.topic, payload_of(event))
    return message(
        t(
            "{count:,} session {done}.",
            "{count:,} sessions {done}.",
            count=len(found),
            done=done,
        )
    )


@command("sessions pin", scope="chat")
def pin_sessions(context: CommandContext, sessions: Sessions) -> TextResult:
    """Keep sessions at the top of the list."""
    marks = open_log(context).marks
    return _mark(
        context, sessions, lambda found: marks.pin(found, pinned=True), t("pinned")
    )


@command("sessions unpin", scope="chat")
def unpin_sessions(context: CommandContext, sessions: Sessions) -> TextResult:
    """Stop keeping sessions at the top."""
    marks = open_log(context).marks
    return _mark(
        context, sessions, lambda found: marks.pin(found, pinned=False), t("unpinned")
    )


@command("sessions move", scope="chat")
def move_sessions(
    context: CommandContext,
    sessions: Sessions,
    *,
    folder: Annotated[
        str, Arg("the folder; '' takes them out of theirs", metavar="NAME", short="-f")
    ],
) -> TextResult:
    """Put sessions into a folder of the list."""
    name = " ".join(folder.split())
    if len(name) > MAX_FOLDER_CHARACTERS:
        raise UsageError(
            t(
                "The name of a folder has at most {max_folder_characters} characters.",
                max_folder_characters=MAX_FOLDER_CHARACTERS,
            ),
            hint=t("Nothing was moved."),
        )
    marks = open_log(context).marks
    done = (
        t("moved to “{name}”", name=name) if name else t("taken out of their folders")
    )
    return _mark(context, sessions, lambda found: marks.move(found, name), done)


@command("sessions archive", scope="chat")
def archive_sessions(context: CommandContext, sessions: Sessions) -> TextResult:
    """Hide sessions from lists; search still finds them."""
    marks = open_log(context).marks
    return _mark(
        context,
        sessions,
        lambda found: marks.archive(found, archived=True),
        t("archived"),
    )


@command("sessions unarchive", scope="chat")
def unarchive_sessions(context: CommandContext, sessions: Sessions) -> TextResult:
    """Show archived sessions in lists again."""
    marks = open_log(context).marks
    return _mark(
        context,
        sessions,
        lambda found: marks.archive(found, archived=False),
        t("back in the list"),
    )
