"""Sessions: listing, reading, searching, naming, moving and deleting them."""

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Literal, TextIO, TypeAlias

from hermes.app.session_documents import DocumentFormat, session_document
from hermes.commands.command import Arg, SessionId, command
from hermes.commands.context import CommandContext
from hermes.commands.output_file import check_output, write_lines
from hermes.commands.session_views import (
    LogCheck,
    SearchResults,
    SessionListing,
    SessionTranscript,
    no_sessions_yet,
)
from hermes.commands.views import Block, RawText, TextResult, line, message
from hermes.errors import (
    HermesError,
    ImportRejected,
    SessionNotFound,
    UsageError,
    os_reason,
    translated,
)
from hermes.schema.events import SessionTitled
from hermes.schema.messages import AssistantMessage, UserMessage
from hermes.store import Store
from hermes.store.log_row import MAX_EVENT_BYTES, Row
from hermes.store.sessions import FiledAs, SessionInfo
from hermes.text.formats import ago, first_line, moment
from hermes.text.translation import shown_reason, to_translate, translator

t = translator(__name__)


EXAMPLES = to_translate("""\
ID is a session's id, the beginning of one, its exact title, or `last`.

examples:
  hermes sessions list                       your sessions, newest first
  hermes sessions show last                  read the newest one
  hermes sessions search parser bug          find messages with these words
  hermes sessions search '"a phrase" -not'   ... with this phrase, without that word
  hermes sessions export last -o talk.jsonl  write one to a file
  hermes sessions export last --format atif  ... as a trajectory
  hermes sessions pin last                   keep it at the top of the list
  hermes sessions move last -f Work          put it into a folder
  hermes sessions prune --older-than 90d     delete those not used for 90 days
  hermes sessions diff last                  what its last turn changed in files
  hermes sessions undo last                  undo that turn, files and all
""")
_HOURS = {"h": 1, "d": 24, "w": 7 * 24, "m": 30 * 24, "y": 365 * 24}
_MAX_TITLE_CHARACTERS = 200
_MAX_LISTED_DELETIONS = 10
_ROWS_PER_READ = 200
_NO_LIMIT = 2**53  # as a limit

ExportFormat: TypeAlias = Literal[
    "", "events", "markdown", "html", "json", "sharegpt", "openai", "atif"
]
_DOCUMENTS: dict[ExportFormat, DocumentFormat] = {
    "markdown": "md",
    "html": "html",
    "json": "json",
}

Limit = Annotated[int, Arg("at most N (default: 20)", metavar="N", at_least=1)]


def open_log(context: CommandContext) -> Store:
    """The session log; SessionNotFound when there is none. Reports what had to be recovered."""
    if not context.app.has_log:
        raise SessionNotFound(
            t("there are no sessions yet"),
            hint=t("Import one with: hermes sessions import FILE"),
        )
    store = context.app.store
    if (damage := store.recovery or store.incomplete) is not None:
        context.surface.warn(shown_reason(str(damage)))
    return store


@command(
    "sessions list",
    slash="sessions limit",
    role="owner",
    scope="observe",
    group="Sessions",
    private=True,
)
def list_sessions(
    context: CommandContext,
    *,
    limit: Annotated[
        int, Arg("at most N (default: 20)", metavar="N", at_least=1, excludes="limit")
    ] = 20,
    all_: Annotated[bool, Arg("every session", excludes="limit")] = False,
    folder: Annotated[str, Arg("only those in this folder", metavar="NAME")] = "",
    archived: Annotated[bool, "archived sessions instead"] = False,
) -> SessionListing:
    """List sessions, the most recently used first."""
    if not context.app.has_log:
        return SessionListing(sessions=())
    store = open_log(context)
    wanted = _NO_LIMIT if all_ else min(limit, _NO_LIMIT)
    filed = FiledAs(folder=folder or None, archived=archived)
    found = store.sessions.recent(limit=wanted + 1, filed=filed)
    shown = found[:wanted]
    return SessionListing(
        sessions=tuple(shown),
        labels=tuple(_label(store, info) for info in shown),
        has_more=len(found) > wanted,
        current=context.session,
    )


