"""A process that drains or ends while its heartbeat is being written."""

import asyncio
import contextlib
import threading
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hermes.app import presence
from hermes.app.app import App
from hermes.app.presence import Presence


class _Table:
    """The roles and hosts of a store. `during` runs in the middle of a write, as another thread may."""

    def __init__(self) -> None:
        self.held: list[object] = []
        self.hosts: set[str] = set()
        self.during: dict[str, Any] = {}
        self.left_twice = threading.Event()
        self._leaves = 0

    def _happen(self, what: str) -> None:
        self.during.pop(what, lambda: None)()

    def take(self, name: str, _facts: object) -> object:
        self._happen("take")
        role = object()
        self.held.append(role)
        return role

    def renew(self, role: object, _facts: object) -> bool:
        self._happen("renew")
        return role in self.held

    def hand_back(self, role: object, _facts: object) -> None:
        self.held.remove(role)

    def beat(self, owner: str, _role: str, _version: str) -> None:
        self._happen("beat")
        self.hosts.add(owner)

    def leave(self, owner: str) -> None:
        self.hosts.discard(owner)
        self._leaves += 1
        if self._leaves == 2:
            self.left_twice.set()


@pytest.fixture
def table() -> _Table:
    return _Table()


@pytest.fixture
def process(table: _Table, monkeypatch: pytest.MonkeyPatch) -> Presence:
    monkeypatch.setattr(presence, "this_place", str)
    monkeypatch.setattr(presence, "machine_role", "{}:{}".format)
    app = SimpleNamespace(
        store=SimpleNamespace(
            roles=table, hosts=table, leases=SimpleNamespace(owner="me")
        ),
        settings=SimpleNamespace(
            schedules=SimpleNamespace(enabled=True), store=SimpleNamespace(url="x")
        ),
        errors=None,
        clock=SimpleNamespace(now=lambda: 0.0),
    )
    return Presence(cast("App", app), "gateway")


def test_a_role_taken_while_the_process_begins_to_drain_is_left(
    table: _Table, process: Presence
) -> None:
    table.during["take"] = process.drain
    process._beat()
    assert table.held == []


def test_a_role_renewed_while_the_process_begins_to_drain_is_left(
    table: _Table, process: Presence
) -> None:
    process._beat()
    assert len(table.held) == 1
    table.during["renew"] = process.drain
    process._beat()
    assert table.held == []


async def test_a_heartbeat_written_after_the_end_is_taken_back(
    table: _Table, process: Presence
) -> None:
    begun, ended = threading.Event(), threading.Event()

    def slow_write() -> None:
        begun.set()
        ended.wait(10)

    table.during["beat"] = slow_write
    task = asyncio.create_task(process.run())
    await asyncio.to_thread(begun.wait, 10)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    ended.set()
    await asyncio.to_thread(table.left_twice.wait, 10)
    assert table.hosts == set()
    assert table.held == []
