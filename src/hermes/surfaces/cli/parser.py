"""An argparse parser whose help looks the same on every Python, and whose errors are UsageErrors."""

import argparse
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn, TypeVar

from hermes.errors import UsageError
from hermes.settings.load import environment
from hermes.surfaces.terminal.style import terminal_width
from hermes.text.intended_word import intended_word
from hermes.text.translation import translator

t = translator(__name__)


_P = TypeVar("_P", bound=argparse.ArgumentParser)

# typing.override is newer than the Python we support; each override says so to the type checker.


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Writes `-o, --output FILE`, a usage line and columns that are the same on every Python: argparse's own differ."""

    def __init__(self, prog: str) -> None:
        # Told its width, argparse does not load `shutil` and its compression libraries to find it out.
        super().__init__(prog, max_help_position=30, width=_columns() - 2)

    # pyrefly: ignore[missing-override-decorator]
    def add_argument(self, action: argparse.Action) -> None:
        if action.help is argparse.SUPPRESS:
            return
        names = [action, *self._iter_indented_subactions(action)]
        longest = max(len(self._format_action_invocation(one)) for one in names)
        self._action_max_length = max(
            self._action_max_length, longest + self._current_indent
        )
        self._add_item(self._format_action, [action])

    # pyrefly: ignore[missing-override-decorator]
    def _format_action_invocation(self, action: argparse.Action) -> str:
        if not action.option_strings or action.nargs == 0:
            return super()._format_action_invocation(action)
        value = self._format_args(
            action, self._get_default_metavar_for_optional(action)
        )
        return f"{', '.join(action.option_strings)} {value}"

    # pyrefly: ignore[missing-override-decorator]
    def _format_usage(
        self,
        usage: str | None,
        actions: Iterable[argparse.Action],
        groups: Iterable[Any],
        prefix: str | None,
    ) -> str:
        start = f"{t('usage:')} " if prefix is None else prefix
        if usage is not None:
            return f"{start}{usage % {'prog': self._prog}}\n\n"
        shown = [action for action in actions if action.help is not argparse.SUPPRESS]
        options = self._usage_parts(
            [action for action in shown if action.option_strings], groups
        )
        operands = self._usage_parts(
            [action for action in shown if not action.option_strings], groups
        )
        line = " ".join((self._prog, *options, *operands))
        if len(start) + len(line) > self._width - self._current_indent:
            line = self._wrapped_usage(start, options, operands)
        return f"{start}{line}\n\n"

    def _wrapped_usage(
        self, start: str, options: Sequence[str], operands: Sequence[str]
    ) -> str:
        """The usage on several lines, options first, one below the other after the program's name."""
        indent = " " * (len(start) + len(self._prog) + 1)
        room = self._width - self._current_indent
        lines: list[str] = []
        for parts in (options, operands):
            line = ""
            for part in parts:
                if line and len(indent) + len(line) + 1 + len(part) > room:
                    lines.append(line)
                    line = ""
                line = f"{line} {part}".lstrip()
            lines += [line] if line else []
        return f"{self._prog} " + f"\n{indent}".join(lines)

    def _usage_parts(
        self, actions: Sequence[argparse.Action], groups: Iterable[Any]
    ) -> list[str]:
        """Each option or operand; those that exclude one another are one part."""
        together = {
            action: group
            for group in groups
            for action in group._group_actions  # noqa: SLF001
        }
        parts: list[str] = []
        done: set[int] = set()
        for action in actions:
            group = together.get(action)
            if group is None:
                parts.append(self._usage_part(action, bare=False))
            elif id(group) not in done:
                done.add(id(group))
                members = [one for one in actions if together.get(one) is group]
                choice = " | ".join(self._usage_part(one, bare=True) for one in members)
                brackets = "()" if group.required else "[]"
                parts.append(f"{brackets[0]}{choice}{brackets[1]}")
        return [part for part in parts if part]

    def _usage_part(self, action: argparse.Action, *, bare: bool) -> str:
        if not action.option_strings:
            part = self._format_args(
                action, self._get_default_metavar_for_positional(action)
            )
            return (
                part[1:-1]
                if bare and part.startswith("[") and part.endswith("]")
                else part
            )
        part = action.format_usage()
        if action.nargs != 0:
            value = self._format_args(
                action, self._get_default_metavar_for_optional(action)
            )
            part = f"{action.option_strings[0]} {value}"
        return part if bare or action.required else f"[{part}]"


