"""Markdown in the text formats of chat platforms, and Slack's format as plain text."""

import html
import re
from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate
from typing import NamedTuple

from hermes.surfaces.gateway.message_split import open_fence

_FENCE = re.compile(r"^ {0,3}(?P<marks>`{3,}|~{3,})\s*(?P<language>[\w+#.\-]*)[^\n]*$")
_HEADING = re.compile(r"^ {0,3}#{1,6}\s+(.*)$")
_BULLET = re.compile(r"^(\s*)[-*+]\s+")
_RULE = re.compile(r"^ {0,3}([-*_])(?:\s*\1){2,}\s*$")
_QUOTE = re.compile(r"^ {0,3}>\s?")
_TABLE_ROW = re.compile(r"^\s*\|.*\|\s*$")
_GROUPS = {">": _QUOTE, "|": _TABLE_ROW}  # lines that belong together, by their mark
_CODE = re.compile(r"(?<!`)(`{1,3})(?!`)(.+?)(?<!`)\1(?!`)")
_LINK = re.compile(
    r"!?\[([^\[\]\n]*)\]\(\s*<?((?:https?://|tg://|mailto:)(?:[^\s<>\")\]]|\](?!\()){1,2048}+)>?\s*\)"
)


class _Style(NamedTuple):
    """A pair of marks: where one can open and close, and the tag that they become.

    Both patterns take one character, which `re` finds quickly, so that they can also match at the next.
    """

    mark: str
    opens: re.Pattern[str]
    closes: re.Pattern[str]
    tag: str


_STYLES = (
    _Style("**", re.compile(r"\*(?=\*\S)"), re.compile(r"\*(?<=\S\*)(?=\*)"), "b"),
    _Style("__", re.compile(r"_(?<!\w_)(?=_\S)"), re.compile(r"_(?<=\S_)(?=_(?!\w))"), "b"),
    _Style("~~", re.compile(r"~(?=~\S)"), re.compile(r"~(?<=\S~)(?=~)"), "s"),
    _Style("*", re.compile(r"\*(?<![\w*]\*)(?=[^\s*])"), re.compile(r"\*(?<=[^\s*]\*)(?![\w*])"), "i"),
    _Style("_", re.compile(r"_(?<!\w_)(?=[^\s_])"), re.compile(r"_(?<=[^\s_]_)(?!\w)"), "i"),
)  # fmt: skip
_PLACEHOLDER = re.compile("\x00(\\d+)\x00")

_SLACK_TAG = re.compile(
    r'<(?P<end>/?)(?P<name>pre|code|a|b|i|s)(?: class="[^"]*"| href="(?P<href>[^"]*)")?>'
)
_SLACK_BLOCK = re.compile(r"<pre>(?:<code[^>]*>)?(.*?)(?:</code>)?</pre>", re.DOTALL)
_SLACK_QUOTE = re.compile(r"<blockquote>(.*?)</blockquote>", re.DOTALL)
_SLACK_MARKS = {"b": "*", "i": "_", "s": "~", "code": "`"}
_STYLE_TAG = re.compile(r"<(/?)(b|i|s)>")
_RANGE_TAG = re.compile(r"<(/?)(pre|code|b|i|s)(?: [^>]*)?>")
_LINK_TAG = re.compile(r'<a href="(?P<address>[^"]*)">(?P<label>.*?)</a>')
_SLACK_SPECIAL = re.compile(r"<([^<>|]+)(?:\|([^<>]*))?>")


class StyledRange(NamedTuple):
    """A part of a text that has a style: one of Telegram's tags."""

    start: int
    length: int
    tag: str


def telegram_html(markdown: str) -> str:
    """Markdown as Telegram's HTML: its few tags, properly nested, the rest as plain text."""
    out: list[str] = []
    lines = markdown.replace("\x00", "").split("\n")
    start = 0
    while start < len(lines):
        start = _write_block(lines, start, out)
    return "\n".join(out).strip("\n")


def discord_markdown(markdown: str) -> str:
    """Markdown as Discord shows it: a table becomes a code block, where its columns line up."""
    out: list[str] = []
    in_table = False
    for line in markdown.split("\n"):
        is_row = bool(_TABLE_ROW.match(line))
        is_row = is_row and (in_table or not open_fence("\n".join(out)))
        if is_row != in_table:
            out.append("```")
            in_table = is_row
        out.append(line)
    return "\n".join([*out, "```"] if in_table else out)


