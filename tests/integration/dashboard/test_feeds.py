"""Feeds: replay from a cursor, then live, without holes or doubles, whoever writes and however often a line breaks."""

import asyncio
import random
import socket as sockets
import sys
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from tests.integration.dashboard.harness import PATIENCE, Harness, frames, is_type
from websockets.exceptions import ConnectionClosed

from hermes.app import build
from hermes.app.feed_inbox import MAX_INBOX_BYTES
from hermes.schema.events import SessionCreated, SessionTitled
from hermes.settings import Home, Settings


def _begin(harness: Harness) -> str:
    return harness.app.begin(SessionCreated(surface="test")).session


def _say(harness: Harness, session: str, count: int, start: int = 0) -> None:
    for number in range(start, start + count):
        harness.app.record(session, SessionTitled(title=f"title {number}"))


def _titled(number: int) -> Callable[[dict[str, Any]], bool]:
    return lambda event: event.get("title") == f"title {number}"


def _seqs(events: list[dict[str, Any]]) -> list[int]:
    return [event["seq"] for event in events if "seq" in event]


async def test_rows_of_before_come_first_then_those_that_happen(
    harness: Harness,
) -> None:
    session = _begin(harness)
    _say(harness, session, 500)
    async with harness.socket(
        f"/api/sessions/{session}/feed", scope="observe"
    ) as socket:
        events = await frames(socket, is_type("feed.partial"))
        assert events[0]["type"] == "feed.hello"
        assert events[0]["head"] == 501
        assert _seqs(events) == list(range(1, 502))
        await asyncio.to_thread(_say, harness, session, 300, 500)
        assert _seqs(await frames(socket, _titled(799))) == list(range(502, 802))
    async with harness.socket(
        f"/api/sessions/{session}/feed?epoch={events[0]['epoch']}&after=790"
    ) as socket:
        assert _seqs(await frames(socket, is_type("feed.partial"))) == list(
            range(791, 802)
        )


async def test_a_line_that_breaks_a_hundred_times_loses_and_doubles_nothing(
    harness: Harness,
) -> None:
    session = _begin(harness)
    dice = random.Random(7)

    async def write() -> None:
        for number in range(600):
            await asyncio.to_thread(
                harness.app.record, session, SessionTitled(title=f"title {number}")
            )

    writing = asyncio.create_task(write())
    seen: list[int] = []
    epoch = breaks = 0
    async with asyncio.timeout(PATIENCE):
        while breaks < 100 or not seen or seen[-1] < 601:
            after = seen[-1] if seen else 0
            async with harness.socket(
                f"/api/sessions/{session}/feed?epoch={epoch}&after={after}"
            ) as socket:
                for _ in range(dice.randint(1, 3) if breaks < 100 else 10_000):
                    batch = msgspec.json.decode(await socket.recv())
                    epoch = epoch or batch[0].get("epoch", 0)
                    seen += _seqs(batch)
                    if seen and seen[-1] == 601:  # nothing more will come
                        break
                socket.transport.abort()
            breaks += 1
    await writing
    assert seen == list(range(1, 602))


async def test_a_cursor_of_another_epoch_is_said_so_and_everything_follows(
    harness: Harness,
) -> None:
    session = _begin(harness)
    _say(harness, session, 3)
    async with harness.socket(
        f"/api/sessions/{session}/feed?epoch=5&after=2"
    ) as socket:
        events = await frames(socket, is_type("feed.partial"))
    assert [event["type"] for event in events[:2]] == [
        "feed.hello",
        "feed.epoch_changed",
    ]
    assert events[1]["was"] == 5
    assert _seqs(events) == [1, 2, 3, 4]


async def test_rows_that_are_gone_are_said_so(harness: Harness) -> None:
    session = _begin(harness)
    _say(harness, session, 6)
    database = harness.app.store.log._db
    database.write(
        lambda connection: connection.execute(
            "DELETE FROM events WHERE seq IN (3, 4)"
        ).fetchall()
    )
    async with harness.socket(f"/api/sessions/{session}/feed") as socket:
        events = await frames(socket, is_type("feed.partial"))
    assert _seqs(events) == [1, 2, 5, 6, 7]
    (lost,) = [event for event in events if event["type"] == "feed.truncated"]
    assert (lost["first"], lost["last"]) == (3, 4)


async def test_somebody_who_comes_late_sees_what_is_being_said(
    harness: Harness,
) -> None:
    session = _begin(harness)
    bus = harness.app.bus
    place = {"session_id": session, "turn_id": "t"}
    async with harness.socket(f"/api/sessions/{session}/feed") as early:
        await frames(early, is_type("feed.partial"))
        for text in ("Once ", "upon "):
            bus.publish("agent.message.delta", {"text": text, **place})
        bus.publish("agent.tool.progress", {"call_id": "c", "text": "line\n", **place})
        async with harness.socket(f"/api/sessions/{session}/feed") as late:
            partial = (await frames(late, is_type("feed.partial")))[-1]
            assert (partial["text"], partial["tools"]) == (
                "Once upon ",
                {"c": "line\n"},
            )
            bus.publish("agent.message.delta", {"text": "a time", **place})
            assert (await frames(late, is_type("agent.message.delta")))[-1][
                "text"
            ] == "a time"
        texts = [
            event["text"]
            for event in await frames(
                early, lambda event: event.get("text") == "a time"
            )
        ]
        assert texts == ["Once ", "upon ", "line\n", "a time"]


