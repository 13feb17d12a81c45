"""The page's own files. They are kept in memory as long as they are on disk what they were."""

import importlib.resources
import mimetypes
from pathlib import Path
from typing import NamedTuple

from starlette.responses import Response

from hermes.surfaces.web.endpoint import Endpoint, EndpointCall, find_file
from hermes.surfaces.web.errors import Refusal

_FOR_EVER = "private, max-age=31536000, immutable"  # a vendored file never changes under its name
_ASK_FIRST = "no-cache"


class _Asset(NamedTuple):
    path: Path
    etag: str
    content: bytes
    kind: str | None


class Assets:
    """Answers from the event loop: a thread would cost more than the file."""

    def __init__(self) -> None:
        self._top = Path(
            str(importlib.resources.files("hermes.surfaces.dashboard") / "static")
        ).resolve()
        self._kept: dict[str, _Asset] = {}

    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint("GET", "/", "observe", self._page, answer=None, is_page=True),
            Endpoint(
                "GET", "/static/{file:path}", "observe", self._static, answer=None
            ),
        ]

    async def _page(self, call: EndpointCall) -> Response:
        """The page."""
        return self._answer(
            "index.html", call, "The API is there all the same; see /api/openapi.json."
        )

    async def _static(self, call: EndpointCall) -> Response:
        """What belongs to the page."""
        return self._answer(call.path["file"], call)

    def _answer(self, name: str, call: EndpointCall, hint: str = "") -> Response:
        asset = self._find(name)
        if asset is None:
            raise Refusal(404, "There is no such file.", hint)
        is_vendored = asset.path.is_relative_to(self._top / "vendor")
        headers = {
            "cache-control": _FOR_EVER if is_vendored else _ASK_FIRST,
            "etag": asset.etag,
        }
        if call.request.headers.get("if-none-match") == asset.etag:
            return Response(status_code=304, headers=headers)
        return Response(asset.content, media_type=asset.kind, headers=headers)

    def _find(self, name: str) -> _Asset | None:
        kept = self._kept.get(name)
        path = kept.path if kept else find_file(self._top, name)
        try:
            if path is None or (kept and kept.etag == _etag(path)):
                return kept
            kind = (
                "text/javascript"
                if path.suffix == ".js"
                else mimetypes.guess_type(path.name)[0]
            )
            # The tag before the content: should the file change in between, the next look finds that out.
            asset = _Asset(path, _etag(path), path.read_bytes(), kind)
            if (
                self._top / name == path
            ):  # once each, not under every name that leads there
                self._kept[name] = asset
        except FileNotFoundError:
            self._kept.pop(name, None)
            return None
        return asset


def _etag(path: Path) -> str:
    facts = path.stat()
    return f'"{facts.st_mtime_ns:x}-{facts.st_size:x}"'
