"""Import what another agent has stored: a plan first, a report after, and undo. The source is never changed."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, TypedDict, Unpack

from hermes.app.learning.import_journal import FOLDER, past_import
from hermes.app.learning.import_plan import PARTS, ImportPlan, ImportReport, Part
from hermes.app.learning.import_undo import ImportUndo
from hermes.app.learning.importer import Importer
from hermes.commands.command import Arg, command
from hermes.commands.context import CommandContext
from hermes.commands.formats import count, first_line
from hermes.commands.views import Block, TextResult, line, message
from hermes.errors import UsageError
from hermes.learning.imports.sources import Kind, SkippedItem
from hermes.learning.learning_service import LearningService
from hermes.primitives.files import replace_file
from hermes.settings.redaction import mask
from hermes.tools.escapes import shown

EXAMPLES = """\
examples:
  hermes import ~/.openclaw --dry-run        what would be imported, and what not and why
  hermes import ~/.openclaw                  all agents: sessions, memories, skills, settings, schedules
  hermes import ~/.openclaw --secrets        also keys, platform tokens and who may talk to Hermes
  hermes import ~/.openclaw --agent work     only one of its agents
  hermes import ~/.hermes-old --only sessions,memories
  hermes import ~/.claude                    sessions and permissions of Claude Code, and its MCP servers
  hermes import ~/.codex                     the same of codex
  hermes import ~/.gemini                    sessions of gemini-cli; also ~/.pi/agent, ~/.local/share/opencode
  hermes import undo                         remove what the last import brought

