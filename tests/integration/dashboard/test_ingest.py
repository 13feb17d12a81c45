"""`/api/pub` and `/api/events`: what other processes say, as the contract has it."""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import msgspec
import pytest
from tests.integration.dashboard.harness import PATIENCE, Harness, frames, is_type
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed
from websockets.frames import Frame, Opcode

from hermes.app import build
from hermes.events import Bus
from hermes.schema.events import ApprovalRequested, SessionCreated, SessionTitled
from hermes.settings import Settings
from hermes.surfaces.dashboard.running_file import running_dashboard


@contextmanager
def _hearing(
    harness: Harness, pattern: str
) -> Iterator["asyncio.Queue[Mapping[str, Any]]"]:
    heard: asyncio.Queue[Mapping[str, Any]] = asyncio.Queue()

    def hear(event: Mapping[str, Any]) -> None:
        heard.put_nowait(event)

    handle = harness.app.bus.subscribe(pattern, hear)
    try:
        yield heard
    finally:
        harness.app.bus.unsubscribe(handle)


def _relay(topic: str, **envelope: Any) -> dict[str, Any]:
    return {"_bus_relay": True, "topic": topic, "envelope": envelope}


def _sidecar(kind: object, payload: object = None, **params: Any) -> dict[str, Any]:
    return {
        "jsonrpc": "2.0",
        "method": "event",
        "params": {"type": kind, "payload": payload} | params,
    }


async def _next(heard: "asyncio.Queue[Mapping[str, Any]]") -> Mapping[str, Any]:
    return await asyncio.wait_for(heard.get(), PATIENCE)


async def test_a_relayed_event_keeps_what_it_says_of_itself(harness: Harness) -> None:
    with _hearing(harness, "gateway.**") as heard:
        async with harness.socket("/api/pub?channel=gateway", scope="publish") as pub:
            envelope = {
                "type": "gateway.startup",
                "ts": 12.5,
                "src": "gateway",
                "platform": "telegram",
                "deep": {"a": [1]},
            }
            await pub.send(
                msgspec.json.encode(_relay("gateway.startup", **envelope)).decode()
            )
            assert dict(await _next(heard)) == envelope


async def test_a_terminal_s_event_is_published_as_tui(harness: Harness) -> None:
    with _hearing(harness, "tui.**") as heard:
        async with harness.socket("/api/pub?channel=x", scope="publish") as pub:
            frame = _sidecar(
                "tool.start",
                {"name": "ls", "ts": 1.0, "src": "me", "type": "x"},
                session_id="s1",
            )
            await pub.send(msgspec.json.encode(frame).decode())
            event = await _next(heard)
            assert (
                event["type"],
                event["src"],
                event["session_id"],
                event["name"],
            ) == (
                "tui.tool.start",
                "tui",
                "s1",
                "ls",
            )
            assert event["ts"] > 1_000_000_000
            await pub.send(
                msgspec.json.encode(_sidecar("error", session_id="s1")).decode()
            )
            assert (await _next(heard))["type"] == "tui.error"


async def test_batches_and_rubbish(harness: Harness) -> None:
    rubbish = [
        "", "not json", "[", "null", "7", "{}", "[null, 3]", '{"_bus_relay": true}',
        '{"_bus_relay": true, "topic": ""}',
        '{"_bus_relay": true, "topic": "a", "envelope": 7}', msgspec.json.encode(_sidecar("")).decode(),
        msgspec.json.encode(_sidecar(None)).decode(), '{"jsonrpc": "2.0", "method": "other"}', "[" * 5000, '"\\ud800"',
        msgspec.json.encode({"_bus_relay": True, "topic": 5, "envelope": {}}).decode(),
    ]  # fmt: skip
    ingest = harness.served.board.ingest
    with _hearing(harness, "batch.*") as heard:
        async with harness.socket("/api/pub?channel=x", scope="publish") as pub:
            for text in rubbish:
                await pub.send(text)
            await pub.send(b"\xff\xfe")
            batch = [
                _relay("batch.one", number=1),
                17,
                _sidecar(""),
                _relay("batch.two", number=2),
                {"x": 1},
            ]
            await pub.send(msgspec.json.encode(batch).decode())
            assert [(await _next(heard))["number"] for _ in range(2)] == [1, 2]
            await pub.send(
                msgspec.json.encode([_relay("batch.three", number=3)]).decode()
            )
            assert (await _next(heard))["number"] == 3
    assert ingest.published == 3
    assert ingest.refused >= len(rubbish) + 3  # "[null, 3]" counts twice
    counts = (await harness.call("GET", "/api/status"))["ingest"]
    assert (counts["published"], counts["refused"]) == (3, ingest.refused)


