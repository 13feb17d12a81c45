"""Commands that run a conversation in this terminal or script: `hermes resume` and `hermes goal run`."""

from typing import Annotated

from hermes.commands.command import Arg, command
from hermes.commands.context import CommandContext


@command("resume")
def resume(
    _context: CommandContext,
    session: Annotated[
        str, Arg("its id or title (default: the session used last)", metavar="ID")
    ] = "last",
) -> int:
    """Continue a session, whichever surface it began on."""
    from hermes.surfaces.cli.dispatch import converse

    return converse(["--resume", session])


@command("goal run", group="Chat")
def run_goal(
    context: CommandContext,  # noqa: ARG001 - the run opens its own app
    text: Annotated[str, Arg("the goal, with lines such as verify: make test")],
    *,
    approvals: Annotated[str, Arg("what runs without asking", metavar="MODE")] = "ask",
    model: Annotated[str, Arg("the model for this run", metavar="NAME")] = "",
    worktree: Annotated[str, Arg("work in this worktree", metavar="NAME")] = "",
) -> int:
    """Work until a goal is reached. Exit codes: 0 reached, 1 stopped by a limit or an error, 3 it needs you."""
    from hermes.surfaces.cli.dispatch import converse

    options = [f"--goal={text}", f"--approvals={approvals}"]
    options += [f"--model={model}"] if model else []
    options += [f"--worktree={worktree}"] if worktree else []
    return converse(options)
