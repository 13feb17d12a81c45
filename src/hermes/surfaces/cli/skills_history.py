"""What memory and skills have been through, for `hermes memory` and `hermes skills`, and the way back."""

import argparse

import msgspec

from hermes.learning.learning_service import LearningService, open_learning
from hermes.settings.load import environment, find_home, load
from hermes.surfaces.cli.parser import Parser, add_action
from hermes.surfaces.terminal.stderr_message import say
from hermes.surfaces.terminal.style import Style
from hermes.surfaces.terminal.text import (
    ago,
    clean,
    count,
    cut,
    one_line,
    stdout_screen,
)


def learning_here() -> LearningService:
    """What is learned in this user's home."""
    home = find_home()
    return open_learning(home, load(home=home).learning, environment())


def add_history(actions: "argparse._SubParsersAction[Parser]", what: str) -> None:
    """The subcommands `history` and `revert`."""
    history = add_action(
        actions, "history", f"show how {what} changed, and what one change did"
    )
    history.add_argument(
        "change",
        metavar="CHANGE",
        nargs="?",
        default="",
        help="a change: show what it did",
    )
    history.add_argument(
        "--limit", metavar="N", type=int, default=20, help="how many changes (20)"
    )
    history.add_argument("--json", action="store_true", help="print JSON")
    revert = add_action(actions, "revert", "take one change back; later ones stay")
    revert.add_argument("change", metavar="CHANGE", help="its name in `history`")
    revert.add_argument(
        "--to",
        action="store_true",
        help=f"instead, put {what} back to how they were after it",
    )


def show_history(
    learning: LearningService, args: argparse.Namespace, under: str
) -> int:
    """The changes below a folder, newest first, or the difference that one made."""
    if learning.history.missing:
        say(
            f"There is no history: {learning.history.missing}.",
            "Install git to get one.",
            alarming=False,
        )
        return 1
    if args.change:
        print_diff(learning.history.diff(args.change, under), stdout_screen().style)
        return 0
    entries = learning.history.log(under, limit=max(1, args.limit))
    if args.json:
        print(msgspec.json.format(msgspec.json.encode(entries), indent=2).decode())
        return 0
    screen = stdout_screen()
    now = learning.now()
    for entry in entries:
        whose = f"{entry.origin.by}" + (
            f" {entry.origin.session[-8:]}" if entry.origin.session else ""
        )
        line = f"{entry.hash[:10]}  {ago(entry.when, now):<10}  {one_line(whose):<16}  {one_line(entry.title)}"
        print(cut(line, screen.columns))
    if not entries:
        print("Nothing has changed yet.")
    return 0


def take_back(learning: LearningService, args: argparse.Namespace, under: str) -> int:
    """Takes a change back and says which files that concerned."""
    reverted = learning.revert(args.change, under, whole=args.to)
    if not reverted.files:
        print("Nothing has changed since; there is nothing to put back.")
        return 0
    print(
        f"{count(len(reverted.files), 'file')} put back: {', '.join(map(one_line, reverted.files))}"
    )
    print(f"This is change {reverted.hash[:10]}, and can be taken back too.")
    return 0


def print_diff(text: str, style: Style) -> None:
    """A difference, in colours where there are any, with nothing in it that drives a terminal."""
    for line in clean(text).split("\n"):
        if line.startswith("+") and not line.startswith("+++"):
            print(style.green(line))
        elif line.startswith("-") and not line.startswith("---"):
            print(style.red(line))
        else:
            print(
                style.dim(line)
                if line.startswith(("@@", "diff", "index", "---", "+++"))
                else line
            )
