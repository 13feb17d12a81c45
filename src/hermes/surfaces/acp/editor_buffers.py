"""Reads and writes files through the editor (`fs/read_text_file`, `fs/write_text_file`), for tools that run in
threads."""

import asyncio
import logging
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from acp.exceptions import RequestError
from acp.interfaces import Client
from acp.schema import FileSystemCapabilities

from hermes.primitives.recent import RecentDict

log = logging.getLogger("hermes.acp")

_EDITOR_TIMEOUT_S = 5.0
_MAX_REMEMBERED_FILES = 64


class EditorBuffers:
    """Implements `OpenBuffers` for one session of an editor. What the editor can't do is left to the disk."""

    def __init__(
        self,
        client: Client,
        session: str,
        abilities: FileSystemCapabilities,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._client = client
        self._session = session
        self._abilities = abilities
        self._loop = loop
        self._last: RecentDict[Path, str] = RecentDict(_MAX_REMEMBERED_FILES)

    def text(self, path: Path) -> str | None:
        """The text of a file as the editor has it; None if it has none, or did not answer."""
        if not self._abilities.read_text_file:
            return None
        reply = self._wait(
            self._client.read_text_file(session_id=self._session, path=str(path)), path
        )
        content = getattr(reply, "content", None)
        if not isinstance(content, str):
            self._last.pop(path, None)
            return None
        self._last[path] = content
        return content

    def write(self, path: Path, text: str) -> bool:
        """Lets the editor replace and save a text. False if it can't."""
        if not self._abilities.write_text_file:
            return False
        request = self._client.write_text_file(
            session_id=self._session, path=str(path), content=text
        )
        return self._wait(request, path, default=False) is not False

    def last_text(self, path: Path) -> str | None:
        """What the editor said last."""
        return self._last.get(path)

    def _wait(
        self, request: Coroutine[Any, Any, Any], path: Path, default: Any = None
    ) -> Any:
        """The editor's answer; `default` if it refused or took too long."""
        asked = asyncio.run_coroutine_threadsafe(request, self._loop)
        try:
            return asked.result(_EDITOR_TIMEOUT_S)
        except RequestError as error:
            log.debug("the editor does not have %s: %s", path, error)
        except TimeoutError:
            asked.cancel()
            log.warning("the editor did not answer for %s", path)
        except ConnectionError as error:
            log.warning("the editor is gone: %s", error)
        return default
