"""Routes of the pictures and recordings of a message. Only files that the log names are served."""

from pathlib import Path

from starlette.responses import Response

from hermes.app.kept_recordings import played
from hermes.errors import translated
from hermes.images.image_info import convertible_type, media_type
from hermes.schema.event_base import Event
from hermes.schema.messages import ToolFinished, UserMessage
from hermes.surfaces.dashboard.dashboard import Dashboard
from hermes.surfaces.dashboard.routes.sessions import find
from hermes.surfaces.dashboard.routes.uploads import PICTURE_ENDINGS
from hermes.surfaces.web.endpoint import MAX_BODY_BYTES, Endpoint, EndpointCall
from hermes.surfaces.web.errors import Refusal
from hermes.text.translation import translator

t = translator(__name__)

_MAX_SHOWN_SIDE_PIXELS = 4096


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
    if kind not in PICTURE_ENDINGS:
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


class MessageMediaRoutes:
    """Handlers over one dashboard."""

    def __init__(self, dashboard: Dashboard) -> None:
        self._board = dashboard

    def endpoints(self) -> list[Endpoint]:
        one = "/api/sessions/{id}"
        return [
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
        ]

    def picture(self, call: EndpointCall) -> Response:
        """A picture of a message. Serves only files that the log names and that really are pictures."""
        event = event_of(self._board, call.path["id"], call.path["seq"])
        images = event.images if isinstance(event, (UserMessage, ToolFinished)) else ()
        if call.path["number"] >= len(images):
            raise Refusal(404, t("There is no such picture."))
        content, kind = _read_picture(images[call.path["number"]].source)
        return Response(
            content, media_type=kind, headers={"cache-control": "private, max-age=3600"}
        )

    def recording(self, call: EndpointCall) -> Response:
        """The recording in which a message was said. Serves only files that the log names and that really are sound."""
        event = event_of(self._board, call.path["id"], call.path["seq"])
        files = event.recordings if isinstance(event, UserMessage) else ()
        number = call.path["number"]
        found = played(Path(files[number])) if number < len(files) else None
        if found is None:
            raise Refusal(404, t("The recording no longer exists."))
        content, kind = found
        return Response(
            content, media_type=kind, headers={"cache-control": "private, max-age=3600"}
        )


def event_of(board: Dashboard, session: str, seq: int) -> Event | None:
    """The event of a row."""
    info = find(board, session)
    rows = board.app.store.log.events(info.id, after=seq - 1, limit=1)
    return rows[0].event if rows and rows[0].seq == seq else None
