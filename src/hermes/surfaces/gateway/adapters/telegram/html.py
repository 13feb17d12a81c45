"""Markdown as Telegram's HTML: the few tags it knows, always properly nested, everything else as plain text."""

import html
import re

_FENCE = re.compile(r"^ {0,3}(?P<marks>`{3,}|~{3,})\s*(?P<language>[\w+#.\-]*)[^\n]*$")
_HEADING = re.compile(r"^ {0,3}#{1,6}\s+(.*?)\s*#*\s*$")
_BULLET = re.compile(r"^(\s*)[-*+]\s+")
_RULE = re.compile(r"^ {0,3}([-*_])(?:\s*\1){2,}\s*$")
_QUOTE = re.compile(r"^ {0,3}>\s?")
_TABLE = re.compile(r"^\s*\|.*\|\s*$")
_CODE = re.compile(r"(?<!`)(`{1,3})(?!`)(.+?)(?<!`)\1(?!`)")
_LINK = re.compile(
    r"!?\[([^\]\n]*)\]\(\s*<?(https?://[^\s<>\"]+?|tg://[^\s<>\"]+?|mailto:[^\s<>\"]+?)>?\s*\)"
)
_STYLES = (
    (re.compile(r"\*\*(?=\S)(.+?)(?<=\S)\*\*"), "b"),
    (re.compile(r"(?<!\w)__(?=\S)(.+?)(?<=\S)__(?!\w)"), "b"),
    (re.compile(r"~~(?=\S)(.+?)(?<=\S)~~"), "s"),
    (re.compile(r"(?<![\w*])\*(?=[^\s*])(.+?)(?<=[^\s*])\*(?![\w*])"), "i"),
    (re.compile(r"(?<!\w)_(?=[^\s_])(.+?)(?<=[^\s_])_(?!\w)"), "i"),
)
_HELD = re.compile("\x00(\\d+)\x00")


def telegram_html(markdown: str) -> str:
    """The whole text."""
    out: list[str] = []
    lines = markdown.replace("\x00", "").split("\n")
    place = 0
    while place < len(lines):
        place = _block(lines, place, out)
    return "\n".join(out).strip("\n")


def _block(lines: list[str], place: int, out: list[str]) -> int:
    """Writes the block that begins here; where the next one does."""
    line = lines[place]
    if fence := _FENCE.match(line):
        return _code_block(lines, place, fence, out)
    for pattern, write in ((_QUOTE, _quote), (_TABLE, _table)):
        if pattern.match(line):
            end = place
            while end < len(lines) and pattern.match(lines[end]):
                end += 1
            out.append(write(lines[place:end]))
            return end
    if heading := _HEADING.match(line):
        out.append(f"<b>{_inline(heading[1], bold=False)}</b>")
    elif _RULE.match(line):
        out.append("———")
    else:
        out.append(_inline(_BULLET.sub(r"\1• ", line)))
    return place + 1


def _code_block(
    lines: list[str], place: int, fence: re.Match[str], out: list[str]
) -> int:
    marks, end = fence["marks"], place + 1
    while end < len(lines):
        closing = lines[end].strip()
        if len(closing) >= len(marks) and set(closing) == {marks[0]}:
            break
        end += 1
    code = html.escape("\n".join(lines[place + 1 : end]), quote=False)
    language = fence["language"]
    inside = (
        f'<code class="language-{html.escape(language)}">{code}</code>'
        if language
        else code
    )
    out.append(f"<pre>{inside}</pre>" if code.strip() else "")
    return end + 1


def _quote(lines: list[str]) -> str:
    return f"<blockquote>{chr(10).join(_inline(_QUOTE.sub('', line)) for line in lines)}</blockquote>"


def _table(lines: list[str]) -> str:
    """Telegram has none: as it was written, where columns stay in line."""
    return f"<pre>{html.escape(chr(10).join(lines), quote=False)}</pre>"


def _inline(text: str, *, bold: bool = True) -> str:
    """One line. What is code or an address is held back while the rest is styled."""
    held: list[str] = []

    def hold(tagged: str) -> str:
        held.append(tagged)
        return f"\x00{len(held) - 1}\x00"

    def code(found: re.Match[str]) -> str:
        return hold(f"<code>{html.escape(found[2].strip(), quote=False)}</code>")

    def link(found: re.Match[str]) -> str:
        inside = _styled(html.escape(found[1] or found[2], quote=False), bold=bold)
        return hold(f'<a href="{html.escape(found[2])}">{inside}</a>')

    text = _LINK.sub(link, _CODE.sub(code, text))
    text = _styled(html.escape(text, quote=False), bold=bold)
    while _HELD.search(text):
        text = _HELD.sub(lambda found: held[int(found[1])], text)
    return text


def _styled(text: str, *, bold: bool) -> str:
    """Pairs of marks become tags. A pair that would cross another stays as it was written."""
    for pattern, tag in _STYLES:
        if tag == "b" and not bold:
            text = pattern.sub(r"\1", text)
            continue

        def wrap(found: re.Match[str], tag: str = tag) -> str:
            return f"<{tag}>{found[1]}</{tag}>" if _is_balanced(found[1]) else found[0]

        text = pattern.sub(wrap, text)
    return text


def _is_balanced(text: str) -> bool:
    """Whether every tag in it is closed in it, in order."""
    open_tags: list[str] = []
    for closing, name in re.findall(r"<(/?)(b|i|s)>", text):
        if not closing:
            open_tags.append(name)
        elif not open_tags or open_tags.pop() != name:
            return False
    return not open_tags