@command("sessions show")
def show_session(
    context: CommandContext,
    session: SessionId,
    *,
    events: Annotated[bool, "list every row instead of the transcript"] = False,
    after: Annotated[
        int, Arg("only rows after this one", metavar="SEQ", at_least=0)
    ] = 0,
) -> SessionTranscript:
    """Read a session."""
    store = open_log(context)
    info = store.sessions.find(session)
    return SessionTranscript(
        session=info,
        rows=_rows(store, info.id, after),
        envelope=context.app.envelope,
        as_events=events,
        after=after,
    )


@command(slash="history messages", group="Sessions")
def show_history(
    context: CommandContext,
    session: SessionId,
    messages: Annotated[int, Arg("how many", metavar="N", at_least=1)] = 10,
) -> SessionTranscript:
    """Read the last N messages again."""
    store = open_log(context)
    rows = list(store.log.every_event(session))
    spoken = [
        index
        for index, row in enumerate(rows)
        if isinstance(row.event, UserMessage | AssistantMessage)
    ]
    first = spoken[-messages] if len(spoken) >= messages else 0
    return SessionTranscript(
        session=store.sessions.find(session),
        rows=iter(rows[first:]),
        envelope=context.app.envelope,
        with_heading=False,
    )


@command(
    "sessions search",
    slash="search words",
    role="owner",
    scope="observe",
    group="Sessions",
    private=True,
)
def search_sessions(
    context: CommandContext,
    words: Annotated[
        tuple[str, ...],
        Arg("a message must have all of them; '\"...\"' is a phrase", metavar="WORD"),
    ],
    *,
    session: Annotated[str, Arg("only in this session", metavar="ID")] = "",
    limit: Limit = 20,
) -> SearchResults:
    """Find messages by their words, newest first."""
    if not all(word.strip() for word in words):
        raise UsageError(t("WORD: expected a word to look for, got nothing."))
    if not context.app.has_log:
        return SearchResults(hits=(), no_sessions=True)
    store, query = open_log(context), " ".join(words)
    only = store.sessions.find(session).id if session else ""
    hits = store.search.find(query, session=only, limit=limit)
    return SearchResults(hits=tuple(hits), query=query)


@command("sessions rename", scope="chat")
def rename_session(
    context: CommandContext,
    session: SessionId,
    title: Annotated[
        tuple[str, ...], Arg("the new title; '' removes it", metavar="TITLE")
    ],
) -> TextResult:
    """Give a session a title."""
    store = open_log(context)
    info = store.sessions.find(session)
    text = " ".join(" ".join(title).split())
    if len(text) > _MAX_TITLE_CHARACTERS:
        raise UsageError(
            t(
                "The title has {count:,} characters; {max_title_characters} are allowed.",
                count=len(text),
                max_title_characters=_MAX_TITLE_CHARACTERS,
            ),
            hint=t("Shorten it."),
        )
    context.app.record(info.id, SessionTitled(title=text))
    return message(f"{info.id}  {text or '(no title)'}")


@command(slash="title title", role="user", group="Sessions")
def title_session(
    context: CommandContext,
    session: SessionId,
    title: Annotated[tuple[str, ...], Arg("the new title", metavar="TEXT")] = (),
) -> TextResult:
    """Name this session, or show its name."""
    if title:
        rename_session.function(context, session, title)
    name = first_line(open_log(context).sessions.find(session).title)
    return message(t("Title: {name}", name=name or t("(none yet)")))


@command("sessions export", slash="export output", group="Sessions")
def export_session(
    context: CommandContext,
    session: SessionId,
    *,
    output: Annotated[
        str, Arg("the file to write (default: stdout)", metavar="FILE", short="-o")
    ] = "-",
    force: Annotated[bool, "replace FILE if it exists"] = False,
    format_: Annotated[
        ExportFormat,
        Arg(
            "events (all rows, to import), markdown, html, json, sharegpt, openai or atif",
            metavar="FORMAT",
        ),
    ] = "",
) -> RawText | TextResult:
    """Write a session to a file: .md or .html to read, .json for programs, else JSON lines to import.

    `--format` also writes training data.
    """
    store = open_log(context)
    info = store.sessions.find(session)
    folder, other = Path(), ""
    if context.conversation is not None:
        folder = Path(info.cwd or ".")
        output = f"{info.id}.jsonl" if output == "-" else output
        other = t("Name another file: /export FILE")
    target = (folder / context.path(output)).resolve()
    form = format_ or (_format_of(target) if output != "-" else "events")
    lines = _exported(store, info, form)
    if output == "-":
        return RawText(lines=lines)
    write_lines(check_output(target, force=force, other=other), lines)
    return message(
        t(
            "Wrote {count:,} row of session {id} to {target}",
            "Wrote {count:,} rows of session {id} to {target}",
            count=info.head,
            id=info.id,
            target=target,
        )
    )


