"""Prompts that a server offers, called by a person as `/server:prompt arguments`. They are scanned like tools."""

import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from hermes.errors import UsageError
from hermes.mcp.safe_text import one_line
from hermes.text.translation import translator

t = translator(__name__)

MAX_PROMPTS = 128
_PROMPT = re.compile(r"[A-Za-z0-9_./-]{1,96}")
_PAIR = re.compile(r"([A-Za-z0-9_.-]{1,64})=(.*)", re.DOTALL)


class PromptArgument(msgspec.Struct, frozen=True, omit_defaults=True):
    """A value that a prompt takes."""

    name: str
    required: bool = False


class PromptDefinition(msgspec.Struct, frozen=True, omit_defaults=True):
    """A prompt as its server describes it."""

    name: str
    description: str = ""
    arguments: tuple[PromptArgument, ...] = ()

    @property
    def usage(self) -> str:
        """The arguments as a help text shows them."""
        return " ".join(
            one.name.upper() if one.required else f"[{one.name.upper()}]"
            for one in self.arguments
        )


class PromptListing(msgspec.Struct, frozen=True):
    """The prompts of a server, and the ones left out because they look like an attack."""

    prompts: dict[str, PromptDefinition] = {}
    suspected: tuple[str, ...] = ()


def prompt_listing(
    raw: Iterable[Mapping[str, Any]], scan: Callable[[str], str]
) -> PromptListing:
    """The prompts that can be offered, in the order of their names. `scan` finds injected instructions."""
    prompts: dict[str, PromptDefinition] = {}
    suspected: list[str] = []
    for one in sorted(raw, key=lambda one: str(one.get("name"))):
        name = str(one.get("name"))
        if not _PROMPT.fullmatch(name) or len(prompts) >= MAX_PROMPTS:
            continue
        arguments = [item for item in one.get("arguments") or () if item.get("name")]
        texts = [str(one.get("description") or "")]
        for item in arguments:
            texts += [str(item["name"]), str(item.get("description") or "")]
        if found := scan("\n".join(texts)):
            suspected.append(
                t.logged(
                    "prompt {name}: its description looks like an attack ({found})",
                    name=name,
                    found=one_line(found, 120),
                )
            )
            continue
        prompts[name] = PromptDefinition(
            name=name,
            description=one_line(texts[0], 200),
            arguments=tuple(
                PromptArgument(
                    one_line(str(item["name"]), 64), bool(item.get("required"))
                )
                for item in arguments
            ),
        )
    return PromptListing(prompts, tuple(suspected))


def prompt_arguments(definition: PromptDefinition, words: str) -> dict[str, str]:
    """Reads `name=value` and values in order; the last value takes the rest. Raises UsageError."""
    names = [one.name for one in definition.arguments]
    given: dict[str, str] = {}
    for word in _split(words):
        pair = _PAIR.fullmatch(word)
        if pair and pair[1] in names:
            given[pair[1]] = pair[2]
        elif free := next((name for name in names if name not in given), ""):
            given[free] = word
        elif names:
            given[names[-1]] += f" {word}"
        else:
            raise UsageError(
                t.later("The prompt {name} takes no arguments.", name=definition.name)
            )
    missing = [
        one.name
        for one in definition.arguments
        if one.required and one.name not in given
    ]
    if missing:
        raise UsageError(
            t.later(
                "The prompt {name} needs: {missing}.",
                name=definition.name,
                missing=", ".join(missing),
            ),
            hint=f"{definition.name} {definition.usage}",
        )
    return given


def _split(words: str) -> list[str]:
    try:
        return shlex.split(words)
    except ValueError:  # such as an apostrophe, which is not a quote here
        return words.split()
