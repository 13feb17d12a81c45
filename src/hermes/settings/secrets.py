"""Secrets: which names are secret, the format of `.env`, and `Secrets`, which never shows its values."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from hermes.errors import SettingsError
from hermes.text.translation import Later, translator

t = translator(__name__)


_KEY_NAME = (
    r"(?i)(?:^|_)(?:api_?keys?|tokens?|passwords?|passwd|passphrase|secrets?"
    r"|(?:private|access|secret|auth|encryption|fal)_?key"  # fal.ai calls its key FAL_KEY
    r"|credentials?)(?:_\d+)?$"  # OPENAI_API_KEY_2: several keys of one provider
)
_OWNERS = {
    "sk-ant-": "ANTHROPIC_API_KEY",
    "sk-or-": "OPENROUTER_API_KEY",
    "sk-": "OPENAI_API_KEY",
    "gh": "GITHUB_TOKEN",
    "AIza": "GEMINI_API_KEY",
    "hf_": "HF_TOKEN",
    "gsk_": "GROQ_API_KEY",
    "xai-": "XAI_API_KEY",
}
CREDENTIALS = t.later("an address must not hold a password or key")
_ADDRESS_SECRETS = {"store.url": "STORE_PASSWORD", "events.url": "EVENTS_PASSWORD"}
_ASSIGNMENT = r"(?s)[ \t]*(?:export[ \t]+)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)[ \t]*=[ \t]*(?P<rest>.*)"
_VARIABLE = r"[A-Z][A-Z0-9_]*"
_PLAIN_VALUE = r"[A-Za-z0-9_\-+=/.:,@%~^]+"
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\", "$": "$", "`": "`"}


def credentials_hint(setting: str) -> Later:
    """Says where to put the password or key that is in the address of a setting."""
    return t.later(
        "leave it out of the address; a password or key goes into .env with `hermes config set {name}`",
        name=_ADDRESS_SECRETS.get(setting, "NAME_API_KEY"),
    )


def is_secret_name(name: str) -> bool:
    """Returns whether something called `name` (api_key, GITHUB_TOKEN, ...) holds a secret."""
    return re.search(_KEY_NAME, name.replace("-", "_")) is not None


def names_variable(value: str) -> bool:
    """Returns whether `value` (WEBHOOK_SECRET) is the name of a secret's variable, and not a secret
    itself.
    """
    return "_" in value and re.fullmatch(_VARIABLE, value) is not None


def is_secret_variable(name: str) -> bool:
    """Returns whether `name` is the environment variable of a secret, and so belongs in `.env`."""
    return re.fullmatch(_VARIABLE, name) is not None and is_secret_name(name)


def variable_for(key: str, value: str = "") -> str:
    """Suggests the variable for a secret found under `key`, by that name or else by the shape of
    `value`.
    """
    name = key.replace("-", "_").upper()
    match = re.search(_KEY_NAME, name)
    if match and match.start() and is_secret_variable(name):
        return name
    return next(
        (variable for start, variable in _OWNERS.items() if value.startswith(start)),
        "NAME_API_KEY",
    )


def is_address_variable(name: str) -> bool:
    """Returns whether `name` (OPENAI_BASE_URL) holds a service's address, kept beside its key."""
    return name.endswith("_BASE_URL") and re.fullmatch(_VARIABLE, name) is not None


class Secrets:
    """Secrets by name, and the addresses kept with them; never shown. The environment wins over `.env`."""

    __slots__ = ("_environ", "_file", "sign_in_file")

    def __init__(
        self,
        file: Mapping[str, str],
        environ: Mapping[str, str],
        sign_in_file: Path | None = None,
    ) -> None:
        self.sign_in_file = sign_in_file
        """The folder of the accounts that the user signed in with; None if there can't be any."""
        self._file = dict(file)
        self._environ = {
            name: value
            for name, value in environ.items()
            if name in file or is_secret_variable(name) or is_address_variable(name)
        }

    def get(self, name: str) -> str | None:
        """Returns the value, or None if it is not set. An empty variable counts as not set."""
        return self._environ.get(name) or self._file.get(name) or None

    def with_value(self, name: str, value: str) -> "Secrets":
        """Returns a copy in which `name` has this value, also against the environment."""
        environ = {key: held for key, held in self._environ.items() if key != name}
        return Secrets(self._file | {name: value}, environ, self.sign_in_file)

    def require(self, name: str) -> str:
        """Returns the value. Raises a SettingsError that says how to set it if there is none."""
        value = self.get(name)
        if value is None:
            raise SettingsError(
                t.later("{name} is not set.", name=name),
                hint=t.later("Store it with: hermes config set {name}", name=name),
            )
        return value

    def origin(self, name: str) -> str:
        """Returns where the value comes from: `environment`, `.env` or nothing."""
        if self._environ.get(name):
            return "environment"
        return ".env" if self._file.get(name) else ""

    def __iter__(self) -> Iterator[str]:
        return iter(
            sorted(name for name in {*self._file, *self._environ} if self.get(name))
        )

    def __repr__(self) -> str:
        return f"Secrets({', '.join(self)})"

    def __reduce__(self) -> str:
        raise TypeError(
            "Secrets can't be pickled: they would end up in a file or a log."  # not translated
        )


