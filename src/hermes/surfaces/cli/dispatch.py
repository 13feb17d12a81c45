"""Runs one command line: finds the command, and turns its result or error into a message and an exit code.

If the first word is a command, it runs that command; otherwise the whole line is a question. Exit codes: 0 done, 1
failed, 2 wrong usage, 3 refused or not approved, 130 interrupted, 141 the reader of the output has closed it.
"""

import contextlib
import errno
import io
import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING

from hermes import __version__
from hermes.commands.table import (
    CHAT,
    EXAMPLES,
    TOPICS,
    Topic,
    find_command,
    find_topic,
    group_title,
    table_text,
)
from hermes.errors import (
    FolderGone,
    HermesError,
    Refused,
    UsageError,
    os_reason,
    translated,
)
from hermes.text.translation import (
    current_language,
    in_language,
    translator,
    use_language,
)

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from typing_extensions import Buffer

    from hermes.text.translation import Sentences

t = translator(__name__)

_OUTPUT_ERRORS = {
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EIO,
    errno.EBADF,
}  # printing may fail with these at any moment
FAILED, USAGE, REFUSED, INTERRUPTED, BROKEN_PIPE = 1, 2, 3, 130, 141


class ClosedOutput(io.FileIO):
    """Stands in for a stdout that was closed at the start: writing to it fails, as it would have."""

    dropped = False

    # pyrefly: ignore[missing-override-decorator]
    def write(self, data: "Buffer", /) -> int:
        if not self.dropped:
            raise OSError(errno.EBADF, t("it is closed"))
        return memoryview(data).nbytes


def run(arguments: list[str]) -> int:
    """Run one command line. This is the only place where an exception becomes a message and an exit code."""
    _print_anything()
    debug = "--debug" in arguments[:1]
    is_doctor = "doctor" in arguments[:2]  # it says itself what is wrong
    use_language(_chosen_language if is_doctor else _language_of_terminal)
    try:
        code = _dispatch(arguments[1:] if debug else arguments)
    except KeyboardInterrupt:
        return INTERRUPTED
    except SystemExit as stop:  # argparse, after printing help
        return stop.code if isinstance(stop.code, int) else 0
    except HermesError as error:
        return _explain(error)
    except BrokenPipeError as error:
        return output_failed(error)
    except Exception as error:  # noqa: BLE001 - the boundary of the process
        return _unexpected(error, debug=debug)
    failure = _output_error()
    return code if failure is None else output_failed(failure)


def _chosen_language() -> "Sentences | None":
    """The language of this process; called when the first sentence is needed."""
    from hermes.settings.language import sentences_for
    from hermes.settings.load import find_home
    from hermes.surfaces.terminal.style import settings_of_this_run

    try:
        return sentences_for(settings_of_this_run().display.language, find_home())
    except (
        HermesError
    ):  # a home or settings that can't be used: the command itself reports that
        return None


def _language_of_terminal() -> "Sentences | None":
    """The language of this process. Says if the user's own texts can't be used; it is called once."""
    sentences = _chosen_language()
    if sentences is not None and (problem := sentences.overlay_problem):
        from hermes.surfaces.terminal.stderr_message import say

        with in_language(sentences):
            say(t("Your own texts can't be used: {problem}", problem=problem))
    return sentences


def _dispatch(arguments: list[str]) -> int:
    if arguments[:1] == ["chat"] and all(one.startswith("-") for one in arguments[1:2]):
        arguments = arguments[1:]  # other agents have such a command
    if not arguments:
        return converse(arguments)
    name, *rest = arguments
    if name in {"-h", "--help", "help"}:
        if rest and name == "help":
            return _dispatch([rest[0], "--help"])
        print(overview())
        return 0
    if name in {"-V", "--version"}:
        print(f"hermes {__version__}")
        return 0
    topic = _find(arguments)
    if topic is None:
        return converse(arguments)
    return _run_topic(topic, rest)


def _run_topic(topic: Topic, rest: list[str]) -> int:
    from hermes.surfaces.cli.shell import run_topic

    command = find_command(topic, rest)
    _start_log_if_needed()
    return run_topic(topic, rest, command)