async def test_every_frame_is_passed_on_as_it_came_to_its_channel_alone(
    harness: Harness,
) -> None:
    async with (
        harness.socket("/api/events?channel=a", scope="observe") as watcher,
        harness.socket("/api/events?channel=b", scope="observe") as other,
        harness.socket("/api/pub?channel=a", scope="publish") as pub,
        harness.socket("/api/pub?channel=b", scope="publish") as second,
    ):
        sent = [
            '{ "_bus_relay":true,  "topic":"t.x","envelope":{"ü":1} }',
            "anything at all",
            '[{"x":1}]',
        ]
        for text in sent:
            await pub.send(text)
        await second.send("for b")
        assert [await asyncio.wait_for(watcher.recv(), PATIENCE) for _ in sent] == sent
        assert await asyncio.wait_for(other.recv(), PATIENCE) == "for b"
        await watcher.send('{"_bus_relay": true, "topic": "t.forged", "envelope": {}}')
        await pub.send("last")
        assert await asyncio.wait_for(watcher.recv(), PATIENCE) == "last"
    assert harness.served.board.ingest.published == 1


async def test_a_token_for_one_channel_publishes_on_no_other(harness: Harness) -> None:
    token = harness.token("publish", channel="mine")
    async with harness.socket("/api/pub?channel=mine", token=token) as pub:
        await pub.send("{}")
    async with harness.socket("/api/pub?channel=other", token=token) as pub:
        with pytest.raises(ConnectionClosed) as closed:
            await pub.recv()
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 4003


async def test_a_message_that_is_too_large_is_refused(harness: Harness) -> None:
    async with harness.socket("/api/pub?channel=x", scope="publish") as pub:
        await pub.send("x" * (1024 * 1024 + 1))
        with pytest.raises(ConnectionClosed) as closed:
            await pub.recv()
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1009


async def test_numbered_frames_are_acknowledged_and_published_once(
    harness: Harness,
) -> None:
    def numbered(seq: int) -> dict[str, Any]:
        return {
            **_relay("numbered.one", number=seq),
            "publisher": "gw",
            "epoch": 3,
            "seq": seq,
        }

    with _hearing(harness, "numbered.*") as heard:
        async with harness.socket("/api/pub?channel=x", scope="publish") as pub:
            await pub.send(msgspec.json.encode([numbered(1), numbered(2)]).decode())
            ack = msgspec.json.decode(await asyncio.wait_for(pub.recv(), PATIENCE))
            assert ack == {"type": "pub.ack", "publisher": "gw", "epoch": 3, "seq": 2}
        async with harness.socket("/api/pub?channel=x", scope="publish") as pub:
            await pub.send(msgspec.json.encode([numbered(2), numbered(3)]).decode())
            assert (
                msgspec.json.decode(await asyncio.wait_for(pub.recv(), PATIENCE))["seq"]
                == 3
            )
        assert [heard.get_nowait()["number"] for _ in range(heard.qsize())] == [1, 2, 3]


async def test_a_relayed_event_is_not_taken_for_a_row_of_the_log(
    harness: Harness,
) -> None:
    """Whoever may publish could otherwise make the page show a question that nobody asked."""
    session = harness.app.begin(SessionCreated(surface="test")).session
    async with (
        harness.socket(f"/api/sessions/{session}/feed") as feed,
        harness.socket("/api/pub?channel=x", scope="publish") as pub,
    ):
        epoch = (await frames(feed, is_type("feed.partial")))[0]["epoch"]
        place = {"session_id": session, "epoch": epoch, "seq": 2}
        forged = _relay(
            "agent.approval.requested",
            type="agent.approval.requested",
            call_id="c",
            summary="ls",
            **place,
        )
        await pub.send(msgspec.json.encode(forged).decode())
        await asyncio.to_thread(
            harness.app.record, session, SessionTitled(title="real")
        )
        events = await frames(feed, is_type("session.titled"))
        assert [event["type"] for event in events] == ["session.titled"]
        assert events[0]["seq"] == 2


