"""An external memory beside the files: its interface, and an HTTP service.

The service speaks the REST API of mem0's open server, which other services offer too: a user's notes are added, listed,
searched and deleted as JSON. The service may fail at any time; the files are authoritative.
"""

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol
from urllib.parse import quote, urlsplit

import msgspec

from hermes.learning.change import LearningError, MemoryEdit, Provenance
from hermes.primitives.untyped import objects_of
from hermes.settings import Home
from hermes.settings.load import load_secrets
from hermes.settings.sections import LearningSettings
from hermes.text.translation import translator

t = translator(__name__)

KEY = "MEMORY_API_KEY"
_MEMORY_REQUEST_TIMEOUT_S = 5.0  # for a request and its response
_MAX_RESPONSE_BYTES = 1_000_000
_MAX_NOTE_CHARS = 2_000  # characters of one note
_MAX_CANDIDATE_NOTES = 20  # notes to search for the one to delete
_LOOPBACK = frozenset(("localhost", "127.0.0.1", "::1"))


class ServiceNote(msgspec.Struct, frozen=True):
    """A note of the service."""

    id: str
    text: str


class MemoryProvider(Protocol):
    """An external memory. Every method may raise LearningError."""

    def recent(self, limit: int) -> list[ServiceNote]:
        """Returns notes for the prompt of a new session."""
        ...

    def search(self, query: str, limit: int) -> list[ServiceNote]:
        """Returns notes that match the query, best first."""
        ...

    def add(self, text: str, origin: Provenance) -> None:
        """Saves a note."""
        ...

    def remove(self, name: str) -> None:
        """Deletes a note by its id."""
        ...


def mirror_change(
    provider: MemoryProvider, edits: Iterable[MemoryEdit], origin: Provenance
) -> None:
    """Repeats a change of the files in the service. A note that is missing there, or ambiguous, is left alone."""
    for edit in edits:
        if edit.action != "add":
            found = [
                note
                for note in provider.search(edit.old, _MAX_CANDIDATE_NOTES)
                if edit.old in note.text
            ]
            if len(found) == 1 and found[0].id.strip(
                "./"
            ):  # without a user, the request would affect everyone's notes
                provider.remove(found[0].id)
        if edit.action != "remove":
            provider.add(edit.text, origin)


class HttpMemory:
    """Talks to the service over HTTP, with one short-lived connection per request: a session needs few."""

    def __init__(
        self,
        url: str,
        user: str,
        key: str = "",
        timeout_s: float = _MEMORY_REQUEST_TIMEOUT_S,
    ) -> None:
        self._timeout_s = timeout_s
        self._url = url.rstrip("/")
        self._user = user
        self._key = key

    def recent(self, limit: int) -> list[ServiceNote]:
        return _notes(
            self._ask("GET", f"/memories?user_id={quote(self._user, safe='')}")
        )[:limit]

    def search(self, query: str, limit: int) -> list[ServiceNote]:
        body = {"query": query, "user_id": self._user, "limit": limit}
        return _notes(self._ask("POST", "/search", body))[:limit]

    def add(self, text: str, origin: Provenance) -> None:
        body = {
            "messages": [{"role": "user", "content": text}],
            "user_id": self._user,
            "metadata": {
                "by": origin.by,
                "session": origin.session,
                "turn": origin.turn,
            },
            "infer": False,  # store the note verbatim, without a model's rewriting
        }
        self._ask("POST", "/memories", body)

    def remove(self, name: str) -> None:
        self._ask("DELETE", f"/memories/{quote(name, safe='')}")

    def _ask(
        self, method: str, path: str, body: Mapping[str, Any] | None = None
    ) -> Any:
        import httpx2

        self._require_safe()
        keys = (
            {"authorization": f"Bearer {self._key}", "x-api-key": self._key}
            if self._key
            else {}
        )
        data = b"" if body is None else msgspec.json.encode(body)
        headers = {
            **keys,
            "content-type": "application/json",
            "accept": "application/json",
        }
        headers["accept-encoding"] = (
            "identity"  # a compressed response could expand without limit
        )
        until = time.monotonic() + self._timeout_s
        try:
            with (
                httpx2.Client(
                    timeout=self._timeout_s, trust_env=False, follow_redirects=False
                ) as client,
                client.stream(
                    method, self._url + path, content=data, headers=headers
                ) as response,
            ):
                return _answer(
                    response.status_code, _in_time(response.iter_raw(), until)
                )
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            raise LearningError(
                t.later(
                    "The external memory did not answer ({error}).",
                    error=error or type(error).__name__,
                )
            ) from error

    def _require_safe(self) -> None:
        """Refuses to send a key without TLS."""
        place = urlsplit(self._url)
        if self._key and place.scheme != "https" and place.hostname not in _LOOPBACK:
            raise LearningError(
                t.later(
                    "The external memory was not used: its key would be sent unencrypted."
                ),
                hint=t.later("Set learning.memory_url to an https address."),
            )


def external_memory(
    home: Home, settings: LearningSettings, environment: Mapping[str, str]
) -> MemoryProvider | None:
    """Returns the external memory that the settings name, if any."""
    if not settings.memory_url:
        return None
    return HttpMemory(
        settings.memory_url,
        settings.memory_user,
        load_secrets(environment, home=home).get(KEY) or "",
    )


def _in_time(pieces: Iterable[bytes], until: float) -> Iterator[bytes]:
    """Yields the chunks of a response until the deadline, so that a slow response ends."""
    for piece in pieces:
        yield piece
        if time.monotonic() > until:
            raise LearningError(t.later("The external memory took too long to answer."))


def _answer(status: int, pieces: Iterable[bytes]) -> Any:
    data = b""
    for piece in pieces:
        data += piece
        if len(data) > _MAX_RESPONSE_BYTES:
            raise LearningError(
                t.later("The external memory sent a response that is too large.")
            )
    if not 200 <= status < 300:
        raise LearningError(
            t.later("The external memory refused ({status}).", status=status),
            hint=t.later("Its key is the secret {key}.", key=KEY),
        )
    try:
        return msgspec.json.decode(data) if data.strip() else {}
    except (msgspec.DecodeError, RecursionError) as error:
        raise LearningError(
            t.later("The external memory answered with something that is not JSON.")
        ) from error


def _notes(answer: object) -> list[ServiceNote]:
    """Returns the notes of a response: a list, or one under `results` or `memories`. Other shapes
    are skipped.
    """
    if isinstance(answer, dict):
        answer = answer.get("results", answer.get("memories", []))
    found: list[ServiceNote] = []
    for entry in objects_of(answer):
        text = entry.get("memory") or entry.get("text")
        if isinstance(text, str) and text.strip():
            found.append(
                ServiceNote(str(entry.get("id", "")), text.strip()[:_MAX_NOTE_CHARS])
            )
    return found
