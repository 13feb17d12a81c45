"""Separate origins for previews whose scripts run: unused names of this machine.

When a frame navigates, the browser connects to the server before it checks any policy. Only the document in the frame
can cancel the navigation in time, in the event `navigate`, which browsers send only to documents that have an origin.
So on this machine, each preview gets an origin of its own: `preview-RANDOM.localhost`. It shares neither cookies nor
storage with the page.
"""

import re
from collections.abc import Callable

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from hermes.surfaces.dashboard.access_control import OWN_ORIGIN_HEADERS

_PATH = "/preview"
_HOST = re.compile(rb"preview-[0-9a-f]{32}\.localhost(?::\d{1,5})?")


class PreviewOrigins:
    """Serves the document for previews under such a name, and nothing else. It holds nothing private."""

    def __init__(self, application: ASGIApp, read: Callable[[], bytes]) -> None:
        self.application = application
        self._read = read

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not _is_preview(scope):
            await self.application(scope, receive, send)
            return
        response = Response(self._read(), media_type="text/html")
        response.raw_headers.extend(OWN_ORIGIN_HEADERS)
        await response(scope, receive, send)


def _is_preview(scope: Scope) -> bool:
    if scope["type"] != "http" or scope["method"] != "GET" or scope["path"] != _PATH:
        return False
    hosts = [value for name, value in scope["headers"] if name.lower() == b"host"]
    return len(hosts) == 1 and _HOST.fullmatch(hosts[0]) is not None