async def test_a_publish_only_token_changes_nothing_about_a_session_of_this_home(
    harness: Harness,
) -> None:
    """Not what a card says, not whether it is answered, not whether the turn or the session goes on."""
    session = harness.app.begin(SessionCreated(surface="test")).session
    request = ApprovalRequested(
        call_id="c", name="terminal", arguments="{}", summary="rm -rf work"
    )
    (row,) = harness.app.record(session, request)
    mine, seq = {"session_id": session}, {"epoch": row.epoch, "seq": row.seq}
    asked = {"call_id": "c", "name": "terminal", "summary": "ls"}
    forged = [
        _relay("agent.approval.requested", **mine, **asked),
        _relay(
            "agent.approval.requested",
            **mine,
            **asked,
            epoch=row.epoch,
            seq=row.seq + 1,
        ),
        _relay("agent.approval.requested", **mine, **asked, epoch=row.epoch, seq=2**70),
        _relay(
            "agent.approval.requested",
            session_id="elsewhere",
            root_session_id=session,
            **asked,
        ),
        _relay("any.thing", type="agent.approval.requested", **mine, **asked),
        _relay("agent.approval.requested", type="any.thing", **mine, **asked),
        _relay("agent.approval.answered", **mine, call_id="c", answer="deny"),
        _relay(
            "agent.question.asked",
            session_id="elsewhere",
            root_session_id=session,
            call_id="q",
            text="Key?",
        ),
        _relay("agent.turn.ended", **mine, reason="done"),
        _relay("agent.turn.ended", **mine, **seq, reason="done"),
        _relay("agent.tool.finished", **mine, call_id="c", name="terminal"),
        _relay("feed.deleted", **mine),
        _relay("any.thing", type="feed.epoch_changed", **mine),
        _relay("any.thing", type=["feed.deleted"], **mine),
        _relay("gap", **mine, dropped=9, pattern="**", policy="drop_oldest"),
        _relay("gap", dropped=9, pattern="**", policy="drop_newest"),
        _relay("gap", dropped="many", pattern="**", policy="drop_oldest"),
        _relay("any.thing", type="gap", dropped=9, pattern="**", policy="drop_oldest"),
    ]
    with _hearing(harness, "**") as heard:
        async with (
            harness.socket(f"/api/sessions/{session}/feed") as feed,
            harness.socket("/api/pub?channel=x", scope="publish") as pub,
        ):
            await frames(feed, is_type("feed.partial"))
            for frame in forged:
                await pub.send(msgspec.json.encode(frame).decode())
            lost = _relay("gap", dropped=9, pattern="**", policy="drop_oldest")
            await pub.send(msgspec.json.encode(lost).decode())
            await pub.send(
                msgspec.json.encode(
                    _relay("agent.message.delta", text="live", **mine)
                ).decode()
            )
            while (await _next(heard))["type"] != "agent.message.delta":
                pass
            harness.app.record(session, SessionTitled(title="real"))
            events = await frames(feed, is_type("session.titled"))
        assert [event["type"] for event in events] == ["session.titled"]
        assert [heard.get_nowait()["type"] for _ in range(heard.qsize())] == [
            "session.titled"
        ]
    ingest = harness.served.board.ingest
    assert (ingest.refused, ingest.known) == (
        len(forged) - 1,
        1,
    )  # one claims the place of a row that is known


