"""What happens to a message that came in: on disk first, then who it is from, and then a command, an answer or a turn.

Messages of one chat are dealt with one after the other, those of different chats side by side.
"""

import asyncio
import logging
from collections import deque
from typing import TYPE_CHECKING

import msgspec

from hermes.app import App
from hermes.app.agent import Agent
from hermes.core.answers import approval_hash
from hermes.errors import AnswerRefused, HermesError, SessionNotFound, in_sentences
from hermes.primitives.tasks import BackgroundTasks
from hermes.schema.events import ApprovalRequested, QuestionAsked
from hermes.schema.messages import Image, UserMessage
from hermes.settings.gateway import GatewaySettings
from hermes.store.chats import Binding
from hermes.surfaces.gateway.access import PeopleAccess, Role
from hermes.surfaces.gateway.adapter import AdapterError, Inbound, Outbound, Receipt
from hermes.surfaces.gateway.chat_sessions import ChatSessions
from hermes.surfaces.gateway.commands import ChatCommands, CommandRequest
from hermes.surfaces.gateway.deliveries import Deliveries
from hermes.surfaces.gateway.files import store_attachment
from hermes.surfaces.gateway.questions import read_press, verdict_of
from hermes.surfaces.gateway.session_rules import is_at, key_of

if TYPE_CHECKING:
    from hermes.surfaces.gateway.transcription import Voice

log = logging.getLogger("hermes.gateway")

_NAME = 60  # characters of a person's name before their words in a group