def converse(arguments: list[str]) -> int:
    """Answers a question. Without one, starts a chat at a terminal; elsewhere stdin is the question."""
    from hermes.surfaces.cli.question import parse
    from hermes.surfaces.terminal.run_options import RunOptions

    question = (
        parse(arguments, [topic.name for topic in TOPICS])
        if arguments
        else RunOptions()
    )
    _start_log()
    if (
        question.text is None
        and not question.json
        and not question.goal
        and sys.stdin is not None
        and sys.stdin.isatty()
    ):
        return int(import_module(CHAT).chat(question))
    if question.picks_session:
        raise UsageError(
            t("--resume needs the id or title of a session here."),
            hint=t("See: hermes sessions list"),
        )
    from hermes.surfaces.cli.ask import ask

    return ask(question)


def _start_log_if_needed() -> None:
    """Starts the log, unless nothing that logs was loaded."""
    if "logging" in sys.modules:
        _start_log()


def _start_log() -> None:
    from hermes.surfaces.cli.logs import start

    start()


def _find(arguments: list[str]) -> Topic | None:
    """The first word's topic; None for a question."""
    name = arguments[0]
    if (topic := find_topic(name)) is not None:
        return topic
    from hermes.surfaces.cli.question import is_question, option_names
    from hermes.surfaces.terminal.run_options import nearest

    names = [topic.name for topic in TOPICS]
    if is_question(arguments, names):
        return None
    if name.startswith("-"):
        known = ["--help", "--version", "--debug", *option_names()]
        near = nearest(name, known)
        if len(name) == 2:  # -p: the first long option with that letter
            near = next((one for one in known if one.startswith(f"-{name}")), "")
        hint = (
            t("Did you mean: hermes {near}?", near=near)
            if near
            else t("See all with: hermes --help")
        )
        raise UsageError(t("There is no option {name!r}.", name=name), hint=hint)
    near = nearest(name, names)
    hint = (
        t("Did you mean: hermes {near}?", near=near)
        if near
        else t("See all with: hermes --help.")
    )
    raise UsageError(
        t("There is no command {name!r}.", name=name),
        hint=t(
            "{hint} To ask it as a question: hermes -z {name}", hint=hint, name=name
        ),
    )


def overview() -> str:
    """The text of `hermes --help`."""
    from hermes.surfaces.terminal.style import stdout_style
    from hermes.surfaces.terminal.text import width as columns_of

    style = stdout_style()
    usage = t("Usage:")
    below = " " * columns_of(usage)
    question = t(
        '       hermes [OPTIONS] "QUESTION"  one answer; piped input is appended'
    )
    width = max(len(topic.name) for topic in TOPICS) + 2
    lines = [
        f"{style.bold('Hermes')} {__version__}: {t('an AI agent that belongs to its user.')}",
        "",
    ]
    lines += [
        f"{style.bold(usage)} hermes                       {t('chat')}",
        f"{below} {question.strip()}",
        f"{below} hermes COMMAND [ARGUMENTS]",
    ]
    for group in dict.fromkeys(topic.group for topic in TOPICS):
        lines += ["", style.bold(group_title(group))]
        lines += [
            f"  {topic.name:<{width}}{table_text(topic.summary)}"
            for topic in TOPICS
            if topic.group == group
        ]
    lines += ["", style.bold(t("Options")), *_options()]
    width = max(len(example) for example, _ in EXAMPLES) + 2
    lines += ["", style.bold(t("Examples"))]
    lines += [
        f"  {example:<{width}}{style.dim('# ' + table_text(what))}"
        for example, what in EXAMPLES
    ]
    return "\n".join(lines)


