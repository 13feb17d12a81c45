"""The session of each chat: its current one, a new one, or one from another surface."""

import asyncio
from pathlib import Path

import msgspec

from hermes.app import App
from hermes.app.people_access import Role
from hermes.errors import SessionNotFound, UsageError
from hermes.learning.learning_service import folder_of
from hermes.schema.events import SessionCreated
from hermes.store.chats import Binding
from hermes.store.log_row import Row
from hermes.surfaces.gateway.adapter import Inbound
from hermes.surfaces.gateway.deliveries import Deliveries
from hermes.surfaces.gateway.session_rules import is_shared
from hermes.text.translation import translator

t = translator(__name__)


class ChatSessions:
    """Finds and changes the sessions of chats."""

    def __init__(self, app: App, deliveries: Deliveries) -> None:
        self._app = app
        self._deliveries = deliveries

    async def enter(self, key: str, inbound: Inbound, role: Role) -> Binding:
        """The session of a chat; a new one if it has none."""
        store = self._app.store
        found = await store.call(store.chats.find, key)
        if found is None:
            return await self.begin(key, inbound, role)
        try:
            await store.call(store.sessions.find, found.session)
            person = await store.call(self._app.person, found.session)
        except SessionNotFound:  # somebody has deleted it
            return await self.begin(key, inbound, role)
        is_owners = not person
        if is_owners and self._memory(
            inbound, role
        ):  # the sender is no longer the owner
            return await self.begin(key, inbound, role)
        return found

    async def begin(self, key: str, inbound: Inbound, role: Role) -> Binding:
        """A new session for a chat."""
        store = self._app.store
        before = await store.call(store.chats.find, key)
        person = self._memory(inbound, role)
        row = await asyncio.to_thread(self._create, inbound.chat.platform, person)
        model = before.model if before else ""
        binding = await self._bind(
            key,
            inbound,
            Binding(key, row.session, "", seq=row.seq, busy=True, model=model),
        )
        if before is not None:
            self._deliveries.publish(
                "gateway.session.reset", before, new_session_id=row.session
            )
        return binding

    async def move(self, key: str, inbound: Inbound, name: str) -> Binding:
        """Continues a session from another surface. Raises SessionNotFound."""
        if is_shared(inbound.chat, self._app.settings.gateway.sessions):
            raise UsageError(
                t("Other people in this chat would see it."),
                hint=t("Use /resume in a private chat with me."),
            )
        info = await asyncio.to_thread(self._app.store.sessions.find, name)
        return await self._bind(
            key, inbound, Binding(key, info.id, "", seq=info.head, busy=True)
        )

    async def _bind(self, key: str, inbound: Inbound, binding: Binding) -> Binding:
        store, chats = self._app.store, self._app.store.chats
        before = await store.call(chats.find, key)
        chat = msgspec.json.encode(inbound.chat).decode("utf-8", "replace")
        binding = msgspec.structs.replace(binding, chat=chat, person=inbound.person.id)
        await asyncio.wrap_future(chats.bind(binding))
        self._deliveries.bind(binding, before.session if before else "")
        return binding

    def _create(self, platform: str, person: str) -> Row:
        return self._app.begin(
            SessionCreated(
                surface=platform, cwd=str(self._folder(person)), person=person
            )
        )

    def _folder(self, person: str) -> Path:
        """The folder of a session: everybody but an owner has a folder of their own."""
        named = self._app.settings.gateway.folder or "~/hermes"
        folder = Path(named).expanduser()
        folder = folder / "people" / folder_of(person) if person else folder
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def _memory(self, inbound: Inbound, role: Role) -> str:
        """Whose memory and folder a session uses; empty for Hermes's own, which owners use.

        Everybody else has their own, and so has a chat in which several people share a
        session: what one person tells Hermes elsewhere is not for all the others.
        """
        if is_shared(inbound.chat, self._app.settings.gateway.sessions):
            return f"{inbound.chat.platform}:room-{inbound.chat.id}"
        return "" if role == "owner" else f"{inbound.chat.platform}:{inbound.person.id}"