class EnvLine(Struct, frozen=True):
    """One line of `.env`: an assignment, a blank or comment (no name, no problem), or a problem."""

    text: str
    name: str = ""
    value: str = ""
    problem: str | Later = ""


def parse_env(text: str) -> list[EnvLine]:
    """Parses a `.env` into lines, each with its line ending."""
    lines = re.findall(r"[^\n]*\n|[^\n]+", text.removeprefix("\ufeff"))
    return [_parse_line(line) for line in lines]


def _parse_line(line: str) -> EnvLine:
    body = line.strip()
    if not body or body.startswith("#"):
        return EnvLine(line)
    match = re.fullmatch(_ASSIGNMENT, body)
    if match is None:
        return EnvLine(line, problem=t.later("expected NAME=VALUE"))
    rest = match["rest"]
    if rest[:1] not in {"'", '"'}:
        return EnvLine(line, match["name"], _uncommented(rest))
    value, end = _quoted(rest)
    if end < 0:
        return EnvLine(
            line,
            match["name"],
            problem=t.later(
                "{name}: the quote is not closed on this line", name=match["name"]
            ),
        )
    if rest[end:].strip() and not rest[end:].lstrip().startswith("#"):
        return EnvLine(
            line,
            match["name"],
            problem=t.later(
                "{name}: unexpected text after the closing quote", name=match["name"]
            ),
        )
    return EnvLine(line, match["name"], value)


def _uncommented(text: str) -> str:
    """Returns `text` up to a `#` at its start or after a space."""
    found = re.search(r"(?:^|(?<=\s))#", text)
    if found:
        return text[: found.start()].rstrip()
    return text


def _quoted(text: str) -> tuple[str, int]:
    """Returns the value of a quoted string and the index after its closing quote, or -1."""
    quote = text[0]
    value: list[str] = []
    index = 1
    while index < len(text):
        character = text[index]
        if character == quote:
            return "".join(value), index + 1
        if character == "\\" and quote == '"' and index + 1 < len(text):
            following = text[index + 1]
            value.append(_ESCAPES.get(following, "\\" + following))
            index += 2
        else:
            value.append(character)
            index += 1
    return "", -1


def with_secret(text: str, name: str, value: str) -> str:
    """Returns the text of a `.env` with `name` set; every other line stays as it is."""
    return _replace(text, name, f"{name}={_format(value)}")


def without_secret(text: str, name: str) -> str:
    """Returns the text of a `.env` without `name`."""
    return _replace(text, name, None)


def _replace(text: str, name: str, assignment: str | None) -> str:
    ending = "\r\n" if "\r\n" in text else "\n"
    kept = [line.text for line in parse_env(text) if line.name != name]
    if assignment is None:
        return "".join(kept)
    lines = parse_env(text)
    place = max(
        (index for index, line in enumerate(lines) if line.name == name),
        default=len(lines),
    )
    result = [line.text for line in lines[:place] if line.name != name]
    if result and not result[-1].endswith(("\n", "\r")):
        result.append(ending)
    result.append(assignment + ending)
    result += [line.text for line in lines[place + 1 :]]
    return "".join(result)


def _format(value: str) -> str:
    if not value.isprintable() and not all(
        char.isprintable() or char in "\n\r\t" for char in value
    ):
        raise SettingsError(
            t.later("A secret can't hold control characters."),
            hint=t.later("Nothing was changed. Check what you pasted."),
        )
    if re.fullmatch(_PLAIN_VALUE, value):
        return value
    for character, escape in (("\\", "\\\\"), ('"', '\\"'), ("$", "\\$"), ("`", "\\`")):
        value = value.replace(character, escape)
    return (
        '"' + value.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t") + '"'
    )
