"""What Hermes remembers about you and your work, in files you can edit, and the history of memory and skills."""

from collections.abc import Iterable
from typing import Annotated, Any

import msgspec

from hermes.commands.command import Arg, command
from hermes.commands.context import CommandContext
from hermes.commands.views import (
    Block,
    DiffBlock,
    Line,
    Span,
    TextResult,
    line,
    message,
)
from hermes.errors import HermesError, in_sentences
from hermes.learning.external_memory import MemoryProvider
from hermes.learning.history import HistoryEntry
from hermes.learning.memory import FILES, FlaggedNote
from hermes.text.formats import ago, first_line
from hermes.text.translation import shown_reason, to_translate, translator

t = translator(__name__)


EXAMPLES = to_translate("""\
examples:
  hermes memory show                 what is remembered, and how full it is
  hermes memory edit user            change what Hermes knows about you
  hermes memory history              every change: when, whose, what
  hermes memory revert 3f2a91c0de    revert one change

Notes that look like injected instructions are kept out of the prompt; `show` marks them.
To review proposed changes: hermes skills proposals
""")
_MAX_COUNTED_NOTES = 1_000  # of a memory service
_MAX_FLAGGED_NOTE_CHARACTERS = 120

ChangeId = Annotated[str, Arg("its id, as `history` shows it", metavar="CHANGE")]
OptionalChange = Annotated[str, Arg("a change: show what it did", metavar="CHANGE")]
HistoryLimit = Annotated[
    int, Arg("how many changes (default: 20)", metavar="N", at_least=1)
]


class RememberedFile(msgspec.Struct, frozen=True):
    """One memory file."""

    name: str
    path: str
    fill: str
    text: str


class RememberedNotes(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is remembered."""

    files: tuple[RememberedFile, ...]
    flagged: tuple[FlaggedNote, ...]
    service: str = ""
    pending: int = 0

    def document(self) -> Any:
        files = {file.name: file.text for file in self.files}
        return {"files": files, "flagged": msgspec.to_builtins(self.flagged)}

    def view(self, _now: float) -> Iterable[Block]:
        for number, file in enumerate(self.files):
            if number:
                yield line("")
            where = f"  {file.path}, {file.fill}"
            yield Line((Span(file.name, "bold"), Span(where, "dim")))
            yield line(file.text.rstrip() or t("(empty)"))
        yield from (line(flagged_text(note), "warn") for note in self.flagged)
        if self.service:
            yield line(self.service)
        if self.pending:
            yield line(
                t(
                    "{count:,} proposed change to review: hermes skills proposals",
                    "{count:,} proposed changes to review: hermes skills proposals",
                    count=self.pending,
                )
            )


class ChangeHistory(msgspec.Struct, frozen=True, kw_only=True):
    """Changes, newest first, or what one of them did."""

    entries: tuple[HistoryEntry, ...] = ()
    diff: str = ""

    def document(self) -> Any:
        return {"diff": self.diff} if self.diff else self.entries

    def view(self, now: float) -> Iterable[Block]:
        if self.diff:
            yield DiffBlock(self.diff)
        elif not self.entries:
            yield line(t("Nothing has changed yet."))
        for entry in self.entries:
            session = f" {entry.origin.session[-8:]}" if entry.origin.session else ""
            whose = first_line(f"{entry.origin.by}{session}")
            when = f"{ago(entry.when, now):<10}"
            text = f"{entry.hash[:10]}  {when}  {whose:<16}  {first_line(entry.title)}"
            yield line(text, fit="cut")


def flagged_text(note: FlaggedNote) -> str:
    """Why a note does not reach the model."""
    return t(
        "Kept out of the prompt ({why}): {text}",
        why=note.why,
        text=first_line(note.text)[:_MAX_FLAGGED_NOTE_CHARACTERS],
    )


@command("memory show", slash="memory", scope="observe", group="Learning")
def show_memory(context: CommandContext) -> RememberedNotes:
    """Show what is remembered."""
    memory = context.learning.memory
    files = tuple(
        RememberedFile(
            FILES[name], str(memory.path(name)), memory.fill(name), memory.read(name)
        )
        for name in FILES
    )
    pending = context.learning.proposals.pending()
    return RememberedNotes(
        files=files,
        flagged=tuple(memory.flagged()),
        service=_service(memory.provider) if memory.provider is not None else "",
        pending=sum(one.change.title.startswith("memory") for one in pending),
    )


@command("memory history", scope="observe")
def show_memory_history(
    context: CommandContext, change: OptionalChange = "", *, limit: HistoryLimit = 20
) -> ChangeHistory:
    """Show how memories changed, and what one change did."""
    return history_of(context, "memories", change, limit)


@command("memory revert", scope="approve")
def revert_memory(
    context: CommandContext,
    change: ChangeId,
    *,
    to: Annotated[bool, "restore memories as they were after it instead"] = False,
) -> TextResult:
    """Revert one change; later ones stay."""
    return revert_change(context, "memories", change, whole=to)


def history_of(
    context: CommandContext, under: str, change: str, limit: int
) -> ChangeHistory:
    """The changes below a folder, newest first, or the difference that one made."""
    history = context.learning.history
    if history.missing:
        raise HermesError(
            t("There is no history: {missing}.", missing=shown_reason(history.missing)),
            hint=t("Install git to get one."),
        )
    if change:
        return ChangeHistory(diff=history.diff(change, under))
    return ChangeHistory(entries=tuple(history.log(under, limit=limit)))


@command("memory sync", scope="admin")
def sync_learning(context: CommandContext) -> TextResult:
    """Exchange memory and skills with the machines that share `learning.remote`."""
    report = context.learning.sync()
    lines = [
        t(
            "{count:,} file came from other machines.",
            "{count:,} files came from other machines.",
            count=len(report.pulled),
        )
    ]
    lines.append(t("Your changes were sent.") if report.pushed else t("There was nothing to send."))  # fmt: skip
    if report.conflicts:
        number = t(
            "{count:,} conflict", "{count:,} conflicts", count=len(report.conflicts)
        )
        lines.append(
            t(
                "{number}: your version waits in `hermes skills proposals`.",
                number=number,
            )
        )
    return message(*lines)


def revert_change(
    context: CommandContext, under: str, change: str, *, whole: bool
) -> TextResult:
    """Reverts a change and says which files it concerned."""
    reverted = context.learning.revert(change, under, whole=whole)
    if not reverted.files:
        return message(t("Nothing has changed since; there is nothing to revert."))
    return message(
        t(
            "{count:,} file restored: {files}",
            "{count:,} files restored: {files}",
            count=len(reverted.files),
            files=", ".join(reverted.files),
        ),
        t("This is change {hash}, and can be reverted too.", hash=reverted.hash[:10]),
    )


def _service(provider: MemoryProvider) -> str:
    """The state of the memory service."""
    try:
        found = provider.recent(_MAX_COUNTED_NOTES)
    except HermesError as error:
        return in_sentences(error)
    more = " or more" * (len(found) == _MAX_COUNTED_NOTES)
    return t(
        "The memory service answers; it has {count:,} note{more}.",
        "The memory service answers; it has {count:,} notes{more}.",
        count=len(found),
        more=more,
    )
