"""Import data of another agent: a plan before, a report after, and undo. The source is never changed."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, TypedDict, Unpack

from hermes.app.learning.import_journal import FOLDER, past_import
from hermes.app.learning.import_plan import PARTS, ImportPlan, ImportReport, Part
from hermes.app.learning.import_undo import ImportUndo
from hermes.app.learning.importer import Importer
from hermes.commands.command import Arg, command
from hermes.commands.context import CommandContext
from hermes.commands.views import Block, TextResult, line, message
from hermes.errors import UsageError
from hermes.learning.imports.sources import Kind, SkippedItem
from hermes.learning.learning_service import LearningService
from hermes.primitives.files import replace_file
from hermes.settings.redaction import mask
from hermes.text.formats import first_line
from hermes.text.translation import shown_reason, to_translate, translator
from hermes.tools.escapes import shown

t = translator(__name__)


EXAMPLES = to_translate("""\
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
""")
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
        raise UsageError(
            t("Unexpected {which!r}.", which=which),
            hint=t("Name one source at a time."),
        )
    importer = Importer(context.app, learning)
    plan = importer.plan(
        context.path(path),
        _parts(options.get("only") or ""),
        agent=options.get("agent") or "",
        secrets=bool(options.get("secrets")),
    )
    context.surface.tell(*_plan_view(plan))
    if plan.empty:
        return message(t("There is nothing to import."))
    if dry_run:
        return message(t("Nothing was imported (--dry-run)."))
    if not yes:
        context.confirm(t("Import this?"), t("Nothing was imported."))
    done = importer.carry_out(plan, said=lambda text: context.surface.tell(line(text)))
    return _report(context, plan, done)


def _parts(only: str) -> tuple[Part, ...]:
    wanted = [part.strip() for part in only.split(",") if part.strip()]
    unknown = [part for part in wanted if part not in PARTS]
    if unknown:
        raise UsageError(
            t("There is nothing called {unknown!r} to import.", unknown=unknown[0]),
            hint=t("There are: {parts}", parts=", ".join(PARTS)),
        )
    return tuple(part for part in PARTS if part in wanted or not wanted)


def _plan_view(plan: ImportPlan) -> Iterator[Block]:
    yield line(f"{plan.source}: {_SOURCES[plan.kind]}", "bold")
    names = ", ".join(skill.name for skill in plan.skills)
    lines = {
        t(
            "{sessions} with {messages}",
            sessions=t(
                "{count:,} session", "{count:,} sessions", count=plan.new_sessions
            ),
            messages=t("{count:,} message", "{count:,} messages", count=plan.messages),
        ): plan.new_sessions,
        t(
            "{count:,} note of memory",
            "{count:,} notes of memory",
            count=len(plan.notes),
        ): plan.notes,
        t("SOUL.md: who Hermes is"): plan.identity,
        t(
            "{count:,} skill: {names}",
            "{count:,} skills: {names}",
            count=len(plan.skills),
            names=names,
        ): plan.skills,
        t(
            "{count:,} setting: {settings}",
            "{count:,} settings: {settings}",
            count=len(plan.settings),
            settings=", ".join(plan.settings),
        ): plan.settings,
        t(
            "{count:,} secret: {secrets}",
            "{count:,} secrets: {secrets}",
            count=len(plan.secrets),
            secrets=", ".join(plan.secrets),
        ): plan.secrets,
        t(
            "{count:,} schedule, paused until you resume them",
            "{count:,} schedules, paused until you resume them",
            count=len(plan.schedules),
        ): plan.schedules,
        t(
            "{count:,} rule for policy.yaml:",
            "{count:,} rules for policy.yaml:",
            count=len(plan.rules),
        ): plan.rules,
    }
    for text, found in lines.items():
        if found:
            yield line(f"  {first_line(text)}", fit="cut")
    for rule in plan.rules:
        yield line(f"    {_safe(rule.describe())}", fit="cut")
    yield from _left_view(t("Not imported:"), plan.left)


def _left_view(title: str, left: Sequence[SkippedItem]) -> Iterable[Block]:
    if left:
        yield line(title)
    for entry in left[:_MAX_LISTED]:
        yield line(_skipped(entry), "dim", fit="cut")
    if len(left) > _MAX_LISTED:
        yield line(t("  … and {count:,} more", count=len(left) - _MAX_LISTED))


def _skipped(entry: SkippedItem) -> str:
    return f"  {_safe(entry.what)}: {_safe(shown_reason(entry.why))}"


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
        *([t("Not imported:"), *map(_skipped, plan.left)] if plan.left else []),
    ]
    file = context.home.root / FOLDER / f"{done.id}.report.txt"
    replace_file(file, "\n".join([*whole, ""]).encode(errors="replace"))
    context.surface.tell(*_left_view("Failed:", failed))
    if not failed:
        lines.append(t("Checked: everything that was imported is here."))
    if done.schedules:
        lines.append(
            t(
                "The schedules are paused: hermes cron list, then hermes cron resume JOB."
            )
        )
    lines.append(t("Every item that was not imported: {file}", file=file))
    lines.append(t("Undo all of it: hermes import undo {id}", id=done.id))
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
    what = t(
        "{count:,} item from {source}",
        "{count:,} items from {source}",
        count=len(past.items),
        source=past.started.source,
    )
    context.surface.tell(line(t("Import {id}: {what}", id=past.id, what=what)))
    if dry_run:
        return message(t("Nothing was removed (--dry-run)."))
    if not yes:
        context.confirm(t("Remove what it brought?"), t("Nothing was removed."))
    report = ImportUndo(context.app, learning, past).run()
    context.surface.tell(*_left_view(t("These stay:"), report.kept))
    return message(
        t("Removed {count:,} item.", "Removed {count:,} items.", count=report.removed)
    )
