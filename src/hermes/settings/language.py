"""The reader's language: `display.language`, or with `auto` that of the system, the browser or the chat app."""

import os
from collections.abc import Iterable

from hermes.settings.home import Home
from hermes.settings.load import system_locale
from hermes.text.translation import LANGUAGES, Sentences

_TRADITIONAL = frozenset({"hant", "tw", "hk", "mo"})


def language_for(choice: str, tags: Iterable[str] = ()) -> str:
    """Returns a language's code. `tags` are what a browser or a chat app says about its user, the preferred one first."""
    if choice != "auto":
        return choice
    return first_known((*tags, system_locale())) or "en"


def sentences_for(
    choice: str, home: Home, tags: Iterable[str] = ()
) -> Sentences | None:
    """Returns the sentences of that language; None for English, unless the user has English texts of their own."""
    language = language_for(choice, tags)
    if language == "en" and not os.path.lexists(home.locales / "en.po"):
        return None  # also if the folder can't be read
    from hermes.text.catalogue import find_catalogue

    return find_catalogue(language, home.locales)


def known_language(tag: str) -> str:
    """Returns the language of a tag, such as `de_AT.UTF-8`, `zh-TW` or `pt`; empty if Hermes does not have it."""
    parts = tag.partition(".")[0].partition("@")[0].lower().replace("_", "-").split("-")
    if parts[0] == "zh":
        return "zh-hant" if _TRADITIONAL & set(parts[1:]) else "zh"
    if parts[0] in ("c", "posix"):
        return "en"
    return parts[0] if parts[0] in LANGUAGES else ""


def first_known(tags: Iterable[str]) -> str:
    """Returns the first language that Hermes has; empty if there is none."""
    return next(filter(None, map(known_language, tags)), "")


def accepted_tags(header: str) -> list[str]:
    """Returns the tags of an `Accept-Language` header, the preferred ones first."""
    ranked: list[tuple[float, str]] = []
    for part in header[:1_000].split(","):
        tag, _, quality = part.strip().partition(";")
        try:
            weight = float(quality.strip().removeprefix("q=") or 1)
        except ValueError:
            weight = 0.0
        if tag and weight > 0:
            ranked.append((weight, tag.strip()))
    return [tag for _, tag in sorted(ranked, key=lambda one: -one[0])]
