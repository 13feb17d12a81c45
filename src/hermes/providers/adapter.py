"""`ModelAdapter` calls one model at one address. It moves the bytes; a `Codec` knows what they mean.

A codec does no I/O: it builds the request's bytes, and its `Reader` turns server events into model events. So every
rule about a format can be tested without a socket.
"""

import time
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from typing import ClassVar, Protocol

import msgspec

from hermes import __version__
from hermes.errors import LoginExpiredError, ModelError
from hermes.images.image_resize import ImageLimits
from hermes.providers import model_failures
from hermes.providers.catalogue import with_cost
from hermes.providers.control_tokens import without_control_tokens
from hermes.providers.credentials import NO_KEY, Authorization, Credential
from hermes.providers.endpoint import ModelEndpoint
from hermes.providers.http_client import Http, HttpReply, HttpTimeouts, TransportFailure
from hermes.providers.image_encoding import load_pictures
from hermes.providers.opaque_items import ABSENT, is_present
from hermes.providers.provider_table import is_local
from hermes.providers.request_prefix import Prefixes, Writer, build_body, unchanged
from hermes.providers.sse import MAX_EVENT_BYTES, BrokenEvents, EventParser, ServerEvent
from hermes.providers.tool_names import own_names, with_own_names
from hermes.schema.messages import AssistantMessage, FinishReason, ToolCall
from hermes.schema.model import ModelEvent, ModelRequest, ReplyFinished, TextDelta
from hermes.text.translation import translator

t = translator(__name__)


_MAX_MODEL_LIST_BYTES = 8 * 2**20


class StreamBroken(Exception):
    """The stream is not in the wire format, or was cut off."""


class ErrorFrame(Exception):
    """The provider reported an error inside the stream."""

    def __init__(self, body: bytes) -> None:
        super().__init__(t.logged("the provider reported an error"))
        self.body = body


def checked_calls(calls: Iterable[ToolCall]) -> tuple[ToolCall, ...]:
    """Returns the calls of a reply. Raises StreamBroken if one has no id or no name."""
    found = tuple(calls)
    if not all(call.id and call.name for call in found):
        raise StreamBroken(t.logged("a tool call has no id or no name"))
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

    def headers(self) -> Mapping[str, str]:
        """Returns the headers of the format itself, beside those of the credential."""
        ...

    def reader(self, endpoint: ModelEndpoint) -> Reader: ...


