"""A reader of PostgreSQL's notices is woken by each of them once."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

from hermes.store.postgres.row_watch import NotifyWatch


async def test_a_notice_that_was_seen_already_wakes_nobody() -> None:
    notices = cast("Any", SimpleNamespace(is_reachable=True))
    watch = NotifyWatch(notices, "s")
    watch.is_added = True
    await watch.wait(20)
    assert watch.changed()
    watch.notice()
    await watch.wait(20)  # it knows before its event is set
    assert watch.changed()
    waiting = asyncio.ensure_future(watch.wait(20))
    for _ in range(5):
        await asyncio.sleep(0)
    assert not waiting.done()
    watch.notice()
    await asyncio.wait_for(waiting, 20)
    assert watch.changed()
