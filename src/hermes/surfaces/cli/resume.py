"""`hermes resume`: opens the chat in an existing session."""

from typing import Annotated

from hermes.commands.command import Arg, command
from hermes.commands.context import CommandContext
from hermes.surfaces.cli.dispatch import converse


@command("resume")
def resume(
    _context: CommandContext,
    session: Annotated[
        str, Arg("its id or title (default: the session used last)", metavar="ID")
    ] = "last",
) -> int:
    """Continue a session, whichever surface it began on."""
    return converse(["--resume", session])