class OpenAiCodec:
    """What OpenAI's two wire formats share: addresses below one base URL, and no headers of their own."""

    path: ClassVar[str]
    unsettled = 1

    def url(self, endpoint: ModelEndpoint) -> str:
        return endpoint.base_url.rstrip("/") + self.path

    def models_url(self, endpoint: ModelEndpoint) -> str:
        return endpoint.base_url.rstrip("/") + "/models"

    def headers(self) -> Mapping[str, str]:
        return {}


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

    def caller(
        self, model: str, credential: Credential = NO_KEY
    ) -> model_failures.CalledService:
        """Describes this service for error messages."""
        endpoint = self.endpoint
        return model_failures.CalledService(
            provider=endpoint.provider,
            model=model,
            base_url=endpoint.base_url,
            quirks=endpoint.quirks,
            key_variable=endpoint.key_variable,
            sign_in_advice=credential.advice,
        )

    def _headers(self, accept: str, granted: Authorization) -> dict[str, str]:
        ours = {
            "accept": accept,
            "accept-encoding": "identity",
            "user-agent": f"hermes/{__version__}",
        }
        own = self.endpoint.headers
        return {**ours, **self._codec.headers(), **own, **granted.headers}

    async def _body(self, endpoint: ModelEndpoint, request: ModelRequest) -> bytes:
        settled = self._prefixes.find(endpoint, request)
        limits = ImageLimits(endpoint.quirks.image_bytes, endpoint.quirks.image_side)
        seen = (
            request.messages[len(settled.messages) :] if endpoint.facts.images else ()
        )
        pictures = await load_pictures(seen, limits)
        clean = without_control_tokens if is_local(endpoint.base_url) else unchanged
        body, settled = build_body(
            self._codec, endpoint, request, pictures, settled, clean
        )
        self._prefixes.remember(request, settled)
        return body

    async def list_models(self, credential: Credential = NO_KEY) -> list[str]:
        """Returns the names that GET /models lists. Raises ModelError if the server can't be asked."""
        granted = await credential.acquire()
        endpoint = self.endpoint.at_address(granted.base_url)
        url = self._codec.models_url(endpoint) + endpoint.quirks.models_query
        body = await self._get(url, granted)
        try:
            listed = msgspec.json.decode(body, type=_Listing)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise model_failures.malformed(
                self.caller(""),
                t.logged("its list of models can't be read: {error}", error=error),
            ) from error
        return [model.id or model.slug for model in (*listed.data, *listed.models)]

    async def check_key(self, credential: Credential) -> None:
        """Raises ModelError for a wrong key, at a service that lists its models to everyone. Costs nothing."""
        if path := self.endpoint.quirks.key_check_path:
            granted = await credential.acquire()
            address = granted.base_url or self.endpoint.base_url
            await self._get(address + path, granted)

    async def _get(self, url: str, granted: Authorization) -> bytes:
        """Reads a small JSON document of the service. Raises ModelError."""
        caller = self.caller("")
        headers = self._headers("application/json", granted)
        try:
            reply = await self._http.send("GET", url, headers, b"", self.deadlines)
            async with reply:
                await _require_ok(reply, caller, granted)
                return await reply.read_all(_MAX_MODEL_LIST_BYTES)
        except TransportFailure as failure:
            raise model_failures.from_transport(caller, failure) from failure

    async def settle(self, credential: Credential = NO_KEY) -> None:
        """Chooses a model of the server, if nobody named one. Raises ModelError."""
        if not self.endpoint.model:
            await self._choose(credential)

    async def _choose(self, credential: Credential) -> None:
        """Uses the first model that the server lists, because nobody named one."""
        names = await self.list_models(credential)
        if not names:
            raise model_failures.malformed(
                self.caller(""),
                t.logged("it lists no models; name one in model.default"),
            )
        self.endpoint = self.endpoint.at_model(names[0])
        self.name = names[0]

    async def stream(
        self,
        request: ModelRequest,
        *,
        credential: Credential = NO_KEY,
        deadlines: HttpTimeouts | None = None,
    ) -> AsyncGenerator[ModelEvent]:
        """Streams a reply. Ends with `ReplyFinished` or raises ModelError; closing it closes the connection at once."""
        if not self.endpoint.model and not request.model:
            await self._choose(credential)
        granted = await credential.acquire()
        endpoint = self.endpoint.at_model(request.model).at_address(granted.base_url)
        caller = self.caller(endpoint.model, credential)
        body = await self._body(endpoint, request)
        reader = self._codec.reader(endpoint)
        names = own_names(request.tools)
        headers = {
            "content-type": "application/json",
            **self._headers("text/event-stream", granted),
        }
        reply: HttpReply | None = None
        try:
            reply = await self._http.send(
                "POST",
                self._codec.url(endpoint),
                headers,
                body,
                deadlines or self.deadlines,
            )
            async with reply:
                credential.observe(reply.headers, reply.status)
                await _require_ok(reply, caller, granted)
                chunk = await _first_bytes(reply)
                if not _is_event_stream(chunk, reply.headers.get("content-type", "")):
                    for item in await _read_whole(
                        reply, chunk, reader, caller, granted
                    ):
                        yield with_own_names(item, names)
                parser = EventParser()
                while not reader.done and chunk:
                    for item in _joined(_items(parser.feed(chunk), reader)):
                        yield with_own_names(item, names)
                    if not reader.done:
                        chunk = await reply.read()
                message = reader.message()
                if reader.done:
                    await reply.drain()
        except ModelError as error:
            _note_request(error, reply)
            if error.reason == "auth":
                error.renewed = await _renew(credential, granted, reply, error)
            raise
        except (TransportFailure, StreamBroken, BrokenEvents, ErrorFrame) as error:
            failure = _model_error(caller, error, granted)
            _note_request(failure, reply)
            raise failure from error
        usage = with_cost(message.usage, endpoint.facts) if message.usage else None
        finished = msgspec.structs.replace(
            message, provider=endpoint.provider, model=endpoint.model, usage=usage
        )
        yield with_own_names(ReplyFinished(finished), names)