@command("sessions import")
def import_session(
    context: CommandContext,
    file: Annotated[str, "an exported session, or - for stdin"],
) -> TextResult:
    """Read an exported session."""
    app = context.app
    source = sys.stdin.fileno() if file == "-" else file
    new_id = app.ids.session()
    try:
        with open(
            source, encoding="utf-8-sig", newline="\n", closefd=file != "-"
        ) as stream:
            imported = app.store.transfer.import_lines(_lines(stream), fresh_id=new_id)
    except UnicodeDecodeError as error:
        raise ImportRejected(
            t("{file} is not UTF-8 text", file=file), hint=t("Nothing was imported.")
        ) from error
    except OSError as error:
        reason = os_reason(error)
        raise ImportRejected(
            t("{file} can't be read ({reason})", file=file, reason=reason),
            hint=t("Nothing was imported."),
        ) from error
    lines = [
        t(
            "Imported {count:,} row as session {session}",
            "Imported {count:,} rows as session {session}",
            count=imported.rows,
            session=imported.session,
        )
    ]
    if imported.session == new_id:
        lines.append(t("Its own id was taken, so it has a new one."))
    return message(*lines)


@command("sessions delete", scope="admin")
def delete_sessions(
    context: CommandContext,
    sessions: Annotated[tuple[str, ...], Arg("which sessions", metavar="ID")],
    *,
    yes: Annotated[bool, "don't ask"] = False,
) -> TextResult:
    """Delete sessions permanently."""
    store = open_log(context)
    found = {info.id: info for info in map(store.sessions.find, sessions)}
    return _delete(context, list(found.values()), lambda _: True, yes=yes)


@command("sessions prune", scope="admin")
def prune_sessions(
    context: CommandContext,
    *,
    older_than: Annotated[str, Arg("such as 90d, 12w, 1y or 36h", metavar="AGE")],
    dry_run: Annotated[bool, "only show what would be deleted"] = False,
    yes: Annotated[bool, "don't ask"] = False,
) -> TextResult:
    """Delete sessions that have not been used for some time."""
    cutoff = context.app.clock.now() - age(older_than)
    if not context.app.has_log:
        return message(*no_sessions_yet())
    store = open_log(context)
    found = store.sessions.recent(limit=_NO_LIMIT, updated_before=cutoff)
    if not found:
        return message(
            t(
                "Nothing to delete: every session was used since {moment}.",
                moment=moment(cutoff),
            )
        )
    if dry_run:
        context.surface.tell(*_deletions(found, context.app.clock.now()))
        return message(t("Nothing was deleted (--dry-run)."))

    def is_still_old(info: SessionInfo) -> bool:
        # A session may have been used while the question was on the screen.
        return store.sessions.find(info.id).updated < cutoff

    return _delete(context, found, is_still_old, yes=yes)


@command("sessions check")
def check_log(context: CommandContext) -> LogCheck | TextResult:
    """Check every page, row and sequence of the session log."""
    if not context.app.has_log:
        return message(*no_sessions_yet())
    app, store = context.app, open_log(context)
    report = store.check()
    if report.problems:
        context.close_later(lambda: _rebuild(context))
    return LogCheck(
        sessions=report.sessions,
        rows=report.rows,
        problems=tuple(report.problems),
        recovered=app.store.recovery is not None,
    )


def _rebuild(context: CommandContext) -> None:
    """Reopens a damaged log, which rebuilds it."""
    from hermes.app import build

    context.app.close()
    with build(context.settings, context.home) as reopened:
        if reopened.store.recovery is not None:
            context.surface.warn(str(reopened.store.recovery))


