"""Publishes what other processes write to the history of boards, so that every process sees the whole board live."""

import asyncio
from collections.abc import Mapping
from typing import Any

from hermes.app.app import App
from hermes.app.boards.board_service import Boards
from hermes.errors import StoreError
from hermes.primitives.recent import RecentDict

_FOLLOW_INTERVAL_S = 0.5
_UNUSED_INTERVAL_S = 5.0  # while there is no board
_MAX_KNOWN_EVENTS = 4_096
_FOLLOWING = "following the history of boards"  # not translated


class BoardFollower:
    """Runs as a task, starting after the newest event. What this process publishes itself is not published again."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._boards = Boards(app)
        self._seen: RecentDict[int, bool] = RecentDict(_MAX_KNOWN_EVENTS)

    async def run(self) -> None:
        """Follows until it is cancelled."""
        handle = self._app.bus.subscribe("kanban.**", self._note)
        try:
            last: int | None = None
            while True:
                try:
                    last = await asyncio.to_thread(self._read, last)
                except StoreError as error:
                    await asyncio.sleep(self._app.errors.note(_FOLLOWING, error))
                    continue
                self._app.errors.succeeded(_FOLLOWING)
                pause = _UNUSED_INTERVAL_S if last is None else _FOLLOW_INTERVAL_S
                await asyncio.sleep(pause)
        finally:
            self._app.bus.unsubscribe(handle)

    def _note(self, event: Mapping[str, Any]) -> None:
        number = event.get("id")
        if isinstance(number, int) and number:
            self._seen[number] = True

    def _read(self, last: int | None) -> int | None:
        """Publishes new events. Returns the number of the newest one; None while there is no board."""
        if not self._app.has_log or not self._app.store.has_cards:
            return None
        if last is None:
            return self._boards.read(lambda reader: reader.last_entry())
        found = self._boards.read(lambda reader: reader.history_after(last))
        self._boards.publish([one for one in found if one.id not in self._seen])
        return found[-1].id if found else last
