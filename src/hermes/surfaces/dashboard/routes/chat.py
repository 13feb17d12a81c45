"""Routes of a chat: send messages, stop turns, answer requests, undo. The session owns the turn; these only write to it."""

import asyncio
import base64
import contextlib
import hashlib
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from starlette.responses import Response

from hermes.app.agent import Agent
from hermes.app.attachments import (
    Attached,
    AttachmentFolder,
    attach,
    may_name_recording,
    uploaded_file,
)
from hermes.app.compaction import compaction_preview
from hermes.app.kept_recordings import KeptRecordings, played
from hermes.app.prompt_files import aliased, called_prompt
from hermes.app.speech import listener
from hermes.app.typed_part import attached_files
from hermes.app.undo import Rewind, UndoReport, shadows_of
from hermes.core.accepted_plan import needs_trust
from hermes.errors import SessionNotFound, UsageError, translated
from hermes.images.image_info import convertible_type, media_type
from hermes.primitives.files import replace_file
from hermes.schema.event_base import Event
from hermes.schema.events import QuestionAsked
from hermes.schema.messages import Image, ToolFinished, UserMessage
from hermes.surfaces.dashboard.credentials import Scope
from hermes.surfaces.dashboard.dashboard import Dashboard
from hermes.surfaces.dashboard.routes.chat_bodies import (
    ApprovalAnswerBody,
    Back,
    BackQuery,
    BranchAt,
    Counted,
    Deletes,
    Diff,
    DiffQuery,
    EarlierAttachments,
    FileBody,
    Filling,
    Forth,
    Identified,
    ImageBody,
    MessageAccepted,
    Mode,
    OpenQuestions,
    QuestionReply,
    Taken,
)
from hermes.surfaces.dashboard.routes.earlier_attachments import (
    Earlier,
    attachments_of,
)
from hermes.surfaces.dashboard.routes.sessions import find
from hermes.surfaces.web.access import covers
from hermes.surfaces.web.endpoint import (
    MAX_BODY_BYTES,
    Acknowledged,
    Endpoint,
    EndpointCall,
)
from hermes.surfaces.web.errors import Refusal
from hermes.text.translation import translator
from hermes.tools.sensitive import Guard

t = translator(__name__)


_BY = "dashboard"
_MAX_SHOWN_SIDE_PIXELS = 4096
_PICTURES = {
    "image/png": ".png",
    "image/jpeg": ".jpg",
    "image/gif": ".gif",
    "image/webp": ".webp",
}


def _read_picture(source: str) -> tuple[bytes, str]:
    """A picture, and its kind by its content."""
    path = Path(source)
    try:
        if path.stat().st_size > MAX_BODY_BYTES:
            raise Refusal(404, t("The picture is too large to be shown."))
        content = path.read_bytes()
    except (OSError, ValueError) as error:
        raise Refusal(404, t("The picture no longer exists.")) from error
    if convertible_type(content[:16]):  # browsers don't show these either
        content = _converted(content)
    kind = media_type(content[:16])
    if kind not in _PICTURES:
        raise Refusal(404, t("That is not a picture."))
    return content, kind


def _converted(content: bytes) -> bytes:
    from hermes.images.image_resize import ImageLimits, NotShrunk, converted

    try:
        return converted(content, ImageLimits(MAX_BODY_BYTES, _MAX_SHOWN_SIDE_PIXELS))
    except NotShrunk as error:
        raise Refusal(
            404,
            t("This can't be shown: {message}", message=translated(error.words)),
            translated(error.hint_words),
        ) from error


def _require(call: EndpointCall, scope: Scope, why: str) -> None:
    """Refuses a part of a request that needs a scope beyond the route's own."""
    if not covers(call.caller.scopes, scope):
        raise Refusal(
            403,
            t("This needs the scope {scope!r}: {why}.", scope=scope, why=why),
            t("Nothing was changed."),
        )