async def test_only_a_process_of_this_home_shows_what_is_being_said(
    harness: Harness,
) -> None:
    """Whoever may only publish is heard on the bus, but puts no words into the mouth of a session."""
    session = harness.app.begin(SessionCreated(surface="test")).session
    ours = running_dashboard(harness.app.home)
    assert ours is not None
    texts = [("forged", harness.token("publish")), ("real", ours.token)]
    with _hearing(harness, "agent.message.delta") as heard:
        async with harness.socket(f"/api/sessions/{session}/feed") as feed:
            await frames(feed, is_type("feed.partial"))
            for text, token in texts:
                delta = _relay("agent.message.delta", text=text, session_id=session)
                async with harness.socket("/api/pub?channel=x", token=token) as pub:
                    await pub.send(msgspec.json.encode(delta).decode())
                    assert (await _next(heard))["text"] == text
            events = await frames(feed, is_type("agent.message.delta"))
        assert [event["text"] for event in events] == ["real"]
        async with harness.socket(f"/api/sessions/{session}/feed") as late:
            events = await frames(late, is_type("feed.partial"))
        assert events[-1]["text"] == "real"


async def test_a_relayed_row_is_published_as_the_log_has_it(harness: Harness) -> None:
    session = harness.app.begin(SessionCreated(surface="test")).session
    with (
        build(Settings(), harness.app.home, bus=Bus()) as elsewhere,
        _hearing(harness, "agent.approval.*") as heard,
    ):
        asked = ApprovalRequested(
            call_id="c", name="terminal", arguments="{}", summary="rm -rf work"
        )
        (row,) = await asyncio.to_thread(elsewhere.record, session, asked)
        place = {"session_id": session, "epoch": row.epoch, "seq": row.seq}
        async with harness.socket("/api/pub?channel=x", scope="publish") as pub:
            lie = _relay(
                "agent.approval.requested",
                call_id="c",
                name="terminal",
                summary="ls",
                **place,
            )
            await pub.send(msgspec.json.encode([lie, lie]).decode())
            event = await _next(heard)
            await pub.send(msgspec.json.encode(_relay("agent.approval.other")).decode())
            assert (await _next(heard))["type"] == "agent.approval.other"
    assert (event["summary"], event["seq"], event["reach"]) == (
        "rm -rf work",
        row.seq,
        "workspace",
    )
    assert (
        harness.served.board.ingest.published,
        harness.served.board.ingest.known,
    ) == (
        2,
        1,
    )


async def test_a_process_of_this_home_sends_the_position_of_a_row_and_all_see_the_row(
    harness: Harness,
) -> None:
    """Subscribers of the bus, of the session and of the channel get the row's content, once."""
    session = harness.app.begin(SessionCreated(surface="test")).session
    ours = running_dashboard(harness.app.home)
    assert ours is not None
    delta = _relay("agent.message.delta", text="live", session_id=session)
    asked = ApprovalRequested(
        call_id="c", name="terminal", arguments="{}", summary="rm -rf work"
    )
    with (
        build(Settings(), harness.app.home, bus=Bus()) as elsewhere,
        _hearing(harness, "agent.**") as heard,
    ):
        async with (
            harness.socket(f"/api/sessions/{session}/feed") as feed,
            harness.socket("/api/events?channel=x") as watcher,
            harness.socket("/api/pub?channel=x", token=ours.token) as pub,
        ):
            await frames(feed, is_type("feed.partial"))
            (row,) = await asyncio.to_thread(elsewhere.record, session, asked)
            place = {"session_id": session, "epoch": row.epoch, "seq": row.seq}
            known = {"row": True, "publisher": "p", "epoch": 1, "seq": 1}
            known |= _relay("agent.approval.requested", **place)
            unknown = _relay("agent.turn.ended", **place | {"seq": 99}) | {"row": True}
            batch = [known, unknown, delta, known]
            await pub.send(msgspec.json.encode(batch).decode())
            on_bus = [await _next(heard) for _ in range(2)]
            in_feed = await frames(feed, is_type("agent.message.delta"))
            on_channel = msgspec.json.decode(
                await asyncio.wait_for(watcher.recv(), PATIENCE)
            )
    for seen in (on_bus, in_feed):
        assert [event.get("summary", event.get("text")) for event in seen] == [
            "rm -rf work",
            "live",
        ]
    shown, nowhere, passing, again = on_channel
    assert (nowhere, passing, again) == (unknown, delta, shown)
    assert "row" not in shown
    assert (shown["publisher"], shown["envelope"]["summary"]) == ("p", "rm -rf work")
    ingest = harness.served.board.ingest
    # The row may also have been found in the log first.
    assert (ingest.published + ingest.known, ingest.refused) == (3, 1)


