"""`hermes skills proposals|approve|reject`: deciding on changes of memory and skills."""

import argparse

import msgspec

from hermes.learning.change import LearningError
from hermes.learning.learning_service import LearningService
from hermes.learning.proposals import Proposal
from hermes.surfaces.cli.skills_history import print_diff
from hermes.surfaces.terminal.stderr_message import say
from hermes.surfaces.terminal.text import ago, cut, one_line, stdout_screen


def decide(learning: LearningService, args: argparse.Namespace) -> int:
    """Shows or decides."""
    if args.action == "proposals":
        return _show(learning, args)
    ids = (
        [proposal.id for proposal in learning.proposals.pending()]
        if args.ids == ["all"]
        else args.ids
    )
    failed = 0
    for name in dict.fromkeys(ids):
        try:
            print(_decided(learning, args.action, name))
        except LearningError as error:
            failed += 1
            say(error.message, error.hint)
    if not ids:
        print("Nothing waits for your word.")
    return 1 if failed else 0


def _decided(learning: LearningService, action: str, name: str) -> str:
    if action == "reject":
        return (
            f"{learning.reject(name).id} is put aside; it will not be proposed again."
        )
    proposal = learning.approve(name)
    known = f" (change {proposal.hash[:10]})" if proposal.hash else ""
    return f"{proposal.id} is done: {one_line(proposal.change.title)}{known}"


def _show(learning: LearningService, args: argparse.Namespace) -> int:
    found = learning.proposals.all() if args.all else learning.proposals.pending()
    if args.id:
        found = [learning.proposals.find(args.id)]
    if args.json:
        print(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())
        return 0
    for proposal in found:
        _print(proposal, learning.now(), whole=bool(args.id) or not args.all)
    if not found:
        print("Nothing waits for your word.")
    elif not args.all:
        print("Decide with: hermes skills approve ID, or: hermes skills reject ID")
    return 0


def _print(proposal: Proposal, now: float, *, whole: bool) -> None:
    screen = stdout_screen()
    state = "" if proposal.status == "pending" else f" ({proposal.status})"
    head = f"{proposal.id}  {one_line(proposal.change.title)}{state}  {ago(proposal.created, now)}"
    print(screen.style.bold(cut(head, screen.columns)))
    print(
        screen.style.dim(
            f"by {one_line(str(proposal.origin))}"
            + (f": {one_line(proposal.why)}" if proposal.why else "")
        )
    )
    if whole:
        print_diff(proposal.diff, screen.style)
        print()
