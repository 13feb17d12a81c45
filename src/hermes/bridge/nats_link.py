"""The messages that Hermes sends over NATS: which sessions have new rows, and transient events by session."""

import hashlib
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from hermes.bridge.nats_client import PASSWORD, TOKEN, NatsClient, NatsOptions
from hermes.errors import HermesError
from hermes.settings import Secrets
from hermes.settings.sections import EventSettings
from hermes.text.translation import translator

t = translator(__name__)

if TYPE_CHECKING:
    from nats.aio.msg import Msg

_PLAIN = re.compile(r"[A-Za-z0-9_-]{1,100}")
_NOBODY = "-"  # the session part of the subject, for events without a session
_ASK_TIMEOUT_S = 0.5


def open_link(settings: EventSettings, secrets: Secrets) -> "NatsLink":
    """Connects in the background. Raises if nats-py is missing or the address can't be used."""
    return NatsLink(NatsClient(link_options(settings, secrets)), settings.subject)


def link_options(settings: EventSettings, secrets: Secrets) -> NatsOptions:
    """Returns the options for NATS. Raises if nats-py is missing."""
    try:
        import nats  # noqa: F401 - the thread imports what it needs
    except ImportError as error:
        from hermes.text.install_words import install_hint

        raise HermesError(
            t.later("NATS needs nats-py, which can't be loaded: {error}", error=error),
            hint=install_hint("nats"),
        ) from error
    return NatsOptions(settings, secrets.get(PASSWORD) or "", secrets.get(TOKEN) or "")


class NatsLink:
    """The subjects of one group of machines. Implements the store's `WakeUps`."""

    def __init__(self, client: NatsClient, subject: str) -> None:
        self.client = client
        self.subject = subject

    def announce(self, sessions: frozenset[str]) -> bool:
        """Notifies all processes which sessions have new rows."""
        data = "\n".join(sorted(sessions)).encode()
        return self.client.publish(f"{self.subject}.rows", data)

    def listen(self, heard: Callable[[frozenset[str]], None]) -> Callable[[], None]:
        """Calls `heard` with those sessions, and with none after a reconnect."""

        async def receive(message: "Msg") -> None:
            heard(frozenset(message.data.decode(errors="replace").split("\n")))

        def missed() -> None:
            heard(frozenset())

        listeners = self.client.connected_listeners
        listeners.append(missed)
        end = self.client.subscribe(f"{self.subject}.rows", receive)

        def stop() -> None:
            end()
            listeners.remove(missed)

        return stop

    def send(self, session: str, data: bytes) -> bool:
        """Sends a transient event, of a session or without one."""
        return self.client.publish(f"{self.subject}.live.{token(session)}", data)

    def receive(
        self, session: str, handle: Callable[[bytes], None]
    ) -> Callable[[], None]:
        """Receives the transient events of a session, or of all (`*`), on the client's thread."""

        async def take(message: "Msg") -> None:
            handle(message.data)

        name = session if session == "*" else token(session)
        return self.client.subscribe(f"{self.subject}.live.{name}", take)

    def answer_asks(self, answer: Callable[[str], bytes | None]) -> Callable[[], None]:
        """Answers requests for events that are not in the log yet; `answer` gets a session's token."""

        async def take(message: "Msg") -> None:
            found = answer(message.subject.rpartition(".")[2])
            if found is not None and message.reply:
                await message.respond(found)

        return self.client.subscribe(f"{self.subject}.ask.*", take)

    async def ask(self, session: str) -> bytes | None:
        """Asks the process that runs a session for events that are not in the log yet. Runs on the client's thread."""
        try:
            reply = await self.client.client.request(
                f"{self.subject}.ask.{token(session)}", b"", timeout=_ASK_TIMEOUT_S
            )
        except Exception:  # noqa: BLE001 - nobody runs it, or the connection is gone
            return None
        return reply.data

    def close(self) -> None:
        """Ends the connection."""
        self.client.close()


def token(session: str) -> str:
    """Returns a session's id as part of a subject."""
    if not session:
        return _NOBODY
    if _PLAIN.fullmatch(session):
        return session
    return "x" + hashlib.sha256(session.encode()).hexdigest()[:32]