def _options() -> list[str]:
    from hermes.surfaces.cli.question import OPTIONS, option_help

    rows = [
        (f"{short}, {long}" if short else long, value, option_help(what))
        for short, long, value, what in OPTIONS
    ]
    rows += [
        (
            "--profile",
            "NAME",
            t("use another home, with its own keys, memory and sessions"),
        ),
        ("-h, --help", "", t("show this help; try `hermes COMMAND --help` too")),
        ("-V, --version", "", t("print the version")),
        ("--debug", "", t("show the traceback of unexpected errors; must be first")),
    ]
    return [f"  {f'{names} {value}':<20}  {what}" for names, value, what in rows]


def topic_help(topic: Topic) -> list[tuple[str, str]]:
    """The name and help text of a topic and of each of its commands, for the reference page."""
    from hermes.surfaces.cli.shell import topic_parser

    return list(_help_pages(topic_parser(topic)))


def _help_pages(parser: "argparse.ArgumentParser") -> "Iterator[tuple[str, str]]":
    yield parser.prog, parser.format_help()
    for action in parser._actions:  # noqa: SLF001 - argparse has no public way to list subcommands
        if isinstance(action.choices, dict):  # the subcommands, by name
            for child in dict.fromkeys(action.choices.values()):
                yield from _help_pages(child)


def output_failed(error: OSError) -> int:
    """Ends a run whose stdout can't be written: silently if the reader is gone, else with a message."""
    from hermes.surfaces.terminal.stderr_message import say

    _drop_output()
    if isinstance(error, BrokenPipeError):
        return BROKEN_PIPE
    say(t("The output can't be written ({error}).", error=os_reason(error)))
    return FAILED


def _drop_output() -> None:
    """Redirects stdout to the null device, so that Python's flush at exit can't fail."""
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    if isinstance(raw, ClosedOutput):
        raw.dropped = True
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, sys.stdout.fileno())
    os.close(devnull)


def _explain(error: HermesError) -> int:
    from hermes.surfaces.terminal.stderr_message import say

    if _output_error() is not None:
        _drop_output()
    say(translated(error.words), translated(error.hint_words))
    if isinstance(error, UsageError):
        return USAGE
    return REFUSED if isinstance(error, Refused) else FAILED


def _unexpected(error: Exception, *, debug: bool) -> int:
    from hermes.settings.load import environment
    from hermes.surfaces.terminal.stderr_message import say

    if (
        isinstance(error, OSError)
        and error.filename is None
        and error.errno in _OUTPUT_ERRORS
    ):
        return output_failed(error)
    if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
        return _explain(UsageError(t.later("A file can't have a name this long.")))
    if isinstance(error, FileNotFoundError) and (gone := _folder_gone()):
        return _explain(gone)
    _output_error()
    if debug or environment().get("HERMES_DEBUG", "") not in {"", "0"}:
        import traceback

        traceback.print_exception(error)
    with contextlib.suppress(
        Exception
    ):  # what broke may break the choice of a language
        current_language()
    what = str(error).partition("\n")[0]
    say(
        t(
            "Something unexpected went wrong: {name}{what}",
            name=type(error).__name__,
            what=": " + what if what else "",
        ),
        t(
            "This is a bug in Hermes. Run it again with `hermes --debug ...` to see where."
        ),
        styled=False,  # whatever broke may break the style too
    )
    return FAILED


def _folder_gone() -> HermesError | None:
    """The error to show if the current folder was deleted; None if it exists."""
    from hermes.settings.load import current_folder

    try:
        current_folder()
    except FolderGone as error:
        return error
    return None


def _output_error() -> OSError | None:
    """The error that keeps printed text from being written; None if there is none."""
    try:
        sys.stdout.flush()
    except OSError as error:
        return error
    return None


def _print_anything() -> None:
    """Opens closed standard streams, and escapes characters that they can't encode."""
    if (
        sys.__stdin__ is None
    ):  # started with its input closed; the lowest free number is that of the stream
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115, PTH123 - for the rest of the process
    if sys.__stdout__ is None:
        sys.stdout = io.TextIOWrapper(
            io.BufferedWriter(ClosedOutput(os.devnull, "w")), encoding="utf-8"
        )
    if sys.__stderr__ is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors in {
            "strict",
            "surrogateescape",
        }:
            stream.reconfigure(errors="backslashreplace")
