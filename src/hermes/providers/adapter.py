"""`ModelAdapter`: one model at one address, as the `Model` port. It moves the bytes; a `Codec` knows what they mean.

A codec is pure: it builds the request's bytes, and its `Reader` turns server events into model events. So every rule
about a format can be tested without a socket.
"""

import time
from collections.abc import AsyncGenerator, Mapping
from typing import Protocol

import msgspec

from hermes import __version__
from hermes.core.image_resize import ImageLimits
from hermes.providers import error_reasons
from hermes.providers.catalogue import with_cost
from hermes.providers.endpoint import ModelEndpoint
from hermes.providers.http_client import Http, HttpReply, HttpTimeouts, TransportFailure
from hermes.providers.opaque_items import ABSENT, is_present
from hermes.providers.request_images import load_pictures
from hermes.providers.request_prefix import Prefixes, Writer, build_body
from hermes.providers.sse import MAX_EVENT, BrokenEvents, EventParser, ServerEvent
from hermes.providers.tool_names import own_names, with_own_names
from hermes.schema.messages import AssistantMessage
from hermes.schema.model import ModelEvent, ModelRequest, ReplyFinished

PLACEHOLDER_KEY = "none"  # local servers want a key and don't look at it


class StreamBroken(Exception):
    """The stream is not the wire format, or ended before its end."""


class ErrorFrame(Exception):
    """The provider reported an error inside the stream."""

    def __init__(self, body: bytes) -> None:
        super().__init__("the provider reported an error")
        self.body = body


class Reader(Protocol):
    """Reads one reply. `done` once the protocol's own end was seen."""

    done: bool

    def feed(self, event: ServerEvent) -> list[ModelEvent]: ...

    def whole(self, body: bytes) -> list[ModelEvent]:
        """Reads a whole reply, sent as one JSON object by a server that does not stream."""
        ...

    def message(self) -> AssistantMessage:
        """The whole reply; StreamBroken unless it ended as the protocol says it must."""
        ...


class Codec(Writer, Protocol):
    """One wire format."""

    def url(self, endpoint: ModelEndpoint) -> str: ...

    def models_url(self, endpoint: ModelEndpoint) -> str: ...

    def headers(self, key: str) -> Mapping[str, str]: ...

    def reader(self, endpoint: ModelEndpoint) -> Reader: ...


