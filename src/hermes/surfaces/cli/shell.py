"""Runs a command in the shell: reads its arguments, calls it, prints its result, returns the exit code."""

import argparse
import shlex
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import partial
from typing import Any, get_args

import msgspec

from hermes.commands.command import Command, Parameter
from hermes.commands.context import CommandContext
from hermes.commands.table import Topic, commands_of, table_text
from hermes.commands.views import Block, RawText, Result, document_of
from hermes.errors import Refused, UsageError
from hermes.surfaces.cli.parser import Parser, add_action, sentence
from hermes.surfaces.terminal.render import draw, draw_blocks
from hermes.surfaces.terminal.stderr_message import say
from hermes.surfaces.terminal.text import stdout_screen
from hermes.text.intended_word import intended_word
from hermes.text.translation import in_language, translator

t = translator(__name__)


_MAX_SECRET_BYTES = 64 * 1024


class ShellSurface:
    """The terminal, or the pipe, of one run of `hermes`."""

    name = "cli"

    def __init__(self, *, quiet: bool = False) -> None:
        self.quiet = quiet

    def tell(self, *blocks: Block) -> None:
        """Prints, unless a program reads the output."""
        if not self.quiet:
            for line in draw_blocks(blocks, stdout_screen()):
                print(line, flush=True)

    def warn(self, message: str, hint: str = "") -> None:
        sys.stdout.flush()
        say(message, hint)

    def confirm(self, question: str, nothing_done: str) -> bool:
        """Asks on stderr, so that the question is seen where stdout goes into a file."""
        if not sys.stdin.isatty():
            raise Refused(
                t("This needs your confirmation, and there is no terminal to ask on."),
                hint=t("{nothing_done} Confirm with --yes.", nothing_done=nothing_done),
            )
        sys.stdout.flush()
        print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
        answer = sys.stdin.readline()
        if not answer.endswith(
            "\n"
        ):  # end of input leaves the cursor behind the question
            print(file=sys.stderr)
        return answer.strip().lower() in {"y", "yes"}

    @property
    def can_read(self) -> bool:
        return sys.stdin.isatty()

    async def read_line(self) -> str:
        """Waits for a line from the terminal, until it is cancelled."""
        import asyncio

        loop = asyncio.get_running_loop()
        ready: asyncio.Future[str] = loop.create_future()

        def take() -> None:
            typed = sys.stdin.readline()
            if not typed:  # the terminal is gone: only the browser can answer
                loop.remove_reader(sys.stdin)
            elif typed.strip() and not ready.done():
                ready.set_result(typed.strip())

        loop.add_reader(sys.stdin, take)
        try:
            return await ready
        finally:
            loop.remove_reader(sys.stdin)

    def read_secret(self, name: str) -> str:
        """Asks without an echo at a terminal; else reads stdin."""
        if sys.stdin.isatty():
            import getpass

            try:
                return getpass.getpass(f"{name} (not shown): ").strip()
            except EOFError:
                return ""
        content = sys.stdin.buffer.read(_MAX_SECRET_BYTES + 1)
        if len(content) > _MAX_SECRET_BYTES:
            raise UsageError(
                t("{name}: more than 64 KiB on stdin.", name=name),
                hint=t("Nothing was changed."),
            )
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise UsageError(
                t("{name}: stdin is not UTF-8 text.", name=name),
                hint=t("Nothing was changed."),
            ) from error
        return text.removesuffix("\n").removesuffix("\r")


def run_topic(topic: Topic, words: list[str], command: Command | None) -> int:
    """Runs the command of a topic that `words` name; without one, lists the commands."""
    if command is None:
        if words == ["help"]:
            words = ["--help"]
        if words and not words[0].startswith("-"):
            _require_action(topic, words)
        topic_parser(topic).parse_args(words)  # prints help, or says what is wrong
        raise UsageError(
            t("hermes {name}: an action is missing.", name=topic.name),
            hint=t("See: hermes {name} --help", name=topic.name),
        )
    if command.name == topic.name:
        return run_command(command, topic_parser(topic), words)
    parser = Parser(f"hermes {command.name}", description=sentence(command.summary))
    configure(parser, command)
    return run_command(command, parser, words[command.name.count(" ") :])


def _require_action(topic: Topic, words: list[str]) -> None:
    """Tells somebody who typed an action after its operand, or only a sentence, what to type instead."""
    known = [one.name.split()[1] for one in commands_of(topic) if " " in one.name]
    if words[0] in known or intended_word(words[0], known):
        return
    is_sentence = len(words) > 1 or " " in words[0]
    if words[1:] and words[1] in known:
        action, given = words[1], [words[0], *words[2:]]
    elif topic.free_text and is_sentence:
        action, given = topic.free_text, [" ".join(words)]
    else:
        return
    raise UsageError(
        t(
            "hermes {name}: there is no action {words!r}.",
            name=topic.name,
            words=words[0],
        ),
        hint=t(
            "Did you mean: hermes {name} {free_text} {given}",
            name=topic.name,
            free_text=action,
            given=shlex.join(given),
        ),
    )


def run_command(command: Command, parser: Parser, words: list[str]) -> int:
    """Parses the words and runs the command. JSON is English: programs read it."""
    arguments = read_arguments(command, parser, words)
    as_json = has_json(command) and bool(arguments.pop("json", False))
    speech = in_language(None) if as_json else nullcontext()
    with speech, CommandContext(ShellSurface(quiet=as_json)) as context:
        result = call(command, context, arguments)
        if isinstance(result, int):
            return result
        return show(result, as_json=as_json)


