"""Files of cards over HTTP. Everything else about boards is under `/api/commands/kanban.*`."""

from typing import Annotated
from urllib.parse import quote

import msgspec
from msgspec import Meta
from starlette.responses import Response

from hermes.app.boards.board_service import Boards
from hermes.errors import NotFound
from hermes.schema.boards import MAX_ATTACHMENT_BYTES, CardAttachment
from hermes.surfaces.dashboard.dashboard import Dashboard
from hermes.surfaces.web.endpoint import Endpoint, EndpointCall
from hermes.text.translation import translator

t = translator(__name__)


class FileNameQuery(msgspec.Struct, frozen=True):
    """The name of a file that is sent."""

    name: Annotated[str, Meta(min_length=1, max_length=300)]


class BoardRoutes:
    """Handlers over one dashboard."""

    def __init__(self, dashboard: Dashboard) -> None:
        self._boards = Boards(dashboard.app)

    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint(
                "POST",
                "/api/kanban/cards/{id}/attachments",
                "chat",
                self.attach,
                FileNameQuery,
                body=bytes,
                answer=CardAttachment,
                max_body_bytes=MAX_ATTACHMENT_BYTES,
            ),
            Endpoint(
                "GET",
                "/api/kanban/attachments/{id}",
                "observe",
                self.download,
                answer=None,
            ),
        ]

    def attach(self, call: EndpointCall) -> CardAttachment:
        """Attach a file to a card. The body is the file itself."""
        return self._boards.attach(
            call.path["id"], call.query.name, call.body, by="dashboard"
        )

    def download(self, call: EndpointCall) -> Response:
        """Download an attachment."""
        name = str(call.path["id"])
        data = self._boards.read(lambda reader: reader.attachment_data(name))
        if data is None:
            raise NotFound(t("There is no attachment {name!r}.", name=name))
        known = self._boards.read(lambda reader: reader.attachment(name))
        shown = quote(known.name if known else name)
        headers = {
            "Content-Disposition": f"attachment; filename*=UTF-8''{shown}",
            "X-Content-Type-Options": "nosniff",
            "Content-Security-Policy": "sandbox",
        }
        return Response(data, media_type="application/octet-stream", headers=headers)
