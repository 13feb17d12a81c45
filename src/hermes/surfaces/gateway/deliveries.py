"""The deliveries of all chats: each session's events go to its chat, and questions to whoever may answer."""

import asyncio
import logging
import secrets
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec

from hermes.app import App
from hermes.app.agent import Agent
from hermes.app.feed import Feed, SessionCursor
from hermes.app.people_access import PeopleAccess, Role
from hermes.app.speech import SpokenReplies, speech_deps, spoken_replies
from hermes.media.speech_deps import SpeechDeps
from hermes.primitives.recent import RecentDict
from hermes.primitives.tasks import BackgroundTasks, cancel_and_wait
from hermes.schema.events import (
    ApprovalAnswered,
    ApprovalRequested,
    QuestionAnswered,
    QuestionAsked,
)
from hermes.settings.language import sentences_for
from hermes.store.chats import Binding, Chats, DeliveredMessage
from hermes.store.log_row import Row
from hermes.store.session_log import SessionLog
from hermes.surfaces.gateway.adapter import (
    AdapterError,
    Chat,
    Outbound,
    OutgoingFile,
    Person,
)
from hermes.surfaces.gateway.chat_delivery import ChatDelivery, is_shown
from hermes.surfaces.gateway.message_split import split
from hermes.surfaces.gateway.sender import Sender
from hermes.text.translation import Sentences, in_language, to_translate, translator

t = translator(__name__)

log = logging.getLogger("hermes.gateway")

_QUESTIONS = frozenset(
    kind.topic
    for kind in (ApprovalRequested, ApprovalAnswered, QuestionAsked, QuestionAnswered)
)
_MAX_REMEMBERED_SESSIONS = 4096
_OWNER_ASKED = to_translate("I asked an owner.")
_NO_OWNER = to_translate(
    "No owner has a chat with me yet. An owner can answer on the machine: `hermes --resume {session}`."
)


class _Start:
    """A delivery whose binding is being read."""

    def __init__(self) -> None:
        self.events: list[Mapping[str, Any]] = []
        self.is_over = asyncio.Event()