The source is not changed, and nothing is imported twice. A folder called undo is ./undo.
"""
UNDO = "undo"
_SOURCES: dict[Kind, str] = {
    "hermes": "Hermes Agent (Nous Research)",
    "openclaw": "OpenClaw",
    "claude-code": "Claude Code",
    "codex": "codex",
    "opencode": "opencode",
    "pi": "pi",
    "gemini": "gemini-cli",
}
_MAX_LISTED = 20


class ImportOptions(TypedDict, total=False):
    """What to import."""

    only: Annotated[str | None, Arg(f"some of: {', '.join(PARTS)}", metavar="PARTS")]
    agent: Annotated[str | None, Arg("only this agent of OpenClaw", metavar="NAME")]
    secrets: Annotated[
        bool, "also keys, platform tokens and the people who may talk to Hermes"
    ]


@command("import")
def import_home(
    context: CommandContext,
    path: Annotated[
        str, "a home, a folder of conversations, or one file of them; or: undo"
    ],
    which: Annotated[
        str, Arg("with undo: which import (default: the last)", metavar="IMPORT")
    ] = "",
    *,
    dry_run: Annotated[bool, "only show what would be imported"] = False,
    yes: Annotated[bool, "don't ask"] = False,
    **options: Unpack[ImportOptions],
) -> TextResult:
    """Import sessions, memory and skills from another agent."""
    learning = context.learning
    if path == UNDO:
        return _undo(context, learning, which, dry_run=dry_run, yes=yes)
    if which:
        raise UsageError(f"Unexpected {which!r}.", hint="Name one source at a time.")
    importer = Importer(context.app, learning)
    plan = importer.plan(
        context.path(path),
        _parts(options.get("only") or ""),
        agent=options.get("agent") or "",
        secrets=bool(options.get("secrets")),
    )
    context.surface.tell(*_plan_view(plan))
    if plan.empty:
        return message("There is nothing to import.")
    if dry_run:
        return message("Nothing was imported (--dry-run).")
    if not yes:
        context.confirm("Import this?", "Nothing was imported.")
    done = importer.carry_out(plan, said=lambda text: context.surface.tell(line(text)))
    return _report(context, plan, done)


def _parts(only: str) -> tuple[Part, ...]:
    wanted = [part.strip() for part in only.split(",") if part.strip()]
    unknown = [part for part in wanted if part not in PARTS]
    if unknown:
        raise UsageError(
            f"There is nothing called {unknown[0]!r} to import.",
            hint=f"There are: {', '.join(PARTS)}",
        )
    return tuple(part for part in PARTS if part in wanted or not wanted)


def _plan_view(plan: ImportPlan) -> Iterator[Block]:
    yield line(f"{plan.source}: {_SOURCES[plan.kind]}", "bold")
    names = ", ".join(skill.name for skill in plan.skills)
    lines = {
        f"{count(plan.new_sessions, 'session')} with {count(plan.messages, 'message')}": plan.new_sessions,
        f"{count(len(plan.notes), 'note')} of memory": plan.notes,
        "SOUL.md: who Hermes is": plan.identity,
        f"{count(len(plan.skills), 'skill')}: {names}": plan.skills,
        f"{count(len(plan.settings), 'setting')}: {', '.join(plan.settings)}": plan.settings,
        f"{count(len(plan.secrets), 'secret')}: {', '.join(plan.secrets)}": plan.secrets,
        f"{count(len(plan.schedules), 'schedule')}, paused until you resume them": plan.schedules,
        f"{count(len(plan.rules), 'rule')} for policy.yaml:": plan.rules,
    }
    for text, found in lines.items():
        if found:
            yield line(f"  {first_line(text)}", fit="cut")
    for rule in plan.rules:
        yield line(f"    {_safe(rule.describe())}", fit="cut")
    yield from _left_view("Not imported:", plan.left)


def _left_view(title: str, left: Sequence[SkippedItem]) -> Iterable[Block]:
    if left:
        yield line(title)
    for entry in left[:_MAX_LISTED]:
        yield line(_skipped(entry), "dim", fit="cut")
    if len(left) > _MAX_LISTED:
        yield line(f"  … and {len(left) - _MAX_LISTED:,} more")


def _skipped(entry: SkippedItem) -> str:
    return f"  {_safe(entry.what)}: {_safe(entry.why)}"


def _safe(text: str) -> str:
    """A text of the source for the screen and the report: one line, without control characters and keys."""
    return mask(shown(first_line(text)))


def _report(
    context: CommandContext, plan: ImportPlan, done: ImportReport
) -> TextResult:
    """The report: counts beside those of the source, and everything that is missing. All of it is in a file."""
    lines = [*_counts(plan, done)]
    failed = [*done.problems, *done.missing]
    whole = [
        f"Import {done.id} from {plan.source} ({_SOURCES[plan.kind]})",
        *lines,
        *(["Failed:", *map(_skipped, failed)] if failed else []),
        *(["Not imported:", *map(_skipped, plan.left)] if plan.left else []),
    ]
    file = context.home.root / FOLDER / f"{done.id}.report.txt"
    replace_file(file, "\n".join([*whole, ""]).encode(errors="replace"))
    context.surface.tell(*_left_view("Failed:", failed))
    if not failed:
        lines.append("Checked: everything that was imported is here.")
    if done.schedules:
        lines.append(
            "The schedules are paused: hermes cron list, then hermes cron resume JOB."
        )
    lines.append(f"Every item that was not imported: {file}")
    lines.append(f"Undo all of it: hermes import undo {done.id}")
    return message(*lines, failed=bool(failed))


def _counts(plan: ImportPlan, done: ImportReport) -> Iterator[str]:
    for part, number in done.imported.items():
        found = max(plan.in_source.get(part, 0), number)
        if found:
            yield f"{part}: {number:,} of {found:,} imported"


def _undo(
    context: CommandContext,
    learning: LearningService,
    which: str,
    *,
    dry_run: bool,
    yes: bool,
) -> TextResult:
    past = past_import(context.home.root, which)
    what = f"{count(len(past.items), 'item')} from {past.started.source}"
    context.surface.tell(line(f"Import {past.id}: {what}"))
    if dry_run:
        return message("Nothing was removed (--dry-run).")
    if not yes:
        context.confirm("Remove what it brought?", "Nothing was removed.")
    report = ImportUndo(context.app, learning, past).run()
    context.surface.tell(*_left_view("These stay:", report.kept))
    return message(f"Removed {count(report.removed, 'item')}.")
