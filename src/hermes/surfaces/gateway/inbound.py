"""Handles incoming messages: stores each one, then runs a command, answers a question or starts a turn.

Messages of one chat are handled one after the other, those of different chats at once.
"""

import asyncio
import logging
from collections import deque
from pathlib import Path

import msgspec

from hermes.app import App
from hermes.app.agent import Agent
from hermes.app.attachments import received_file
from hermes.app.people_access import PeopleAccess, Role
from hermes.app.speech import SpeechQueue, transcribed_line
from hermes.core.accepted_plan import needs_trust
from hermes.core.answers import approval_hash
from hermes.errors import AnswerRefused, HermesError, SessionNotFound, for_reader
from hermes.primitives.recent import RecentDict
from hermes.primitives.tasks import BackgroundTasks
from hermes.primitives.untyped import number_in_text
from hermes.schema.events import ApprovalRequested, QuestionAsked
from hermes.schema.messages import Image, UserMessage
from hermes.settings.gateway import GatewaySettings
from hermes.store.chats import Binding
from hermes.surfaces.gateway.adapter import (
    AdapterError,
    FileKind,
    Inbound,
    Outbound,
    Receipt,
)
from hermes.surfaces.gateway.chat_sessions import ChatSessions
from hermes.surfaces.gateway.commands import ChatCommands, CommandRequest
from hermes.surfaces.gateway.deliveries import Deliveries
from hermes.surfaces.gateway.files import store_attachment
from hermes.surfaces.gateway.outage_notices import OutageNotices
from hermes.surfaces.gateway.questions import (
    Verdict,
    only_owners_make_rules,
    read_press,
    rule_of,
    verdict_of,
)
from hermes.surfaces.gateway.session_rules import is_at, key_of
from hermes.text.translation import in_language, to_translate, translator
from hermes.tools.documents.kinds import is_recording

t = translator(__name__)

log = logging.getLogger("hermes.gateway")

_DONE = to_translate("Done.")
_TOO_LATE = to_translate("Somebody already answered, or the request has expired.")
_MAX_SENDER_NAME_CHARACTERS = 60
"""Of a person's name before their message in a group."""

_MAX_ROLES = 4096


class _InboundContent(msgspec.Struct, frozen=True):
    """What a message brings: its text, and the files of its images and recordings."""

    text: str
    images: tuple[Image, ...]
    recordings: tuple[str, ...]


