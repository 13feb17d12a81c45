"""What Hermes stores about servers between runs: the last listing of each (a cache), and the pins (worth a backup).

A pin is the definition of a tool as it was first offered, or as the user last accepted it. Models are offered the
pinned definition. A changed tool is not used until the user accepts it.
"""

import contextlib
import hashlib
import logging
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from hermes.errors import SettingsError
from hermes.mcp.definitions import Definition, Listing
from hermes.primitives.files import make_private_folder, replace_file
from hermes.settings import Home, atomic
from hermes.settings.mcp import McpServerSettings
from hermes.text.translation import translator

t = translator(__name__)

log = logging.getLogger("hermes.mcp")

_LATE_FOR_S = 600.0
"""How long new sessions don't wait for a server that an earlier one waited for in vain."""
_MAX_FILE_BYTES = 64 * 1024 * 1024


class Cached(msgspec.Struct, frozen=True):
    """A listing on disk, valid for exactly these settings."""

    settings: str
    listing: Listing


class Pinned(msgspec.Struct, frozen=True):
    """All pins, by server and tool."""

    servers: dict[str, dict[str, Definition]] = {}


def settings_hash(settings: McpServerSettings) -> str:
    """Hashes the settings that decide what is started and which tools are offered. They hold no secrets, only references."""
    parts = (
        settings.command,
        settings.args,
        settings.cwd,
        settings.url,
        settings.tools,
        sorted(settings.env),
    )
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()


class Listings:
    """The cached listings, in `cache/mcp`. An unreadable one counts as missing."""

    def __init__(self, home: Home) -> None:
        self._folder = home.cache / "mcp"

    def load(self, name: str, settings: McpServerSettings) -> Listing | None:
        """Returns the last listing of a server, if its settings are still the same."""
        try:
            cached = msgspec.json.decode(_read(self._path(name)), type=Cached)
        except (OSError, msgspec.MsgspecError):
            return None
        return cached.listing if cached.settings == settings_hash(settings) else None

    def save(self, name: str, settings: McpServerSettings, listing: Listing) -> None:
        """Saves a listing for the next start. If that fails, the next start connects again."""
        try:
            make_private_folder(self._folder)
            cached = msgspec.json.encode(Cached(settings_hash(settings), listing))
            replace_file(self._path(name), cached, durable=False, alone=False)
        except OSError as error:
            log.warning("could not save the listing of %s: %s", name, error)

    def forget(self, name: str) -> None:
        """Deletes the cached listing of a server."""
        self._path(name).unlink(missing_ok=True)
        self._late(name).unlink(missing_ok=True)

    def mark_late(self, name: str) -> None:
        """Records that a session waited for a server in vain."""
        with contextlib.suppress(OSError):  # then the next session waits too
            make_private_folder(self._folder)
            self._late(name).touch(mode=0o600)

    def is_late(self, name: str) -> bool:
        """Whether a session recently waited for a server in vain."""
        try:
            return 0 <= time.time() - self._late(name).stat().st_mtime < _LATE_FOR_S
        except OSError:
            return False

    def _late(self, name: str) -> Path:
        return self._folder / f"{name}.late"

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.json"


class ToolPins:
    """The pins, in `mcp-pins.json` in the home, for this user only. Raises SettingsError if the file can't be read, so
    that nothing is offered."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self.path = home.root / "mcp-pins.json"
        self._known: tuple[tuple[int, int, int], Pinned] | None = None

    def of(self, server: str) -> Mapping[str, Definition]:
        """Returns the pinned tools of a server."""
        return self._load().servers.get(server, {})

    def pin(
        self,
        server: str,
        definitions: Mapping[str, Definition],
        *,
        replace: bool = False,
    ) -> None:
        """Pins tools that are not pinned yet; with `replace`, also those that are."""
        known = self.of(server)
        if all(
            name in known and (not replace or known[name] == made)
            for name, made in definitions.items()
        ):
            return
        with self._changing() as servers:
            before = servers.get(server, {})
            servers[server] = (
                {**before, **definitions} if replace else {**definitions, **before}
            )

    def forget(self, server: str) -> None:
        """Deletes the pins of a server that was removed."""
        if server in self._load().servers:
            with self._changing() as servers:
                servers.pop(server, None)

    @contextlib.contextmanager
    def _changing(self) -> Iterator[dict[str, dict[str, Definition]]]:
        self._home.ensure()
        with atomic.locked(self.path) as target:
            servers = dict(self._load().servers)
            yield servers
            text = msgspec.json.format(
                msgspec.json.encode(Pinned(servers), order="sorted"), indent=1
            ).decode()
            atomic.replace(target, text, mode=0o600)

    def _load(self) -> Pinned:
        try:
            info = self.path.stat()
            version = (info.st_ino, info.st_mtime_ns, info.st_size)
            if self._known is None or self._known[0] != version:
                self._known = (
                    version,
                    msgspec.json.decode(_read(self.path), type=Pinned),
                )
            return self._known[1]
        except FileNotFoundError:
            return Pinned()
        except (OSError, msgspec.MsgspecError) as error:
            raise SettingsError(
                t.later("{path} can't be read ({error}).", path=self.path, error=error),
                hint=t.later(
                    "It says which tools you have accepted. Restore it, or move it away to accept what is there now."
                ),
            ) from error


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        content = file.read(_MAX_FILE_BYTES + 1)
    if len(content) > _MAX_FILE_BYTES:
        raise OSError(t.logged("it is too large"))
    return content
