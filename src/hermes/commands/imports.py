"""Import what another agent has stored. A report comes first; the source is never changed."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated

from hermes.app.learning.importer import PARTS, Importer, ImportPlan, ImportReport
from hermes.commands.command import Arg, command
from hermes.commands.context import CommandContext
from hermes.commands.formats import count, first_line
from hermes.commands.views import Block, TextResult, line, message
from hermes.errors import UsageError
from hermes.learning.imports.sources import SkippedItem
from hermes.learning.learning_service import open_learning

EXAMPLES = """\
examples:
  hermes import ~/.hermes-old --dry-run      what would be imported
  hermes import ~/.hermes-old                sessions, memories, skills, settings, secrets, schedules
  hermes import ~/.hermes-old --only sessions,memories
  hermes import ~/.claude/projects           conversations of Claude Code
  hermes import ~/.codex/sessions            conversations of codex

The source is not changed, and nothing is imported twice.
"""
_SOURCES = {
    "hermes": "Hermes Agent (Nous Research)",
    "claude-code": "Claude Code",
    "codex": "codex",
}
_MAX_LISTED = 20


@command("import")
def import_home(
    context: CommandContext,
    path: Annotated[str, "a home, a folder of conversations, or one file of them"],
    *,
    dry_run: Annotated[bool, "only show what would be imported"] = False,
    only: Annotated[str, Arg(f"some of: {', '.join(PARTS)}", metavar="PARTS")] = "",
    yes: Annotated[bool, "don't ask"] = False,
) -> TextResult:
    """Import sessions, memory and skills from another agent."""
    wanted = [part.strip() for part in only.split(",") if part.strip()]
    unknown = [part for part in wanted if part not in PARTS]
    if unknown:
        raise UsageError(
            f"There is nothing called {unknown[0]!r} to import.",
            hint=f"There are: {', '.join(PARTS)}",
        )
    parts = tuple(part for part in PARTS if part in wanted or not wanted)
    app = context.app
    learning = open_learning(
        context.home, context.settings.learning, context.environment, clock=app.clock
    )
    importer = Importer(app, learning)
    plan = importer.plan(context.path(path), parts)
    context.surface.tell(*_plan_view(plan))
    if plan.empty:
        return message("There is nothing to import.")
    if dry_run:
        return message("Nothing was imported (--dry-run).")
    if not yes:
        context.confirm("Import this?", "Nothing was imported.")
    done = importer.carry_out(plan, said=lambda text: context.surface.tell(line(text)))
    return _report(context, done)


def _plan_view(plan: ImportPlan) -> Iterator[Block]:
    yield line(f"{plan.source}: {_SOURCES[plan.kind]}", "bold")
    names = ", ".join(skill.name for skill in plan.skills)
    lines = {
        f"{count(plan.new_sessions, 'session')} with {count(plan.messages, 'message')}": plan.new_sessions,
        f"{count(len(plan.notes), 'note')} of memory": plan.notes,
        f"{count(len(plan.skills), 'skill')}: {names}": plan.skills,
        f"{count(len(plan.settings), 'setting')}: {', '.join(plan.settings)}": plan.settings,
        f"{count(len(plan.secrets), 'secret')}: {', '.join(plan.secrets)}": plan.secrets,
        f"{count(len(plan.schedules), 'schedule')}, paused until you resume them": plan.schedules,
    }
    for text, found in lines.items():
        if found:
            yield line(f"  {first_line(text)}", fit="cut")
    yield from _left_view("Not imported:", plan.left)


def _left_view(title: str, left: Sequence[SkippedItem]) -> Iterable[Block]:
    if left:
        yield line(title)
    for entry in left[:_MAX_LISTED]:
        text = f"  {first_line(entry.what)}: {first_line(entry.why)}"
        yield line(text, "dim", fit="cut")
    if len(left) > _MAX_LISTED:
        yield line(f"  … and {len(left) - _MAX_LISTED:,} more")


def _report(context: CommandContext, done: ImportReport) -> TextResult:
    counts = {
        "session": done.sessions,
        "note": done.notes,
        "skill": done.skills,
        "setting": done.settings,
        "secret": done.secrets,
        "schedule": done.schedules,
    }
    parts = ", ".join(count(number, noun) for noun, number in counts.items())
    lines = [f"Imported: {parts}."]
    if done.schedules:
        lines.append(
            "The schedules are paused: hermes cron list, then hermes cron resume JOB."
        )
    context.surface.tell(*_left_view("Not imported:", done.problems))
    return message(*lines, failed=bool(done.problems))
