"""The commands of `hermes sessions` that go back: undo, redo, diff, branch.

They work on any session that is not running, from any folder.
"""

import argparse
from collections.abc import Callable

from hermes.app import App
from hermes.surfaces.cli.parser import add_action
from hermes.surfaces.terminal.text import clean, one_line


def configure_back(
    actions: "argparse._SubParsersAction[argparse.ArgumentParser]",
    name: Callable[[str], str],
    number: Callable[[str], int],
) -> None:
    """Their arguments; `name` and `number` read a session's name and a number above 0."""
    back = add_action(
        actions,
        "undo",
        "take the last turn back: its files, and what the model remembers of it",
    )
    back.add_argument("id", metavar="ID", type=name, help="which session")
    back.add_argument(
        "--turns",
        metavar="N",
        type=number,
        default=1,
        help="how many turns (default: 1)",
    )
    back.add_argument(
        "--force",
        action="store_true",
        help="also bring back files that were changed since",
    )
    back.add_argument(
        "--keep-files", action="store_true", help="leave all files as they are"
    )
    again = add_action(actions, "redo", "take the last undo back")
    again.add_argument("id", metavar="ID", type=name, help="which session")
    again.add_argument(
        "--force",
        action="store_true",
        help="also bring back files that were changed since",
    )
    compare = add_action(actions, "diff", "show what a turn changed in files")
    compare.add_argument("id", metavar="ID", type=name, help="which session")
    compare.add_argument(
        "--turn",
        metavar="TURN",
        type=name,
        default="",
        help="which turn's id (default: the last)",
    )
    new = add_action(
        actions, "branch", "begin a new session with what was said so far in another"
    )
    new.add_argument("id", metavar="ID", type=name, help="which session")
    new.add_argument(
        "--back", metavar="N", type=number, default=0, help="leave out the last N turns"
    )
    new.add_argument(
        "--at",
        metavar="SEQ",
        type=number,
        default=None,
        help="take only rows up to this one",
    )


def undo(app: App, args: argparse.Namespace) -> int:
    from hermes.app.undo import Rewind, shadows_of
    from hermes.surfaces.terminal.undo_report import describe_undo

    rewind = Rewind(app, shadows_of(app))
    report = rewind.undo(
        args.id, turns=args.turns, force=args.force, files=not args.keep_files
    )
    again = f"hermes sessions redo {one_line(args.id)}, then undo with --force"
    print("\n".join(describe_undo(report, force=again)))
    return 0


def redo(app: App, args: argparse.Namespace) -> int:
    from hermes.app.undo import Rewind, shadows_of
    from hermes.surfaces.terminal.undo_report import describe_redo

    report = Rewind(app, shadows_of(app)).redo(args.id, force=args.force)
    again = f"hermes sessions undo {one_line(args.id)}, then redo with --force"
    print("\n".join(describe_redo(report, force=again)))
    return 0


def diff(app: App, args: argparse.Namespace) -> int:
    from hermes.app.undo import Rewind, shadows_of

    text = Rewind(app, shadows_of(app)).diff(args.id, turn=args.turn)
    print(clean(text).rstrip("\n") if text else "No files were changed.")
    return 0


def branch(app: App, args: argparse.Namespace) -> int:
    from hermes.app.undo import Rewind, shadows_of

    session = Rewind(app, shadows_of(app)).branch(
        args.id, at=args.at, back=args.back, surface="cli"
    )
    print(
        f"Session {one_line(session)} begins where that one was. Go on with: hermes --resume {one_line(session)}"
    )
    return 0
