"""RSS and Atom feeds as a list of entries."""

from collections.abc import Iterator
from xml.etree.ElementTree import Element, ParseError, XMLParser

from hermes.tools.escapes import one_line
from hermes.tools.web.markdown import render
from hermes.tools.web.readable_page import read_page

_ROOTS = ("rss", "feed", "rdf")
_ENTRIES = ("item", "entry")
_MAX_FEED_ENTRIES = 50
_MAX_ENTRY_SUMMARY_CHARACTERS = 500


def read_feed(text: str, base: str) -> str | None:
    """A feed in Markdown; None if the text is not a feed."""
    if "<!DOCTYPE" in text[:2000].upper() or "<!ENTITY" in text.upper():
        return (
            None  # entities can expand a short text without limit; no feed needs them
        )
    try:
        parser = XMLParser()  # noqa: S314 - without entities, see above
        parser.feed(text)
        root = parser.close()
    except (ParseError, ValueError):
        return None
    if _name(root) not in _ROOTS:
        return None
    entries = [element for element in root.iter() if _name(element) in _ENTRIES]
    lines = [f"# {_text(_channel(root), 'title') or 'Feed'}", ""]
    for entry in entries[:_MAX_FEED_ENTRIES]:
        lines += _entry(entry, base)
    if len(entries) > _MAX_FEED_ENTRIES:
        lines.append(
            f"({len(entries) - _MAX_FEED_ENTRIES:,} older entries are left out)"
        )
    return "\n".join(lines)


def _channel(root: Element) -> Element:
    return next((element for element in root if _name(element) == "channel"), root)


def _entry(entry: Element, base: str) -> Iterator[str]:
    title = _text(entry, "title") or "(no title)"
    link = _link(entry)
    when = next(
        (
            found
            for name in ("pubdate", "published", "updated", "date")
            if (found := _text(entry, name))
        ),
        "",
    )
    yield f"- [{title}]({link})" if link else f"- {title}"
    if when:
        yield f"  {when}"
    summary = next(
        (
            found
            for name in ("description", "summary", "content")
            if (found := _raw(entry, name))
        ),
        "",
    )
    plain = (
        one_line(render(read_page(summary, base)), _MAX_ENTRY_SUMMARY_CHARACTERS)
        if summary
        else ""
    )
    if plain:
        yield f"  {plain}"


def _link(entry: Element) -> str:
    for child in entry:
        if _name(child) == "link" and child.get("rel", "alternate") == "alternate":
            return one_line(child.get("href") or child.text or "", 1000)
    return ""


def _text(parent: Element, name: str) -> str:
    return one_line(_raw(parent, name))


def _raw(parent: Element, name: str) -> str:
    found = next((child for child in parent if _name(child) == name), None)
    return "" if found is None else "".join(found.itertext())


def _name(element: Element) -> str:
    return str(element.tag).rpartition("}")[2].lower()