class InboundMessages:
    """Receives the messages of all platforms."""

    def __init__(
        self,
        app: App,
        agent: Agent,
        access: PeopleAccess,
        deliveries: Deliveries,
        sessions: ChatSessions,
        outages: OutageNotices,
    ) -> None:
        self._app = app
        self._agent = agent
        self._access = access
        self._deliveries = deliveries
        self._sessions = sessions
        self._outages = outages
        self._roles: RecentDict[tuple[str, str], Role] = RecentDict(_MAX_ROLES)
        self._queues: dict[str, deque[tuple[Inbound, bool]]] = {}
        self._tasks = BackgroundTasks("handling a message")
        self._speech = SpeechQueue()
        self.commands = ChatCommands(app, agent, deliveries, sessions)

    @property
    def _settings(self) -> GatewaySettings:
        return self._app.settings.gateway

    async def receive(self, inbound: Inbound) -> Receipt:
        """Returns once the message is on disk. Messages of strangers and for others are not stored."""
        known = self._roles.get((inbound.chat.platform, inbound.person.id))
        key = key_of(inbound.chat, inbound.person, self._settings.sessions)
        with in_language(self._deliveries.sentences(key, inbound.person.language)):
            return await self._receive_covered(inbound, is_known=bool(known))

    async def _receive_covered(self, inbound: Inbound, *, is_known: bool) -> Receipt:
        async with self._outages.covering(inbound.chat, is_known=is_known):
            return await self._receive(inbound)

    async def _role(self, inbound: Inbound) -> Role:
        platform, person = inbound.chat.platform, inbound.person
        role = await self._app.store.call(self._access.role, platform, person)
        if person.verified:
            self._roles[platform, person.id] = role
        return role

    async def _receive(self, inbound: Inbound) -> Receipt:
        counters = self._deliveries.sender(inbound.chat.platform).counters
        role = await self._role(inbound)
        if not role:
            counters.strangers += 1
            await self._greet_stranger(inbound)
            return "refused"
        if not inbound.addressed and self._settings.groups == "addressed":
            return "refused"
        # A disconnect must not interrupt this: a message on disk has to be queued too.
        storing = self._tasks.start(self._store(inbound), awaited=True)
        return await asyncio.shield(storing)

    async def _store(self, inbound: Inbound) -> Receipt:
        counters = self._deliveries.sender(inbound.chat.platform).counters
        data = msgspec.json.encode(inbound).decode("utf-8", "replace")
        key = key_of(inbound.chat, inbound.person, self._settings.sessions)
        ledger = self._app.store.chats
        self._deliveries.add_pending(key)
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
            self._deliveries.remove_pending(key)

    async def replay(self, platform: str = "") -> None:
        """Handles messages that the last gateway stored and did not handle, of one platform or of all."""
        store = self._app.store
        for waiting in await store.call(store.chats.waiting):
            try:
                inbound = msgspec.json.decode(waiting.data, type=Inbound)
            except msgspec.MsgspecError as error:
                log.warning(
                    "a stored message can't be read (%s %s): %s",
                    waiting.platform,
                    waiting.id,
                    error,
                )
                continue
            if platform not in {"", waiting.platform}:
                continue
            if waiting.platform in self._deliveries.senders:
                key = key_of(inbound.chat, inbound.person, self._settings.sessions)
                self._enqueue(key, inbound, again=True)

    @property
    def is_idle(self) -> bool:
        """Whether every message was handled."""
        return not (self._queues or self._tasks)

    async def drained(self) -> None:
        """Waits until every message is handled."""
        await self._tasks.join()

    def _enqueue(self, key: str, inbound: Inbound, *, again: bool) -> None:
        self._deliveries.add_pending(key)
        queue = self._queues.get(key)
        if queue is not None:
            queue.append((inbound, again))
            return
        self._queues[key] = deque([(inbound, again)])
        self._tasks.start(self._work(key))

    async def _work(self, key: str) -> None:
        """Handles the messages of one chat until its queue is empty."""
        queue = self._queues[key]
        while queue:
            inbound, again = queue.popleft()
            sentences = self._deliveries.sentences(key, inbound.person.language)
            try:
                with in_language(sentences):
                    await self._handle(key, inbound, again=again)
            except Exception:  # the boundary of a message: the chat goes on
                log.exception(
                    "a message of %s was not handled; the next start tries again", key
                )
            finally:
                self._deliveries.remove_pending(key)
        del self._queues[key]

    async def _handle(self, key: str, inbound: Inbound, *, again: bool) -> None:
        """Handles a message, reports errors to its sender, and stores that it was handled."""
        is_in_log = False
        try:
            is_in_log = await self._process(key, inbound, again=again)
        except HermesError as error:
            await self._send(inbound, f"⚠️ {for_reader(error)}")
        except Exception:
            log.exception("a message of %s was not handled", key)
            await self._send(
                inbound,
                t("⚠️ Something went wrong inside Hermes. The gateway's log has more."),
            )
        if is_in_log:
            self._deliveries.note_handled(key, inbound.id)
        else:
            await asyncio.wrap_future(
                self._app.store.chats.handled(inbound.chat.platform, inbound.id)
            )

    async def _process(self, key: str, inbound: Inbound, *, again: bool) -> bool:
        """Acts on a message; returns whether the session's log has it now."""
        role = await self._role(inbound)
        if not role:  # access was revoked after the message came in
            return False
        if inbound.pressed:
            await self._press(inbound, role)
            return False
        binding = await self._sessions.enter(key, inbound, role)
        via = f"{key}#{inbound.id}"
        if again and await asyncio.to_thread(self._is_in_log, binding.session, via):
            await self._agent.service.resume(binding.session)
            return True
        request = CommandRequest(key, inbound, role, binding)
        if (answer := await self.commands.run(request)) is not None:
            if answer or await self._needs_answer(request):
                await self._send(inbound, answer or t("Done."))
            return False
        if await self._reply(binding, inbound, role):
            return False
        await self._submit(binding, inbound, role)
        return True

    async def _needs_answer(self, request: CommandRequest) -> bool:
        """Whether a command without an answer of its own still needs one.

        It does where each message gets one reply, and no turn will answer this one.
        """
        platform = request.inbound.chat.platform
        if not self._deliveries.sender(platform).adapter.limits.whole:
            return False
        return not await asyncio.to_thread(
            self._is_in_log, request.binding.session, request.via
        )

    async def _submit(self, binding: Binding, inbound: Inbound, role: Role) -> None:
        content = await self._content(binding, inbound)
        text, images, recordings = content.text, content.images, content.recordings
        if not text.strip() and not images:
            if inbound.chat.kind == "direct":
                await self._send(inbound, t.marked(_NO_TEXT))
            return
        service = self._agent.service
        via = f"{binding.key}#{inbound.id}"
        whole = self._deliveries.sender(inbound.chat.platform).adapter.limits.whole
        delivery = "queue" if whole else self._settings.while_busy  # one reply for each
        try:
            await service.submit(
                binding.session,
                text,
                images=images,
                recordings=recordings,
                delivery=delivery,
                via=via,
            )
        except SessionNotFound:  # deleted at this moment
            again = await self._sessions.begin(binding.key, inbound, role)
            await self._agent.service.submit(
                again.session, text, images=images, recordings=recordings, via=via
            )

    async def _content(self, binding: Binding, inbound: Inbound) -> _InboundContent:
        """The text of a message, with transcribed voice notes and the paths of its files; its images and recordings."""
        lines = [inbound.text] if inbound.text else []
        images: list[Image] = []
        recordings: list[str] = []
        sender = self._deliveries.sender(inbound.chat.platform)
        most = min(sender.adapter.limits.file_bytes, self._settings.file_bytes)
        work = self._deliveries.folder(binding.session)
        for attachment in inbound.attachments:
            try:
                data = await sender.fetch(attachment, most)
            except AdapterError as error:
                lines.append(  # not translated: for the model
                    f"[A file did not arrive: {attachment.name or attachment.kind}. {error.message}]"
                )
                continue
            path, image = await asyncio.to_thread(
                store_attachment, work, attachment, data
            )
            if image is not None:
                images.append(image)
            kind = attachment.kind
            if kind == "file" and is_recording(path.name):
                kind = "audio"
            if kind in ("voice", "audio"):
                recordings.append(str(path))
            if kind == "file":
                alone = not lines
                reads = self._deliveries.speech().settings.documents != "off"
                text = await asyncio.to_thread(
                    received_file, path, alone=alone, reads_documents=reads
                )
                lines.append(text)
            else:
                lines.append(await self._line(inbound, path, kind))
        text = "\n".join(lines)
        if inbound.chat.kind == "direct" or not text:
            return _InboundContent(text, tuple(images), tuple(recordings))
        name = (
            " ".join(inbound.person.name.split())[:_MAX_SENDER_NAME_CHARACTERS].replace(
                "]", ")"
            )
            or inbound.person.id
        )
        return _InboundContent(f"[{name}] {text}", tuple(images), tuple(recordings))

    async def _line(self, inbound: Inbound, path: Path, kind: FileKind) -> str:
        """What the message says about one of its files: what is said in it, or where it is."""
        if kind in ("voice", "audio"):
            return await self._listen(inbound, path, kind)
        return f"[{kind}: {path}]"

    async def _listen(self, inbound: Inbound, path: Path, kind: str) -> str:
        """A recording as a line of the message. If it can't be transcribed, the sender is told too."""
        deps = self._deliveries.speech()
        line, problem = await self._speech.run(transcribed_line, deps, path, kind)
        if problem and not self._is_whole(inbound):
            await self._send(inbound, problem)
        return line

    def _is_whole(self, inbound: Inbound) -> bool:
        sender = self._deliveries.sender(inbound.chat.platform)
        return sender.adapter.limits.whole

    async def _reply(self, binding: Binding, inbound: Inbound, role: Role) -> bool:
        """Takes a message as the answer to a tool's question; returns whether it was one."""
        if not inbound.text.strip():
            return False
        service = self._agent.service
        asked = await service.open_question(binding.session)
        if asked is None:
            return False
        text = _chosen_option(inbound.text.strip(), asked.options)
        trusts = needs_trust(asked.plan, text)
        if trusts and not self._access.may_approve(role):
            text = asked.options[0]  # others can start it too, with questions
        return await service.reply(
            binding.session, asked.call_id, text, by=_sender_name(inbound)
        )

    async def _press(self, inbound: Inbound, role: Role) -> None:
        """Answers the question whose button was pressed, and confirms the press."""
        note = await self._answer_press(inbound, role)
        adapter = self._deliveries.sender(inbound.chat.platform).adapter
        await adapter.told(inbound, note)

    async def _answer_press(self, inbound: Inbound, role: Role) -> str:
        press = read_press(inbound.pressed)
        store = self._app.store
        found = await store.call(store.chats.piece, press.piece) if press else None
        if press is None or found is None:
            return t("This request is closed.")
        key, piece = found
        rows = await asyncio.to_thread(
            self._app.store.log.events, piece.session, after=piece.seq - 1, limit=1
        )
        asked = rows[0].event if rows else None
        if role != "owner" and not self._was_asked(key, piece.message, inbound, asked):
            return t("Only an owner or the person who was asked can answer this.")
        if (
            not piece.message
        ):  # a crash came before the message was known to have arrived
            piece = msgspec.structs.replace(
                piece, state="sent", message=inbound.message
            )
            await asyncio.wrap_future(self._app.store.chats.sent(key, piece))
        counted = False
        if isinstance(asked, QuestionAsked):
            trusts = needs_trust(asked.plan, _pressed_option(asked, press.word))
            if trusts and not self._access.may_approve(role):
                return t("Only an owner can let Hermes work without asking.")
            counted = await self._reply_with(piece.session, asked, press.word, inbound)
        elif isinstance(asked, ApprovalRequested) and (
            verdict := verdict_of(press.word)
        ):
            return await self._decide(piece.session, asked, verdict, inbound, role)
        return t.marked(_DONE if counted else _TOO_LATE)

    async def _decide(
        self,
        session: str,
        asked: ApprovalRequested,
        verdict: Verdict,
        inbound: Inbound,
        role: Role,
    ) -> str:
        """Answers a request for approval with the verdict of a button."""
        if not self._access.may_approve(role):
            return t("Only an owner can answer this.")
        if verdict == "always" and role != "owner":
            return only_owners_make_rules()
        try:
            counted = await self._agent.service.answer(
                session,
                asked.call_id,
                verdict,
                by=_sender_name(inbound),
                shown=approval_hash(asked),
                rule=rule_of(asked, verdict),
            )
        except AnswerRefused as refused:
            return for_reader(refused)
        return t.marked(_DONE if counted else _TOO_LATE)

    async def _reply_with(
        self, session: str, asked: QuestionAsked, word: str, inbound: Inbound
    ) -> bool:
        """Replies to a question with the option of a button."""
        text = _pressed_option(asked, word)
        return await self._agent.service.reply(
            session, asked.call_id, text, by=_sender_name(inbound)
        )

    def _was_asked(
        self, key: str, message: str, inbound: Inbound, asked: object
    ) -> bool:
        """Whether a person was asked what they answer. The data of a press can be forged; its chat and person can't.

        A tool asks those whose session it is; an approval is for everybody in the chat who may approve.
        """
        if isinstance(asked, QuestionAsked):
            return key == key_of(inbound.chat, inbound.person, self._settings.sessions)
        return message in {"", inbound.message} and is_at(key, inbound.chat)

    async def _greet_stranger(self, inbound: Inbound) -> None:
        """Sends a stranger a pairing code, once and in a direct chat only. Nothing runs or is stored."""
        if inbound.chat.kind != "direct" or inbound.pressed:
            return
        code = await asyncio.to_thread(
            self._access.request, inbound.chat.platform, inbound.person
        )
        if not code:
            return
        hello = t(
            "Hello! I talk only to people my owner has approved. Ask my owner to run this within the hour:"
        )
        text = (
            f"{hello}\n\n```\nhermes gateway pair approve {code}\n```"  # not translated
        )
        self._tasks.start(self._send(inbound, text))

    async def _send(self, inbound: Inbound, text: str) -> None:
        sender = self._deliveries.sender(inbound.chat.platform)
        out = Outbound(
            text=text,
            reply_to=inbound.message,
            key=f"hermes-{inbound.id}",
            answers=(inbound.id,),
        )
        await sender.send(inbound.chat, out)

    def _is_in_log(self, session: str, via: str) -> bool:
        """Whether the session has this very message already."""
        messages = self._app.store.log.messages(session)
        return any(
            isinstance(message, UserMessage) and message.via == via
            for message in messages
        )


_NO_TEXT = to_translate(
    "Your message had no text that I can read, so I did nothing. Please write it again as plain text."
)


def _sender_name(inbound: Inbound) -> str:
    return f"{inbound.chat.platform} ({inbound.person.name or inbound.person.id})"


def _pressed_option(asked: QuestionAsked, word: str) -> str:
    """The option that a button stands for."""
    number = number_in_text(word)
    if number is not None and number < len(asked.options):
        return asked.options[number]
    return word


def _chosen_option(text: str, options: tuple[str, ...]) -> str:
    """The option that a number stands for; otherwise the text."""
    number = number_in_text(text) or 0
    return options[number - 1] if 0 < number <= len(options) else text
