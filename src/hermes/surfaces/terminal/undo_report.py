"""How an undo, a redo or another try reads: what came back, what did not and why, what can be done about it."""

from collections.abc import Iterator, Sequence

from hermes.app.undo import UndoReport
from hermes.surfaces.terminal.text import clean, count, cut, one_line

_NAMED = 10  # files of a kind
_WORDS = 60  # cells of what the user had said


def describe_undo(report: UndoReport, *, force: str) -> Iterator[str]:
    """Lines for a person. `force` is what to type to have changed files overwritten."""
    turns = count(len(report.turns), "turn")
    said = f', from "{cut(one_line(report.text), _WORDS)}" on' if report.text else ""
    yield f"Undone: {turns}{said}."
    yield from _files(report, force)


def describe_redo(report: UndoReport, *, force: str) -> Iterator[str]:
    """The same for taking an undo back."""
    yield f"Redone: {count(len(report.turns), 'turn')}."
    yield from _files(report, force)


def _files(report: UndoReport, force: str) -> Iterator[str]:
    files = report.files
    if files.restored:
        yield f"{count(len(files.restored), 'file')} brought back:"
        yield from _named([(name, "") for name in files.restored])
    elif not files.conflicts and not files.unkept:
        yield report.note or "No files had changed."
    if files.conflicts:
        yield (
            f"{count(len(files.conflicts), 'file')} left as it is now:"
            if len(files.conflicts) == 1
            else (f"{count(len(files.conflicts), 'file')} left as they are now:")
        )
        yield from _named(files.conflicts)
        yield f"To bring these back too: {force}"
    if files.unkept:
        yield "Not kept, so not brought back if it changed:"
        yield from _named(files.unkept)


def _named(files: Sequence[tuple[str, str]]) -> Iterator[str]:
    for name, why in files[:_NAMED]:
        yield f"  {clean(name)} ({why})" if why else f"  {clean(name)}"
    if len(files) > _NAMED:
        yield f"  … and {len(files) - _NAMED:,} more"
