"""What servers share: where things are kept, whom to tell, and how their state is told."""

import time
from collections.abc import Callable, Mapping
from typing import Literal, TypeAlias

import msgspec

from hermes.mcp.results import ResultFiles
from hermes.mcp.server_cache import Listings, ToolPins
from hermes.settings import Home, Secrets

State: TypeAlias = Literal["off", "idle", "connecting", "connected", "failed"]


class ServerStatus(msgspec.Struct, frozen=True, kw_only=True):
    """How it is with a server now."""

    name: str
    state: State
    detail: str = ""
    """Why it failed, or what it calls itself."""
    hint: str = ""
    retry_in: float = 0.0
    """Seconds until it is tried again, at the next call after that."""
    tools: int = 0
    changed: tuple[str, ...] = ()
    """Tools that are not what was accepted."""
    left_out: tuple[str, ...] = ()
    pid: int = 0


class ServerContext(msgspec.Struct, frozen=True):
    """What servers work with."""

    home: Home
    secrets: Secrets
    environment: Mapping[str, str]
    listings: Listings
    pins: ToolPins
    shelf: ResultFiles
    on_change: Callable[[ServerStatus], None] = lambda _: None
    now: Callable[[], float] = time.monotonic

    def make_folders(self) -> None:
        """Makes the folders that servers use, for this user only. HomeError if that can't be."""
        cache, logs = self.home.cache, self.home.logs
        self.home.ensure(cache, cache / "mcp", cache / "outputs", logs, logs / "mcp")
