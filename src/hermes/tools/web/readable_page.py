"""Extracts the readable part of an HTML page: its title and main content, without menus, scripts and hidden elements."""

import html
from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import urljoin, urlsplit

import msgspec

from hermes.tools.web.html import VOID, Tag, Token, tokens

_DROPPED = frozenset(
    (
        *(
            "script",
            "style",
            "template",
            "noscript",
            "svg",
            "canvas",
            "iframe",
            "object",
            "embed",
            "video",
            "audio",
        ),
        *("nav", "footer", "dialog", "select", "button"),
    )
)
_HEADERS = frozenset(
    ("header", "aside")
)  # kept inside an article, to which they belong
_MAIN = ("main", "article")
_ENDS_ITSELF = frozenset(("p", "li", "dt", "dd", "tr", "td", "th", "option"))
_MIN_MAIN_CHARACTERS = 200
"""The minimum characters of a main part that is used alone."""
_LINKS = {"a": "href", "img": "src"}
_KEPT_ATTRIBUTES = ("href", "src", "alt", "class", "colspan", "start")
_HIDING = ("display:none", "visibility:hidden", "font-size:0;", "opacity:0;")


class Page(msgspec.Struct, frozen=True):
    """A page's title and the tokens of its readable content, with absolute links."""

    title: str
    content: Sequence[Token]

    def to_html(self) -> str:
        """The content as HTML again, for a converter."""
        return "".join(_written(token) for token in self.content)


def read_page(text: str, base: str) -> Page:
    """The part of a page, at the address `base`, that a person would read."""
    found = list(tokens(text))
    title, base = _head(found, base)
    kept = list(_without(found, _DROPPED))
    main = _main(kept)
    kept = main if main is not None else list(_without(kept, _HEADERS)) or kept
    if not has_text(kept):
        kept = list(_without(found, frozenset(("script", "style", "template"))))
    return Page(title, [_absolute(token, base) for token in kept])


def has_text(found: Iterable[Token]) -> bool:
    """Whether there is anything to read."""
    return any(isinstance(token, str) and token.strip() for token in found)


def _head(found: Sequence[Token], base: str) -> tuple[str, str]:
    title, new_base = "", ""
    for index, token in enumerate(found):
        if not isinstance(token, Tag) or token.closing:
            continue
        if token.name == "body":
            break
        following = found[index + 1] if index + 1 < len(found) else ""
        if token.name == "title" and not title and isinstance(following, str):
            title = " ".join(following.split())
        elif token.name == "base" and not new_base:
            new_base = token.attributes.get("href", "")
    return title, _joined(base, new_base) if new_base else base


def _without(found: Iterable[Token], names: frozenset[str]) -> Iterable[Token]:
    """Yields the tokens outside elements that are in `names` or hidden, and without the head's tags."""
    skipped, depth = "", 0
    for token in found:
        if not skipped:
            if not isinstance(token, Tag):
                yield token
            elif not token.closing and _is_dropped(token, names):
                has_content = token.name not in VOID and token.name != "head"
                skipped, depth = token.name if has_content else "", 1
            elif token.name not in names:
                yield token
        elif isinstance(token, Tag) and token.name == skipped:
            depth += _depth_change(token)
            if token.closing and depth <= 0:
                skipped = ""
            elif _begins_visible_sibling(token):
                skipped = ""
                yield token


def _is_dropped(tag: Tag, names: frozenset[str]) -> bool:
    """Whether to leave an element out."""
    unwanted = tag.name in names or tag.name in ("title", "head")
    return unwanted or _is_hidden(tag.attributes)


def _depth_change(tag: Tag) -> int:
    if tag.closing:
        return -1
    return 0 if tag.name in _ENDS_ITSELF else 1


def _begins_visible_sibling(tag: Tag) -> bool:
    """Whether a tag ends a skipped element by beginning the next one of its kind, as in lists without closing tags."""
    begins = not tag.closing and tag.name in _ENDS_ITSELF
    return begins and not _is_hidden(tag.attributes)


def _is_hidden(attributes: Mapping[str, str]) -> bool:
    if not attributes:
        return False
    if "hidden" in attributes or attributes.get("aria-hidden") == "true":
        return True
    style = attributes.get("style", "").replace(" ", "").lower() + ";"
    return any(mark in style for mark in _HIDING)


def _main(found: Sequence[Token]) -> list[Token] | None:
    """The content of the page's main element, or of its articles, if most of the text is there."""
    for name in _MAIN:
        part: list[Token] = []
        depth = 0
        for token in found:
            if isinstance(token, Tag) and token.name == name:
                depth = max(0, depth - 1) if token.closing else depth + 1
            elif depth:
                part.append(token)
        words = _length(part)
        if words >= _MIN_MAIN_CHARACTERS and words * 3 >= _length(found):
            return part
    return None


def _length(found: Iterable[Token]) -> int:
    return sum(len(token.strip()) for token in found if isinstance(token, str))


def _absolute(token: Token, base: str) -> Token:
    if isinstance(token, str) or not token.attributes:
        return token
    name = _LINKS.get(token.name)
    kept = {
        key: token.attributes[key]
        for key in _KEPT_ATTRIBUTES
        if key in token.attributes
    }
    if name and name in kept:
        address = _joined(base, kept[name])
        if urlsplit_scheme(address) in ("http", "https", "mailto"):
            kept[name] = address
        else:
            del kept[name]
    return Tag(token.name, closing=False, attributes=kept)


def urlsplit_scheme(address: str) -> str:
    """The scheme of an address; empty if it can't be parsed."""
    try:
        return urlsplit(address).scheme
    except ValueError:
        return ""


def _joined(base: str, address: str) -> str:
    try:
        return urljoin(base, address.strip().replace(" ", "%20"))
    except ValueError:
        return ""


def _written(token: Token) -> str:
    if isinstance(token, str):
        return html.escape(token, quote=False)
    if token.closing:
        return f"</{token.name}>"
    attributes = "".join(
        f' {name}="{html.escape(value)}"' for name, value in token.attributes.items()
    )
    return f"<{token.name}{attributes}>"
