"""The files of the page. They are cached in memory until they change on disk."""

import importlib.resources
import mimetypes
from pathlib import Path
from typing import NamedTuple

from starlette.responses import Response

from hermes.surfaces.web.endpoint import Endpoint, EndpointCall, find_file
from hermes.surfaces.web.errors import Refusal

_CACHE_FOREVER = "private, max-age=31536000, immutable"
"""For vendored files, which never change under their name."""
_REVALIDATE = "no-cache"


class _Asset(NamedTuple):
    path: Path
    etag: str
    content: bytes
    kind: str | None


class Assets:
    """Serves the files from the event loop: a thread would cost more than reading the file."""

    def __init__(self) -> None:
        self._top = Path(
            str(importlib.resources.files("hermes.surfaces.dashboard") / "static")
        ).resolve()
        self._cached: dict[str, _Asset] = {}

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
            "index.html", call, "The API still works; see /api/openapi.json."
        )

    async def _static(self, call: EndpointCall) -> Response:
        """A file of the page."""
        return self._answer(call.path["file"], call)

    def _answer(self, name: str, call: EndpointCall, hint: str = "") -> Response:
        asset = self._find(name)
        if asset is None:
            raise Refusal(404, "There is no such file.", hint)
        is_vendored = asset.path.is_relative_to(self._top / "vendor")
        headers = {
            "cache-control": _CACHE_FOREVER if is_vendored else _REVALIDATE,
            "etag": asset.etag,
        }
        if call.request.headers.get("if-none-match") == asset.etag:
            return Response(status_code=304, headers=headers)
        return Response(asset.content, media_type=asset.kind, headers=headers)

    def _find(self, name: str) -> _Asset | None:
        cached = self._cached.get(name)
        path = cached.path if cached else find_file(self._top, name)
        try:
            if path is None or (cached and cached.etag == _etag(path)):
                return cached
            kind = (
                "text/javascript"
                if path.suffix == ".js"
                else mimetypes.guess_type(path.name)[0]
            )
            # The tag comes first: if the file changes in between, the next request notices.
            asset = _Asset(path, _etag(path), path.read_bytes(), kind)
            if self._top / name == path:  # not under every name that leads to the file
                self._cached[name] = asset
        except FileNotFoundError:
            self._cached.pop(name, None)
            return None
        return asset


def _etag(path: Path) -> str:
    facts = path.stat()
    return f'"{facts.st_mtime_ns:x}-{facts.st_size:x}"'
