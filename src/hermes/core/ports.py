"""The Protocols through which core and its siblings name their collaborators. `app` supplies them."""

import time
from collections.abc import AsyncIterator
from typing import Protocol

from hermes.schema.model import ModelEvent, ModelRequest


class Clock(Protocol):
    """Wall time in unix seconds. Passed in, so that tests decide it."""

    def now(self) -> float: ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> float:
        return time.time()


class Model(Protocol):
    """Something that answers. The stream ends with `Finished` or raises ModelError; closing it cancels the call."""

    provider: str
    name: str

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]: ...
