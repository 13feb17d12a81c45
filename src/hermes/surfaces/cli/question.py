"""A command line that names no command: a question with its options, and the text piped into it."""

import argparse
import os
import re
import stat
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from hermes.errors import UsageError, os_reason
from hermes.surfaces.cli.parser import Parser
from hermes.surfaces.terminal.run_options import RunOptions, nearest
from hermes.surfaces.terminal.stderr_message import remark
from hermes.text.translation import to_translate, translator

t = translator(__name__)


_MAX_PIPED_BYTES = 10 * 1024 * 1024
_SILENT_WAIT_S = 3.0

# The options of a question or chat. `hermes --help` shows the same list.
OPTIONS = (
    (
        "-z",
        "--prompt",
        "TEXT",
        to_translate("the question, if it looks like a command"),
    ),
    ("", "--image", "FILE", to_translate("attach a picture; may be repeated")),
    ("", "--json", "", to_translate("print every event of the run as a line of JSON")),
    (
        "-r",
        "--resume",
        "[ID]",
        to_translate("continue a session: id, title or last; alone: a list"),
    ),
    ("-c", "--continue", "", to_translate("continue the session used last")),
    (
        "-m",
        "--model",
        "NAME",
        to_translate("the model for this run: NAME or PROVIDER:NAME"),
    ),
    ("", "--provider", "NAME", to_translate("the provider for this run")),
    (
        "",
        "--cwd",
        "FOLDER",
        to_translate("the folder to work in (default: the current one)"),
    ),
    (
        "",
        "--approvals",
        "MODE",
        to_translate("what runs without asking: ask, auto-edit, plan or full"),
    ),
    (
        "",
        "--agent",
        "NAME",
        to_translate("work as an agent from a file (see: hermes agent)"),
    ),
    (
        "",
        "--goal",
        "TEXT",
        to_translate("work until this goal is reached (see: hermes goal)"),
    ),
    (
        "",
        "--worktree",
        "[NAME]",
        to_translate("work in a copy of the repository (see: hermes worktree)"),
    ),
    ("", "--fetch", "", to_translate("download the local model without asking")),
    (
        "",
        "--verbose",
        "",
        to_translate("show where the local model comes from, and its hash"),
    ),
)


def is_question(arguments: Sequence[str], commands: Sequence[str]) -> bool:
    """Whether a command line that names no command is a question.

    A first word that is nearly the name of a command is taken for a mistyped one; so is any that asks for `--help`.
    """
    first = arguments[0]
    if first.startswith("-"):
        return (
            first == "--"
            or first.partition("=")[0] in option_names()
            or first.startswith("-z")
        )
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", first):
        return True
    if arguments[1:2] in (["-h"], ["--help"]):
        return False
    return not nearest(first, commands)


def option_help(text: str) -> str:
    """What an option of `OPTIONS` does, in the reader's language."""
    return t.marked(text)


def option_names() -> list[str]:
    """Every spelling of every option."""
    return [name for short, long, _, _ in OPTIONS for name in (short, long) if name]


def parse(arguments: Sequence[str], commands: Sequence[str] = ()) -> RunOptions:
    """The options and the question. Everything after `--` is the question. A command after options is refused."""
    before, words = list(arguments), list[str]()
    if "--" in before:
        at = before.index("--")
        before, words = before[:at], before[at + 1 :]
    args = _parser().parse_intermixed_args(before)
    if args.worktree and " " in args.worktree.strip():  # it was the question
        args.words, args.worktree = [args.worktree, *args.words], ""
    _refuse_command(args, commands)
    return RunOptions(
        text=_text(args, words),
        images=tuple(args.image),
        json=args.json,
        resume=_resume(args),
        picks_session=args.resume == "",
        model=args.model,
        provider=args.provider,
        cwd=args.cwd,
        approvals=args.approvals,
        agent=args.agent,
        goal=args.goal,
        worktree=args.worktree,
        fetch=args.fetch,
        verbose=args.verbose,
    )


