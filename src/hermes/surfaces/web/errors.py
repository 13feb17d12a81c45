"""Errors as callers see them: refusals, and the formats in which they are sent."""

import errno

import msgspec
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Scope

from hermes.errors import (
    AnswerRefused,
    HermesError,
    ModelError,
    NotFound,
    Refused,
    SessionBusy,
    SessionNotFound,
    StoreBusy,
    StoreFull,
    translated,
)
from hermes.surfaces.web import override
from hermes.surfaces.web.request_json import InvalidRequest

_STATUS: tuple[tuple[type[HermesError], int], ...] = (
    (SessionNotFound, 404),
    (NotFound, 404),
    (Refused, 409),
    (SessionBusy, 409),
    (AnswerRefused, 409),
    (StoreBusy, 503),
    (StoreFull, 507),
    (ModelError, 502),
)
"""Other Hermes errors become a 400, because the caller can correct them."""


class Refusal(Exception):
    """Ends a request with an HTTP status and a message for the caller.

    `wait` is the number of seconds to wait before the next try. `code` and `param` are
    for wire formats that have them.
    """

    def __init__(
        self,
        status: int,
        error: str,
        hint: str = "",
        *,
        code: str = "",
        param: str | None = None,
        wait: float = 0.0,
    ) -> None:
        super().__init__(error)
        self.status = status
        self.error = error
        self.hint = hint
        self.code = code
        self.param = param
        self.wait = wait

    @property
    def headers(self) -> dict[str, str]:
        """The headers of the response in every format."""
        if not self.wait:
            return {}
        return {"retry-after": str(max(1, round(self.wait)))}


class ErrorFormat:
    """Reports errors as JSON: `{"error": ..., "hint": ...}`. Subclasses change that."""

    def refusal(self, error: Exception) -> Refusal | None:
        """Converts an error to a refusal; None for an unexpected one."""
        match error:
            case Refusal():
                return error
            case InvalidRequest():
                return self.invalid(error)
            case HermesError():
                return self.failed(error)
            case ClientDisconnect():
                return Refusal(400, "The request was cut off.")
            case OSError(errno=errno.ENAMETOOLONG):
                return Refusal(400, "A file can't have a name this long.")
            case _:
                return None

    def invalid(self, error: InvalidRequest) -> Refusal:
        """Describes a request that can't be decoded."""
        return Refusal(422, f"The {error.part} can't be read: {error}")

    def failed(self, error: HermesError) -> Refusal:
        """Describes a HermesError."""
        kinds = (status for kind, status in _STATUS if isinstance(error, kind))
        return Refusal(
            next(kinds, 400), translated(error.words), translated(error.hint_words)
        )

    def unexpected(self, error: Exception) -> Refusal:
        """Describes an unexpected error. The details are in the log."""
        if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
            return Refusal(
                503,
                "Hermes has run out of file handles.",
                "Close some pages or terminals, or raise the limit (ulimit -n), then try again.",
            )
        return Refusal(500, f"{type(error).__name__}: {error}", "The log has more.")

    def not_found(self, scope: Scope, allowed: frozenset[str]) -> Refusal:
        """Describes a request without a route; `allowed` are the methods that its path has."""
        del scope, allowed
        return Refusal(404, "There is nothing here.")

    def response(self, refusal: Refusal, scope: Scope) -> Response:
        """The response for a refusal."""
        del scope
        return json_response(
            {"error": refusal.error, "hint": refusal.hint},
            status=refusal.status,
            headers=refusal.headers,
        )


class TextErrors(ErrorFormat):
    """Reports errors as plain text. Details of failures go only to the log."""

    @override
    def failed(self, error: HermesError) -> Refusal:
        return self.unexpected(error)

    @override
    def unexpected(self, error: Exception) -> Refusal:
        del error
        return Refusal(500, "Internal Server Error")

    @override
    def not_found(self, scope: Scope, allowed: frozenset[str]) -> Refusal:
        del scope
        if allowed:
            return Refusal(405, "")
        return Refusal(404, "There is nothing here.\n")

    @override
    def response(self, refusal: Refusal, scope: Scope) -> Response:
        del scope
        return Response(
            refusal.error, refusal.status, refusal.headers, media_type="text/plain"
        )


def json_response(
    value: object, *, status: int = 200, headers: dict[str, str] | None = None
) -> Response:
    """A response in JSON."""
    content = msgspec.json.encode(value)
    return Response(content, status, headers, media_type="application/json")