def call(
    command: Command, context: CommandContext, arguments: Mapping[str, Any]
) -> Any:
    """Calls a command where there is no event loop."""
    if not command.is_async:
        return command.function(context, **arguments)
    import asyncio

    return asyncio.run(command.function(context, **arguments))


def show(result: Result, *, as_json: bool) -> int:
    """Prints a result and returns its exit code."""
    if as_json:
        print_json(result)
    elif isinstance(result, RawText):
        for line in result.lines:
            print_bytes(line.encode())
    else:
        for line in draw(result, stdout_screen(), time.time()):
            print(line)
    sys.stdout.flush()
    return int(getattr(result, "exit_code", 0))


def print_json(result: Result) -> None:
    """Prints JSON as UTF-8, whatever the encoding of the terminal."""
    encode = partial(msgspec.json.encode, enc_hook=str)
    document = document_of(result)
    if getattr(result, "as_lines", False):
        for item in document:
            print_bytes(encode(item))
    else:
        print_bytes(msgspec.json.format(encode(document), indent=2))


def print_bytes(line: bytes) -> None:
    sys.stdout.flush()
    sys.stdout.buffer.write(line + b"\n")


def topic_parser(topic: Topic) -> Parser:
    """The parser of everything below a first word, for its help."""
    parser = Parser(
        f"hermes {topic.name}", description=sentence(table_text(topic.summary))
    )
    commands = {one.name: one for one in commands_of(topic)}
    parser.epilog = examples(topic)
    if (own := commands.pop(topic.name, None)) is not None:
        configure(parser, own)
    if commands:
        is_required = own is None and not topic.default
        actions = {"": _add_actions(parser, required=is_required)}
        for one in commands.values():
            *groups, action = one.name.split(" ")[1:]
            group = "".join(groups)
            if group not in actions:
                below = add_action(actions[""], group, table_text(topic.groups[group]))
                actions[group] = _add_actions(below, required=False)
            configure(add_action(actions[group], action, one.summary), one)
    return parser


def _add_actions(
    parser: Parser, *, required: bool
) -> "argparse._SubParsersAction[Parser]":
    return parser.add_subparsers(
        dest="action", metavar="ACTION", parser_class=Parser, required=required
    )


def examples(topic: Topic) -> str | None:
    """The text below the help of a topic."""
    module = topic.modules[0]
    found = getattr(sys.modules[module], "EXAMPLES", None)
    if isinstance(found, dict):
        found = found.get(topic.name)
    return translator(module).marked(found) if found else found


def configure(parser: argparse.ArgumentParser, command: Command) -> None:
    """Adds the arguments of a command."""
    groups: dict[str, Any] = {}
    for one in command.parameters:
        target: Any = parser
        if one.arg.excludes:
            if one.arg.excludes not in groups:
                groups[one.arg.excludes] = parser.add_mutually_exclusive_group()
            target = groups[one.arg.excludes]
        names = (one.name,)
        if one.is_option:
            names = (one.arg.short, one.flag) if one.arg.short else (one.flag,)
        target.add_argument(*names, **_argument(one))
    if has_json(command):
        parser.add_argument("--json", action="store_true", help=t("print JSON"))


def _argument(one: Parameter) -> dict[str, Any]:
    """The arguments with which argparse gets a parameter."""
    told: dict[str, Any] = {"help": one.help.replace("%", "%%") or None}
    if one.is_option:
        told["dest"] = one.name
    if one.kind is bool:
        return told | {"action": "store_true"}
    if one.choices:
        told["choices"] = one.choices
        if one.arg.metavar:
            told["metavar"] = one.arg.metavar
    else:
        told |= {"type": _reader(one), "metavar": one.metavar}
    if one.is_option:
        told |= {"action": "append"} if one.is_many else {}
        return told | ({"required": True} if one.is_required else {"default": None})
    if one.is_many:
        if one.is_required:
            return told | {"nargs": "+"}
        return told | {"nargs": "*", "default": ()}  # or argparse calls it required
    return told if one.is_required else told | {"nargs": "?"}


def _reader(one: Parameter) -> Callable[[str], Any]:
    def read(word: str) -> Any:
        try:
            return one.read(word)
        except UsageError as error:
            raise argparse.ArgumentTypeError(error.message) from error

    return read


def has_json(command: Command) -> bool:
    """Whether there is more to a result than sentences."""
    kinds = get_args(command.result_type) or (command.result_type,)
    return any(kind is not int and getattr(kind, "has_json", True) for kind in kinds)


def read_arguments(
    command: Command, parser: argparse.ArgumentParser, words: list[str]
) -> dict[str, Any]:
    """The arguments of a command by their names; what was not given is left to the function."""
    behind = next((one for one in command.parameters if one.arg.after_dashes), None)
    own: list[str] = []
    if behind is not None and "--" in words:
        at = words.index("--")
        words, own = words[:at], words[at + 1 :]
    given = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in vars(parser.parse_args(words)).items()
        if value is not None and value is not False
    }
    if behind is not None and own:
        given[behind.name] = (*given.get(behind.name, ()), *own)
    return given
