"""One turn as a client sees it: pieces of text as they come, then how it ended.

The turn belongs to the session: it continues when nobody listens any more.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from typing import Any

import msgspec

from hermes.app import App
from hermes.app.feed import SessionFeed
from hermes.app.feed_inbox import FeedItem, Inbox
from hermes.app.session_service import SessionService
from hermes.errors import HermesError
from hermes.primitives.tasks import cancel_and_wait
from hermes.schema.events import (
    PictureReduced,
    PictureWithheld,
    TurnChecked,
    TurnEnded,
    TurnStarted,
)
from hermes.schema.messages import AssistantMessage, Image, ToolCall, Usage
from hermes.surfaces.gateway.api_server.client_tools import ClientTools

_STREAM_KEEP_ALIVE_S = 10.0
"""Without text for so long, the client is told that the turn still runs."""
_RESTARTED = "\n\n[The answer was cut off. It starts again below.]\n\n"
_MAX_ARGUMENT_CHARACTERS = 120
STOPPED = "stopped"
"""The reason of a turn that ended because this process stops."""


class TextPiece(msgspec.Struct, frozen=True):
    """More of the answer; empty to say that the turn still runs."""

    text: str = ""


class End(msgspec.Struct, frozen=True):
    """How the turn ended."""

    reason: str
    detail: str = ""
    usage: Usage = Usage()
    cut: bool = False
    """The model reached its limit of tokens."""
    calls: tuple[ToolCall, ...] = ()
    """Calls of the caller's tools, which it runs itself; the turn goes on with their results."""