class InboundMessages:
    """Takes messages from all platforms."""

    def __init__(
        self,
        app: App,
        agent: Agent,
        access: PeopleAccess,
        office: Deliveries,
        rooms: ChatSessions,
    ) -> None:
        self._app = app
        self._agent = agent
        self._access = access
        self._office = office
        self._rooms = rooms
        self._lanes: dict[str, deque[tuple[Inbound, bool]]] = {}
        self._tasks = BackgroundTasks("dealing with a message")
        self.commands = ChatCommands(app, agent, office, rooms)
        self.voice: Voice | None = None

    @property
    def _settings(self) -> GatewaySettings:
        return self._app.settings.gateway

    async def receive(self, inbound: Inbound) -> Receipt:
        """Returns once it is on disk. A stranger's words are not kept, and those not meant for Hermes neither."""
        counters = self._office.post(inbound.chat.platform).counters
        role = self._access.role(inbound.chat.platform, inbound.person)
        if not role:
            counters.strangers += 1
            await self._meet(inbound)
            return "refused"
        if not inbound.addressed and self._settings.groups == "addressed":
            return "refused"
        # To its end, also while the platform is disconnected: what is on disk and in no lane is not dealt with.
        taking = self._tasks.start(self._take_in(inbound), awaited=True)
        return await asyncio.shield(taking)

    async def _take_in(self, inbound: Inbound) -> Receipt:
        counters = self._office.post(inbound.chat.platform).counters
        data = msgspec.json.encode(inbound).decode("utf-8", "replace")
        key = key_of(inbound.chat, inbound.person, self._settings.sessions)
        ledger = self._app.store.chats
        self._office.expect(key)
        try:
            if not await asyncio.wrap_future(
                ledger.accept(inbound.chat.platform, inbound.id, data, key)
            ):
                counters.repeated += 1
                return "repeated"
            counters.received += 1
            self._enqueue(key, inbound, again=False)
            return "taken"
        finally:
            self._office.came(key)

    def replay(self) -> None:
        """Deals with what was taken in before the last end and not dealt with."""
        for waiting in self._app.store.chats.waiting():
            try:
                inbound = msgspec.json.decode(waiting.data, type=Inbound)
            except msgspec.MsgspecError as error:
                log.warning(
                    "a message that waits can't be read (%s %s): %s",
                    waiting.platform,
                    waiting.id,
                    error,
                )
                continue
            if waiting.platform in self._office.posts:
                key = key_of(inbound.chat, inbound.person, self._settings.sessions)
                self._enqueue(key, inbound, again=True)

    @property
    def resting(self) -> bool:
        """Whether everything that came in was dealt with."""
        return not (self._lanes or self._tasks)

    async def drained(self) -> None:
        """Waits until everything that came in was dealt with."""
        await self._tasks.join()

    def _enqueue(self, key: str, inbound: Inbound, *, again: bool) -> None:
        self._office.expect(key)
        lane = self._lanes.get(key)
        if lane is not None:
            lane.append((inbound, again))
            return
        self._lanes[key] = deque([(inbound, again)])
        self._tasks.start(self._work(key))

    async def _work(self, key: str) -> None:
        lane = self._lanes[key]
        while lane:
            inbound, again = lane.popleft()
            try:
                await self._deal(key, inbound, again=again)
            except (
                Exception
            ):  # the boundary of a request: one message must not end the chat
                log.exception(
                    "a message of %s was not dealt with; the next start tries again",
                    key,
                )
            finally:
                self._office.came(key)
        del self._lanes[key]

    async def _deal(self, key: str, inbound: Inbound, *, again: bool) -> None:
        """Deals with a message, says what went wrong, and notes that it was dealt with."""
        said = False
        try:
            said = await self._handle(key, inbound, again=again)
        except HermesError as error:
            await self._tell(inbound, f"⚠️ {in_sentences(error)}")
        except Exception:
            log.exception("a message of %s was not dealt with", key)
            await self._tell(
                inbound,
                "⚠️ Something went wrong inside Hermes. The log of the gateway says what.",
            )
        if said:  # the log has it: that it was dealt with is written down when the chat is at rest
            self._office.handled(key, inbound.id)
        else:
            await asyncio.wrap_future(
                self._app.store.chats.handled(inbound.chat.platform, inbound.id)
            )

    async def _handle(self, key: str, inbound: Inbound, *, again: bool) -> bool:
        """Whether it is in the session's log now."""
        role = self._access.role(inbound.chat.platform, inbound.person)
        if not role:  # shut out since it came in
            return False
        if inbound.pressed:
            await self._press(inbound, role)
            return False
        binding = await self._rooms.enter(key, inbound, role)
        if again and await asyncio.to_thread(
            self._is_taken, binding.session, f"{key}#{inbound.id}"
        ):
            await self._agent.service.resume(binding.session)
            return True
        asking = CommandRequest(key, inbound, role, binding)
        if (answer := await self.commands.run(asking)) is not None:
            if answer or await self._is_owed(asking):
                await self._tell(inbound, answer or "Done.")
            return False
        if await self._reply(binding, inbound):
            return False
        await self._submit(binding, inbound, role)
        return True

    async def _is_owed(self, asking: CommandRequest) -> bool:
        """Whether a command without words of its own needs some: where each message gets a reply, and no turn will
        answer this one."""
        whole = self._office.post(asking.inbound.chat.platform).adapter.limits.whole
        return whole and not await asyncio.to_thread(
            self._is_taken, asking.binding.session, asking.via
        )

    async def _submit(self, binding: Binding, inbound: Inbound, role: Role) -> None:
        text, images = await self._content(binding, inbound)
        if not text.strip() and not images:
            if inbound.chat.kind == "direct":
                await self._tell(inbound, _NOTHING_TO_READ)
            return
        service = self._agent.service
        via = f"{binding.key}#{inbound.id}"
        whole = self._office.post(inbound.chat.platform).adapter.limits.whole
        delivery = "queue" if whole else self._settings.while_busy  # one reply for each
        try:
            await service.submit(
                binding.session, text, images=images, delivery=delivery, via=via
            )
        except SessionNotFound:  # deleted at this moment
            again = await self._rooms.begin(binding.key, inbound, role)
            await self._agent.service.submit(
                again.session, text, images=images, via=via
            )

    async def _content(
        self, binding: Binding, inbound: Inbound
    ) -> tuple[str, tuple[Image, ...]]:
        """The words, with those of voice notes, and files as the model can find them."""
        lines = [inbound.text] if inbound.text else []
        images: list[Image] = []
        post = self._office.post(inbound.chat.platform)
        most = min(post.adapter.limits.file_bytes, self._settings.file_bytes)
        work = self._office.folder(binding.session)
        for attachment in inbound.attachments:
            try:
                data = await post.fetch(attachment, most)
            except AdapterError as error:
                lines.append(
                    f"[A file did not arrive: {attachment.name or attachment.kind}. {error.message}]"
                )
                continue
            path, image = await asyncio.to_thread(
                store_attachment, work, attachment, data
            )
            if image is not None:
                images.append(image)
            if attachment.kind == "voice" and self.voice is not None:
                lines.append(await self.voice.write_down(path))
                continue
            lines.append(f"[{attachment.kind}: {path}]")
        text = "\n".join(lines)
        if inbound.chat.kind == "direct" or not text:
            return text, tuple(images)
        name = (
            " ".join(inbound.person.name.split())[:_NAME].replace("]", ")")
            or inbound.person.id
        )
        return f"[{name}] {text}", tuple(images)

    async def _reply(self, binding: Binding, inbound: Inbound) -> bool:
        """Whether the words were the answer to a question of a tool."""
        if not inbound.text.strip():
            return False
        service = self._agent.service
        for asked in (
            await service.pending(binding.session)
            if service.works_on(binding.session)
            else ()
        ):
            if isinstance(asked, QuestionAsked):
                text = _chosen(inbound.text.strip(), asked.options)
                return await service.reply(
                    binding.session, asked.call_id, text, by=_who(inbound)
                )
        return False

    async def _press(self, inbound: Inbound, role: Role) -> None:
        press = read_press(inbound.pressed)
        found = self._app.store.chats.piece(press.piece) if press else None
        adapter = self._office.post(inbound.chat.platform).adapter
        if press is None or found is None:
            await adapter.told(inbound, "This is over.")
            return
        key, piece = found
        session = piece.session
        rows = await asyncio.to_thread(
            self._app.store.log.events, session, after=piece.seq - 1, limit=1
        )
        asked = rows[0].event if rows else None
        if role != "owner" and not self._was_asked(key, piece.message, inbound, asked):
            await adapter.told(inbound, "This is not yours to answer.")
            return
        if (
            not piece.message
        ):  # a crash came before it was known to have arrived; now it is
            piece = msgspec.structs.replace(
                piece, state="sent", message=inbound.message
            )
            await asyncio.wrap_future(self._app.store.chats.sent(key, piece))
        service = self._agent.service
        if isinstance(asked, QuestionAsked):
            options = dict(enumerate(asked.options))
            text = (
                options.get(int(press.word), press.word)
                if press.word.isdigit()
                else press.word
            )
            counted = await service.reply(
                session, asked.call_id, text, by=_who(inbound)
            )
        elif (
            not isinstance(asked, ApprovalRequested)
            or (verdict := verdict_of(press.word)) is None
        ):
            counted = False
        elif not self._access.may_approve(role):
            await adapter.told(inbound, "Only an owner can answer this.")
            return
        else:
            shown = approval_hash(asked)
            try:
                counted = await service.answer(
                    session, asked.call_id, verdict, by=_who(inbound), shown=shown
                )
            except AnswerRefused as refused:
                await adapter.told(inbound, in_sentences(refused))
                return
        await adapter.told(
            inbound, "Done." if counted else "Somebody was faster, or it has expired."
        )

    def _was_asked(
        self, key: str, message: str, inbound: Inbound, asked: object
    ) -> bool:
        """Whether a press belongs to that message: what a press says can be made up, its place and person can't.

        A question of a tool is for those whose session it is, a request for approval for everybody there who may.
        """
        if isinstance(asked, QuestionAsked):
            return key == key_of(inbound.chat, inbound.person, self._settings.sessions)
        return message in {"", inbound.message} and is_at(key, inbound.chat)

    async def _meet(self, inbound: Inbound) -> None:
        """A stranger gets one polite line at most, in a chat of their own; nothing runs, nothing is kept."""
        if inbound.chat.kind != "direct" or inbound.pressed:
            return
        code = await asyncio.to_thread(
            self._access.request, inbound.chat.platform, inbound.person
        )
        if not code:
            return
        text = (
            f"Hello! I only talk to people my owner knows. If that is you, or they know you, have them run this within"
            f" the hour:\n\n```\nhermes gateway pair approve {code}\n```"
        )
        self._tasks.start(self._tell(inbound, text))

    async def _tell(self, inbound: Inbound, text: str) -> None:
        post = self._office.post(inbound.chat.platform)
        out = Outbound(
            text=text,
            reply_to=inbound.message,
            key=f"hermes-{inbound.id}",
            answers=(inbound.id,),
        )
        await post.send(inbound.chat, out)

    def _is_taken(self, session: str, via: str) -> bool:
        """Whether the session has these very words already."""
        messages = self._app.store.log.messages(session)
        return any(
            isinstance(message, UserMessage) and message.via == via
            for message in messages
        )


_NOTHING_TO_READ = "Your message had no text that I can read, so I did nothing. Please write it again as plain text."


def _who(inbound: Inbound) -> str:
    return f"{inbound.chat.platform} ({inbound.person.name or inbound.person.id})"


def _chosen(text: str, options: tuple[str, ...]) -> str:
    """A number stands for the option at that place."""
    return (
        options[int(text) - 1]
        if text.isdigit() and 0 < int(text) <= len(options)
        else text
    )