_WRITER = """
import sys
from collections.abc import Callable
from pathlib import Path
from hermes.app import build
from hermes.schema.events import SessionTitled
from hermes.settings import Home, Settings
with build(Settings(), Home(Path(sys.argv[1]))) as app:
    for number in range(int(sys.argv[3])):
        app.record(sys.argv[2], SessionTitled(title=f"title {number}"))
"""


async def _write_elsewhere(harness: Harness, session: str, count: int) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _WRITER, str(harness.app.home.root), session, str(count)
    )
    assert await asyncio.wait_for(process.wait(), PATIENCE) == 0


async def test_what_another_process_writes_is_followed_live(harness: Harness) -> None:
    session = _begin(harness)
    _say(harness, session, 1)
    async with (
        harness.socket(f"/api/sessions/{session}/feed") as socket,
        harness.socket("/api/feed?pattern=session.titled") as everything,
    ):
        await frames(socket, is_type("feed.partial"))
        await frames(everything, is_type("feed.hello"))
        await _write_elsewhere(harness, session, 40)
        assert _seqs(await frames(socket, _titled(39))) == list(range(3, 43))
        assert _seqs(await frames(everything, _titled(39))) == list(range(3, 43))


async def test_a_session_begun_elsewhere_is_seen_by_those_who_watch_everything(
    harness: Harness,
) -> None:
    async with harness.socket("/api/feed?pattern=session.*") as everything:
        await frames(everything, is_type("feed.hello"))
        await asyncio.to_thread(_begin, harness)
        await frames(everything, is_type("session.created"))
        with build(Settings(), Home(harness.app.home.root)) as other:
            session = other.begin(SessionCreated(surface="elsewhere")).session
        seen = await frames(
            everything, lambda event: event.get("session_id") == session
        )
        assert seen[-1]["surface"] == "elsewhere"


async def test_several_patterns_in_one_feed_give_each_event_once(
    harness: Harness,
) -> None:
    async with harness.socket("/api/feed?pattern=one.*,two.**,**.thing") as everything:
        await frames(everything, is_type("feed.hello"))
        for topic in ("one.thing", "three.other", "two.thing", "two.end"):
            harness.app.bus.publish(topic, {})
        seen = await frames(everything, is_type("two.end"))
        assert [event["type"] for event in seen] == [
            "one.thing",
            "two.thing",
            "two.end",
        ]


async def test_a_session_that_is_deleted_ends_its_feed(harness: Harness) -> None:
    session = _begin(harness)
    async with harness.socket(f"/api/sessions/{session}/feed") as socket:
        await frames(socket, is_type("feed.partial"))
        await harness.call("DELETE", f"/api/sessions/{session}")
        await frames(socket, is_type("feed.deleted"))
        with pytest.raises(ConnectionClosed) as closed:
            await socket.recv()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 4004


async def test_a_dashboard_that_ends_does_not_say_that_the_session_is_gone(
    harness: Harness,
) -> None:
    session = _begin(harness)
    async with (
        harness.socket(f"/api/sessions/{session}/feed") as one,
        harness.socket("/api/feed") as all_of_it,
    ):
        for socket in (one, all_of_it):
            await frames(socket, is_type("feed.hello"))
        harness.served.board.feed.stop()
        for socket in (one, all_of_it):
            with pytest.raises(ConnectionClosed) as closed:
                await frames(socket, lambda _: False)
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 1012


async def test_there_is_no_feed_of_a_session_that_is_none(harness: Harness) -> None:
    async with harness.socket("/api/sessions/none/feed") as socket:
        with pytest.raises(ConnectionClosed) as closed:
            await socket.recv()
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 4004


async def _events(lines: Any, count: int) -> list[tuple[str, dict[str, Any]]]:
    """Server-sent events with their ids."""
    found: list[tuple[str, dict[str, Any]]] = []
    name = ""
    async with asyncio.timeout(PATIENCE):
        async for line in lines:
            if line.startswith("id: "):
                name = line[4:]
            elif line.startswith("data: "):
                found.append((name, msgspec.json.decode(line[6:])))
                name = ""
                if len(found) == count:
                    break
    return found


async def test_server_sent_events_go_on_behind_the_last_event_id(
    harness: Harness,
) -> None:
    session = _begin(harness)
    _say(harness, session, 4)
    path = f"/api/sessions/{session}/stream"
    async with harness.client.stream(
        "GET", path, headers=harness.bearer("observe")
    ) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        first = await _events(answer.aiter_lines(), 4)
    last = first[-1][0]
    assert last == f"{first[-1][1]['epoch']}-3"
    headers = {"Last-Event-ID": last, **harness.bearer("observe")}
    async with harness.client.stream(
        "GET", f"{path}?after=1", headers=headers
    ) as answer:
        lines = answer.aiter_lines()
        again = await _events(lines, 4)
        assert [event.get("seq") for _, event in again] == [None, 4, 5, None]
        await asyncio.to_thread(_say, harness, session, 1, 9)
        assert (await _events(lines, 1))[0][1]["title"] == "title 9"


