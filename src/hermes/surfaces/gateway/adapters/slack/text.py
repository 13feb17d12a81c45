"""Texts as Slack writes them: Markdown into its own marks, and what people write there into plain text."""

import html
import re

from hermes.surfaces.gateway.adapters.telegram.html import telegram_html

_TAG = re.compile(
    r'<(?P<end>/?)(?P<name>pre|code|a|b|i|s)(?: class="[^"]*"| href="(?P<href>[^"]*)")?>'
)
_BLOCK = re.compile(r"<pre>(?:<code[^>]*>)?(.*?)(?:</code>)?</pre>", re.DOTALL)
_QUOTE = re.compile(r"<blockquote>(.*?)</blockquote>", re.DOTALL)
_MARKS = {"b": "*", "i": "_", "s": "~", "code": "`"}
_SPECIAL = re.compile(r"<([^<>|]+)(?:\|([^<>]*))?>")


def mrkdwn(markdown: str) -> str:
    """Markdown in Slack's marks. The few tags of Telegram lie between: properly nested, and escaped as Slack wants it,
    so that nothing in the text can call people or the whole channel."""
    text = telegram_html(markdown)
    text = _QUOTE.sub(
        lambda found: "\n".join(f"> {line}" for line in found[1].split("\n")), text
    )
    return _TAG.sub(_mark, _BLOCK.sub(r"```\n\1\n```", text))


def _mark(found: re.Match[str]) -> str:
    if found["name"] != "a":
        return _MARKS.get(found["name"], "")
    if found["end"]:
        return ">"
    address = (
        found["href"]
        .replace("&quot;", "%22")
        .replace("&#x27;", "%27")
        .replace("|", "%7C")
    )
    return f"<{address}|"


def size(markdown: str) -> int:
    """How long it is at most, as Slack counts: it counts what was escaped."""
    return (
        len(markdown)
        + 4 * markdown.count("&")
        + 3 * (markdown.count("<") + markdown.count(">"))
    )


def plain(text: str, me: str) -> str:
    """What somebody wrote, without our name."""

    def spelled(found: re.Match[str]) -> str:
        target, label = found[1], found[2]
        if target == f"@{me}":
            return ""
        if target.startswith(("@", "#", "!")):
            mark = "#" if target[0] == "#" else "@"
            return f"{mark}{(label or target[1:]).lstrip('@#')}"
        return target if not label or label == target else f"{label} ({target})"

    return html.unescape(_SPECIAL.sub(spelled, text)).strip()