class Deliveries:
    """Make it inside the event loop. `senders` are the platforms that run, by name."""

    def __init__(self, app: App, agent: Agent, access: PeopleAccess) -> None:
        self._app = app
        self._agent = agent
        self._access = access
        self._loop = asyncio.get_running_loop()
        self._keys: RecentDict[str, str] = RecentDict(_MAX_REMEMBERED_SESSIONS)
        self._languages: RecentDict[str, str] = RecentDict(_MAX_REMEMBERED_SESSIONS)
        self._active: dict[str, ChatDelivery] = {}
        self._starting: dict[str, _Start] = {}
        self._unknown: dict[str, list[Mapping[str, Any]]] = {}  # events, by session
        self._lookups = BackgroundTasks("finding the chat of a session")
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._pending: dict[str, int] = {}
        self._handled: dict[str, list[str]] = {}
        self._listening = ExitStack()
        self.senders: dict[str, Sender] = {}
        self.settings = app.settings.gateway
        self.time = self._loop.time
        self.since = app.clock.now()
        self.speech: Callable[[], SpeechDeps] = lambda: speech_deps(app)
        """Transcribes and speaks, by the current settings."""

    @property
    def call(self) -> Any:
        """Reads from the store without blocking the event loop."""
        return self._app.store.call

    @property
    def app(self) -> App:
        return self._app

    @property
    def waiting_chats(self) -> list[Chat]:
        """The chats in which a turn runs."""
        return [one.chat for one in self._active.values() if one.is_working]

    @property
    def ledger(self) -> Chats:
        return self._app.store.chats

    @property
    def log(self) -> SessionLog:
        return self._app.store.log

    @property
    def feed(self) -> Feed:
        return self._app.feed

    def cursor(self, binding: Binding) -> SessionCursor:
        """The position up to which a chat shows its session."""
        return SessionCursor(self._app, binding.session, seq=binding.seq)

    def sentences(self, key: str, tag: str = "") -> Sentences | None:
        """The sentences for a chat: in the language that its app told last, `tag` included."""
        if tag:
            self._languages[key] = tag
        tags = (self._languages.get(key, ""),)
        return sentences_for(self._app.settings.display.language, self._app.home, tags)

    @property
    def is_idle(self) -> bool:
        """Whether no chat is active, so that none uses memory."""
        return not (
            self._active
            or self._tasks
            or self._pending
            or self._handled
            or self._unknown
        )

    async def wait_idle(self, parked: Collection[str] = ()) -> None:
        """Waits until nothing is being delivered; `parked` sessions go on after the next start."""
        ignored = {self._keys.get(session) for session in parked}
        while tasks := {
            task for key, task in self._tasks.items() if key not in ignored
        }:
            await asyncio.wait(tasks)

    def start(self) -> None:
        """Starts listening to events."""
        self._listening.enter_context(self.feed.listening("agent.**", self._on_event))

    async def close(self) -> None:
        """Ends all deliveries; the rest is delivered after the next start."""
        self._listening.close()
        await self._lookups.close()
        await cancel_and_wait(*self._tasks.values())

    def sender(self, platform: str) -> Sender:
        """The sender of a platform. Raises AdapterError when the platform does not run."""
        if platform not in self.senders:
            raise AdapterError(
                t("{platform} is not running here.", platform=platform),
                hint=t("See: hermes gateway status"),
            )
        return self.senders[platform]

    async def remove_platform(self, platform: str) -> None:
        """Forgets a platform that no longer runs; the rest is delivered when it runs again."""
        self.senders.pop(platform, None)
        keys = [
            key
            for key in {*self._tasks, *self._handled}
            if key.partition("/")[0] == platform
        ]
        await cancel_and_wait(*(self._tasks[key] for key in keys if key in self._tasks))
        writes = [
            self.ledger.handled(platform, name)
            for key in keys
            for name in self._handled.pop(key, ())
        ]
        await asyncio.gather(*map(asyncio.wrap_future, writes))

    async def catch_up(self, platform: str) -> int:
        """Delivers what a platform has missed; returns in how many chats."""
        behind = [
            one.key
            for one in await self.call(self.ledger.behind)
            if one.key.partition("/")[0] == platform
        ]
        for key in behind:
            self._start(key)
        started = [await self._started(key) for key in behind]
        active = [one for one in started if one is not None]
        await asyncio.gather(*(delivery.caught_up.wait() for delivery in active))
        return len(active)

    async def _started(self, key: str) -> ChatDelivery | None:
        """The delivery of a chat, once its binding is known."""
        if key in self._starting:
            await self._starting[key].is_over.wait()
        return self._active.get(key)

    def bind(self, binding: Binding, former: str = "") -> None:
        """Switches a chat to another session."""
        self._keys.pop(former, None)
        self._keys[binding.session] = binding.key
        task = self._tasks.pop(binding.key, None)
        self._end_start(binding.key)
        self._active.pop(binding.key, None)
        if task is not None:
            task.cancel()

    def folder(self, session: str) -> Path:
        """The folder in which a session works."""
        return self._app.store.sessions.origin(session).working_directory

    def media_folder(self, session: str) -> Path:
        """The folder for the pictures that a session makes."""
        return self._app.home.media / session

    def spoken_replies(self, session: str) -> SpokenReplies:
        """Whether the replies of a session are spoken."""
        return spoken_replies(self._app, session)

    async def has_question(self, session: str) -> bool:
        """Whether a question of a session waits for a person."""
        return bool(await self._agent.service.pending(session))

    def works_on(self, session: str) -> bool:
        """Whether a turn of the session runs here, or is about to."""
        return self._agent.service.works_on(session)

    def working_sessions(self) -> list[str]:
        """The sessions whose chats show that a turn runs."""
        return [one.session for one in self._active.values() if one.is_working]

    def add_pending(self, key: str) -> None:
        """Keeps a chat active because a message is about to arrive, until `remove_pending`."""
        self._pending[key] = self._pending.get(key, 0) + 1

    def remove_pending(self, key: str) -> None:
        """The message has arrived, or was dropped."""
        self._pending[key] -= 1
        if not self._pending[key]:
            del self._pending[key]
        self._start(key)

    def note_handled(self, key: str, inbound: str) -> None:
        """Notes that a message was handled. That is stored with `finish`, as the log has the message too."""
        self._handled.setdefault(key, []).append(inbound)

    def has_pending(self, key: str) -> bool:
        """Whether a message is about to arrive in a chat."""
        return key in self._pending

    def finish(self, binding: Binding, seq: int) -> None:
        """Stores that a chat has nothing left to do."""
        self.ledger.rest(
            binding.key, binding.session, seq, self._handled.pop(binding.key, ())
        )
        self._active.pop(binding.key, None)

    def publish(self, topic: str, binding: Binding, **more: str) -> None:
        """Publishes an event of the gateway; `app` passes it to hooks."""
        about = {
            "platform": binding.key.partition("/")[0],
            "user": binding.person,
            "session_id": binding.session,
        }
        self._app.bus.publish(topic, about | more)

    async def deliver_text(
        self,
        target: str,
        text: str,
        files: tuple[OutgoingFile, ...] = (),
        *,
        key: str = "",
    ) -> None:
        """Sends a text and files to a chat, such as `telegram:123` or `telegram:123/thread`.

        Raises AdapterError when it can't be delivered. `key` is the same for each attempt at
        the same message.
        """
        platform, _, place = target.partition(":")
        name, _, thread = place.partition("/")
        chat = Chat(platform, name, thread=thread)
        await self.send_text(chat, text, files, key=key)

    async def send_text(
        self,
        chat: Chat,
        text: str,
        files: tuple[OutgoingFile, ...] = (),
        *,
        key: str = "",
    ) -> None:
        """As `deliver_text`, to a chat that is known."""
        sender = self.sender(chat.platform)
        limits = sender.adapter.limits
        most = min(limits.file_bytes, self.settings.file_bytes)
        for file in files:
            if (await asyncio.to_thread(file.path.stat)).st_size > most:
                raise AdapterError(
                    t(
                        "{name} is too large for {platform}.",
                        name=file.name,
                        platform=chat.platform,
                    )
                )
        texts = split(text, limits.text, limits.size) if text.strip() else []
        parts = [Outbound(text=part) for part in texts]
        if files and parts and limits.attached:
            parts[-1] = msgspec.structs.replace(parts[-1], files=files)
        elif files:
            parts.append(Outbound(text="", files=files))
        key = key or f"text-{secrets.token_hex(8)}"
        for number, part in enumerate(parts):
            out = msgspec.structs.replace(part, key=f"{key}-{number}")
            await self._send_part(sender, chat, out)

    async def _send_part(self, sender: Sender, chat: Chat, out: Outbound) -> None:
        """Sends a message that belongs to no session. Raises AdapterError with the platform's reason."""
        refused: list[str] = []
        if not await sender.send(chat, out, refused.append):
            why = "".join(refused) or t("it is not accepted")
            raise AdapterError(
                t(
                    "{platform} refused it for {id}: {why}",
                    platform=chat.platform,
                    id=chat.id,
                    why=why,
                )
            )

    def audience(
        self, binding: Binding, asked: ApprovalRequested | QuestionAsked
    ) -> list[tuple[str, Chat, str]]:
        """The chats in which a question is asked, each with a note on who answers if nobody there can."""
        chat = msgspec.json.decode(binding.chat, type=Chat)
        if isinstance(asked, QuestionAsked):
            return [(binding.key, chat, "")]
        role = self._access.role(chat.platform, Person(binding.person))
        if self._access.may_approve(role):
            return [(binding.key, chat, "")]
        owners = self._owner_chats(binding.key)
        who = t.marked(_OWNER_ASKED)
        if not owners:
            who = t.marked(_NO_OWNER, session=binding.session)
        return [(binding.key, chat, who if chat.kind == "direct" else ""), *owners]

    def may_approve(self, role: Role) -> bool:
        """Whether a person with this role may answer a request for approval."""
        return self._access.may_approve(role)

    def questions_before(
        self, row: Row, call_id: str
    ) -> list[tuple[int, ApprovalRequested | QuestionAsked]]:
        """The question of a call, with the seq of each row before this one that asked it.

        After a crash, a question is asked once more.
        """
        found: list[tuple[int, ApprovalRequested | QuestionAsked]] = []
        for other in self.log.every_event(row.session):
            if other.seq >= row.seq:
                break
            if other.type not in _QUESTIONS:
                continue
            asked = other.event
            if (
                isinstance(asked, ApprovalRequested | QuestionAsked)
                and asked.call_id == call_id
            ):
                found.append((other.seq, asked))
        return found

    async def show_answer(self, key: str, piece: DeliveredMessage, text: str) -> None:
        """Puts the answer into the message that asked."""
        binding = await self.call(self.ledger.find, key)
        sender = self.senders.get(key.partition("/")[0])
        if binding is None or sender is None:
            return
        chat = msgspec.json.decode(binding.chat, type=Chat)
        if sender.adapter.limits.edit:
            await sender.edit(chat, piece.message, Outbound(text=text))
        else:
            await sender.send(
                chat, Outbound(text=text, key=f"hermes-{piece.id}-settled")
            )

    def _owner_chats(self, except_key: str) -> list[tuple[str, Chat, str]]:
        """The most recent direct chat of each owner."""
        found: list[tuple[str, Chat, str]] = []
        for platform, person in self._access.owners():
            if platform not in self.senders:
                continue
            for binding in self.ledger.of_person(platform, person):
                chat = msgspec.json.decode(binding.chat, type=Chat)
                if binding.key != except_key and chat.kind == "direct":
                    found.append((binding.key, chat, ""))
                    break
        return found

    def _on_event(self, event: Mapping[str, Any]) -> None:
        session = event.get("session_id")
        if not isinstance(session, str):
            return
        if session in self._unknown:
            self._unknown[session].append(event)
        elif all(name in self._keys for name in _sessions_of(event)):
            self._take_event(event)
        else:
            self._unknown[session] = [event]
            self._lookups.start(self._look_up(session))

    async def _look_up(self, session: str) -> None:
        """Finds the chats of the sessions that events name, then handles the events in their order."""
        events = self._unknown[session]
        try:
            taken = 0
            while taken < len(events):
                event = events[taken]
                for name in _sessions_of(event):
                    if name not in self._keys:
                        binding = await self.call(self.ledger.of_session, name)
                        key = binding.key if binding else ""
                        self._keys.get_or_make(name, lambda key=key: key)
                self._take_event(event)
                taken += 1
        finally:
            del self._unknown[session]

    def _take_event(self, event: Mapping[str, Any]) -> None:
        keys = (self._keys.get(name, "") for name in _sessions_of(event))
        key = next((key for key in keys if key), "")
        if key and is_shown(event):
            self._start(key)
        if key in self._starting:
            self._starting[key].events.append(event)
        elif key in self._active:
            self._active[key].on_event(event)

    def _start(self, key: str) -> None:
        """Starts the delivery of a chat, unless it runs already or its platform does not."""
        if key in self._active or key in self._starting:
            return
        if key.partition("/")[0] in self.senders:
            self._starting[key] = _Start()
            self._tasks[key] = self._loop.create_task(self._run(key))

    async def _run(self, key: str) -> None:
        """The boundary of a delivery: an error in one chat is logged, and the others go on."""
        delivery = None
        try:
            delivery = await self._begin(key)
            if delivery is not None:
                with in_language(self.sentences(key)):
                    await delivery.run()
        except Exception:
            log.exception("chat %s is not shown what happens in its session", key)
        finally:
            if delivery is not None:
                delivery.caught_up.set()
                if self._active.get(key) is delivery:
                    del self._active[key]
            if self._tasks.get(key) is asyncio.current_task():
                del self._tasks[key]
                self._end_start(key)

    async def _begin(self, key: str) -> ChatDelivery | None:
        """Reads what a delivery begins with. Returns None for a chat without a session."""
        binding = await self.call(self.ledger.find, key)
        if binding is None or key.partition("/")[0] not in self.senders:
            return None
        drafts = await self.call(self.ledger.pieces, key, binding.session, 0)
        delivery = self._active[key] = ChatDelivery(self, binding, drafts)
        for event in self._end_start(key):
            delivery.on_event(event)
        return delivery

    def _end_start(self, key: str) -> list[Mapping[str, Any]]:
        """A chat's delivery has begun, or will not. Returns the events that came meanwhile."""
        start = self._starting.pop(key, None)
        if start is None:
            return []
        start.is_over.set()
        return start.events


def _sessions_of(event: Mapping[str, Any]) -> list[str]:
    """The sessions whose chat shows an event; a question of a child is asked in its root's chat too."""
    names = [event.get("session_id")]
    if event["type"] in _QUESTIONS:
        names.append(event.get("root_session_id"))
    return [name for name in names if isinstance(name, str)]