def slack_mrkdwn(markdown: str) -> str:
    """Markdown in Slack's own marks.

    It is made from Telegram's HTML, which is properly nested and escaped as Slack wants
    it, so that nothing in the text can notify people or the whole channel.
    """
    return _slack_marks(_with_quotes(telegram_html(markdown)))


def whatsapp_text(markdown: str) -> str:
    """Markdown in WhatsApp's own marks, which are Slack's but for links and escapes."""
    text = _LINK_TAG.sub(_spelled_link, telegram_html(markdown))
    return html.unescape(_slack_marks(_with_quotes(text)))


def styled_ranges(markdown: str) -> tuple[str, tuple[StyledRange, ...]]:
    """Markdown as plain text, and which parts of it have a style; positions count UTF-16 units, as Signal does."""
    text = telegram_html(markdown)
    if "<a " in text:
        text = _LINK_TAG.sub(_spelled_link, text)
    parts = _RANGE_TAG.split(_with_quotes(text))
    plain, open_tags = parts[::3], list[tuple[str, int]]()
    if "&" in text:
        plain = list(map(html.unescape, plain))
    joined = "".join(plain)
    units = len if joined.isascii() else _utf16_units
    ranges: dict[tuple[str, int], StyledRange] = {}
    ends = accumulate(map(units, plain))
    for position, closing, name in zip(ends, parts[1::3], parts[2::3]):  # noqa: B905 - no tag after the last
        if not closing:
            open_tags.append((name, position))
            continue
        opened = open_tags.pop()
        tag, start = opened
        if position > start and opened not in ranges:
            ranges[opened] = StyledRange(start, position - start, tag)
    return joined, tuple(ranges.values())


