"""All deliveries of a gateway: wakes the one whose session something happens in, and knows who is asked what."""

import asyncio
import logging
from collections.abc import Collection, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec

from hermes.app import App
from hermes.app.agent import Agent
from hermes.app.feed import Feed, SessionCursor
from hermes.primitives.recent import RecentDict
from hermes.primitives.tasks import cancel_and_wait
from hermes.schema.events import (
    ApprovalAnswered,
    ApprovalRequested,
    QuestionAnswered,
    QuestionAsked,
)
from hermes.store.chats import Binding, Chats, DeliveredMessage
from hermes.store.log_row import Row
from hermes.store.session_log import SessionLog
from hermes.surfaces.gateway.access import PeopleAccess, Role
from hermes.surfaces.gateway.adapter import AdapterError, Chat, Outbound, Person
from hermes.surfaces.gateway.chat_delivery import ChatDelivery, concerns
from hermes.surfaces.gateway.message_split import split
from hermes.surfaces.gateway.sender import Sender

log = logging.getLogger("hermes.gateway")

_QUESTIONS = frozenset(
    kind.topic
    for kind in (ApprovalRequested, ApprovalAnswered, QuestionAsked, QuestionAnswered)
)
_REMEMBERED = 4096  # sessions of which it is known whether they have a chat
_ASKED = "An owner was asked."
_NOBODY = "No owner has a chat with me yet. An owner can answer on the machine: `hermes --resume {session}`."


