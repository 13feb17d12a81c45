"""How arguments are read: argparse whose help looks the same on every Python, and whose errors are UsageErrors."""

import argparse
from typing import NoReturn, TypeVar

from hermes.errors import UsageError

_P = TypeVar("_P", bound=argparse.ArgumentParser)

# typing.override is newer than the Python we support; each override says so to the type checker.


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Writes `-o, --output FILE` and no colour, as Python 3.11 to 3.14 do not all do by themselves."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30)

    # pyrefly: ignore[missing-override-decorator]
    def _format_action_invocation(self, action: argparse.Action) -> str:
        if not action.option_strings or action.nargs == 0:
            return super()._format_action_invocation(action)
        value = self._format_args(action, self._get_default_metavar_for_optional(action))
        return f"{', '.join(action.option_strings)} {value}"


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

    # pyrefly: ignore[missing-override-decorator]
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{self.prog}: {message}", hint=f"See: {self.prog} --help")

    # pyrefly: ignore[missing-override-decorator]
    def _check_value(self, action: argparse.Action, value: object) -> None:
        if action.choices is None or value in action.choices:
            return
        import difflib

        choices = [str(choice) for choice in action.choices]
        near = difflib.get_close_matches(str(value), choices, 1)
        what = f"did you mean {near[0]}?" if near else f"expected one of {', '.join(choices)}"
        raise argparse.ArgumentError(action, f"there is no {str(value)!r}; {what}")


def add_action(actions: "argparse._SubParsersAction[_P]", name: str, summary: str) -> _P:
    """Add a subcommand whose one-line summary is also the description in its own help."""
    return actions.add_parser(name, help=summary, description=sentence(summary))


def sentence(summary: str) -> str:
    return f"{summary[:1].upper()}{summary[1:]}."