def age(text: str) -> float:
    """`90d` in seconds."""
    found = re.fullmatch(r"([0-9]{1,6})([hdwmy])", text.strip().lower())
    if not found or not int(found[1]):
        raise UsageError(
            t(
                "--older-than: expected an age such as 90d, 12w, 6m, 1y or 36h, not {text!r}.",
                text=text,
            )
        )
    return int(found[1]) * _HOURS[found[2]] * 3600.0


def _label(store: Store, info: SessionInfo) -> str:
    """The title; for an untitled session, its first words."""
    kind = "" if info.kind == "root" else f"[{info.kind}] "
    if info.title:
        return kind + first_line(info.title)
    events = (row.event for row in store.log.events(info.id, after=1, limit=5))
    texts = (event.text for event in events if isinstance(event, UserMessage))
    words = first_line(next(texts, ""))
    return kind + (f"“{words}”" if words else t("(empty)"))


def _rows(store: Store, session: str, after: int) -> Iterator[Row]:
    while page := store.log.events(session, after=after, limit=_ROWS_PER_READ):
        yield from page
        after = page[-1].seq


def _delete(
    context: CommandContext,
    sessions: list[SessionInfo],
    is_wanted: Callable[[SessionInfo], bool],
    *,
    yes: bool,
) -> TextResult:
    """Asks, then deletes. A session that can't be deleted does not stop the others."""
    context.surface.tell(*_deletions(sessions, context.app.clock.now()))
    if not yes:
        context.confirm(
            t(
                "Delete {count:,} session permanently?",
                "Delete {count:,} sessions permanently?",
                count=len(sessions),
            ),
            t("Nothing was deleted."),
        )
    deleted = rows = 0
    failed = False
    for info in sessions:
        try:
            if is_wanted(info):
                rows += context.app.delete(info.id)
                deleted += 1
        except HermesError as error:
            failed = True
            context.surface.warn(translated(error.words), translated(error.hint_words))
    done = t(
        "{sessions} deleted ({rows}).",
        sessions=t("{count:,} session", "{count:,} sessions", count=deleted),
        rows=t("{count:,} row", "{count:,} rows", count=rows),
    )
    return message(done, failed=failed)


def _deletions(sessions: list[SessionInfo], now: float) -> Iterator[Block]:
    rows = sum(info.head for info in sessions)
    days = sorted(moment(info.updated, "%Y-%m-%d") for info in sessions)
    span = days[0] if days[0] == days[-1] else f"{days[0]} to {days[-1]}"
    total = t(
        "{sessions}, {rows}",
        sessions=t("{count:,} session", "{count:,} sessions", count=len(sessions)),
        rows=t("{count:,} row", "{count:,} rows", count=rows),
    )
    yield line(t("{total}, last used {span}:", total=total, span=span), fit="wrap")
    for info in sessions[:_MAX_LISTED_DELETIONS]:
        text = f"  {info.id}  {ago(info.updated, now):<10}  {first_line(info.title)}"
        yield line(text.rstrip(), fit="cut")
    if len(sessions) > _MAX_LISTED_DELETIONS:
        yield line(
            t("  … and {count:,} more", count=len(sessions) - _MAX_LISTED_DELETIONS)
        )


def _lines(stream: TextIO) -> Iterator[str]:
    """Lines of a limited length, so that a huge file can't fill the memory."""
    while text := stream.readline(MAX_EVENT_BYTES + 2):
        yield text


def _format_of(target: Path) -> ExportFormat:
    match target.suffix:
        case ".md":
            return "markdown"
        case ".html" | ".htm":
            return "html"
        case ".json":
            return "json"
    return "events"


def _exported(store: Store, info: SessionInfo, form: ExportFormat) -> Iterator[str]:
    """The lines of an export."""
    if form in ("sharegpt", "openai", "atif"):
        from hermes.trajectories.formats import encoded
        from hermes.trajectories.trajectory import read_trajectory

        found = read_trajectory(store.log.every_event(info.id))
        return iter((encoded(found, form),))
    return iter(session_document(store, info, _DOCUMENTS.get(form, "jsonl")))