def _columns() -> int:
    """The width of help texts: COLUMNS, or the terminal's."""
    wanted = environment().get("COLUMNS", "")
    return int(wanted) if wanted.isdecimal() and int(wanted) else terminal_width()


class Parser(argparse.ArgumentParser):
    """An ArgumentParser that raises instead of printing, and suggests the nearest word."""

    def __init__(
        self,
        prog: str | None = None,
        *,
        description: str | None = None,
        epilog: str | None = None,
    ) -> None:
        super().__init__(
            prog,
            description=description,
            epilog=epilog,
            formatter_class=HelpFormatter,
            allow_abbrev=False,
        )
        self.color = False
        self._positionals.title = t("positional arguments")
        self._optionals.title = t("options")
        for action in self._actions:
            if "--help" in action.option_strings:
                action.help = t("show this help message and exit")

    # pyrefly: ignore[missing-override-decorator]
    def error(self, message: str) -> NoReturn:
        hint = t("See: {prog} --help", prog=self.prog)
        spare = message.removeprefix("unrecognized arguments: ")
        if spare != message and self._takes_sentence and not spare.startswith("-"):
            hint = t("Put quotes around several words. {hint}", hint=hint)
        raise UsageError(_in_own_words(message), hint=hint)

    @property
    def _takes_sentence(self) -> bool:
        """Whether its last operand is free text of one word, so that a sentence needs quotes."""
        operands = [one for one in self._actions if not one.option_strings]
        last = operands[-1] if operands else None
        return last is not None and last.choices is None and last.nargs in (None, "?")

    # pyrefly: ignore[missing-override-decorator]
    def _check_value(self, action: argparse.Action, value: object) -> None:
        if action.choices is None or value in action.choices:
            return
        choices = [str(choice) for choice in action.choices]
        near = intended_word(str(value), choices)
        what = (
            t("did you mean {near}?", near=near)
            if near
            else t("expected one of {choices}", choices=", ".join(choices))
        )
        raise argparse.ArgumentError(
            action, t("there is no {value!r}; {what}", value=str(value), what=what)
        )


def _in_own_words(message: str) -> str:
    """An error of argparse, which has no catalogue of its own, in the reader's language."""
    begin, _, rest = message.partition(": ")
    match begin:
        case "unrecognized arguments":
            return t("unrecognized arguments: {words}", words=rest)
        case "the following arguments are required":  # not translated
            return t("the following arguments are required: {names}", names=rest)
        case _:
            pass
    name = begin.removeprefix("argument ")
    if name == begin:
        return message
    return t("argument {name}: {problem}", name=name, problem=_problem(rest))


def _problem(said: str) -> str:
    """What argparse says about one argument."""
    other = said.removeprefix("not allowed with argument ")  # not translated
    if other != said:
        return t("not allowed with argument {other}", other=other)
    match said:
        case "expected one argument":  # not translated
            return t("expected one argument")
        case "expected at least one argument":  # not translated
            return t("expected at least one argument")
        case _:
            return said


def add_action(
    actions: "argparse._SubParsersAction[_P]", name: str, summary: str
) -> _P:
    """Add a subcommand whose one-line summary is also the description in its own help."""
    return actions.add_parser(name, help=summary, description=sentence(summary))


def sentence(summary: str) -> str:
    return f"{summary[:1].upper()}{summary[1:]}."
