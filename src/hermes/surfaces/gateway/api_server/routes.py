"""The routes: chat completions, responses and models, as a plain ASGI application behind the door."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any, TypeAlias, TypeVar
from weakref import WeakValueDictionary

import msgspec

from hermes.app import App
from hermes.app.agent import Agent
from hermes.app.engine import EngineChoice
from hermes.errors import HermesError, in_sentences
from hermes.primitives.recent import RecentDict
from hermes.primitives.tasks import cancel_and_wait
from hermes.settings import Secrets
from hermes.surfaces.gateway.api_server.api_keys import ApiKey
from hermes.surfaces.gateway.api_server.authentication import (
    ApiError,
    Message,
    Send,
    refuse,
    require,
)
from hermes.surfaces.gateway.api_server.request_formats import (
    DEFAULT_MODEL,
    Asked,
    ChatBody,
    ResponseBody,
    pictures_of,
)
from hermes.surfaces.gateway.api_server.response_formats import (
    ALIVE,
    ChatAnswer,
    ResponseAnswer,
    failure,
)
from hermes.surfaces.gateway.api_server.session_lookup import (
    SURFACE,
    Conversations,
    RequestSession,
    response_id,
)
from hermes.surfaces.gateway.api_server.turn_stream import (
    End,
    Listening,
    TextPiece,
    turn_of,
)
from hermes.surfaces.web.request_json import InvalidRequest, read_json

log = logging.getLogger("hermes.api")

SESSION = "x-hermes-session"
ENGINE = "x-hermes-engine"
"""The header that names a session, in requests and in answers."""

_MOST = 40_000_000  # bytes of a request
_REMEMBERED = 10_000  # sessions whose model is remembered
_T = TypeVar("_T", ChatBody, ResponseBody)
Answer: TypeAlias = ChatAnswer | ResponseAnswer
Pieces: TypeAlias = AsyncGenerator[TextPiece | End]
Marks: TypeAlias = Sequence[tuple[bytes, bytes]]


class OpenAIRoutes:
    """Serves the requests of clients; the work is done by sessions like any other."""

    def __init__(self, app: App, secrets: Secrets) -> None:
        self._app = app
        self._models: RecentDict[str, str] = RecentDict(_REMEMBERED)
        # One request of a conversation at a time: a turn would answer all that waits, and each wants its own answer.
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self.agent = Agent(
            app,
            secrets,
            approvals=app.settings.api.approvals,
            surface=SURFACE,
            choice_of=self._choice,
        )
        folder = app.settings.api.folder
        self._conversations = Conversations(
            app, Path(folder).expanduser() if folder else Path.home() / "hermes"
        )

    def _choice(self, session: str) -> EngineChoice:
        """What a session runs on: the model that its client named. Nobody can be asked."""
        return EngineChoice(self._models.get(session, ""), attended=False)

    async def __call__(self, scope: Any, receive: Any, send: Send) -> None:
        """The boundary of a request: whatever goes wrong is an error in OpenAI's shape."""
        begun = False

        async def sending(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        refusal = None
        try:
            await self._route(scope)(scope, receive, sending)
        except ApiError as error:
            refusal = error
        except HermesError as error:
            refusal = ApiError(500, in_sentences(error), code="hermes_error")
        except Exception:
            log.exception("a request to %s failed", scope["path"])
            refusal = ApiError(
                500, "Something unexpected went wrong; the log of Hermes says what."
            )
        if refusal is None:
            return
        if begun:  # too late for another answer: the stream ends without its end, which clients notice
            log.warning(
                "an answer to %s was cut off: %s", scope["path"], refusal.message
            )
            return
        await refuse(refusal, send)

    async def close(self) -> None:
        """Ends what runs."""
        await self.agent.close()

    def _route(self, scope: Any) -> Callable[[Any, Any, Send], Awaitable[None]]:
        method, path = scope["method"], scope["path"].rstrip("/")
        routes: dict[tuple[str, str], Callable[[Any, Any, Send], Awaitable[None]]] = {
            ("POST", "/v1/chat/completions"): self._chat,
            ("POST", "/v1/responses"): self._respond,
            ("GET", "/v1/models"): self._list_models,
            ("GET", "/health"): self._health,
        }
        if found := routes.get((method, path)):
            return found
        if method == "GET" and path.startswith("/v1/models/"):
            return self._one_model
        if method == "GET" and path.startswith("/v1/responses/"):
            return self._look_up
        if any(known == path for _, known in routes):
            raise ApiError(
                405, f"{method} is not possible here.", code="method_not_allowed"
            )
        raise ApiError(404, f"There is nothing at {path}.", code="not_found")

    # Models

    async def _health(self, scope: Any, receive: Any, send: Send) -> None:
        del scope, receive
        await _reply(send, {"status": "ok"})

    async def _list_models(self, scope: Any, receive: Any, send: Send) -> None:
        del receive
        require(scope, "models")
        names = await asyncio.to_thread(self._names)
        await _reply(send, {"object": "list", "data": [_model(name) for name in names]})

    async def _one_model(self, scope: Any, receive: Any, send: Send) -> None:
        del receive
        require(scope, "models")
        name = scope["path"].removeprefix("/v1/models/")
        if name not in await asyncio.to_thread(self._names):
            raise ApiError(
                404,
                f"There is no model {name!r}.",
                code="model_not_found",
                param="model",
            )
        await _reply(send, _model(name))

    def _names(self) -> list[str]:
        return list(
            dict.fromkeys(
                (DEFAULT_MODEL, *(choice.name for choice in self.agent.choices()))
            )
        )

    # Answers

    async def _chat(self, scope: Any, receive: Any, send: Send) -> None:
        key = require(scope, "chat")
        body = await _read(receive, ChatBody)
        asked = body.asked(_header(scope), by_user=self._app.settings.api.by_user)
        await self._answer(key, asked, ChatAnswer, receive, send)

    async def _respond(self, scope: Any, receive: Any, send: Send) -> None:
        key = require(scope, "chat")
        asked = (await _read(receive, ResponseBody)).asked(_header(scope))
        await self._answer(key, asked, ResponseAnswer, receive, send)

    async def _look_up(self, scope: Any, receive: Any, send: Send) -> None:
        """A response of before: for a client that was cut off."""
        del receive
        key = require(scope, "chat")
        name = scope["path"].removeprefix("/v1/responses/")
        session, seq = await asyncio.to_thread(self._conversations.response, key, name)
        text, end = await asyncio.to_thread(turn_of, self._app, session, seq)
        answer = ResponseAnswer(
            Asked(model=self._models.get(session) or DEFAULT_MODEL, messages=()),
            name,
            0,
        )
        if end is None:
            await _reply(send, answer.unfinished(), _marks(session))
        elif (error := failure(end)) is not None:
            await _reply(send, answer.broken(error), _marks(session))
        else:
            await _reply(send, answer.whole(text, end), _marks(session))

    async def _answer(
        self, key: ApiKey, asked: Asked, kind: type[Answer], receive: Any, send: Send
    ) -> None:
        if asked.model != DEFAULT_MODEL and asked.model not in await asyncio.to_thread(
            self._names
        ):
            hint = f"There is no model {asked.model!r}. GET /v1/models lists them; {DEFAULT_MODEL!r} is the usual one."
            raise ApiError(404, hint, code="model_not_found", param="model")
        images = await asyncio.to_thread(pictures_of, asked.now, self._app.home)
        place = await self._conversations.find(key, asked)
        self._models[place.session] = (
            "" if asked.model == DEFAULT_MODEL else asked.model
        )
        service = self.agent.service
        engine = self.agent.describe(
            place.session
        ).engine  # says what is wrong with the settings
        listening = Listening(
            self._app,
            service,
            place.session,
            show_tools=self._app.settings.api.show_tools,
        )
        gone = asyncio.ensure_future(_gone(receive))
        lock = self._locks.setdefault(place.session, asyncio.Lock())
        try:
            async with (
                lock,
                aclosing(
                    _until(gone, listening.submit(_words(asked, place), images))
                ) as pieces,
            ):
                await anext(pieces)
                made = kind(
                    asked,
                    response_id(place.session, listening.seq),
                    self._app.clock.now(),
                )
                marks = _marks(place.session, engine)
                text = await (_stream if asked.stream else _whole)(
                    made, pieces, marks, send
                )
            self._conversations.remember(key, asked, text, place.session)
        except _Left:
            log.info("the client of session %s went away", place.session)
            if not place.lasting:  # nobody can come back for it
                await service.interrupt(place.session, by=SURFACE)
        finally:
            gone.cancel()


class _Left(Exception):
    """The client went away."""


async def _whole(made: Answer, pieces: Pieces, marks: Marks, send: Send) -> str:
    text = ""
    async for piece in pieces:
        if isinstance(piece, End):
            if (error := failure(piece)) is not None:
                raise error
            await _reply(send, made.whole(text, piece), marks)
        else:
            text += piece.text
    return text


async def _stream(made: Answer, pieces: Pieces, marks: Marks, send: Send) -> str:
    headers = [
        (b"content-type", b"text/event-stream; charset=utf-8"),
        (b"cache-control", b"no-store"),
        *marks,
    ]
    await send({"type": "http.response.start", "status": 200, "headers": headers})

    async def put(*chunks: bytes) -> None:
        await send(
            {"type": "http.response.body", "body": b"".join(chunks), "more_body": True}
        )

    text = ""
    await put(*made.begin())
    async for piece in pieces:
        if isinstance(piece, End):
            error = failure(piece)
            await put(*(made.failed(error) if error else made.end(text, piece)))
        elif piece.text:
            text += piece.text
            await put(*made.more(piece.text))
        else:
            await put(ALIVE)
    await send({"type": "http.response.body", "body": b""})
    return text


async def _until(gone: "asyncio.Future[None]", pieces: Pieces) -> Pieces:
    """The pieces, until the client has gone: then _Left is raised. Of one that left before, not a word is said."""
    async with aclosing(pieces):
        while True:
            if gone.done():
                raise _Left
            coming = asyncio.ensure_future(anext(pieces, None))
            await asyncio.wait({coming, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not coming.done():
                await cancel_and_wait(coming)
                raise _Left
            piece = coming.result()
            if piece is None:
                return
            yield piece


async def _gone(receive: Any) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _read(receive: Any, kind: type[_T]) -> _T:
    parts: list[bytes] = []
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] != "http.request":
            raise ApiError(400, "The request was cut off.")
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        more = message.get("more_body", False)
        if size > _MOST:
            raise ApiError(413, "The request is too large.", code="request_too_large")
    try:
        return read_json(b"".join(parts), kind)
    except InvalidRequest as error:
        what, code = ("The request can't be used", "invalid_value")
        if not error.is_json:
            what, code = ("The body is not JSON", "invalid_json")
        raise ApiError(400, f"{what}: {error}.", code=code) from error


def _marks(session: str, engine: str = "") -> Marks:
    """Headers that say which session answers, and which engine runs it."""
    return [
        (name.encode(), value.encode())
        for name, value in ((SESSION, session), (ENGINE, engine))
        if value
    ]


async def _reply(send: Send, data: Any, marks: Marks = ()) -> None:
    headers = [
        (b"content-type", b"application/json"),
        (b"cache-control", b"no-store"),
        *marks,
    ]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": msgspec.json.encode(data)})


def _header(scope: Any) -> str:
    values = [
        value for name, value in scope["headers"] if name.lower() == SESSION.encode()
    ]
    return values[0].decode("latin-1").strip() if len(values) == 1 else ""


def _words(asked: Asked, place: RequestSession) -> str:
    """What the session is told: the application's wishes when it begins, and what the user says."""
    text = "\n\n".join(one.text for one in asked.now)
    wishes = (
        asked.system
        if place.fresh or asked.system != place.system
        else asked.instructions
    )
    return (
        f"[Instructions of the application]\n{wishes}\n\n[The user]\n{text}"
        if wishes
        else text
    )


def _model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "hermes"}
