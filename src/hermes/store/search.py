"""Message search for either database: which text is searched, the limits of a query, and its results."""

import re
from collections.abc import Iterator

import msgspec

from hermes.errors import StoreError
from hermes.store.tokenizer import match_expression
from hermes.text.translation import translator

t = translator(__name__)


_MAX_QUERY_CHARS = 1000
_SNIPPET_CHARS = 160


class MessageHit(msgspec.Struct, frozen=True):
    """A message that was found, with a snippet."""

    session: str
    seq: int
    ts: float
    role: str
    title: str
    snippet: str


def require_searchable(query: str) -> None:
    """Raises for a query that is too long or has no word."""
    if len(query) > _MAX_QUERY_CHARS:
        hint = t.later(
            "Use at most {limit} characters.",
            limit=_MAX_QUERY_CHARS,
        )
        raise StoreError(t.later("the search text is too long"), hint=hint)
    if not match_expression(query, prefix=False):
        raise StoreError(
            t.later("nothing to search for"),
            hint=t.later("Give at least one word (letters or digits)."),
        )


def snippet(text: str, query: str) -> str:
    """Returns a line of the text around the first matching word."""
    words = [re.escape(word) for word in re.findall(r"\w+", query)]
    found = re.search("|".join(words), text, re.IGNORECASE) if words else None
    start = max(0, (found.start() if found else 0) - _SNIPPET_CHARS // 3)
    cut = text[start : start + _SNIPPET_CHARS]
    line = " ".join(cut.split())
    return f"{'…' if start else ''}{line}{'…' if start + _SNIPPET_CHARS < len(text) else ''}"


class _Call(msgspec.Struct):
    name: str = ""
    arguments: str = ""


class _Text(msgspec.Struct):
    text: str = ""
    tool_calls: list[_Call] = []


_decode = msgspec.json.Decoder(_Text).decode


def searchable(data: bytes | str) -> str:
    """Returns the text of a message; empty if it can't be read, which the full check reports."""
    try:
        return "\n".join(_parts(_decode(data)))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""


def _parts(message: _Text) -> Iterator[str]:
    yield message.text
    for call in message.tool_calls:
        yield f"{call.name} {call.arguments}"
