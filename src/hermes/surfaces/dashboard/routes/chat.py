"""Routes of a chat: send messages, stop turns, choose the mode. The session owns the turn; these only write to it."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from hermes.app.agent import Agent
from hermes.app.attachments import (
    Attached,
    AttachmentFolder,
    attach,
    may_name_recording,
)
from hermes.app.compaction import compaction_preview
from hermes.app.kept_recordings import KeptRecordings
from hermes.app.prompt_files import aliased, called_prompt
from hermes.app.speech import listener
from hermes.errors import UsageError
from hermes.surfaces.dashboard.dashboard import Dashboard
from hermes.surfaces.dashboard.routes.chat_bodies import (
    Counted,
    EarlierAttachments,
    Filling,
    MessageAccepted,
    Mode,
    Taken,
)
from hermes.surfaces.dashboard.routes.message_media import event_of
from hermes.surfaces.dashboard.routes.sessions import find, session_of
from hermes.surfaces.dashboard.routes.uploads import (
    EarlierFiles,
    Uploads,
    attachments_of,
)
from hermes.surfaces.web.access import require
from hermes.surfaces.web.endpoint import Acknowledged, Endpoint, EndpointCall
from hermes.text.translation import translator
from hermes.tools.sensitive import Guard

t = translator(__name__)


class ChatRoutes:
    """Handlers over one dashboard."""

    def __init__(self, dashboard: Dashboard) -> None:
        self._board = dashboard
        self._recordings = KeptRecordings(dashboard.app.home)
        self._uploads = Uploads(dashboard.app)

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
            Endpoint("GET", f"{one}/context", "observe", self.context, answer=Filling),
        ]

    async def send_message(self, call: EndpointCall) -> Taken:
        """Accepts a message and attaches the files it names. When the response comes, the message is on disk."""
        said: MessageAccepted = call.body
        info = await session_of(self._board, call)
        earlier = await asyncio.to_thread(self._earlier, said.earlier)
        has_files = said.images or said.files or earlier.images or earlier.files
        if not said.text.strip() and not has_files:
            raise UsageError(t("The message is empty."), hint=t("Nothing was sent."))
        if said.approvals not in (None, "ask", "plan"):
            require(call.caller, "approve", t("it lets Hermes do more without asking"))
        images = await asyncio.to_thread(self._uploads.save_pictures, said.images)
        names = " ".join(file.name for file in said.files)
        files = await self._heard(names)(self._uploads.save_files, info.id, said.files)
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
        images = earlier.with_images(images + attached.images)
        text = earlier.with_files(served.text) + files
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
        info = await session_of(self._board, call)
        service = self._board.agent.service
        return Counted(
            await service.withdraw(info.id, call.path["seq"], by="dashboard")
        )

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
        session = (await session_of(self._board, call)).id
        if mode.approvals not in ("ask", "plan"):
            require(call.caller, "approve", t("it lets Hermes do more without asking"))
        await self._board.agent.set_mode(session, mode.approvals)
        return Acknowledged()

    async def interrupt(self, call: EndpointCall) -> Acknowledged:
        """Stops the running turn, in whichever process it runs."""
        session = (await session_of(self._board, call)).id
        await self._board.agent.service.interrupt(session, by="dashboard")
        return Acknowledged()

    async def resume(self, call: EndpointCall) -> Acknowledged:
        """Closes a turn that a crash interrupted, and answers waiting messages."""
        session = (await session_of(self._board, call)).id
        await self._board.agent.service.resume(session)
        return Acknowledged()

    async def compress(self, call: EndpointCall) -> Any:
        """Compresses the conversation now."""
        session = (await session_of(self._board, call)).id
        return await self._board.agent.compress(session)

    def context(self, call: EndpointCall) -> Filling:
        """What fills the model's context window, by kind."""
        session = find(self._board, call.path["id"]).id
        now = self._board.agent.context(session)
        ahead = compaction_preview(self._board.app, session)
        return Filling(
            now.scaled(), now.used, bool(now.counted), now.window, now.full, ahead
        )

    def _earlier(self, wanted: EarlierAttachments | None) -> EarlierFiles:
        if wanted is None:
            return EarlierFiles()
        return attachments_of(event_of(self._board, wanted.session, wanted.seq), wanted)


def _called(agent: Agent, line: str, cwd: str) -> str | None:
    """The message for a line that calls a skill or a command from a file."""
    text = agent.learner.learning.called(line)
    return text or called_prompt(
        agent.prompt_files, Path(cwd or "."), line, agent.check_command
    )
