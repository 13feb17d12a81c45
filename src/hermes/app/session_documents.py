"""A session as a document for people or programs: Markdown, a page of its own, JSON, or the rows of its log."""

import html
import re
from collections.abc import Iterable, Iterator
from typing import Literal, TypeAlias

import msgspec

from hermes.schema.messages import AssistantMessage, Message, ToolFinished, UserMessage
from hermes.store import Store
from hermes.store.sessions import SessionInfo

DocumentFormat: TypeAlias = Literal["jsonl", "md", "html", "json"]
"""`jsonl` are the rows of the log, which `hermes sessions import` reads."""

MEDIA_TYPES: dict[DocumentFormat, str] = {
    "jsonl": "application/x-ndjson",
    "md": "text/markdown",
    "html": "text/html",
    "json": "application/json",
}
_FENCE = re.compile(
    r"^(```|~~~)[^\n]*\n(.*?)(?:^\1[ \t]*$|\Z)", re.MULTILINE | re.DOTALL
)
_STYLE = (
    ":root{color-scheme:light dark}body{font:16px/1.6 system-ui,sans-serif;max-width:46rem;margin:2rem auto;"
    "padding:0 1rem}article{margin:1.5rem 0}h2{font-size:1rem;margin:0 0 .3rem;opacity:.7}"
    "pre{overflow:auto;padding:.8rem;border:1px solid #8886;border-radius:8px;font:13px/1.5 ui-monospace,monospace}"
    ".text{white-space:pre-wrap;overflow-wrap:anywhere}.you{border-left:3px solid #544bdc;padding-left:1rem}"
)


def session_document(
    store: Store, info: SessionInfo, kind: DocumentFormat
) -> Iterable[str]:
    """The lines of a document."""
    if kind == "jsonl":
        return store.transfer.export(info.id)
    said = store.log.messages(info.id)
    if kind == "json":
        return [_as_json(info, said)]
    if kind == "md":
        return _as_markdown(info, said)
    return _as_html(info, said)


def title_of(info: SessionInfo) -> str:
    """The first line of the title; without one, the id."""
    return info.title.strip().partition("\n")[0] or info.id


def _as_json(info: SessionInfo, said: list[Message]) -> str:
    messages = [{"role": type(one).role} | msgspec.to_builtins(one) for one in said]
    document = {"session": info, "messages": messages}
    return msgspec.json.format(msgspec.json.encode(document)).decode()


def _spoken(said: list[Message]) -> Iterator[tuple[str, str]]:
    """Who said what, without calls and without what Hermes sent to the model by itself."""
    for one in said:
        is_internal = isinstance(one, UserMessage) and one.origin != "user"
        if isinstance(one, ToolFinished) or is_internal or not one.text.strip():
            continue
        yield "You" if isinstance(one, UserMessage) else "Hermes", one.text.strip()


def _as_markdown(info: SessionInfo, said: list[Message]) -> Iterator[str]:
    yield f"# {title_of(info)}"
    for who, text in _spoken(said):
        yield f"\n## {who}\n\n{text}"


def _as_html(info: SessionInfo, said: list[Message]) -> Iterator[str]:
    title = html.escape(title_of(info))
    yield (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{_STYLE}</style></head><body><h1>{title}</h1>"
    )
    calls = {
        call.id: call
        for one in said
        if isinstance(one, AssistantMessage)
        for call in one.tool_calls
    }
    for one in said:
        if isinstance(one, ToolFinished):
            call = calls.get(one.call_id)
            given = html.escape(call.arguments if call else "")
            yield (
                f"<details><summary>{html.escape(one.name)}</summary><pre>{given}</pre>"
                f"<pre>{html.escape(one.text)}</pre></details>"
            )
        else:
            yield from (_article(who, text) for who, text in _spoken([one]))
    yield "</body></html>"


def _article(who: str, text: str) -> str:
    """A message: code in frames, the rest as it was written."""
    parts: list[str] = []
    at = 0
    for fence in _FENCE.finditer(text):
        parts.append(_paragraph(text[at : fence.start()]))
        parts.append(f"<pre>{html.escape(fence[2])}</pre>")
        at = fence.end()
    parts.append(_paragraph(text[at:]))
    name = "you" if who == "You" else "hermes"
    return f'<article class="{name}"><h2>{who}</h2>{"".join(parts)}</article>'


def _paragraph(text: str) -> str:
    if not text.strip():
        return ""
    return f'<div class="text">{html.escape(text.strip())}</div>'