class ModelAdapter:
    """Implements the `Model` port for one attempt: no retries here."""

    def __init__(
        self, http: Http, endpoint: ModelEndpoint, codec: Codec, deadlines: HttpTimeouts
    ) -> None:
        self.provider = endpoint.provider
        self.name = endpoint.model
        self.endpoint = endpoint
        self.deadlines = deadlines
        self._http = http
        self._codec = codec
        self._prefixes = Prefixes()

    def warm(self) -> None:
        """Load the HTTP client ahead of the first call."""
        self._http.warm(self.endpoint.base_url)

    async def close(self) -> None:
        """Close the connections, which all adapters of one `Http` share."""
        await self._http.aclose()

    def caller(self, model: str) -> error_reasons.Caller:
        """Who failures are about."""
        endpoint = self.endpoint
        return error_reasons.Caller(
            provider=endpoint.provider,
            model=model,
            base_url=endpoint.base_url,
            quirks=endpoint.quirks,
        )

    def _headers(self, accept: str, key: str) -> dict[str, str]:
        ours = {
            "accept": accept,
            "accept-encoding": "identity",
            "user-agent": f"hermes/{__version__}",
        }
        return {**ours, **self._codec.headers(key or PLACEHOLDER_KEY)}

    async def _body(self, endpoint: ModelEndpoint, request: ModelRequest) -> bytes:
        settled = self._prefixes.find(endpoint, request)
        limits = ImageLimits(endpoint.quirks.image_bytes, endpoint.quirks.image_side)
        seen = (
            request.messages[len(settled.messages) :] if endpoint.facts.images else ()
        )
        pictures = await load_pictures(seen, limits)
        body, settled = build_body(self._codec, endpoint, request, pictures, settled)
        self._prefixes.keep(request, settled)
        return body

    async def list_models(self, key: str = "") -> list[str]:
        """The names that the server gives at GET /models; ModelError if it can't be asked."""
        caller = self.caller("")
        headers = self._headers("application/json", key)
        try:
            reply = await self._http.send(
                "GET",
                self._codec.models_url(self.endpoint),
                headers,
                b"",
                self.deadlines,
            )
            async with reply:
                await _require_ok(reply, caller, key)
                listed = msgspec.json.decode(
                    await reply.read_all(8 * 2**20), type=_Listing
                )
        except TransportFailure as failure:
            raise error_reasons.from_transport(caller, failure) from failure
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise error_reasons.malformed(
                caller, f"its list of models can't be read: {error}"
            ) from error
        return [model.id for model in listed.data]

    async def _choose(self, key: str) -> None:
        """Take the first model that the server lists, where nobody named one."""
        names = await self.list_models(key)
        if not names:
            raise error_reasons.malformed(
                self.caller(""), "it lists no models; name one in model.default"
            )
        self.endpoint = self.endpoint.at_model(names[0])
        self.name = names[0]

    async def stream(
        self,
        request: ModelRequest,
        *,
        key: str = "",
        deadlines: HttpTimeouts | None = None,
    ) -> AsyncGenerator[ModelEvent]:
        """Ends with `ReplyFinished` or raises ModelError; closing it closes the connection at once."""
        if not self.endpoint.model and not request.model:
            await self._choose(key)
        endpoint = self.endpoint.at_model(request.model)
        caller = self.caller(endpoint.model)
        body = await self._body(endpoint, request)
        reader = self._codec.reader(endpoint)
        names = own_names(request.tools)
        headers = {
            "content-type": "application/json",
            **self._headers("text/event-stream", key),
        }
        try:
            reply = await self._http.send(
                "POST",
                self._codec.url(endpoint),
                headers,
                body,
                deadlines or self.deadlines,
            )
            async with reply:
                await _require_ok(reply, caller, key)
                chunk = await _first_words(reply)
                if not _is_event_stream(chunk, reply.headers.get("content-type", "")):
                    for item in await _read_whole(reply, chunk, reader, caller, key):
                        yield with_own_names(item, names) if names else item
                    chunk = b""
                parser = EventParser()
                while not reader.done and chunk:
                    for event in parser.feed(chunk):
                        for item in reader.feed(event):
                            yield with_own_names(item, names) if names else item
                        if reader.done:
                            break
                    else:
                        chunk = await reply.read()
                message = reader.message()
                if reader.done:
                    await reply.drain()
        except TransportFailure as failure:
            raise error_reasons.from_transport(caller, failure) from failure
        except (StreamBroken, BrokenEvents) as error:
            raise error_reasons.malformed(caller, str(error)) from error
        except ErrorFrame as error:
            raise error_reasons.from_frame(
                caller, _without_key(error.body, key)
            ) from error
        usage = with_cost(message.usage, endpoint.facts) if message.usage else None
        finished = msgspec.structs.replace(
            message, provider=endpoint.provider, model=endpoint.model, usage=usage
        )
        yield (
            with_own_names(ReplyFinished(finished), names)
            if names
            else ReplyFinished(finished)
        )


async def _require_ok(reply: HttpReply, caller: error_reasons.Caller, key: str) -> None:
    if reply.status != 200:
        body = _without_key(await reply.read_error(), key)
        raise error_reasons.from_status(
            caller, reply.status, body, reply.headers, time.time()
        )


async def _first_words(reply: HttpReply) -> bytes:
    """The beginning of the body, enough to tell what it is, whatever its content type says."""
    start = b""
    while len(start.lstrip()) < len(b"retry:") and (piece := await reply.read()):
        start += piece
    return start


def _is_event_stream(start: bytes, kind: str) -> bool:
    """Whether these are server-sent events. Some servers send them as text/plain, or answer with JSON instead."""
    words = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    said = kind.startswith("text/event-stream") and not words.startswith(b"{")
    return said or words.startswith(_EVENT_LINES)


_EVENT_LINES = (b"data:", b"event:", b":", b"id:", b"retry:", b"error:")


async def _read_whole(
    reply: HttpReply,
    start: bytes,
    reader: Reader,
    caller: error_reasons.Caller,
    key: str,
) -> list[ModelEvent]:
    """The events of a reply that came as one JSON object. ModelError when it is something else."""
    kind = reply.headers.get("content-type", "")
    body = _without_key(start + await reply.read_all(MAX_EVENT), key)
    words, _ = error_reasons.explain(body, kind)
    title = kind.split(";")[0] or "no content type"
    problem = error_reasons.malformed(
        caller, f"expected a stream of events, got {title}: {words}"
    )
    try:
        if is_present(msgspec.json.decode(body, type=_Refusal).error):
            raise ErrorFrame(body)
        events = reader.whole(body)
        reader.message()
    except (
        msgspec.DecodeError,
        UnicodeDecodeError,
        RecursionError,
        StreamBroken,
    ) as error:
        raise problem from error
    reader.done = True
    return events


def _without_key(body: bytes, key: str) -> bytes:
    return body.replace(key.encode(), b"********") if len(key) > 5 else body


class _Refusal(msgspec.Struct):
    error: msgspec.Raw = ABSENT


class _Listed(msgspec.Struct):
    id: str


class _Listing(msgspec.Struct):
    data: list[_Listed] = []
