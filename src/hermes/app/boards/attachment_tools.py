"""A worker's tools for the files of cards: attach one, fetch one from the web, list them."""

import asyncio
import base64
import binascii
from functools import cached_property
from typing import TYPE_CHECKING, Annotated
from urllib.parse import unquote, urlsplit

import msgspec
from msgspec import Meta

from hermes.app.app import App
from hermes.app.boards.card_context import written_attachment
from hermes.app.boards.card_toolset import AnyBoard, CardToolset, OwnBoard, TaskId
from hermes.core.ports import Tool, ToolContext
from hermes.errors import ToolFailed
from hermes.schema.boards import MAX_ATTACHMENT_BYTES, CardRun
from hermes.schema.tool_spec import ToolResult
from hermes.settings import Secrets
from hermes.settings.load import environment
from hermes.tools.policy.rule_file import host_rule
from hermes.tools.tool import tool

if TYPE_CHECKING:
    from hermes.tools.web.web_client import WebClient

ContentType = Annotated[
    str, Meta(description="May be left out: the name's ending says it.")
]
_UNNAMED = "download"
_NOT_ATTACHED = "Nothing was attached."


class AttachmentTools(CardToolset):
    """The files of cards. Fetching from the web follows the rules of `web_fetch`."""

    def __init__(self, app: App, run: CardRun, secrets: Secrets) -> None:
        super().__init__(app, run)
        self._secrets = secrets

    @property
    def tools(self) -> tuple[Tool, ...]:
        """All tools of this set."""
        return self.kanban_attach, self.kanban_attach_url, self.kanban_attachments

    @tool("kanban_attach", effect="read")
    async def kanban_attach(
        self,
        filename: Annotated[str, Meta(min_length=1)],
        content_base64: str,
        task_id: TaskId = "",
        content_type: ContentType = "",  # noqa: ARG002 - an argument that workers know
        board: OwnBoard = "",
    ) -> ToolResult:
        """Attaches a file to a card. For files of your workspace, name them as artifacts of kanban_complete."""
        try:
            data = base64.b64decode(content_base64, validate=True)
        except (binascii.Error, ValueError) as error:
            raise ToolFailed(
                "content_base64 is not Base64.", hint=_NOT_ATTACHED
            ) from error
        return await self._done(lambda: self._attach(task_id, board, filename, data))

    @tool("kanban_attach_url", effect="network")
    async def kanban_attach_url(
        self,
        context: ToolContext,
        url: str,
        filename: Annotated[
            str, Meta(description="Empty: as at the end of the address.")
        ] = "",
        task_id: TaskId = "",
        content_type: ContentType = "",  # noqa: ARG002 - an argument that workers know
        board: OwnBoard = "",
    ) -> ToolResult:
        """Fetches a file from the web, 25 MB at most, and attaches it to a card."""
        await asyncio.to_thread(self._own_board, task_id, board)
        context.show(f"Fetching {url[:200]}\n")
        name = filename or unquote(urlsplit(url).path).rpartition("/")[2] or _UNNAMED
        data = await self._fetch(url)
        return await self._done(lambda: self._attach(task_id, board, name, data))

    @tool("kanban_attachments", effect="read")
    async def kanban_attachments(
        self, task_id: TaskId = "", board: AnyBoard = ""
    ) -> ToolResult:
        """Lists the files of a card, and where you can read each."""

        def listed() -> str:
            card = self._card_to_read(task_id, board)
            files = self._boards.read(lambda reader: reader.attachments(card.id))
            lines = [
                f"{one.id} {one.name} ({one.size:,} bytes, by {one.by or 'user'}): "
                f"{written_attachment(self._app, self._boards, one)}"
                for one in files
            ]
            return "\n".join(lines) or f"{card.id} has no files."

        return await self._done(listed)

    def _attach(self, task_id: str, board: str, name: str, data: bytes) -> str:
        card = self._own_board(task_id, board)
        made = self._boards.attach(card.id, name, data, by=self._by)
        return f"Attached {made.name} ({made.size:,} bytes) as {made.id}."

    async def _fetch(self, url: str) -> bytes:
        from hermes.tools.web.address_check import require_no_secret
        from hermes.tools.web.web_client import WebRequest

        require_no_secret(url, self._secrets)
        reply = await self._client.fetch(WebRequest(url=url))
        if reply.status >= 400:
            raise ToolFailed(f"The server answered {reply.phrase}.", hint=_NOT_ATTACHED)  # fmt: skip
        if reply.cut:
            raise ToolFailed(
                "The file is larger than 25 MB, or the connection broke.",
                hint=_NOT_ATTACHED,
            )
        return reply.body

    @cached_property
    def _client(self) -> "WebClient":
        from hermes.tools.web.web_settings import build_client

        web = msgspec.structs.replace(
            self._app.settings.web, max_bytes=MAX_ATTACHMENT_BYTES
        )
        rule = host_rule(self._app.home.root)
        return build_client(web, environment(), rule=rule)