@pytest.mark.parametrize(
    "last", ["9" * 5_000 + "-1", "1-" + "9" * 5_000, "1-" + "9" * 19]
)
async def test_a_last_event_that_can_not_be_is_ignored(
    harness: Harness, last: str
) -> None:
    session = harness.app.begin(SessionCreated(surface="test")).session
    headers = {"Last-Event-ID": last, **harness.bearer("observe")}
    async with harness.client.stream(
        "GET", f"/api/sessions/{session}/stream", headers=headers
    ) as answer:
        assert answer.status_code == 200
        ((_, hello),) = await _events(answer.aiter_lines(), 1)
        assert hello["type"] == "feed.hello"


async def _stuck(harness: Harness, path: str, *, upgrade: bool) -> asyncio.StreamWriter:
    """A client that shakes hands and reads nothing more, with a small buffer of its own."""
    host, _, port = harness.host.partition(":")
    raw = sockets.socket()
    raw.setsockopt(sockets.SOL_SOCKET, sockets.SO_RCVBUF, 4096)
    raw.setblocking(False)
    await asyncio.get_running_loop().sock_connect(raw, (host, int(port)))
    reader, writer = await asyncio.open_connection(sock=raw, limit=1024)
    more = (
        "Upgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
    )
    writer.write(
        f"GET {path} HTTP/1.1\r\nHost: {harness.host}\r\n{more if upgrade else ''}"
        f"Authorization: Bearer {harness.token('observe')}\r\n\r\n".encode()
    )
    head = await reader.readuntil(b"\r\n\r\n")
    assert (b" 101 " if upgrade else b" 200 ") in head
    writer.transport.pause_reading()  # type: ignore[attr-defined]
    return writer


@pytest.mark.parametrize(
    ("path", "upgrade"), [("/api/feed", True), ("/api/stream", False)]
)
async def test_a_consumer_that_is_stuck_costs_nobody_else_anything(
    harness: Harness, path: str, upgrade: bool
) -> None:
    feed = harness.served.board.feed
    feed.stall_timeout_s = 0.5
    stuck = await _stuck(harness, f"{path}?pattern=load.**", upgrade=upgrade)
    async with harness.socket("/api/feed?pattern=load.**") as healthy:
        await frames(healthy, is_type("feed.hello"))
        text = "x" * 10_000

        async def load() -> None:
            number = 0
            while not feed.closed_slow:
                for _ in range(10):
                    harness.app.bus.publish(
                        "load.one", {"number": number, "text": text}
                    )
                    number += 1
                assert max(inbox._bytes for inbox in feed._inboxes()) <= MAX_INBOX_BYTES
                await asyncio.sleep(0.002)
            harness.app.bus.publish("load.end", {"number": number})

        loading = asyncio.create_task(load())
        events = await frames(healthy, is_type("load.end"))
        await loading
    numbers = [event["number"] for event in events]
    assert numbers == list(range(len(numbers)))
    assert feed.closed_slow == 1
    assert feed.dropped > 0
    status = await harness.call("GET", "/api/status")
    assert status["feeds"]["closed_slow"] == 1
    async with asyncio.timeout(PATIENCE):
        while feed.readers:  # noqa: ASYNC110 - the server lets go of it by itself
            await asyncio.sleep(0.01)
    stuck.transport.abort()  # type: ignore[attr-defined]


async def test_a_consumer_that_was_slow_learns_what_it_missed(harness: Harness) -> None:
    with harness.served.board.feed.topic_inbox("load.*") as inbox:
        for number in range(200):
            harness.app.bus.publish(
                "load.one", {"number": number, "text": "x" * 10_000}
            )
        items, dropped = inbox.take()
        assert len(items) + dropped == 200
        assert dropped > 0
        harness.app.bus.publish("load.one", {"number": 200})
        items, dropped = inbox.take()
        assert (len(items), dropped) == (1, 0)


async def test_messages_of_every_length_arrive_as_they_were_sent(
    harness: Harness,
) -> None:
    """A frame says its length in one of three ways."""
    watching, publishing = (
        harness.socket("/api/events?channel=c"),
        harness.socket("/api/pub?channel=c"),
    )
    async with watching as watcher, publishing as publisher, asyncio.timeout(PATIENCE):
        hearing = asyncio.create_task(watcher.recv())
        while not hearing.done():  # nobody says when it has begun to watch
            await publisher.send("?")
            await asyncio.wait([hearing], timeout=0.05)
        for size in (2, 125, 126, 127, 65_535, 65_536, 300_000):
            text = "ä" * (size // 2) + "x" * (size % 2)
            await publisher.send(text)
            while (found := await watcher.recv()) == "?":
                pass
            assert found == text