class TurnStream:
    """Follows the turn that answers one message."""

    def __init__(
        self,
        app: App,
        service: SessionService,
        session: str,
        tools: ClientTools,
        *,
        show_tools: bool,
    ) -> None:
        self._app = app
        self._tools = tools
        self._epoch = 0
        self._last_row = 0
        self._service = service
        self._session = session
        self._show_tools = show_tools
        self._turn = ""
        self._message = ""  # what was streamed of the message that is being written
        self._said = False
        self._cut = False
        self.seq = 0
        self.part = 0
        """How often the turn went on with results: each time it has a response of its own."""

    async def submit(
        self, text: str, images: tuple[Image, ...]
    ) -> AsyncGenerator[TextPiece | End]:
        """Submits a message and yields its answer; `seq` is set before the first piece."""
        with self._app.feed.session_inbox(self._session) as inbox:
            self._epoch, self.seq = await self._service.submit(
                self._session, text, images=images
            )
            self._last_row = self.seq
            yield TextPiece()
            async for piece in self._follow(inbox):
                yield piece

    async def resume(
        self, results: Mapping[str, str]
    ) -> AsyncGenerator[TextPiece | End]:
        """Goes on with the results of the caller's tools."""
        with self._app.feed.session_inbox(self._session) as inbox:
            self._tools.resolve(self._session, results)
            self._said = False  # this response begins anew
            self.part += 1
            yield TextPiece()
            async for piece in self._follow(inbox):
                yield piece

    async def _follow(self, inbox: Inbox) -> AsyncGenerator[TextPiece | End]:
        service = self._service
        events = SessionFeed(
            self._app,
            self._app.feed,
            self._session,
            epoch=self._epoch,
            after=self._last_row,
            interval_s=0.0,
        ).follow(inbox)
        idle = asyncio.ensure_future(service.idle(self._session))
        called = asyncio.ensure_future(self._tools.next_calls(self._session))
        coming: asyncio.Future[list[FeedItem]] | None = None
        try:
            while True:
                coming = coming or asyncio.ensure_future(anext(events))
                waited = {coming, called} | ({idle} if not idle.done() else set())
                done, _ = await asyncio.wait(
                    waited,
                    timeout=_STREAM_KEEP_ALIVE_S,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                if coming in done:
                    for item in coming.result():
                        self._last_row = max(self._last_row, item.seq)
                        for piece in self._pieces_of(item.event):
                            yield piece
                            if isinstance(piece, End):
                                return
                    coming = None
                elif called in done:
                    yield End("tool_calls", calls=called.result())
                    return
                elif idle in done and isinstance(
                    error := idle.exception(), HermesError
                ):
                    yield End("failed", error.message)
                    return
                elif not done and idle.done():  # its end was not heard
                    yield await asyncio.to_thread(self._looked_up)
                    return
                elif not done:
                    yield TextPiece()
        finally:
            await cancel_and_wait(*filter(None, (coming, idle, called)))
            self._tools.followed(self._session)

    def _pieces_of(self, event: Mapping[str, Any]) -> list[TextPiece | End]:
        """The pieces that an event adds."""
        kind, turn = event["type"], event.get("turn_id")
        if event.get("session_id") != self._session:
            return []
        if kind == "agent.turn.started" and self.seq in event.get("inputs", ()):
            self._turn = str(turn)
        if self._turn and turn == self._turn:
            return self._of_turn(kind, event)
        return []

    def _of_turn(self, kind: str, event: Mapping[str, Any]) -> list[TextPiece | End]:
        found: list[TextPiece | End] = []
        match kind:
            case "feed.partial":
                found = self._unstreamed(str(event["text"]))
            case "agent.message.delta":
                found = [self._next_paragraph(str(event["text"]))]
            case "agent.message.assistant":
                found = self._whole(str(event.get("text", "")))
                names = [str(call["name"]) for call in event.get("tool_calls", ())]
                self._tools.expect(self._session, names)
                self._cut = event.get("finish") == "length"
            case "agent.model.retried" if self._message:
                self._message = ""
                found = [TextPiece(_RESTARTED)]
            case "agent.turn.checked":
                gap = "\n\n" if self._said else ""
                found = [TextPiece(f"{gap}[{event['detail']}]")]
            case "agent.login.expired":
                words = f"{event['detail']} Sign in again: {event['command']}"
                found = [TextPiece(_remark(words))]
            case "agent.picture.reduced" | "agent.picture.withheld":
                found = [TextPiece(_remark(str(event["detail"])))]
            case "agent.tool.started" if self._show_tools:
                self._said = True
                found = [
                    TextPiece(
                        f"\n\n`{event['name']}` {str(event['arguments'])[:_MAX_ARGUMENT_CHARACTERS]}\n\n"
                    )
                ]
            case "agent.turn.ended":
                usage = msgspec.convert(dict(event.get("usage") or {}), Usage)
                found = [
                    End(
                        str(event["reason"]),
                        str(event.get("detail", "")),
                        usage,
                        self._cut,
                    )
                ]
            case _:
                pass
        return found

    def _next_paragraph(self, text: str) -> TextPiece:
        """A further message of the same turn is a paragraph of its own."""
        gap = "\n\n" if self._said and not self._message else ""
        self._message += text
        return TextPiece(gap + text)

    def _whole(self, text: str) -> list[TextPiece | End]:
        """A message is complete."""
        found = self._unstreamed(text)
        self._said = self._said or bool(self._message)
        self._message = ""
        return found

    def _unstreamed(self, text: str) -> list[TextPiece | End]:
        """The part of a message that was not streamed, for example because another process wrote it."""
        if not text.startswith(self._message) or text == self._message:
            return []
        return [self._next_paragraph(text.removeprefix(self._message))]

    def _looked_up(self) -> End:
        """How our turn ended, by the log."""
        return turn_of(self._app, self._session, self.seq)[1] or End(
            "failed", "the session stopped without an answer"
        )


def _remark(detail: str) -> str:
    """A remark that is not from the model."""
    return f"[{detail}]\n\n"


def turn_of(app: App, session: str, seq: int) -> tuple[str, End | None]:
    """The text of the turn that answered the message in a row, and how it ended; None while it runs."""
    turn, cut = "", False
    texts: list[str] = []
    for row in app.store.log.every_event(session):
        event = row.event
        if isinstance(event, TurnStarted) and seq in event.inputs:
            turn = row.turn
        if not turn or row.turn != turn:
            continue
        if isinstance(event, AssistantMessage):
            texts += [event.text] if event.text else []
            cut = event.finish == "length"
        elif isinstance(event, PictureReduced | PictureWithheld | TurnChecked):
            texts.append(f"[{event.detail}]")
        elif isinstance(event, TurnEnded):
            return "\n\n".join(texts), End(
                event.reason, event.detail, event.usage or Usage(), cut
            )
    return "\n\n".join(texts), None