async def test_events_of_another_home_are_published_as_they_came(
    harness: Harness,
) -> None:
    with _hearing(harness, "agent.**") as heard:
        async with harness.socket("/api/pub?channel=x", scope="publish") as pub:
            place = {"session_id": "theirs", "epoch": 5, "seq": 7}
            started = _relay("agent.tool.started", name="ls", **place)
            await pub.send(
                msgspec.json.encode(
                    [started, started, _relay("agent.tool.started", name="rm")]
                ).decode()
            )
            assert [(await _next(heard))["name"] for _ in range(2)] == ["ls", "rm"]


async def test_a_binary_frame_is_passed_on_as_such_and_closes_nobody(
    harness: Harness,
) -> None:
    async with (
        harness.socket("/api/events?channel=a", scope="observe") as watcher,
        harness.socket("/api/pub?channel=a", scope="publish") as pub,
    ):
        sent = [
            b"\xff\xfe",
            "text",
            b'{"_bus_relay": true, "topic": "t.x", "envelope": {}}',
            b"",
            "",
        ]
        for frame in sent:
            await pub.send(frame)
        assert [await asyncio.wait_for(watcher.recv(), PATIENCE) for _ in sent] == sent
    assert harness.served.board.ingest.published == 1


@pytest.mark.parametrize(
    "params",
    [
        {"session_id": None, "payload": 5},
        {"payload": ["a"]},
        {"session_id": 7, "payload": "x"},
    ],
)
async def test_a_terminal_s_event_is_published_without_what_it_can_t_have(
    harness: Harness, params: dict[str, Any]
) -> None:
    with _hearing(harness, "tui.**") as heard:
        async with harness.socket("/api/pub?channel=x", scope="publish") as pub:
            await pub.send(
                msgspec.json.encode(_sidecar("tool.start", **params)).decode()
            )
            assert set(await _next(heard)) == {"type", "ts", "src"}


async def _send_frame(socket: ClientConnection, *frames: Frame) -> None:
    """Sends frames as they are, also those that no library would send."""
    for one in frames:
        socket.transport.write(one.serialize(mask=True))


@pytest.mark.parametrize(
    "path",
    [
        "/api/pub?channel=gateway",
        "/api/events?channel=gateway",
        "/api/feed?pattern=gateway.**",
        "/api/pty?command=shell",
    ],
)
@pytest.mark.parametrize("is_split", [False, True])
async def test_text_that_is_not_utf8_ends_one_connection_without_a_traceback(
    harness: Harness, path: str, is_split: bool, caplog: pytest.LogCaptureFixture
) -> None:
    whole = [Frame(Opcode.TEXT, b"\xff\xfe")]
    split = [Frame(Opcode.TEXT, b"\xc3", fin=False), Frame(Opcode.CONT, b"(")]
    async with harness.socket("/api/events?channel=gateway") as other:
        async with harness.socket(path) as bad:
            await _send_frame(bad, *(split if is_split else whole))
            async with asyncio.timeout(PATIENCE):
                with pytest.raises(ConnectionClosed) as closed:  # noqa: PT012 - until it ends
                    while True:
                        await bad.recv()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1007
        async with harness.socket("/api/pub?channel=gateway") as pub:
            await pub.send(msgspec.json.encode(_sidecar("later")).decode())
            assert "later" in str(await asyncio.wait_for(other.recv(), PATIENCE))
    assert not [
        one for one in caplog.records if one.exc_info or one.levelname == "ERROR"
    ]


async def test_bytes_and_nesting_that_are_no_json_end_nothing(
    harness: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    async with harness.socket("/api/pub?channel=gateway") as pub:
        await pub.send(b'{"a": "\xff"}')
        await pub.send("[" * 100_000)
        pong = await pub.ping()
        await asyncio.wait_for(pong, PATIENCE)
    async with harness.socket("/api/pty?command=shell") as terminal:
        await terminal.send("[" * 100_000)
        pong = await terminal.ping()
        await asyncio.wait_for(pong, PATIENCE)
    assert not [one for one in caplog.records if one.exc_info]
