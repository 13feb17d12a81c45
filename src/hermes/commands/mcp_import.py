"""Importing MCP servers from other programs: shows a plan, asks, then imports. Nothing is started."""

import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import msgspec

from hermes.commands.command import Arg, command
from hermes.commands.context import CommandContext
from hermes.commands.mcp import configured_servers
from hermes.commands.views import Block, TextResult, line, message, table
from hermes.errors import NotFound
from hermes.mcp.config_import import FoundServer, candidate_files, find_servers
from hermes.settings.edit import set_secret, set_value
from hermes.settings.load import current_folder
from hermes.settings.redaction import mask
from hermes.text.translation import shown_reason, translator

t = translator(__name__)


class ImportPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What would be imported, and what would not."""

    servers: tuple[FoundServer, ...]
    left_out: tuple[str, ...]

    def document(self) -> Any:
        rows = [
            {
                "name": one.name,
                "from": one.program,
                "file": one.file,
                "where": _where(one),
                "secrets": one.referred,
            }
            for one in self.servers
        ]
        return {"servers": rows, "left_out": self.left_out}

    def view(self, _now: float) -> Iterable[Block]:
        rows = [
            (one.name, one.program, _where(one), ", ".join(one.referred))
            for one in self.servers
        ]
        if rows:
            yield table(
                (t("SERVER"), t("FROM"), t("WHERE"), t("GETS")),
                rows,
                narrow=((0, 1), (2,), (3,)),
            )
        for problem in self.left_out:
            yield line(t("left out: {problem}", problem=problem), "dim")


@command("mcp import")
def import_servers(
    context: CommandContext,
    names: Annotated[
        tuple[str, ...], Arg("only these servers (default: all)", metavar="NAME")
    ] = (),
    *,
    dry_run: Annotated[bool, "show the plan and change nothing"] = False,
    yes: Annotated[bool, "import without asking"] = False,
) -> TextResult | ImportPlan:
    """Import servers from Claude Code, codex, VS Code and Cursor."""
    plan = _plan(context, names)
    if dry_run:
        return plan
    if not plan.servers:
        context.surface.tell(*plan.view(0))
        raise _nothing_new(names)
    context.surface.tell(*plan.view(0))
    if not yes:
        what = t("{count:,} server", "{count:,} servers", count=len(plan.servers))
        context.confirm(
            t("Import {what}? Nothing is started before its first use.", what=what),
            t("Nothing was changed."),
        )
    for one in plan.servers:
        _write(context, one)
    names_ = ", ".join(one.name for one in plan.servers)
    return message(t("Imported {names}. Try them: hermes mcp test", names=names_))


def _nothing_new(names: tuple[str, ...]) -> NotFound:
    where = t("Claude Code, codex, VS Code and Cursor")
    if names:
        what = t(
            "No server {names} to import from {where}.",
            names=", ".join(names),
            where=where,
        )
        return NotFound(what, hint=t("See what there is: hermes mcp import --dry-run"))
    return NotFound(
        t("No new servers to import from {where}.", where=where),
        hint=t("See those you have: hermes mcp list"),
    )


def _plan(context: CommandContext, names: tuple[str, ...]) -> ImportPlan:
    home = Path(context.environment.get("HOME") or "/")
    folder = current_folder()
    known = set(configured_servers(context))
    found: dict[str, FoundServer] = {}
    left_out: list[str] = []
    for program, file in candidate_files(home, folder):
        try:
            servers = find_servers(program, file, folder)
        except OSError:
            continue
        except ValueError as error:
            left_out.append(
                t(
                    "{file}: it can't be read ({error})",
                    file=file,
                    error=str(error)[:100],
                )
            )
            continue
        for one in servers:
            if names and one.name not in names:
                continue
            if one.problem:
                left_out.append(f"{one.name} ({program}): {shown_reason(one.problem)}")
            elif taken := _taken(context, one):
                left_out.append(
                    t(
                        "{name} ({program}): there is another secret {taken} already",
                        name=one.name,
                        program=program,
                        taken=taken,
                    )
                )
            elif one.name in known:
                left_out.append(
                    t(
                        "{name} ({program}): there is a server of that name",
                        name=one.name,
                        program=program,
                    )
                )
            elif one.name not in found:
                found[one.name] = one
    return ImportPlan(servers=tuple(found.values()), left_out=tuple(left_out))


def _write(context: CommandContext, one: FoundServer) -> None:
    """Writes a server: its secrets first, so that it can be used once it is there. A secret that is set stays."""
    home = context.home.ensure()
    for name, value in one.secrets.items():
        if context.secrets.get(name) is None:
            set_secret(home.env_file, name, value)
    for key, value in one.values.items():
        if isinstance(value, dict):
            for inner, text in value.items():
                set_value(home.config, f"mcp_servers.{one.name}.{key}.{inner}", text)
        else:
            set_value(home.config, f"mcp_servers.{one.name}.{key}", value)


def _taken(context: CommandContext, one: FoundServer) -> str:
    """A secret of the server whose name is already used for something else; empty if there is none."""
    secrets = context.secrets
    return next(
        (
            name
            for name, value in one.secrets.items()
            if secrets.get(name) not in (None, value)
        ),
        "",
    )


def _where(one: FoundServer) -> str:
    if one.values.get("url"):
        return mask(str(one.values["url"]))
    return mask(
        shlex.join([str(one.values.get("command", "")), *one.values.get("args", ())])
    )
