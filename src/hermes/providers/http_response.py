"""What the two HTTP clients have in common: an answer whose body is still coming, and how it can break."""

from collections.abc import Mapping
from typing import Protocol


class ConnectionBroken(Exception):
    """The connection broke, or what came over it is not HTTP. `fresh` is false when one that had waited was dead before
    the request was sent: then nobody can have acted on it."""

    def __init__(self, detail: str, *, fresh: bool = True) -> None:
        super().__init__(detail)
        self.fresh = fresh


class HttpResponse(Protocol):
    """An answer whose head has come, from either client."""

    status: int

    @property
    def headers(self) -> Mapping[str, str]: ...

    async def chunk(self) -> bytes: ...

    async def end(self) -> None: ...
