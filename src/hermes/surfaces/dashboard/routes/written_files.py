"""Files that a session wrote: read for the page, or downloaded.

A file is served only if a turn of the session changed it, it lies in the session's folder, and it is not one that may
hold secrets. All of this must also hold for the file that links lead to.
"""

import os
import stat
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import quote

import msgspec
from msgspec import Meta
from starlette.responses import Response

from hermes.app.undo import Rewind, shadows_of
from hermes.errors import os_reason
from hermes.images.image_info import media_type
from hermes.primitives.files import open_beneath
from hermes.surfaces.dashboard.dashboard import Dashboard
from hermes.surfaces.dashboard.routes.sessions import find
from hermes.surfaces.web.endpoint import Endpoint, EndpointCall
from hermes.surfaces.web.errors import Refusal
from hermes.text.translation import to_translate, translator
from hermes.tools.sensitive import Guard

t = translator(__name__)


MAX_TEXT_BYTES = 1_000_000
MAX_DOWNLOAD_BYTES = 64_000_000
MAX_TITLE_CHARS = 200
_SHOWN_PICTURES = frozenset(("image/png", "image/jpeg", "image/gif", "image/webp"))
_NOT_SERVED = to_translate("This session wrote no such file.")


class WrittenQuery(msgspec.Struct, frozen=True):
    path: Annotated[str, Meta(min_length=1, max_length=4096)]
    turn: Annotated[str, Meta(description="The turn that changed it.")]


class WrittenFile(msgspec.Struct, frozen=True):
    """A file as it is now."""

    path: str
    bytes: int
    kind: Literal["text", "picture", "other"]
    text: Annotated[str, Meta(description="Its text; empty for other kinds.")] = ""
    is_cut: Annotated[
        bool, Meta(description="Whether the file goes on behind the text.")
    ] = False


class ChangingTurn(msgspec.Struct, frozen=True):
    turn: str
    text: Annotated[str, Meta(description="The user's message that began it.")]


class SessionFile(msgspec.Struct, frozen=True):
    """A file in the session's folder that the session changed."""

    path: str
    is_there: Annotated[bool, Meta(description="Whether it exists now.")]
    turns: Annotated[
        tuple[ChangingTurn, ...],
        Meta(description="The turns that changed it, newest first."),
    ]


class SessionFiles(msgspec.Struct, frozen=True):
    files: tuple[SessionFile, ...]


class WrittenFileRoutes:
    """Handlers over one dashboard."""

    def __init__(self, dashboard: Dashboard) -> None:
        self._board = dashboard
        self._rewind = Rewind(dashboard.app, shadows_of(dashboard.app))
        self._guard = Guard(dashboard.app.home.root, Path.home())

    def endpoints(self) -> list[Endpoint]:
        one = "/api/sessions/{id}/written"
        return [
            Endpoint(
                "GET",
                "/api/sessions/{id}/changed",
                "observe",
                self.files,
                answer=SessionFiles,
            ),
            Endpoint(
                "GET", one, "observe", self.show, WrittenQuery, answer=WrittenFile
            ),
            Endpoint(
                "GET",
                f"{one}/download",
                "observe",
                self.download,
                WrittenQuery,
                answer=None,
            ),
        ]

    def files(self, call: EndpointCall) -> SessionFiles:
        """The files that the turns of a session changed in its folder."""
        info = find(self._board, call.path["id"])
        if not info.cwd:
            return SessionFiles(())
        root = Path(os.path.realpath(info.cwd))
        listed = (
            SessionFile(
                one.path.relative_to(root).as_posix(),
                one.path.exists(),
                tuple(
                    ChangingTurn(
                        turn.turn, turn.text.partition("\n\n<")[0][:MAX_TITLE_CHARS]
                    )
                    for turn in one.turns
                ),
            )
            for one in self._rewind.changed_files(info.id)
            if one.path.is_relative_to(root)
        )
        return SessionFiles(tuple(listed))

    def show(self, call: EndpointCall) -> WrittenFile:
        """A file that a turn wrote, as it is now."""
        root, path = self._path(call)
        content, size = _read(root, path, MAX_TEXT_BYTES)
        name = call.query.path
        if media_type(content[:16]) in _SHOWN_PICTURES:
            return WrittenFile(name, size, "picture")
        if b"\0" in content:
            return WrittenFile(name, size, "other")
        text = content.decode("utf-8", "replace")
        return WrittenFile(name, size, "text", text, is_cut=size > len(content))

    def download(self, call: EndpointCall) -> Response:
        """A file that a turn wrote, to be saved."""
        root, path = self._path(call)
        content, size = _read(root, path, MAX_DOWNLOAD_BYTES)
        if size > len(content):
            raise Refusal(
                413,
                t("{name} is too large to download here.", name=path.name),
                t(
                    "The limit is {max_download_bytes:.0f} MB. The file is at {path}.",
                    max_download_bytes=MAX_DOWNLOAD_BYTES / 1e6,
                    path=path,
                ),
            )
        kind = media_type(content[:16])
        # Never a type that a browser would run, whatever the file is called.
        is_picture = kind in _SHOWN_PICTURES
        name = quote(path.name, safe="", errors="replace")
        return Response(
            content,
            media_type=kind if is_picture else "application/octet-stream",
            headers={"content-disposition": f"attachment; filename*=UTF-8''{name}"},
        )

    def _path(self, call: EndpointCall) -> tuple[Path, Path]:
        """The session's folder, and the file in it that a request names, after links were followed."""
        info = find(self._board, call.path["id"])
        root = Path(os.path.realpath(info.cwd)) if info.cwd else None
        if root is None:
            raise Refusal(404, t.marked(_NOT_SERVED))
        try:
            named = Path(os.path.normpath(root / call.query.path))
            real = Path(os.path.realpath(named))
        except ValueError as error:  # a name that no file can have
            raise Refusal(404, t.marked(_NOT_SERVED)) from error
        if not (named.is_relative_to(root) and real.is_relative_to(root)):
            raise Refusal(404, t.marked(_NOT_SERVED))
        # A link may have been put there since, which leads to a file that the turn did not change.
        if not {named, real} <= set(
            self._rewind.changed(info.id, turn=call.query.turn)
        ):
            raise Refusal(404, t.marked(_NOT_SERVED))
        if self._guard.secret((named, real), root):
            raise Refusal(
                403,
                t("{name} may hold secrets, so it is not shown here.", name=named.name),
            )
        return root, real


def _read(root: Path, path: Path, most_bytes: int) -> tuple[bytes, int]:
    """The beginning of a file, and the size of all of it."""
    # Neither waits for a pipe nor follows a link that was put there meanwhile.
    flags = os.O_RDONLY | os.O_NONBLOCK
    try:
        descriptor = open_beneath(root, path.relative_to(root), flags)
        with os.fdopen(descriptor, "rb") as file:
            facts = os.fstat(descriptor)
            if not stat.S_ISREG(facts.st_mode):
                raise Refusal(404, t("{name} is not a regular file.", name=path.name))
            return file.read(most_bytes), facts.st_size
    except FileNotFoundError as error:
        raise Refusal(404, t("{name} no longer exists.", name=path.name)) from error
    except OSError as error:
        raise Refusal(
            404,
            t("{name} can't be read: {error}.", name=path.name, error=os_reason(error)),
        ) from error
