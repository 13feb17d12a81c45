"""The endpoints of OpenAI's API (chat completions, responses, models) and of Anthropic's (messages)."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias
from weakref import WeakValueDictionary

from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from hermes.app import App
from hermes.app.agent import Agent
from hermes.app.engine import EngineChoice
from hermes.primitives.recent import RecentDict
from hermes.primitives.tasks import cancel_and_wait
from hermes.schema.messages import Image
from hermes.settings import Secrets
from hermes.surfaces.gateway.api_server.anthropic_format import (
    MessagesAnswer,
    MessagesBody,
)
from hermes.surfaces.gateway.api_server.api_keys import ApiKey
from hermes.surfaces.gateway.api_server.client_tools import ClientTools
from hermes.surfaces.gateway.api_server.json_answer import json_answer
from hermes.surfaces.gateway.api_server.request_formats import (
    DEFAULT_MODEL,
    ApiRequest,
    ChatBody,
    ResponseBody,
    pictures_of,
)
from hermes.surfaces.gateway.api_server.response_formats import (
    STILL_WORKING,
    ChatAnswer,
    ResponseAnswer,
    failure,
)
from hermes.surfaces.gateway.api_server.session_lookup import (
    SURFACE,
    ApiSessions,
    RequestSession,
    response_id,
)
from hermes.surfaces.gateway.api_server.turn_stream import (
    STOPPED,
    End,
    TextPiece,
    TurnStream,
    turn_of,
)
from hermes.surfaces.web.endpoint import Endpoint, EndpointCall
from hermes.surfaces.web.errors import Refusal, json_response

log = logging.getLogger("hermes.api")

SESSION_HEADER = "x-hermes-session"
"""Names a session, in requests and in responses."""
ENGINE_HEADER = "x-hermes-engine"

_MAX_API_BODY_BYTES = 40_000_000
_MAX_REMEMBERED_MODELS = 10_000
_MAX_SUSPENDED_TURNS = 2_000
Answer: TypeAlias = ChatAnswer | ResponseAnswer | MessagesAnswer
Pieces: TypeAlias = AsyncGenerator[TextPiece | End]


class ApiTurn(NamedTuple):
    """A request that is ready to be answered."""

    key: ApiKey
    request: ApiRequest
    format: type[Answer]
    place: RequestSession
    images: tuple[Image, ...]

    @property
    def text(self) -> str:
        """The message for the session: the user's words, after instructions that are new to it."""
        text = "\n\n".join(one.text for one in self.request.now)
        instructions = self.request.instructions
        if self.place.fresh or self.request.system != self.place.system:
            instructions = self.request.system
        if self.request.format is not None:
            parts = (instructions, self.request.format.instructions)
            instructions = "\n\n".join(part for part in parts if part)
        if self.request.results:  # of calls that nobody waits for any more
            results = "\n\n".join(self.request.results.values())
            text = f"[Results of the application's tools]\n{results}\n\n{text}".strip()
        if not instructions:
            return text
        return (
            f"[Instructions of the application]\n{instructions}\n\n[The user]\n{text}"
        )


