"""Codex as the engine of turns: switching to codex and back, and the state of codex."""

from collections.abc import Iterable
from typing import Annotated, Literal

import msgspec

from hermes.codex.engine_switch import WORDS, SwitchContext, disable, enable, status
from hermes.codex.tools_server import serve_command
from hermes.commands.command import Arg, command
from hermes.commands.context import CommandContext
from hermes.commands.views import Block, line
from hermes.errors import UsageError
from hermes.settings.load import load
from hermes.settings.redaction import mask
from hermes.text.translation import translator

t = translator(__name__)


class CodexReport(msgspec.Struct, frozen=True, kw_only=True):
    """The state of codex, or what was changed."""

    lines: tuple[str, ...]

    def view(self, _now: float) -> Iterable[Block]:
        return map(line, self.lines)


@command("codex", scope="admin")
async def switch_engine(
    context: CommandContext,
    action: Annotated[Literal["on", "off", "status"], Arg("what to do")] = "status",
    *,
    dry_run: Annotated[bool, "with `on`: only show what would change"] = False,
) -> CodexReport:
    """Let the codex program run your turns, or stop it."""
    switch = SwitchContext(
        home=context.home,
        settings=load(home=context.home),
        environ=context.environment,
        tool_server=serve_command(),
    )
    if action == "status":
        return CodexReport(lines=tuple((await status(switch)).lines()))
    if action == "off":
        outcome = disable(switch)
    else:
        outcome = await enable(switch, dry_run=dry_run)
    diff = (mask(outcome.diff),) if outcome.diff and dry_run else ()
    first, *notes = outcome.lines
    return CodexReport(lines=(*diff, first, *(f"- {note}" for note in notes)))


@command(slash="codex-runtime word", role="owner", group="Settings")
async def switch_chat_engine(
    context: CommandContext,
    word: Annotated[str, Arg("on, off or status", metavar="WORD")] = "",
) -> CodexReport:
    """Let codex run your turns: on, off or status."""
    action = WORDS.get(word.strip())
    if action is None:
        raise UsageError(
            t("There is no {word!r} here.", word=word),
            hint=t("One of: on, off, status"),
        )
    return await switch_engine.function(context, action)