class ChatRoutes:
    """Handlers over one dashboard."""

    def __init__(self, dashboard: Dashboard) -> None:
        self._board = dashboard
        self._rewind = Rewind(dashboard.app, shadows_of(dashboard.app))
        self._recordings = KeptRecordings(dashboard.app.home)

    def endpoints(self) -> list[Endpoint]:
        one = "/api/sessions/{id}"
        return [
            Endpoint(
                "POST",
                f"{one}/messages",
                "chat",
                self.send_message,
                body=MessageAccepted,
                answer=Taken,
            ),
            Endpoint(
                "DELETE",
                f"{one}/messages/{{seq:int}}",
                "chat",
                self.withdraw,
                answer=Counted,
            ),
            Endpoint("PUT", f"{one}/mode", "chat", self.set_mode, body=Mode),
            Endpoint("POST", f"{one}/interrupt", "chat", self.interrupt),
            Endpoint("POST", f"{one}/resume", "chat", self.resume),
            Endpoint("POST", f"{one}/compress", "chat", self.compress, answer=None),
            Endpoint(
                "POST",
                f"{one}/branch",
                "chat",
                self.branch,
                body=BranchAt,
                answer=Identified,
            ),
            Endpoint(
                "POST", f"{one}/undo", "chat", self.undo, body=Back, answer=UndoReport
            ),
            Endpoint(
                "GET",
                f"{one}/undo",
                "observe",
                self.undo_deletes,
                BackQuery,
                answer=Deletes,
            ),
            Endpoint(
                "POST", f"{one}/redo", "chat", self.redo, body=Forth, answer=UndoReport
            ),
            Endpoint(
                "POST",
                f"{one}/retry",
                "chat",
                self.retry,
                body=Forth,
                answer=UndoReport,
            ),
            Endpoint("GET", f"{one}/context", "observe", self.context, answer=Filling),
            Endpoint(
                "GET", f"{one}/diff", "observe", self.diff, DiffQuery, answer=Diff
            ),
            Endpoint(
                "GET",
                f"{one}/pictures/{{seq:int}}/{{number:int}}",
                "observe",
                self.picture,
                answer=None,
            ),
            Endpoint(
                "GET",
                f"{one}/recordings/{{seq:int}}/{{number:int}}",
                "observe",
                self.recording,
                answer=None,
            ),
            Endpoint(
                "GET", "/api/approvals", "observe", self.waiting, answer=OpenQuestions
            ),
            Endpoint(
                "POST",
                f"{one}/approvals/{{call_id}}",
                "approve",
                self.answer,
                body=ApprovalAnswerBody,
                answer=Counted,
            ),
            Endpoint(
                "POST",
                f"{one}/questions/{{call_id}}",
                "chat",
                self.reply,
                body=QuestionReply,
                answer=Counted,
            ),
        ]

    async def send_message(self, call: EndpointCall) -> Taken:
        """Accepts a message and attaches the files it names. When the response comes, the message is on disk."""
        said: MessageAccepted = call.body
        info = await asyncio.to_thread(find, self._board, call.path["id"])
        earlier = await asyncio.to_thread(self._earlier, said.earlier)
        has_files = said.images or said.files or earlier.images or earlier.files
        if not said.text.strip() and not has_files:
            raise UsageError(t("The message is empty."), hint=t("Nothing was sent."))
        if said.approvals not in (None, "ask", "plan"):
            _require(call, "approve", t("it lets Hermes do more without asking"))
        images = await asyncio.to_thread(self._save_pictures, said.images)
        names = " ".join(file.name for file in said.files)
        files = await self._heard(names)(self._save_files, info.id, said.files)
        if said.model is not None:
            await asyncio.to_thread(self._board.agent.choose, info.id, said.model)
        if said.approvals is not None:
            await self._board.agent.set_mode(info.id, said.approvals)
        attached = await self._heard(said.text)(self._attach, said.text, info.cwd)
        agent, text = self._board.agent, attached.text
        if text.startswith(
            "/"
        ):  # perhaps a skill or a command from a file; those of a surface never get here
            line = aliased(text, self._board.app.settings.aliases)
            text = await asyncio.to_thread(_called, agent, line, info.cwd) or line
        served = await agent.with_server_texts(text)
        images += attached.images
        images += tuple(one for one in earlier.images if one not in images)
        named = attached_files(served.text)
        again = (text for path, text in earlier.files.items() if path not in named)
        text = "".join((served.text, *again)) + files
        recordings = await asyncio.to_thread(
            self._recordings.take, info.id, said.recordings
        )
        recordings += earlier.recordings
        epoch, seq = await agent.service.submit(
            info.id,
            text,
            images=images,
            recordings=recordings,
            delivery=said.delivery,
        )
        return Taken(info.id, epoch, seq, (*attached.left, *served.left))

    async def withdraw(self, call: EndpointCall) -> Counted:
        """Takes back a message that Hermes has not read yet."""
        info = await asyncio.to_thread(find, self._board, call.path["id"])
        service = self._board.agent.service
        return Counted(await service.withdraw(info.id, call.path["seq"], by=_BY))

    def _heard(self, text: str) -> Callable[..., Awaitable[Any]]:
        """The function that runs work in a thread: one at a time if the text names a recording, because that may take
        minutes, and other messages need the threads.
        """
        return self._board.speech.run if may_name_recording(text) else asyncio.to_thread

    def _attach(self, text: str, cwd: str) -> Attached:
        """The message with the files of the session's folder that it names."""
        if not cwd:
            return Attached(text)
        return attach(
            text,
            AttachmentFolder(
                Path(cwd),
                Guard(self._board.app.home.root, Path.home()),
                is_far=True,
                listen=listener(self._board.app),
                reads_documents=self._board.app.settings.media.documents != "off",
                is_elsewhere=self._board.agent.names_resource,
            ),
        )

    async def set_mode(self, call: EndpointCall) -> Acknowledged:
        """Changes the approval mode of a session at once, even while a turn runs or a request waits."""
        mode: Mode = call.body
        session = await self._session(call)
        if mode.approvals not in ("ask", "plan"):
            _require(call, "approve", t("it lets Hermes do more without asking"))
        await self._board.agent.set_mode(session, mode.approvals)
        return Acknowledged()

    async def interrupt(self, call: EndpointCall) -> Acknowledged:
        """Stops the running turn, in whichever process it runs."""
        session = await self._session(call)
        await self._board.agent.service.interrupt(session, by=_BY)
        return Acknowledged()

    async def resume(self, call: EndpointCall) -> Acknowledged:
        """Closes a turn that a crash interrupted, and answers waiting messages."""
        session = await self._session(call)
        await self._board.agent.service.resume(session)
        return Acknowledged()

    async def compress(self, call: EndpointCall) -> Any:
        """Compresses the conversation now."""
        session = await self._session(call)
        return await self._board.agent.compress(session)

    def context(self, call: EndpointCall) -> Filling:
        """What fills the model's context window, by kind."""
        session = find(self._board, call.path["id"]).id
        now = self._board.agent.context(session)
        ahead = compaction_preview(self._board.app, session)
        return Filling(
            now.scaled(), now.used, bool(now.counted), now.window, now.full, ahead
        )

    def branch(self, call: EndpointCall) -> Identified:
        """Starts a new session with the conversation so far."""
        info, body = find(self._board, call.path["id"]), call.body
        return Identified(
            self._rewind.branch(info.id, at=body.at, back=body.back, surface=_BY)
        )

    def undo(self, call: EndpointCall) -> UndoReport:
        """Undoes the last turns and their file changes."""
        info, body = find(self._board, call.path["id"]), call.body
        return self._rewind.undo(
            info.id, turns=body.turns, force=body.force, files=body.files
        )

    def undo_deletes(self, call: EndpointCall) -> Deletes:
        """The files that undoing the last turns would delete. Changes nothing."""
        info, query = find(self._board, call.path["id"]), call.query
        return Deletes(
            self._rewind.deletes(info.id, turns=query.turns, force=query.force)
        )

    def redo(self, call: EndpointCall) -> UndoReport:
        """Redoes the last undo."""
        return self._rewind.redo(
            find(self._board, call.path["id"]).id, force=call.body.force
        )

    async def retry(self, call: EndpointCall) -> UndoReport:
        """Undoes the last turn and submits the same message again."""
        session = await self._session(call)
        report = await asyncio.to_thread(
            self._rewind.retry, session, force=call.body.force
        )
        await self._board.agent.service.resume(session)
        return report

    def diff(self, call: EndpointCall) -> Diff:
        """What a turn changed, by default the last one, as a unified diff."""
        session = find(self._board, call.path["id"]).id
        turn = call.query.turn or self._rewind.last_turn(session)
        return Diff(self._rewind.diff(session, turn=turn), turn)

    def picture(self, call: EndpointCall) -> Response:
        """A picture of a message. Serves only files that the log names and that really are pictures."""
        event = self._row(call.path["id"], call.path["seq"])
        images = event.images if isinstance(event, (UserMessage, ToolFinished)) else ()
        if call.path["number"] >= len(images):
            raise Refusal(404, t("There is no such picture."))
        content, kind = _read_picture(images[call.path["number"]].source)
        return Response(
            content, media_type=kind, headers={"cache-control": "private, max-age=3600"}
        )

    def recording(self, call: EndpointCall) -> Response:
        """The recording in which a message was said. Serves only files that the log names and that really are sound."""
        event = self._row(call.path["id"], call.path["seq"])
        files = event.recordings if isinstance(event, UserMessage) else ()
        number = call.path["number"]
        found = played(Path(files[number])) if number < len(files) else None
        if found is None:
            raise Refusal(404, t("The recording no longer exists."))
        content, kind = found
        return Response(
            content, media_type=kind, headers={"cache-control": "private, max-age=3600"}
        )

    def _earlier(self, wanted: EarlierAttachments | None) -> Earlier:
        if wanted is None:
            return Earlier()
        return attachments_of(self._row(wanted.session, wanted.seq), wanted)

    def _row(self, session: str, seq: int) -> Event | None:
        """The event of a row."""
        info = find(self._board, session)
        rows = self._board.app.store.log.events(info.id, after=seq - 1, limit=1)
        return rows[0].event if rows and rows[0].seq == seq else None

    async def waiting(self) -> OpenQuestions:
        """All open requests and questions of running sessions, with the session that each works for."""
        found = await self._board.all_waiting()
        return OpenQuestions(await asyncio.to_thread(self._named, found))

    def _named(self, waiting: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Adds titles, and the session that a child works for."""
        named: list[dict[str, Any]] = []
        for one in waiting:
            with contextlib.suppress(SessionNotFound):  # deleted at this very moment
                info = find(self._board, one["session_id"])
                named.append(one | {"root_session_id": info.top, "title": info.title})
        return named

    async def answer(self, call: EndpointCall) -> Counted:
        """Answers a request for approval. The first answer counts; `always` changes the policy."""
        if call.body.answer == "always" and not covers(call.caller.scopes, "admin"):
            raise Refusal(
                403,
                t("This needs the scope 'admin': it would be remembered permanently."),
                t("Answer once."),
            )
        session = await self._session(call)
        service = self._board.agent.service
        given: ApprovalAnswerBody = call.body
        call_id = call.path["call_id"]
        counted = await service.answer(
            session,
            call_id,
            given.answer,
            by=_BY,
            shown=given.shown,
            reason=given.reason,
            rule=given.rule,
        )
        return Counted(counted)

    async def reply(self, call: EndpointCall) -> Counted:
        """Answers a question of a tool, or accepts a plan."""
        session, call_id = await self._session(call), call.path["call_id"]
        service = self._board.agent.service
        given: QuestionReply = call.body
        plan = "unknown"  # a plan may be asked about between this look and the reply
        for asked in await service.pending(session):
            if isinstance(asked, QuestionAsked) and asked.call_id == call_id:
                plan = asked.plan
        if needs_trust(plan, given.text):
            _require(call, "approve", t("it lets Hermes do more without asking"))
        await asyncio.to_thread(self._recordings.take, session, given.recordings)
        counted = await service.reply(
            session, call_id, given.text, by=_BY, plan=given.plan
        )
        return Counted(counted)

    async def _session(self, call: EndpointCall) -> str:
        return (await asyncio.to_thread(find, self._board, call.path["id"])).id

    def _save_files(self, session: str, files: list[FileBody]) -> str:
        """Saves files in the session's media folder. Returns what the message says about them."""
        folder = self._board.app.home.media / session
        blocks: list[str] = []
        for file in files:
            try:
                data = base64.b64decode(file.data, validate=True)
            except ValueError as error:
                raise UsageError(
                    t("{name} can't be read: it is not base64.", name=file.name),
                    hint=t("Nothing was sent."),
                ) from error
            name = re.sub(r"[^\w.\-]+", "_", Path(file.name).name).strip("._")[-80:]
            own = folder / hashlib.sha256(data).hexdigest()[:8]
            path = own / (name or "file")
            if not path.exists():
                self._board.app.home.ensure(folder.parent, folder, own)
                replace_file(path, data, durable=True, alone=False)
            app = self._board.app
            reads = app.settings.media.documents != "off"
            blocks.append(
                uploaded_file(path, listen=listener(app), reads_documents=reads)
            )
        return "".join(blocks)

    def _save_pictures(self, pictures: list[ImageBody]) -> tuple[Image, ...]:
        """Saves pictures as files, named by a hash of their content."""
        folder = self._board.app.home.root / "pictures"
        kept: list[Image] = []
        for picture in pictures:
            ending = _PICTURES.get(picture.media_type)
            try:
                data = base64.b64decode(picture.data, validate=True)
            except ValueError as error:
                raise UsageError(
                    t("A picture can't be read: it is not base64."),
                    hint=t("Nothing was sent."),
                ) from error
            if ending is None or not data:
                raise UsageError(
                    t("That is not a picture."),
                    hint=t("PNG, JPEG, GIF and WebP can be shown to a model."),
                )
            self._board.app.home.ensure(folder)
            path = folder / f"{hashlib.sha256(data).hexdigest()[:32]}{ending}"
            if not path.exists():
                replace_file(path, data, durable=False, alone=False)
            kept.append(Image(source=str(path), media_type=picture.media_type))
        return tuple(kept)


def _called(agent: Agent, line: str, cwd: str) -> str | None:
    """The message for a line that calls a skill or a command from a file."""
    text = agent.learner.learning.called(line)
    return text or called_prompt(
        agent.prompt_files, Path(cwd or "."), line, agent.check_command
    )
