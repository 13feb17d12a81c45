"""The option `--profile NAME`, which any command line may have. It is removed before anything else is parsed."""

from hermes.errors import HermesError, UsageError, translated
from hermes.settings.load import choose_profile, find_home
from hermes.text.translation import translator

t = translator(__name__)


_OPTION = "--profile"
_BEFORE_TEXT = ("-z", "--prompt")
"""What follows these is text."""
_USAGE = 2
_FAILED = 1


def take_profile(arguments: list[str]) -> tuple[list[str], int]:
    """Uses the profile that the arguments name. Returns the other arguments, and an exit code if that is not possible."""
    try:
        name, rest = split_profile(arguments)
        if name is not None:
            choose_profile(name)
            find_home()
    except HermesError as error:
        from hermes.surfaces.terminal.stderr_message import say

        say(translated(error.words), translated(error.hint_words))
        return arguments, _USAGE if isinstance(error, UsageError) else _FAILED
    return rest, 0


def split_profile(arguments: list[str]) -> tuple[str | None, list[str]]:
    """The name after the last `--profile`, None if there is none, and the other arguments. Nothing after `--` counts."""
    name: str | None = None
    rest: list[str] = []
    words = iter(arguments)
    for word in words:
        if word == "--":
            return name, [*rest, word, *words]
        is_text = bool(rest) and rest[-1] in _BEFORE_TEXT
        if word == _OPTION and not is_text:
            name = next(words, None)
            if name is None:
                raise UsageError(
                    t("--profile needs a name."), hint=t("See: hermes profile list")
                )
        elif word.startswith(f"{_OPTION}=") and not is_text:
            name = word.partition("=")[2]
        else:
            rest.append(word)
    return name, rest
