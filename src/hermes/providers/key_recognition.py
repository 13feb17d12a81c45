"""Whose key is this? Providers give their keys shapes of their own; where two share one, a person is asked."""

import re

import msgspec

from hermes.providers.provider_table import FAMILIES
from hermes.text.translation import translator

t = translator(__name__)

_MAX_KEY_CHARACTERS = 4096
_MIN_KEY_CHARACTERS = 16
_ASSIGNMENT = re.compile(
    r"(?:export\s+|set\s+)?([A-Z][A-Z0-9_]*)\s*[=:]\s*(.+)", re.DOTALL
)
# The first row that matches counts. Several providers: the most likely one first.
_SHAPES: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"sk-ant-.+", ("anthropic",)),
    (r"sk-or-.+", ("openrouter",)),
    (r"sk-(?:proj|svcacct|admin|None)-.+", ("openai",)),
    (r"sk-[A-Za-z0-9_-]+T3BlbkFJ[A-Za-z0-9_-]+", ("openai",)),
    (r"sk-(?:api|cp)-.+", ("minimax",)),
    (r"sk-kimi-.+", ("moonshot",)),
    (r"sk-[0-9a-f]{32}", ("deepseek", "openai", "moonshot")),
    (r"sk-.+", ("openai", "moonshot", "deepseek")),
    (r"xai-.+", ("xai",)),
    (r"gsk_.+", ("groq",)),
    (r"AIza.+|AQ\..+", ("gemini",)),
    (r"nvapi-.+", ("nvidia",)),
    (r"hf_.+", ("huggingface",)),
    (r"fw_.+", ("fireworks",)),
    (r"csk-.+", ("cerebras",)),
    (r"tgp_v1_.+", ("together",)),
    (r"[0-9a-f]{64}", ("together",)),
    (r"[0-9a-f]{32}\.[A-Za-z0-9]{16}", ("zai",)),
    (r"eyJ.+\..+\..+", ("minimax",)),
    (r"[A-Za-z0-9]{32}", ("mistral", "together")),
)  # fmt: skip


class RecognisedKey(msgspec.Struct, frozen=True):
    """A key as it was meant, and who may have issued it: nobody known, one provider, or several to choose from."""

    key: str
    providers: tuple[str, ...] = ()
    problem: str = ""

    def __repr__(self) -> str:
        return f"RecognisedKey({', '.join(self.providers) or self.problem})"


def recognise(text: str) -> RecognisedKey:
    """Finds the key in what was pasted, which may be a line of a shell script, and who issued it."""
    text = _unquoted(text)
    named: tuple[str, ...] = ()
    if assignment := _ASSIGNMENT.fullmatch(text):
        variable, text = assignment[1], _unquoted(assignment[2])
        named = tuple(one.family for one in FAMILIES if one.key_variable == variable)
    text = text.removeprefix("Bearer ").strip()
    if problem := _problem(text):
        return RecognisedKey("", problem=problem)
    return RecognisedKey(text, named or _by_shape(text))


def _unquoted(text: str) -> str:
    return text.strip().strip("\"'").strip()


def _problem(text: str) -> str:
    """Why a text can't be a key; empty if it can."""
    if not text:
        return t("Nothing was pasted.")
    if "://" in text:
        return t("That is an address, not a key.")
    if not text.isascii() or not text.isprintable() or " " in text:
        return t(
            "That is not a key: it has spaces or other characters that no key has."
        )
    if len(text) < _MIN_KEY_CHARACTERS:
        return t("That is too short for a key. Was all of it copied?")
    if len(text) > _MAX_KEY_CHARACTERS:
        return t("That is too long for a key.")
    return ""


def _by_shape(key: str) -> tuple[str, ...]:
    found = (names for shape, names in _SHAPES if re.fullmatch(shape, key))
    return next(found, ())