def _refuse_command(args: argparse.Namespace, commands: Sequence[str]) -> None:
    """Refuses the name of a command after options: it was probably not meant as a question."""
    first = args.words[0] if args.words else ""
    near = ""
    if first in commands:
        near = first
    elif len(args.words) == 1:
        near = nearest(first, commands)
    if not near or args.prompt is not None:
        return
    rest = [word for word in args.words[1:] if first == near]
    meant = " ".join(["hermes", near, *rest, *(["--json"] if args.json else [])])
    raise UsageError(
        t(
            "{first!r} is a command, and a command comes before its options.",
            first=first,
        ),
        hint=t(
            "Did you mean: {meant}? To ask it: hermes ... -z {first}",
            meant=meant,
            first=first,
        ),
    )


def _parser() -> Parser:
    parser = Parser("hermes")
    for short, long, value, summary in OPTIONS:
        names = [name for name in (short, long) if name]
        if long == "--image":
            parser.add_argument(
                long, metavar=value, help=summary, default=[], action="append"
            )
        elif value.startswith("["):
            parser.add_argument(
                *names,
                metavar=value[1:-1],
                help=summary,
                nargs="?",
                const="",
                default=None,
            )
        elif value:
            choices = (
                ("ask", "auto-edit", "plan", "full") if long == "--approvals" else None
            )
            default: str | None = "ask" if choices else ""
            if long == "--prompt":
                default = None
            parser.add_argument(
                *names, metavar=value, help=summary, default=default, choices=choices
            )
        else:
            parser.add_argument(*names, action="store_true", help=summary)
    parser.add_argument("words", nargs="*", metavar="QUESTION")
    return parser


def _text(args: argparse.Namespace, words: list[str]) -> str | None:
    given = [*args.words, *words]
    if args.goal and (given or args.prompt is not None):
        raise UsageError(
            t("You gave both a goal and a question."),
            hint=t("Put everything into the goal."),
        )
    if args.prompt is not None and given:
        raise UsageError(
            t("There are two questions: one after --prompt and one without."),
            hint=t("Give one."),
        )
    if args.prompt is None and not given:
        return None
    text = args.prompt if args.prompt is not None else " ".join(given)
    if not text.strip():
        raise UsageError(
            t("The question is empty."),
            hint=t('Ask like this: hermes "what is in this folder?"'),
        )
    return text


def _resume(args: argparse.Namespace) -> str:
    if vars(args)["continue"]:
        if args.resume is not None:
            raise UsageError(
                t("--resume and --continue can't be used together."),
                hint=t("Give one."),
            )
        return "last"
    return args.resume or ""


def is_piped() -> bool:
    """Whether stdin is not a terminal."""
    if sys.stdin is None or sys.stdin.closed:
        return False
    try:
        return not os.isatty(sys.stdin.fileno())
    except (OSError, ValueError):
        return False


def read_piped() -> str:
    """All of stdin, as text; empty if it is a terminal or closed."""
    if not is_piped():
        return ""
    try:
        if stat.S_ISDIR(os.fstat(sys.stdin.fileno()).st_mode):
            raise UsageError(
                t("Stdin is a folder."),
                hint=t("Pipe text into hermes, or use --cwd FOLDER."),
            )
        with _wait_told():
            content = sys.stdin.buffer.read(_MAX_PIPED_BYTES + 1)
    except OSError as error:
        reason = os_reason(error)
        raise UsageError(
            t("Stdin can't be read ({reason}).", reason=reason),
            hint=t("Run it again with < /dev/null."),
        ) from error
    if len(content) > _MAX_PIPED_BYTES:
        raise UsageError(
            t("More than 10 MiB came from stdin; nothing was sent."),
            hint=t("Save it to a file and name the file in the question."),
        )
    if b"\0" in content:
        raise UsageError(
            t("Stdin is not text; nothing was sent."),
            hint=t("Name the file in the question."),
        )
    return content.decode("utf-8", "replace").removeprefix("\ufeff").strip("\n")


@contextmanager
def _wait_told() -> Iterator[None]:
    """Says what is waited for if stdin stays open: a script may have left a pipe open that nobody closes."""
    words = t("Waiting for the end of stdin (to ask without it: < /dev/null) ...")
    timer = threading.Timer(_SILENT_WAIT_S, remark, (words,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def joined(question: str | None, piped: str) -> str:
    """The question, with the piped text below it."""
    return "\n\n".join(
        part for part in (question, piped if piped.strip() else "") if part
    )
