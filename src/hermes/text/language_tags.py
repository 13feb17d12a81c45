"""Which of our languages somebody asks for: by a locale of the system, a browser's header, or a chat app."""

from collections.abc import Iterable

from hermes.text.translation import LANGUAGES

_TRADITIONAL = frozenset({"hant", "tw", "hk", "mo"})


def known_language(tag: str) -> str:
    """Returns the language of a tag, such as `de_AT.UTF-8`, `zh-TW` or `pt`; empty if it is none of ours."""
    parts = tag.partition(".")[0].partition("@")[0].lower().replace("_", "-").split("-")
    if parts[0] == "zh":
        return "zh-hant" if _TRADITIONAL & set(parts[1:]) else "zh"
    if parts[0] in ("c", "posix"):
        return "en"
    return parts[0] if parts[0] in LANGUAGES else ""


def first_known(tags: Iterable[str]) -> str:
    """Returns the first language of ours; empty if there is none."""
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
