"""Finds the session of a request.

A conversation that the client names, and a request that follows a response, continue the
session in which they began. A client that sends the whole conversation each time continues
the session whose answer it repeats; otherwise the conversation is written into a new one.
A key sees its own sessions, and others only with the scope `sessions`.
"""

import asyncio
import hashlib
from pathlib import Path

import msgspec

from hermes.app import App
from hermes.errors import SessionNotFound
from hermes.primitives.recent import RecentDict
from hermes.primitives.untyped import number_in_text
from hermes.schema.event_base import Event
from hermes.schema.events import SessionCreated, TurnEnded, TurnStarted
from hermes.schema.messages import AssistantMessage, ToolFinished, UserMessage
from hermes.store.log_row import Row
from hermes.surfaces.gateway.api_server.api_keys import ApiKey
from hermes.surfaces.gateway.api_server.request_formats import ApiRequest, ClientMessage
from hermes.surfaces.web.errors import Refusal

SURFACE = "api"
_MAX_REMEMBERED_ANSWERS = 2_000
"""A conversation without a name can be continued after any of these."""
_RESPONSE_PREFIX = "resp_"
_PART = "-"


class RequestSession(msgspec.Struct, frozen=True):
    """The session of a request.

    `lasting`: the client can come back to it by name. `system`: the instructions it has.
    """

    session: str
    fresh: bool
    lasting: bool
    system: str = ""


class ApiSessions:
    """The sessions of the API."""

    def __init__(self, app: App, folder: Path) -> None:
        self._app = app
        self._folder = folder
        self._answers: RecentDict[str, tuple[str, str]] = RecentDict(
            _MAX_REMEMBERED_ANSWERS
        )
        # Two requests that name the same new conversation create it once.
        self._choosing = asyncio.Lock()

    async def find(self, key: ApiKey, asked: ApiRequest) -> RequestSession:
        """The session of a request; a new one contains the conversation so far."""
        async with self._choosing:
            return await asyncio.to_thread(self._find, key, asked)

    def _find(self, key: ApiKey, asked: ApiRequest) -> RequestSession:
        if asked.previous:
            return RequestSession(
                self._after(key, asked.previous), fresh=False, lasting=True
            )
        if asked.conversation:
            session = self._named(key, asked.conversation)
            fresh = not self._exists(session)
            if fresh:
                self._begin(session, asked.before)
            return RequestSession(
                session, fresh=fresh, lasting=True, system=asked.system
            )
        known, system = (
            self._answers.pop(_fingerprint(key, asked, asked.before), ("", ""))
            if asked.before
            else ("", "")
        )
        if known and self._exists(known):
            return RequestSession(known, fresh=False, lasting=False, system=system)
        session = f"{_own_prefix(key)}{self._app.ids.session()}"
        self._begin(session, asked.before)
        return RequestSession(session, fresh=True, lasting=False)

    def remember(
        self, key: ApiKey, asked: ApiRequest, answer: str, session: str
    ) -> None:
        """Notes an answer, so that a client can continue by repeating it."""
        self._answers[
            _fingerprint(
                key, asked, (*asked.messages, ClientMessage("assistant", answer))
            )
        ] = (
            session,
            asked.system,
        )

    def find_response(self, key: ApiKey, name: str) -> tuple[str, int]:
        """The session of a response, and the row of the message that it answers."""
        session, _, number = name.removeprefix(_RESPONSE_PREFIX).rpartition("_")
        seq = number_in_text(number.partition(_PART)[0])
        is_known = name.startswith(_RESPONSE_PREFIX) and self._may(key, session)
        if seq is None or not (is_known and self._exists(session)):
            raise Refusal(
                404, f"There is no response {name!r}.", code="response_not_found"
            )
        return session, seq

    def _after(self, key: ApiKey, previous: str) -> str:
        """The session of a response; a branch that ends with it, if the session has gone on since."""
        session, seq = self.find_response(key, previous)
        turn, end = "", 0
        for row in self._app.store.log.every_event(session):
            if isinstance(row.event, TurnStarted) and seq in row.event.inputs:
                turn = row.turn
            elif isinstance(row.event, TurnEnded) and turn and row.turn == turn:
                end = row.seq
            elif end and isinstance(row.event, UserMessage):
                branch = f"{_own_prefix(key)}{self._app.ids.session()}"
                self._app.store.log.branch(session, branch, at=end, surface=SURFACE)
                return branch
        return session

    def _named(self, key: ApiKey, name: str) -> str:
        """The session with a name: a session's own id, or a name of the client's."""
        if self._may(key, name) and self._exists(name):
            return name
        return f"{_own_prefix(key)}{hashlib.sha256(name.encode(errors='replace')).hexdigest()[:20]}"

    def _may(self, key: ApiKey, session: str) -> bool:
        return session.startswith(_own_prefix(key)) or "sessions" in key.scopes

    def _exists(self, session: str) -> bool:
        if not session:
            return False
        try:
            return self._app.store.sessions.find(session).id == session
        except SessionNotFound:
            return False

    def _begin(self, session: str, before: tuple[ClientMessage, ...]) -> None:
        """Creates a session with the conversation that the client sent."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._app.begin(SessionCreated(surface=SURFACE, cwd=str(self._folder)), session)
        words: list[Row] = []
        answers: list[Event] = []
        for one in before:
            if one.role == "user":
                words += self._app.record(session, UserMessage(text=one.text))
            elif words and one.role == "tool":
                name = _called_name(answers, one.call_id)
                answers.append(
                    ToolFinished(call_id=one.call_id, name=name, text=one.text)
                )
            elif words and one.role == "assistant":
                answers.append(
                    AssistantMessage(
                        text=one.text, tool_calls=one.calls, provider="client"
                    )
                )
                if not one.calls:
                    self._record_turn(session, words, answers)
                    words.clear()
                    answers.clear()

    def _record_turn(
        self, session: str, words: list[Row], answers: list[Event]
    ) -> None:
        """Writes a turn that happened elsewhere."""
        started = TurnStarted(inputs=tuple(row.seq for row in words), runtime="client")
        ended = TurnEnded(reason="done")
        turn = self._app.ids.turn()
        self._app.record(session, started, *answers, ended, turn=turn)


def _called_name(answers: list[Event], call_id: str) -> str:
    """The tool of a call."""
    calls = [
        call
        for answer in answers
        if isinstance(answer, AssistantMessage)
        for call in answer.tool_calls
    ]
    return next((call.name for call in calls if call.id == call_id), "tool")


def response_id(session: str, seq: int, part: int = 0) -> str:
    """The id of the response to the message in a row. A turn that waits for its caller's tools has several, in parts."""
    name = f"{_RESPONSE_PREFIX}{session}_{seq}"
    return f"{name}{_PART}{part}" if part else name


def _own_prefix(key: ApiKey) -> str:
    return f"api-{key.id}-"


def _fingerprint(
    key: ApiKey, asked: ApiRequest, messages: tuple[ClientMessage, ...]
) -> str:
    """Identifies a conversation with the tools that the caller offers in it."""
    content = [one for one in messages if one.role != "system"]
    encoded = msgspec.json.encode((content, asked.tools))
    return hashlib.sha256(key.id.encode() + encoded).hexdigest()
