"""The language that somebody reads: `display.language`, or with `auto` that of the system, the browser or the chat app."""

import os
from collections.abc import Iterable

from hermes.settings.home import Home
from hermes.settings.load import system_locale
from hermes.text.language_tags import first_known
from hermes.text.translation import Sentences


def language_for(choice: str, tags: Iterable[str] = ()) -> str:
    """Returns a language's code. `tags` are what a browser or a chat app says about its user, the preferred one first."""
    if choice != "auto":
        return choice
    return first_known((*tags, system_locale())) or "en"


def sentences_for(
    choice: str, home: Home, tags: Iterable[str] = ()
) -> Sentences | None:
    """Returns the sentences of that language; None for English, unless the person has English texts of their own."""
    language = language_for(choice, tags)
    if language == "en" and not os.path.lexists(home.locales / "en.po"):
        return None  # also if the folder can't be read
    from hermes.text.catalogue import find_catalogue

    return find_catalogue(language, home.locales)
