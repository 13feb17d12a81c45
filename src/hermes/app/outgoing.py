"""Sends messages to chats from anywhere: they are written to a table, and the running gateway delivers them.

All messages take this way, because only a gateway has the connections, knows the limits of each platform and waits
out its failures. A message is on disk before it is sent, so that its outcome can be looked up.
"""

import asyncio
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from hermes.app.app import App
from hermes.errors import HermesError, NotFound, UsageError, os_reason
from hermes.primitives.files import create_private, make_private_folder
from hermes.settings import Home
from hermes.settings.gateway import CHAT_PLATFORMS
from hermes.store.hosts import GONE_AFTER_S
from hermes.store.outgoing import OutgoingMessage, QueuedFile
from hermes.text.translation import translator
from hermes.tools.sensitive import is_secret

t = translator(__name__)


MAX_FILES = 10
KEEP_S = 24 * 3600.0
"""How long a message waits for a gateway if nobody waits for the message."""
_CHECK_INTERVAL_S = 0.1
_GRACE_S = 2.0
"""For the gateway to record how it ended, beyond the time that was given."""
_NOBODY = t.later("No gateway is running, so nothing was sent.")
_START = t.later("Start it with: hermes gateway run")
_TARGETS = t.later(
    "Give a chat such as telegram:123456, ntfy:topic or email:a@example.org, or a name."
)
_PLATFORM = re.compile(r"[a-z][a-z0-9_-]*")
_MAX_CHATS = 1000


class _Chat(msgspec.Struct):
    """A chat, as the gateway stores it."""

    platform: str
    id: str
    kind: str = "direct"
    thread: str = ""
    title: str = ""

    @property
    def target(self) -> str:
        return f"{self.platform}:{self.id}{f'/{self.thread}' if self.thread else ''}"


class _GatewayOwner(msgspec.Struct):
    """What the gateway's status file says about its process."""

    owner: str


def gateway_status_file(home: Home) -> Path:
    """The file in which a gateway reports its state."""
    return home.root / "gateway" / "status.json"


