"""Converts a page to Markdown: with html-to-markdown if that is installed, else with a simple renderer of our own."""

import re
from collections.abc import Callable
from types import ModuleType

from hermes.tools.web.html import Tag
from hermes.tools.web.readable_page import Page, has_text

_MAX_LIBRARY_CHARACTERS = 3_000_000
"""The maximum characters for the library, which blocks the process while it works; our own renderer takes longer pages.
"""
_HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}
_BLOCKS = """
    address article aside blockquote body center dd details div dl dt fieldset figure figcaption footer form header hr
    html main ol p pre section summary table tbody thead tr ul
""".split()  # noqa: SIM905 - a list of words reads better
_MARKS = {
    "b": "**",
    "strong": "**",
    "em": "*",
    "i": "*",
    "code": "`",
    "kbd": "`",
    "del": "~~",
    "s": "~~",
}
_BLANKS = r"[ \t\r\n\f]+"
_MAX_LIST_DEPTH = 6


def find_converter() -> ModuleType | None:
    """The converter, if it is installed."""
    try:
        import html_to_markdown
    except ImportError:
        return None
    return html_to_markdown


def to_markdown(
    page: Page, find: Callable[[], ModuleType | None] = find_converter
) -> str:
    """The page's content. Blocks: call it in a thread."""
    library = find()
    source = page.to_html() if library is not None else ""
    if library is not None and len(source) <= _MAX_LIBRARY_CHARACTERS:
        options = library.ConversionOptions(extract_metadata=False, bullets="-")
        converted = library.convert(source, options).content or ""
        if converted.strip() or not has_text(page.content):
            return converted.strip()
    return render(page)


def render(page: Page) -> str:
    """Plain Markdown: headings, lists, links, code; tables as lines of cells."""
    writer = _Writer()
    for token in page.content:
        if isinstance(token, str):
            writer.text(token)
        elif token.closing:
            writer.end(token.name)
        else:
            writer.start(token)
    return re.sub(r"\n{3,}", "\n\n", "".join(writer.parts)).strip()


class _Writer:
    """Markdown that is being written."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self._lists: list[int] = []
        self._links: list[str] = []
        self._pre = 0

    def text(self, text: str) -> None:
        if not self._pre:
            text = re.sub(_BLANKS, " ", text)
            if self._at_line_start():
                text = text.lstrip(" ")
        self._write(text)

    def start(self, tag: Tag) -> None:
        name = tag.name
        if name in _HEADINGS:
            self._break(_HEADINGS[name])
        elif name in ("ul", "ol"):
            self._lists = [*self._lists, 0 if name == "ul" else 1][:_MAX_LIST_DEPTH]
            self._break("" if len(self._lists) == 1 else None)
        elif name == "li":
            self._item()
        elif name == "pre":
            self._pre += 1
            self._break("```\n")
        elif name == "br":
            self._write("\n")
        elif name == "hr":
            self._break("---\n\n")
        else:
            self._start_inline(tag)

    def _start_inline(self, tag: Tag) -> None:
        name = tag.name
        if name in ("td", "th"):
            self._write("" if self._at_line_start() else " | ")
        elif name == "a":
            self._links.append(tag.attributes.get("href", ""))
            self._write("[" if self._links[-1] else "")
        elif name == "img" and tag.attributes.get("alt"):
            self._write(f"![{tag.attributes['alt']}]({tag.attributes.get('src', '')})")
        else:
            self._plain(name, "" if name == "tr" else None)

    def end(self, name: str) -> None:
        if name == "a":
            address = self._links.pop() if self._links else ""
            self._write(f"]({address})" if address else "")
        elif name == "pre" and self._pre:
            self._pre -= 1
            self._write("\n```\n\n")
        elif name in ("ul", "ol") and self._lists:
            self._lists.pop()
            self._write("\n" if self._lists else "\n\n")
        elif name in ("li", "tr"):
            self._line()
        elif name in _HEADINGS:
            self._write("\n\n")
        else:
            self._plain(name, None)

    def _plain(self, name: str, prefix: str | None) -> None:
        if name in _MARKS and not self._pre:
            self._write(_MARKS[name])
        elif prefix is not None:
            self._line()
        elif name in _BLOCKS:
            if self._lists:
                self._line()
            else:
                self._break("")

    def _item(self) -> None:
        self._line()
        depth = max(1, len(self._lists))
        mark = "-"
        if self._lists and self._lists[-1]:
            mark = f"{self._lists[-1]}."
            self._lists[-1] += 1
        self._write("  " * (depth - 1) + mark + " ")

    def _break(self, prefix: str | None) -> None:
        if prefix is None:
            self._line()
        elif self.parts:
            self._write(f"\n\n{prefix}")
        else:
            self._write(prefix)

    def _line(self) -> None:
        if not self._at_line_start():
            self._write("\n")

    def _at_line_start(self) -> bool:
        return not self.parts or self.parts[-1].endswith("\n")

    def _write(self, text: str) -> None:
        if text:
            self.parts.append(text)
