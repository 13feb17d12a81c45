"""`ModelAdapter` calls one model at one address. It moves the bytes; a `Codec` knows what they mean.

A codec does no I/O: it builds the request's bytes, and its `Reader` turns server events into model events. So every
rule about a format can be tested without a socket.
"""

import time
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from typing import Protocol

import msgspec

from hermes import __version__
from hermes.errors import ModelError
from hermes.images.image_resize import ImageLimits
from hermes.providers import retry_rules
from hermes.providers.catalogue import with_cost
from hermes.providers.control_tokens import without_control_tokens
from hermes.providers.endpoint import ModelEndpoint
from hermes.providers.http_client import Http, HttpReply, HttpTimeouts, TransportFailure
from hermes.providers.image_encoding import load_pictures
from hermes.providers.opaque_items import ABSENT, is_present
from hermes.providers.provider_table import is_local
from hermes.providers.request_prefix import Prefixes, Writer, build_body
from hermes.providers.sse import MAX_EVENT_BYTES, BrokenEvents, EventParser, ServerEvent
from hermes.providers.tool_names import own_names, with_own_names
from hermes.schema.messages import AssistantMessage, FinishReason, ToolCall
from hermes.schema.model import ModelEvent, ModelRequest, ReplyFinished

PLACEHOLDER_KEY = "none"  # local servers want a key but don't check it
_MAX_MODEL_LIST_BYTES = 8 * 2**20
_MIN_MASKED_KEY_CHARACTERS = 6


class StreamBroken(Exception):
    """The stream is not in the wire format, or was cut off."""


class ErrorFrame(Exception):
    """The provider reported an error inside the stream."""

    def __init__(self, body: bytes) -> None:
        super().__init__("the provider reported an error")
        self.body = body


def checked_calls(calls: Iterable[ToolCall]) -> tuple[ToolCall, ...]:
    """Returns the calls of a reply. Raises StreamBroken if one has no id or no name."""
    found = tuple(calls)
    if not all(call.id and call.name for call in found):
        raise StreamBroken("a tool call has no id or no name")
    return found


def settled_finish(finish: FinishReason, calls: Sequence[object]) -> FinishReason:
    """Returns why a reply ended. Servers disagree on the word for a reply with tool calls."""
    if finish in {"stop", "tool_calls"}:
        return "tool_calls" if calls else "stop"
    return finish


class Reader(Protocol):
    """Reads one reply. `done` is true once the protocol's own end has come."""

    done: bool

    def feed(self, event: ServerEvent) -> list[ModelEvent]: ...

    def whole(self, body: bytes) -> list[ModelEvent]:
        """Reads a reply that came as one JSON object, from a server that does not stream."""
        ...

    def message(self) -> AssistantMessage:
        """Returns the whole reply. Raises StreamBroken unless it ended as the protocol says."""
        ...


class Codec(Writer, Protocol):
    """One wire format."""

    def url(self, endpoint: ModelEndpoint) -> str: ...

    def models_url(self, endpoint: ModelEndpoint) -> str: ...

    def headers(self, key: str) -> Mapping[str, str]: ...

    def reader(self, endpoint: ModelEndpoint) -> Reader: ...