def _items(events: Iterable[ServerEvent], reader: Reader) -> Iterator[ModelEvent]:
    """Yields what the events say, up to the reply's end."""
    for event in events:
        yield from reader.feed(event)
        if reader.done:
            return


def _joined(items: Iterator[ModelEvent]) -> Iterator[ModelEvent]:
    """Joins the words that came together. They come first also if what follows them can't be read."""
    words: list[str] = []
    try:
        for item in items:
            if isinstance(item, TextDelta):
                words.append(item.text)
                continue
            if words:
                yield TextDelta("".join(words))
                words.clear()
            yield item
    except (StreamBroken, BrokenEvents, ErrorFrame, ModelError):
        if words:
            yield TextDelta("".join(words))
        raise
    if words:
        yield TextDelta("".join(words))


async def _renew(
    credential: Credential,
    granted: Authorization,
    reply: HttpReply | None,
    failure: ModelError,
) -> bool:
    """Returns whether a credential that was rejected may be better at the next attempt."""
    try:
        return await credential.renew(granted, is_certain=not failure.rotate_once)
    except LoginExpiredError as error:
        _note_request(error, reply)
        raise


_REQUEST_IDS = ("x-request-id", "request-id", "x-amzn-requestid", "apim-request-id", "cf-ray")  # fmt: skip
_MAX_REQUEST_ID_CHARACTERS = 100


def _note_request(error: ModelError, reply: HttpReply | None) -> None:
    """Notes in a failure what the provider calls the request, and how far its answer came."""
    if reply is None:
        return
    found = next((one for name in _REQUEST_IDS if (one := reply.headers.get(name))), "")
    is_sound = found.isascii() and found.isprintable()
    error.request_id = found[:_MAX_REQUEST_ID_CHARACTERS] if is_sound else ""
    error.timing = reply.timing()


def _model_error(
    caller: model_failures.CalledService, error: Exception, granted: Authorization
) -> ModelError:
    """What a failure in the middle of a reply means."""
    if isinstance(error, TransportFailure):
        return model_failures.from_transport(caller, error)
    if isinstance(error, ErrorFrame):
        return model_failures.from_frame(caller, granted.masked(error.body))
    return model_failures.malformed(caller, str(error))


async def _require_ok(
    reply: HttpReply, caller: model_failures.CalledService, granted: Authorization
) -> None:
    if reply.status != 200:
        body = granted.masked(await reply.read_error())
        raise model_failures.from_status(
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
    caller: model_failures.CalledService,
    granted: Authorization,
) -> list[ModelEvent]:
    """Returns the events of a reply that came as one JSON object. Raises ModelError if it is something else."""
    kind = reply.headers.get("content-type", "")
    body = granted.masked(start + await reply.read_all(MAX_EVENT_BYTES))
    words, _ = model_failures.explain(body, kind)
    title = kind.split(";")[0] or t.logged("no content type")
    problem = model_failures.malformed(
        caller,
        t.logged(
            "expected a stream of events, got {title}: {words}",
            title=title,
            words=words,
        ),
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


class _Refusal(msgspec.Struct):
    error: msgspec.Raw = ABSENT


class _Listed(msgspec.Struct):
    id: str = ""
    slug: str = ""  # ChatGPT's word for it


class _Listing(msgspec.Struct):
    data: list[_Listed] = []
    models: list[_Listed] = []