def _utf16_units(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-le")) // 2


def matrix_html(markdown: str) -> str:
    """Markdown as the HTML of Matrix, where a line ends with a tag."""
    blocks = re.split(r"(<pre>.*?</pre>)", telegram_html(markdown), flags=re.DOTALL)
    return "".join(
        block if block.startswith("<pre>") else block.replace("\n", "<br/>")
        for block in blocks
    )


def slack_length(markdown: str) -> int:
    """The length of a text as Slack counts it, at most: it counts escaped characters."""
    brackets = markdown.count("<") + markdown.count(">")
    return len(markdown) + 4 * markdown.count("&") + 3 * brackets


def slack_plain_text(text: str, me: str) -> str:
    """A message from Slack as plain text, without the mention of our own user id."""

    def spell(found: re.Match[str]) -> str:
        target, label = found[1], found[2]
        if target == f"@{me}":
            return ""
        if target.startswith(("@", "#", "!")):
            mark = "#" if target[0] == "#" else "@"
            return f"{mark}{(label or target[1:]).lstrip('@#')}"
        return target if not label or label == target else f"{label} ({target})"

    return html.unescape(_SLACK_SPECIAL.sub(spell, text)).strip()


def _spelled_link(found: re.Match[str]) -> str:
    """A link where only its address can be followed."""
    address, label = found["address"], found["label"]
    return address if label == address else f"{label} ({address})"


def _with_quotes(text: str) -> str:
    """Telegram's HTML with quoted lines as most platforms mark them."""
    if "<blockquote>" not in text:
        return text
    return _SLACK_QUOTE.sub(
        lambda found: "\n".join(f"> {line}" for line in found[1].split("\n")), text
    )


def _slack_marks(text: str) -> str:
    """Telegram's HTML with Slack's marks in place of its tags."""
    if "<" not in text:
        return text
    text = _SLACK_BLOCK.sub(r"```\n\1\n```", text)
    for name, mark in _SLACK_MARKS.items():
        text = text.replace(f"<{name}>", mark).replace(f"</{name}>", mark)
    return _SLACK_TAG.sub(_slack_mark, text)


def _slack_mark(found: re.Match[str]) -> str:
    if found["name"] != "a":
        return _SLACK_MARKS.get(found["name"], "")
    if found["end"]:
        return ">"
    address = found["href"].replace("&quot;", "%22").replace("&#x27;", "%27")
    return f"<{address.replace('|', '%7C')}|"


def _write_block(lines: list[str], start: int, out: list[str]) -> int:
    """Writes the block that begins at a line; returns where the next one begins."""
    line = lines[start]
    mark = line.lstrip()[:1]  # decides which block it can be
    if not mark:
        out.append(line)
    elif mark in "`~" and (fence := _FENCE.match(line)):
        return _write_code(lines, start, fence, out)
    elif mark in _GROUPS and _GROUPS[mark].match(line):
        end = start + 1
        while end < len(lines) and _GROUPS[mark].match(lines[end]):
            end += 1
        out.append((_quote if mark == ">" else _table)(lines[start:end]))
        return end
    elif mark == "#" and (heading := _HEADING.match(line)):
        words = heading[1].rstrip().rstrip("#").rstrip()
        out.append(f"<b>{_inline(words, bold=False)}</b>" if words else "")
    elif mark in "-*_" and _RULE.match(line):
        out.append("———")
    else:
        bullet = _BULLET.match(line) if mark in "-*+" else None
        text = f"{bullet[1]}• {line[bullet.end() :]}" if bullet else line
        out.append(_inline(text))
    return start + 1


def _write_code(
    lines: list[str], start: int, fence: re.Match[str], out: list[str]
) -> int:
    marks, end = fence["marks"], start + 1
    while end < len(lines):
        closing = lines[end].strip()
        if len(closing) >= len(marks) and set(closing) == {marks[0]}:
            break
        end += 1
    code = html.escape("\n".join(lines[start + 1 : end]), quote=False)
    if not code.strip():
        out.append("")
    elif language := fence["language"]:
        name = html.escape(language)
        out.append(f'<pre><code class="language-{name}">{code}</code></pre>')
    else:
        out.append(f"<pre>{code}</pre>")
    return end + 1


def _quote(lines: list[str]) -> str:
    text = "\n".join(_inline(_QUOTE.sub("", line)) for line in lines)
    return f"<blockquote>{text}</blockquote>"


def _table(lines: list[str]) -> str:
    """Telegram has no tables: the source, in a font where its columns line up."""
    source = "\n".join(lines)
    return f"<pre>{html.escape(source, quote=False)}</pre>"


def _inline(text: str, *, bold: bool = True) -> str:
    """One line. Code and links are replaced by placeholders while the rest is styled."""
    if "`" not in text and "[" not in text:
        return _styled(html.escape(text, quote=False), bold=bold)
    finished: list[str] = []

    def set_aside(tagged: str) -> str:
        finished.append(tagged)
        return f"\x00{len(finished) - 1}\x00"

    def code(found: re.Match[str]) -> str:
        return set_aside(f"<code>{html.escape(found[2].strip(), quote=False)}</code>")

    def link(found: re.Match[str]) -> str:
        label = _styled(html.escape(found[1] or found[2], quote=False), bold=bold)
        return set_aside(f'<a href="{html.escape(found[2])}">{label}</a>')

    text = _LINK.sub(link, _CODE.sub(code, text))
    text = _styled(html.escape(text, quote=False), bold=bold)
    while _PLACEHOLDER.search(text):
        text = _PLACEHOLDER.sub(lambda found: finished[int(found[1])], text)
    return text


def _styled(text: str, *, bold: bool) -> str:
    """Turns pairs of marks into tags. A pair that would cross another stays as it is."""
    for style in _STYLES:
        if style.mark in text:
            text = "".join(_paired(text, style, bold=bold))
    return text


def _paired(text: str, style: _Style, *, bold: bool) -> Iterator[str]:
    """The parts of a text with one style. Both marks are found first: a text of openers is read once, not once for each."""
    ends = [found.start() for found in style.closes.finditer(text)]
    size, at = len(style.mark), 0
    for opener in style.opens.finditer(text) if ends else ():
        begin = opener.start()
        if begin < at:
            continue
        start = begin + size
        place = bisect_left(ends, start + 1)
        if place == len(ends):
            break
        end = ends[place]
        yield text[at:begin]
        at = end + size
        yield _tagged(text[start:end], style, bold=bold)
    yield text[at:]


def _tagged(inner: str, style: _Style, *, bold: bool) -> str:
    if style.tag == "b" and not bold:
        return inner
    if "<" in inner and not _is_balanced(inner):
        return f"{style.mark}{inner}{style.mark}"
    return f"<{style.tag}>{inner}</{style.tag}>"


def _is_balanced(text: str) -> bool:
    """Whether every tag in the text is closed in it, in order."""
    open_tags: list[str] = []
    for closing, name in _STYLE_TAG.findall(text):
        if not closing:
            open_tags.append(name)
        elif not open_tags or open_tags.pop() != name:
            return False
    return not open_tags