class Deliveries:
    """To be made inside the event loop. `posts` holds the platforms that run, by name."""

    def __init__(self, app: App, agent: Agent, access: PeopleAccess) -> None:
        self._app = app
        self._agent = agent
        self._access = access
        self._loop = asyncio.get_running_loop()
        self._keys: RecentDict[str, str] = RecentDict(_REMEMBERED)
        self._active: dict[str, ChatDelivery] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._expected: dict[str, int] = {}
        self._handled: dict[str, list[str]] = {}
        self._listening = ExitStack()
        self.posts: dict[str, Sender] = {}
        self.settings = app.settings.gateway
        self.time = self._loop.time
        self.since = app.clock.now()

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

    @property
    def resting(self) -> bool:
        """Whether nothing is kept of any chat but which session it has."""
        return not (self._active or self._tasks or self._expected or self._handled)

    async def idle(self, parked: Collection[str] = ()) -> None:
        """Waits until nothing is being delivered; of `parked` sessions nothing comes before the next start."""
        apart = {self._keys.get(session) for session in parked}
        while tasks := {task for key, task in self._tasks.items() if key not in apart}:
            await asyncio.wait(tasks)

    def start(self) -> None:
        """Begins to listen."""
        self._listening.enter_context(self.feed.listening("agent.**", self._take))

    async def close(self) -> None:
        """Ends all deliveries where they are; what is left is delivered after the next start."""
        self._listening.close()
        await cancel_and_wait(*self._tasks.values())

    def post(self, platform: str) -> Sender:
        """The way out to a platform. Raises when it does not run."""
        if platform not in self.posts:
            raise AdapterError(
                f"{platform} does not run here.", hint="See: hermes gateway status"
            )
        return self.posts[platform]

    async def dismiss(self, platform: str) -> None:
        """A platform does not run any more: nothing of it is kept here. What is left is delivered when it is back."""
        self.posts.pop(platform, None)
        keys = [
            key
            for key in {*self._tasks, *self._handled}
            if key.partition("/")[0] == platform
        ]
        await cancel_and_wait(*(self._tasks[key] for key in keys if key in self._tasks))
        noted = [
            self.ledger.handled(platform, name)
            for key in keys
            for name in self._handled.pop(key, ())
        ]
        await asyncio.gather(*map(asyncio.wrap_future, noted))

    async def catch_up(self, platform: str) -> int:
        """Delivers what was not delivered to a platform when it was last there; in how many chats."""
        behind = [
            one.key
            for one in self.ledger.behind()
            if one.key.partition("/")[0] == platform
        ]
        for key in behind:
            self._begin(key)
        active = [self._active[key] for key in behind if key in self._active]
        await asyncio.gather(*(delivery.caught_up.wait() for delivery in active))
        return len(active)

    def bound(self, binding: Binding, was: str = "") -> None:
        """A chat has got another session."""
        self._keys.pop(was, None)
        self._keys[binding.session] = binding.key
        task = self._tasks.pop(binding.key, None)
        self._active.pop(binding.key, None)
        if task is not None:
            task.cancel()

    def folder(self, session: str) -> Path:
        """Where a session works."""
        return Path(self._app.store.sessions.origin(session).cwd or ".")

    async def asks(self, session: str) -> bool:
        """Whether a question of that session waits for a person."""
        return bool(await self._agent.service.pending(session))

    def works_on(self, session: str) -> bool:
        """Whether a turn runs here, or is about to."""
        return self._agent.service.works_on(session)

    def working(self) -> list[str]:
        """Sessions whose chats show that a turn runs."""
        return [one.session for one in self._active.values() if one.working]

    def expect(self, key: str) -> None:
        """Something is about to be said in a chat; until `came`, it is not at rest."""
        self._expected[key] = self._expected.get(key, 0) + 1

    def came(self, key: str) -> None:
        """It was said, or not."""
        self._expected[key] -= 1
        if not self._expected[key]:
            del self._expected[key]
        self._begin(key)

    def handled(self, key: str, inbound: str) -> None:
        """A message was dealt with; written down when the chat comes to rest, as the log knows it too."""
        self._handled.setdefault(key, []).append(inbound)

    def expects(self, key: str) -> bool:
        """Whether something is about to be said."""
        return key in self._expected

    def rest(self, binding: Binding, seq: int) -> None:
        """A chat has nothing left to do."""
        self.ledger.rest(
            binding.key, binding.session, seq, self._handled.pop(binding.key, ())
        )
        self._active.pop(binding.key, None)

    def tell(self, topic: str, binding: Binding, **more: str) -> None:
        """Publishes what the gateway does. Hooks are told of it, and of what happens in sessions, by `app`."""
        about = {
            "platform": binding.key.partition("/")[0],
            "user": binding.person,
            "session_id": binding.session,
        }
        self._app.bus.publish(topic, about | more)

    async def take(self, target: str, text: str) -> None:
        """Brings a text to a chat, named as `telegram:123` or `telegram:123/thread`. Raises when it can't be."""
        platform, _, place = target.partition(":")
        post = self.post(platform)
        name, _, thread = place.partition("/")
        limits = post.adapter.limits
        for part in split(text, limits.text, limits.size):
            if not await post.send(
                Chat(platform, name, thread=thread), Outbound(text=part)
            ):
                raise AdapterError(f"{platform} does not take it for {place}.")

    def audience(
        self, binding: Binding, asked: ApprovalRequested | QuestionAsked
    ) -> list[tuple[str, Chat, str]]:
        """Where a question is put, and who can answer it if nobody can there."""
        chat = msgspec.json.decode(binding.chat, type=Chat)
        if isinstance(asked, QuestionAsked):
            return [(binding.key, chat, "")]
        if self._access.may_approve(
            self._access.role(chat.platform, Person(binding.person))
        ):
            return [(binding.key, chat, "")]
        owners = self._owners(binding.key)
        who = _ASKED if owners else _NOBODY.format(session=binding.session)
        return [(binding.key, chat, who if chat.kind == "direct" else ""), *owners]

    def may_approve(self, role: Role) -> bool:
        """Whether such a person may answer a request for approval."""
        return self._access.may_approve(role)

    def asked(
        self, row: Row, call_id: str
    ) -> list[tuple[int, ApprovalRequested | QuestionAsked]]:
        """The question that a row is about, with the seq of its rows before: after a crash it is asked once more."""
        found: list[tuple[int, ApprovalRequested | QuestionAsked]] = []
        for other in self.log.every_event(row.session):
            if other.seq >= row.seq:
                break
            if other.type in _QUESTIONS and isinstance(
                asked := other.event, ApprovalRequested | QuestionAsked
            ):
                found += [(other.seq, asked)] if asked.call_id == call_id else []
        return found

    async def settle(self, key: str, piece: DeliveredMessage, text: str) -> None:
        """Puts the answer into a message that asked."""
        binding, post = self.ledger.find(key), self.posts.get(key.partition("/")[0])
        if binding is None or post is None:
            return
        chat = msgspec.json.decode(binding.chat, type=Chat)
        if post.adapter.limits.edit:
            await post.edit(chat, piece.message, Outbound(text=text))
        else:
            await post.send(chat, Outbound(text=text, key=f"hermes-{piece.id}-settled"))

    def _owners(self, but: str) -> list[tuple[str, Chat, str]]:
        """Chats between Hermes and an owner alone, each owner's most recent one."""
        found: list[tuple[str, Chat, str]] = []
        for platform, person in self._access.owners():
            theirs = (
                self.ledger.of_person(platform, person)
                if platform in self.posts
                else []
            )
            chats = (
                (one.key, msgspec.json.decode(one.chat, type=Chat), "")
                for one in theirs
                if one.key != but
            )
            found += [one for one in chats if one[1].kind == "direct"][:1]
        return found

    def _take(self, event: Mapping[str, Any]) -> None:
        session = event.get("session_id")
        if not isinstance(session, str):
            return
        key = self._key(session)
        if (
            not key
            and event["type"] in _QUESTIONS
            and isinstance(root := event.get("root_session_id"), str)
        ):
            key = self._key(root)
        if key and concerns(event):
            self._begin(key)
        if key in self._active:
            self._active[key].hear(event)

    def _key(self, session: str) -> str:
        """The chat of a session; empty when it has none."""

        def find() -> str:
            binding = self.ledger.of_session(session)
            return binding.key if binding else ""

        return self._keys.get_or_make(session, find)

    def _begin(self, key: str) -> "asyncio.Task[None] | None":
        """Sees to it that a chat is looked after; None when its platform does not run."""
        if key in self._active:
            return self._tasks[key]
        binding = self.ledger.find(key)
        if binding is None or key.partition("/")[0] not in self.posts:
            return None
        delivery = ChatDelivery(self, binding)
        self._active[key] = delivery
        task = self._loop.create_task(self._run(key, delivery))
        self._tasks[key] = task
        return task

    async def _run(self, key: str, delivery: ChatDelivery) -> None:
        """The boundary of a delivery: what goes wrong in one chat is logged, and the others go on."""
        try:
            await delivery.run()
        except Exception:
            log.exception("what happens in chat %s is not shown there", key)
        finally:
            delivery.caught_up.set()
            if self._active.get(key) is delivery:
                del self._active[key]
            if self._tasks.get(key) is asyncio.current_task():
                del self._tasks[key]