class OpenAIRoutes:
    """Handlers of the API; sessions like any other do the work."""

    def __init__(self, app: App, secrets: Secrets) -> None:
        self._app = app
        self._models: RecentDict[str, str] = RecentDict(_MAX_REMEMBERED_MODELS)
        # One request of a session at a time: a turn answers all messages that wait, and
        # each request wants an answer of its own.
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._tools = ClientTools()
        self._suspended: RecentDict[str, TurnStream] = RecentDict(_MAX_SUSPENDED_TURNS)
        """Turns that wait for results of the caller's tools, by session."""
        self.agent = Agent(
            app,
            secrets,
            approvals=app.settings.api.approvals,
            surface=SURFACE,
            choice_of=self._engine_choice,
        )
        self.agent.tools_of = self._tools.of
        self._is_stopping = False
        folder = app.settings.api.folder
        self._sessions = ApiSessions(
            app, Path(folder).expanduser() if folder else Path.home() / "hermes"
        )

    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint("GET", "/health", "open", self.health, answer=None),
            Endpoint("GET", "/v1/models", "models", self.list_models, answer=None),
            Endpoint(
                "GET", "/v1/models/{name:path}", "models", self.show_model, answer=None
            ),
            Endpoint(
                "POST",
                "/v1/chat/completions",
                "chat",
                self.chat,
                body=ChatBody,
                answer=None,
                max_body_bytes=_MAX_API_BODY_BYTES,
            ),
            Endpoint(
                "POST",
                "/v1/responses",
                "chat",
                self.respond,
                body=ResponseBody,
                answer=None,
                max_body_bytes=_MAX_API_BODY_BYTES,
            ),
            Endpoint(
                "POST",
                "/v1/messages",
                "chat",
                self.message,
                body=MessagesBody,
                answer=None,
                max_body_bytes=_MAX_API_BODY_BYTES,
            ),
            Endpoint(
                "POST",
                "/v1/messages/count_tokens",
                "chat",
                self.count_tokens,
                body=MessagesBody,
                answer=None,
                max_body_bytes=_MAX_API_BODY_BYTES,
            ),
            Endpoint(
                "GET",
                "/v1/responses/{id:path}",
                "chat",
                self.show_response,
                answer=None,
            ),
        ]

    async def stop_turns(self) -> None:
        """Ends the running turns; whoever waits for an answer is told why it has none."""
        self._is_stopping = True
        await self.agent.service.close()

    async def close(self) -> None:
        """Ends what runs."""
        await self.agent.close()

    async def health(self) -> dict[str, str]:
        """Says that the server runs."""
        return {"status": "ok"}

    def list_models(self) -> dict[str, Any]:
        """Lists the models that a request can name."""
        names = self._names()
        return {
            "object": "list",
            "data": [_model(name) for name in names],
            "has_more": False,
            "first_id": names[0],
            "last_id": names[-1],
        }

    def show_model(self, call: EndpointCall) -> dict[str, Any]:
        """Describes one model."""
        name = call.path["name"]
        if name not in self._names():
            raise _unknown_model(name)
        return _model(name)

    async def chat(self, call: EndpointCall) -> ASGIApp:
        """Answers a conversation: chat completions."""
        by_user = self._app.settings.api.by_user
        request = call.body.request(_session_header(call), by_user=by_user)
        return await self._answer(call, request, ChatAnswer)

    async def respond(self, call: EndpointCall) -> ASGIApp:
        """Answers a conversation: responses."""
        request = call.body.request(_session_header(call))
        return await self._answer(call, request, ResponseAnswer)

    async def message(self, call: EndpointCall) -> ASGIApp:
        """Answers a conversation: Anthropic's messages."""
        request = call.body.request(_session_header(call))
        return await self._answer(call, request, MessagesAnswer)

    async def count_tokens(self, call: EndpointCall) -> dict[str, int]:
        """Estimates the tokens of a request."""
        return {"input_tokens": call.body.tokens()}

    def show_response(self, call: EndpointCall) -> Response:
        """Looks up an earlier response, for a client that was cut off."""
        name = call.path["id"]
        session, seq = self._sessions.find_response(call.caller, name)
        text, end = turn_of(self._app, session, seq)
        model = self._models.get(session) or DEFAULT_MODEL
        answer = ResponseAnswer(ApiRequest(model=model, messages=()), name, 0)
        if end is None:
            body = answer.unfinished()
        elif (error := failure(end)) is not None:
            body = answer.broken(error)
        else:
            body = answer.whole(text, end)
        return json_response(body, headers=_session_headers(session))

    async def _answer(
        self, call: EndpointCall, request: ApiRequest, answer: type[Answer]
    ) -> ASGIApp:
        if request.model != DEFAULT_MODEL:
            names = await asyncio.to_thread(self._names)
            if request.model not in names:
                raise _unknown_model(request.model)
        images = await asyncio.to_thread(pictures_of, request.now, self._app.home)
        place = await self._place(call.caller, request)
        model = "" if request.model == DEFAULT_MODEL else request.model
        self._models[place.session] = model
        turn = ApiTurn(call.caller, request, answer, place, images)
        return partial(self._run_turn, turn)

    async def _place(self, key: ApiKey, request: ApiRequest) -> RequestSession:
        """The session whose calls wait for the results in the request, or else that of the conversation."""
        waiting = self._tools.session_of(tuple(request.results))
        if waiting in self._suspended and waiting.startswith(f"api-{key.id}-"):
            return RequestSession(waiting, fresh=False, lasting=True)
        place = await self._sessions.find(key, request)
        if place.fresh:
            self._tools.offer(place.session, request.tools)
        return place

    def _stream(self, turn: ApiTurn) -> tuple[TurnStream, Pieces]:
        """The turn of a request: the one that waits for its results, or a new one."""
        session = turn.place.session
        suspended = self._suspended.pop(session, None)
        if suspended is not None and turn.request.results:
            resumed = suspended.resume(turn.request.results)
            return suspended, self._with_true_end(resumed)
        if suspended is not None:  # the caller goes on without them
            self._tools.resolve(session, {})
        stream = TurnStream(
            self._app,
            self.agent.service,
            session,
            self._tools,
            show_tools=self._app.settings.api.show_tools,
        )
        return stream, self._with_true_end(stream.submit(turn.text, turn.images))

    async def _with_true_end(self, pieces: Pieces) -> Pieces:
        """The pieces of a turn. One that this process cuts off must not look like one that a person stopped."""
        async with aclosing(pieces):
            async for piece in pieces:
                is_end = isinstance(piece, End) and piece.reason == "interrupted"
                yield End(STOPPED) if is_end and self._is_stopping else piece

    async def _run_turn(
        self, turn: ApiTurn, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Runs the turn and sends its answer."""
        session = turn.place.session
        service = self.agent.service
        # Describing the engine raises what is wrong with the settings.
        engine = self.agent.describe(session).engine
        gone = asyncio.ensure_future(_wait_for_disconnect(receive))
        lock = self._locks.setdefault(session, asyncio.Lock())
        try:
            async with lock:
                stream, submitted = self._stream(turn)
                async with aclosing(_until_gone(gone, submitted)) as pieces:
                    await anext(pieces)
                    name = response_id(session, stream.seq, stream.part)
                    answer = turn.format(turn.request, name, self._app.clock.now())
                    headers = _session_headers(session, engine)
                    coming: Pieces = pieces
                    if turn.request.format is not None:
                        coming = json_answer(
                            turn.request.format,
                            pieces,
                            partial(stream.submit, images=()),
                        )
                    if turn.request.stream:
                        text, end = await _send_stream(answer, coming, headers, send)
                    else:
                        text, end = await _collect(coming)
                        body = answer.whole(text, end)
                        response = json_response(body, headers=headers)
                        await response(scope, receive, send)
                if end.calls:
                    self._suspended[session] = stream
            self._sessions.remember(turn.key, turn.request, text, session)
        except ClientDisconnect:
            log.info("the client of session %s went away", session)
            if not turn.place.lasting:  # nobody can come back for the answer
                await service.interrupt(session, by=SURFACE)
            raise
        finally:
            gone.cancel()

    def _names(self) -> list[str]:
        choices = (choice.name for choice in self.agent.choices())
        return list(dict.fromkeys((DEFAULT_MODEL, *choices)))

    def _engine_choice(self, session: str) -> EngineChoice:
        """The engine of a session: the model that its client named, and nobody to ask."""
        return EngineChoice(self._models.get(session, ""), attended=False)


async def _collect(pieces: Pieces) -> tuple[str, End]:
    """The whole text and how the turn ended. Raises what went wrong in it."""
    text = ""
    async for piece in pieces:
        if isinstance(piece, End):
            if (error := failure(piece)) is not None:
                raise error
            return text, piece
        text += piece.text
    raise AssertionError("a turn has an end")


async def _send_stream(
    answer: Answer, pieces: Pieces, headers: dict[str, str], send: Send
) -> tuple[str, End]:
    start = Response(headers=headers, media_type="text/event-stream").raw_headers
    fields = [(name, value) for name, value in start if name != b"content-length"]
    await send({"type": "http.response.start", "status": 200, "headers": fields})

    async def send_events(*events: bytes) -> None:
        body = b"".join(events)
        await send({"type": "http.response.body", "body": body, "more_body": True})

    text, end = "", End("failed")
    await send_events(*answer.begin())
    async for piece in pieces:
        if isinstance(piece, End):
            end = piece
            error = failure(piece)
            events = answer.failed(error) if error else answer.end(text, piece)
            await send_events(*events)
        elif piece.text:
            text += piece.text
            await send_events(*answer.more(piece.text))
        else:
            await send_events(STILL_WORKING)
    await send({"type": "http.response.body", "body": b""})
    return text, end


async def _until_gone(gone: "asyncio.Future[None]", pieces: Pieces) -> Pieces:
    """Yields pieces until the client has gone, then raises ClientDisconnect.

    For a client that has left before its turn came, nothing is submitted.
    """
    async with aclosing(pieces):
        while True:
            if gone.done():
                raise ClientDisconnect
            coming = asyncio.ensure_future(anext(pieces, None))
            await asyncio.wait({coming, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not coming.done():
                await cancel_and_wait(coming)
                raise ClientDisconnect
            piece = coming.result()
            if piece is None:
                return
            yield piece


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _session_header(call: EndpointCall) -> str:
    values = call.request.headers.getlist(SESSION_HEADER)
    if len(values) == 1:
        return values[0].strip()
    return ""


def _session_headers(session: str, engine: str = "") -> dict[str, str]:
    """Headers that say which session answers, and which engine runs it."""
    headers = {SESSION_HEADER: session}
    if engine:
        headers[ENGINE_HEADER] = engine
    return headers


def _unknown_model(name: str) -> Refusal:
    return Refusal(
        404,
        f"There is no model {name!r}.",
        f"GET /v1/models lists them; {DEFAULT_MODEL!r} is the usual one.",
        code="model_not_found",
        param="model",
    )


def _model(name: str) -> dict[str, Any]:
    """A model as OpenAI and Anthropic describe one, with what it can do."""
    return {
        "id": name,
        "object": "model",
        "created": 0,
        "owned_by": "hermes",
        "type": "model",
        "display_name": name,
        "created_at": "1970-01-01T00:00:00Z",
        "capabilities": {
            "tools": True,
            "streaming": True,
            "structured_output": True,
            "images": True,
        },
    }
