"""`hermes sessions`: its arguments, and which command they choose.

What only reads is in `sessions_read`, what changes or moves sessions in `sessions_change`, what goes back in
`sessions_back`.
"""

import argparse
import re
from collections.abc import Callable, Mapping

from hermes.app import App, build
from hermes.errors import SessionNotFound
from hermes.settings.load import find_home, load
from hermes.surfaces.cli.parser import add_action
from hermes.surfaces.cli.sessions_back import branch, configure_back, diff, redo, undo
from hermes.surfaces.cli.sessions_change import (
    EVERYTHING,
    age,
    delete,
    export,
    import_file,
    prune,
    rename,
)
from hermes.surfaces.cli.sessions_read import (
    BRING_IN,
    check,
    list_sessions,
    print_json,
    say_none_yet,
    search,
    show,
    tell_recovery,
)

_EXAMPLES = """\
ID is a session's id, the beginning of one, its exact title, or `last`.

examples:
  hermes sessions list                       what there is, newest first
  hermes sessions show last                  read the newest one
  hermes sessions search parser bug          find messages that hold these words
  hermes sessions search '"a phrase" -not'   ... these in a row, and not that one
  hermes sessions export last -o talk.jsonl  take one along
  hermes sessions prune --older-than 90d     delete what was not used for 90 days
  hermes sessions diff last                  what its last turn changed in files
  hermes sessions undo last                  take that turn back, files and all
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EXAMPLES
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    _configure_readers(actions)
    out = add_action(actions, "export", "write a session as JSON lines")
    out.add_argument("id", metavar="ID", type=_text, help="which session")
    out.add_argument(
        "-o", "--output", metavar="FILE", default="-", help="where to (default: stdout)"
    )
    out.add_argument("--force", action="store_true", help="replace FILE if it exists")
    bring = add_action(actions, "import", "read an exported session")
    bring.add_argument(
        "file", metavar="FILE", help="an exported session, or - for stdin"
    )
    name = add_action(actions, "rename", "give a session a title")
    name.add_argument("id", metavar="ID", type=_text, help="which session")
    name.add_argument(
        "title",
        metavar="TITLE",
        type=_text,
        nargs="+",
        help="the new title; '' removes it",
    )
    remove = add_action(actions, "delete", "delete sessions for good")
    remove.add_argument(
        "id", metavar="ID", type=_text, nargs="+", help="which sessions"
    )
    remove.add_argument("--yes", action="store_true", help="don't ask")
    old = add_action(actions, "prune", "delete sessions that were not used for long")
    old.add_argument(
        "--older-than",
        metavar="AGE",
        type=age,
        required=True,
        help="such as 90d, 12w, 1y or 36h",
    )
    old.add_argument(
        "--dry-run", action="store_true", help="only show what would be deleted"
    )
    old.add_argument("--yes", action="store_true", help="don't ask")
    configure_back(actions, _text, _positive)
    add_action(
        actions, "check", "look at every page, row and sequence of the session log"
    )


def _configure_readers(
    actions: "argparse._SubParsersAction[argparse.ArgumentParser]",
) -> None:
    every = add_action(actions, "list", "list sessions, the most recently used first")
    how_many = every.add_mutually_exclusive_group()
    how_many.add_argument(
        "--limit",
        metavar="N",
        type=_positive,
        default=20,
        help="at most N (default: 20)",
    )
    how_many.add_argument(
        "--all",
        action="store_const",
        dest="limit",
        const=EVERYTHING,
        help="every session",
    )
    every.add_argument("--json", action="store_true", help="print JSON")
    reading = add_action(actions, "show", "read a session")
    reading.add_argument("id", metavar="ID", type=_text, help="which session")
    reading.add_argument(
        "--events", action="store_true", help="list every row instead of the transcript"
    )
    reading.add_argument(
        "--after",
        metavar="SEQ",
        type=_number,
        default=0,
        help="only rows after this one",
    )
    reading.add_argument(
        "--json", action="store_true", help="print every row as a line of JSON"
    )
    finding = add_action(
        actions, "search", "find messages by their words, newest first"
    )
    finding.add_argument(
        "words",
        metavar="WORD",
        type=_word,
        nargs="+",
        help="a message must hold all of them; '\"...\"' is a phrase",
    )
    finding.add_argument(
        "--session", metavar="ID", type=_text, default="", help="only in this session"
    )
    finding.add_argument(
        "--limit",
        metavar="N",
        type=_positive,
        default=20,
        help="at most N (default: 20)",
    )
    finding.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    home = find_home()
    with build(load(home=home), home) as app:
        if app.has_log:
            tell_recovery(app.store.recovery or app.store.incomplete)
        elif args.action != "import":
            return _nothing(args)
        return _ACTIONS[args.action](app, args)


def _nothing(args: argparse.Namespace) -> int:
    """What a command says where there is no session log; it does not make one."""
    if args.action in {
        "show",
        "export",
        "rename",
        "delete",
        "undo",
        "redo",
        "diff",
        "branch",
    }:
        raise SessionNotFound("there are no sessions yet", hint=BRING_IN)
    if getattr(args, "json", False):
        print_json({"sessions": []} if args.action == "list" else {"hits": []})
    else:
        say_none_yet()
    return 0


def _text(text: str) -> str:
    """Bytes on the command line that are no text reach Python as half characters, which no log can hold."""
    if not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text):
        raise argparse.ArgumentTypeError(f"{text!r} is not UTF-8 text")
    return text


def _word(text: str) -> str:
    if not text.strip():
        raise argparse.ArgumentTypeError("expected a word to look for, got nothing")
    return _text(text)


def _positive(text: str) -> int:
    number = _number(text)
    if number < 1:
        raise argparse.ArgumentTypeError("expected a number above 0")
    return number


def _number(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,15}", text):
        raise argparse.ArgumentTypeError(f"expected a number, not {text!r}")
    return int(text)


_ACTIONS: Mapping[str, Callable[[App, argparse.Namespace], int]] = {
    "list": list_sessions,
    "show": show,
    "search": search,
    "check": check,
    "export": export,
    "import": import_file,
    "rename": rename,
    "delete": delete,
    "prune": prune,
    "undo": undo,
    "redo": redo,
    "diff": diff,
    "branch": branch,
}