class MessageOutbox:
    """Messages of one home."""

    def __init__(self, app: App) -> None:
        self._app = app

    @property
    def _folder(self) -> Path:
        return self._app.home.root / "gateway" / "outgoing"

    def resolve(self, target: str) -> str:
        """The chat that a target means. Raises UsageError or NotFound."""
        platform, colon, place = target.strip().partition(":")
        if colon:
            if not place or not _PLATFORM.fullmatch(platform):
                raise UsageError(
                    t.later("{target!r} is not a chat.", target=target), hint=_TARGETS
                )
            self._require_platform(platform)
            return target.strip()
        found = list(dict.fromkeys(self._named(platform)))
        if len(found) == 1:
            return found[0]
        if found:
            raise UsageError(
                t.later(
                    "{target!r} may be any of: {found}.",
                    target=target,
                    found=", ".join(found),
                ),
                hint=t.later("Give one."),
            )
        raise NotFound(
            t.later("Nobody and no chat is called {target!r}.", target=target),
            hint=_TARGETS,
        )

    def check_file(self, path: Path) -> Path:
        """A file that may be sent, where its links lead. Raises UsageError."""
        try:
            found = path.expanduser().resolve(strict=True)
            size = found.stat().st_size
        except (OSError, RuntimeError) as error:
            why = os_reason(error) if isinstance(error, OSError) else str(error)
            raise UsageError(
                t.later("{path} can't be read: {why}.", path=path, why=why),
                hint=t.later("Nothing was sent."),
            ) from error
        if not found.is_file():
            raise UsageError(t.later("{path} is not a file.", path=path))
        if is_secret(path) or is_secret(found):
            raise UsageError(
                t.later("{path} may hold secrets, so it is not sent.", path=path),
                hint=t.later("Copy it under another name if you are sure."),
            )
        if size > self._app.settings.gateway.file_bytes:
            raise UsageError(
                t.later(
                    "{path} has {size:,} bytes; gateway.file_bytes is the limit.",
                    path=path,
                    size=size,
                )
            )
        return found

    async def send(
        self, target: str, text: str, files: tuple[Path, ...], wait_s: float
    ) -> OutgoingMessage:
        """Sends a message; returns how it ended within `wait_s`. With 0, it waits for a gateway and this doesn't."""
        if wait_s and not await asyncio.to_thread(self._has_gateway):
            raise HermesError(_NOBODY, hint=_START)
        message = await asyncio.to_thread(self._write, target, text, files, wait_s)
        if not wait_s:
            return message
        try:
            return await self._ended(message, wait_s)
        except asyncio.CancelledError:
            if self._app.store.sends.withdraw(message.id, t.logged("it was cancelled")):
                self.clear(message)
            raise

    def queue(
        self, target: str, text: str, *, name: str = "", keep_s: float = KEEP_S
    ) -> OutgoingMessage:
        """Writes a message that the next gateway delivers, however long that takes up to `keep_s`.

        With a name, the same message is written only once. Raises HermesError for an invalid target or an empty text.
        """
        place, now = self.resolve(target), self._app.clock.now()
        if not text.strip():
            raise UsageError(t.later("There is nothing to send."))
        name = name or secrets.token_hex(8)
        made = OutgoingMessage(name, place, text, (), now, now + keep_s)
        self._app.store.sends.put(made)
        return made

    def clear(self, message: OutgoingMessage) -> None:
        """Deletes the copies of a message's files."""
        for file in message.files:
            with suppress(OSError):
                Path(file.path).unlink()

    def _write(
        self, target: str, text: str, files: tuple[Path, ...], wait_s: float
    ) -> OutgoingMessage:
        if len(files) > MAX_FILES:
            raise UsageError(
                t.later(
                    "At most {max_files} files can be sent at once.",
                    max_files=MAX_FILES,
                )
            )
        if not text.strip() and not files:
            raise UsageError(t.later("There is nothing to send."))
        place, now, name = self.resolve(target), self._app.clock.now(), secrets.token_hex(8)  # fmt: skip
        sources = [self.check_file(path) for path in files]
        copies = tuple(
            self._copy(path, f"{name}-{number}") for number, path in enumerate(sources)
        )
        made = OutgoingMessage(name, place, text, copies, now, now + (wait_s or KEEP_S))
        self._app.store.sends.put(made)
        return made

    def _copy(self, source: Path, name: str) -> QueuedFile:
        """A private copy: what is sent is the file as it is now."""
        target = make_private_folder(self._folder) / name
        with source.open("rb") as file, create_private(target) as copy:
            shutil.copyfileobj(file, copy)
        return QueuedFile(str(target), source.name)

    async def _ended(self, message: OutgoingMessage, wait_s: float) -> OutgoingMessage:
        table, time = self._app.store.sends, asyncio.get_running_loop().time
        deadline = time() + wait_s + _GRACE_S
        while True:
            found = await asyncio.to_thread(table.find, message.id) or message
            if found.is_over or time() > deadline:
                break
            await asyncio.sleep(_CHECK_INTERVAL_S)
        late = t.logged(
            "the gateway did not take it within {seconds} s", seconds=f"{wait_s:g}"
        )
        if not found.is_over and await asyncio.to_thread(table.withdraw, message.id, late):  # fmt: skip
            await asyncio.to_thread(self.clear, message)
            return msgspec.structs.replace(found, state="failed", reason=late)
        if not found.is_over:
            reason = t.logged(
                "it was not known to have arrived within {seconds} s",
                seconds=f"{wait_s:g}",
            )
            return msgspec.structs.replace(found, state="failed", reason=reason)
        return found

    def _require_platform(self, platform: str) -> None:
        settings = self._app.settings.gateway
        known = (*CHAT_PLATFORMS, *settings.platforms)
        has_plugins = (self._app.home.root / "plugins.json").exists()
        if platform not in known and not has_plugins:
            raise UsageError(
                t.later("There is no platform {platform!r}.", platform=platform),
                hint=t.later(
                    "There are: {known}.", known=", ".join(dict.fromkeys(known))
                ),
            )

    def _named(self, name: str) -> Iterator[str]:
        """The chats that go by a name: of a platform's own place, of a person, or of a group."""
        topic = self._app.settings.gateway.ntfy.topic
        if name == "ntfy" and topic:
            yield f"ntfy:{topic}"
            return
        wanted = name.casefold()
        chats = self._chats()
        people = {
            (one.platform, one.id)
            for one in self._app.store.people.every()
            if one.role != "blocked" and one.name.casefold() == wanted
        }
        for person, chat in chats:
            is_theirs = chat.kind == "direct" and (chat.platform, person) in people
            if is_theirs or (chat.title and chat.title.casefold() == wanted):
                yield chat.target

    def _chats(self) -> list[tuple[str, _Chat]]:
        """The chats that are known, most recently used first, each with the person who started it."""
        return [
            (one.person, msgspec.json.decode(one.chat, type=_Chat))
            for one in self._app.store.chats.recent(_MAX_CHATS)
        ]

    def _has_gateway(self) -> bool:
        """Whether a gateway runs that uses this store."""
        store = self._app.store
        if self._app.settings.store.url:
            state = store.hosts.state()
            return any(
                one.role == "gateway" and state.now - one.seen < GONE_AFTER_S
                for one in state.processes
            )
        try:
            found = msgspec.json.decode(
                gateway_status_file(self._app.home).read_bytes(), type=_GatewayOwner
            )
        except (OSError, msgspec.MsgspecError):
            return False
        return not store.database.is_gone(found.owner)