class ModelAdapter:
    """Implements the `Model` port for one attempt, without retries."""

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
        """Loads the HTTP client ahead of the first call."""
        self._http.warm(self.endpoint.base_url)

    async def close(self) -> None:
        """Closes the connections, which all adapters of one `Http` share."""
        await self._http.aclose()

    def caller(self, model: str) -> retry_rules.CalledService:
        """Describes this service for error messages."""
        endpoint = self.endpoint
        return retry_rules.CalledService(
            provider=endpoint.provider,
            model=model,
            base_url=endpoint.base_url,
            quirks=endpoint.quirks,
            key_variable=endpoint.key_variable,
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
        self._prefixes.remember(request, settled)
        return without_control_tokens(body) if is_local(endpoint.base_url) else body

    async def list_models(self, key: str = "") -> list[str]:
        """Returns the names that GET /models lists. Raises ModelError if the server can't be asked."""
        body = await self._get(self._codec.models_url(self.endpoint), key)
        try:
            listed = msgspec.json.decode(body, type=_Listing)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise retry_rules.malformed(
                self.caller(""), f"its list of models can't be read: {error}"
            ) from error
        return [model.id for model in listed.data]

    async def check_key(self, key: str) -> None:
        """Raises ModelError for a wrong key, at a service that lists its models to everyone. Costs nothing."""
        if path := self.endpoint.quirks.key_check_path:
            await self._get(self.endpoint.base_url + path, key)

    async def _get(self, url: str, key: str) -> bytes:
        """Reads a small JSON document of the service. Raises ModelError."""
        caller = self.caller("")
        headers = self._headers("application/json", key)
        try:
            reply = await self._http.send("GET", url, headers, b"", self.deadlines)
            async with reply:
                await _require_ok(reply, caller, key)
                return await reply.read_all(_MAX_MODEL_LIST_BYTES)
        except TransportFailure as failure:
            raise retry_rules.from_transport(caller, failure) from failure

    async def _choose(self, key: str) -> None:
        """Uses the first model that the server lists, because nobody named one."""
        names = await self.list_models(key)
        if not names:
            raise retry_rules.malformed(
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
        """Streams a reply. Ends with `ReplyFinished` or raises ModelError; closing it closes the connection at once."""
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
                chunk = await _first_bytes(reply)
                if not _is_event_stream(chunk, reply.headers.get("content-type", "")):
                    for item in await _read_whole(reply, chunk, reader, caller, key):
                        yield with_own_names(item, names)
                parser = EventParser()
                while not reader.done and chunk:
                    for event in parser.feed(chunk):
                        for item in reader.feed(event):
                            yield with_own_names(item, names)
                        if reader.done:
                            break
                    else:
                        chunk = await reply.read()
                message = reader.message()
                if reader.done:
                    await reply.drain()
        except (TransportFailure, StreamBroken, BrokenEvents, ErrorFrame) as error:
            raise _model_error(caller, error, key) from error
        usage = with_cost(message.usage, endpoint.facts) if message.usage else None
        finished = msgspec.structs.replace(
            message, provider=endpoint.provider, model=endpoint.model, usage=usage
        )
        yield with_own_names(ReplyFinished(finished), names)


def _model_error(
    caller: retry_rules.CalledService, error: Exception, key: str
) -> ModelError:
    """What a failure in the middle of a reply means."""
    if isinstance(error, TransportFailure):
        return retry_rules.from_transport(caller, error)
    if isinstance(error, ErrorFrame):
        return retry_rules.from_frame(caller, _without_key(error.body, key))
    return retry_rules.malformed(caller, str(error))


async def _require_ok(
    reply: HttpReply, caller: retry_rules.CalledService, key: str
) -> None:
    if reply.status != 200:
        body = _without_key(await reply.read_error(), key)
        raise retry_rules.from_status(
            caller, reply.status, body, reply.headers, time.time()
        )


async def _first_bytes(reply: HttpReply) -> bytes:
    """Reads enough of the body to tell what it is, whatever its content type says."""
    start = b""
    while len(start.lstrip()) < len(b"retry:") and (piece := await reply.read()):
        start += piece
    return start


def _is_event_stream(start: bytes, kind: str) -> bool:
    """Whether a body holds server-sent events. Some servers send those as text/plain, or answer with JSON instead."""
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    is_declared = kind.startswith("text/event-stream") and not text.startswith(b"{")
    return is_declared or text.startswith(_EVENT_LINES)


_EVENT_LINES = (b"data:", b"event:", b":", b"id:", b"retry:", b"error:")


async def _read_whole(
    reply: HttpReply,
    start: bytes,
    reader: Reader,
    caller: retry_rules.CalledService,
    key: str,
) -> list[ModelEvent]:
    """Returns the events of a reply that came as one JSON object. Raises ModelError if it is something else."""
    kind = reply.headers.get("content-type", "")
    body = _without_key(start + await reply.read_all(MAX_EVENT_BYTES), key)
    words, _ = retry_rules.explain(body, kind)
    title = kind.split(";")[0] or "no content type"
    problem = retry_rules.malformed(
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
    if len(key) < _MIN_MASKED_KEY_CHARACTERS:
        return body
    return body.replace(key.encode(), b"********")


class _Refusal(msgspec.Struct):
    error: msgspec.Raw = ABSENT


class _Listed(msgspec.Struct):
    id: str


class _Listing(msgspec.Struct):
    data: list[_Listed] = []
