"""What waits for a consumer, how it is sent, and what is being said right now."""

import asyncio
import tracemalloc
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from hermes.app.feed_inbox import FeedItem, Inbox
from hermes.app.live_reply import LiveReply
from hermes.surfaces.dashboard.feed_frames import EncodedBatches


@given(st.lists(st.one_of(st.integers(0, 60), st.none()), max_size=60))
async def test_everything_that_was_put_is_taken_or_counted(
    steps: list[int | None],
) -> None:
    """A number is the size of an event, None a consumer who takes what there is."""
    inbox = Inbox(max_bytes=100)
    put = got = dropped = 0
    for step in [*steps, None]:
        if step is not None:
            inbox.put(FeedItem(b"x" * step))
            put += 1
            continue
        items, missing = inbox.take()
        assert sum(len(item.data) for item in items) <= 100
        assert not (items and missing)
        got, dropped = got + len(items), dropped + missing
    assert got + dropped == put
    assert inbox.total_dropped == dropped


async def test_a_consumer_who_waits_is_told_of_each_first_event() -> None:
    inbox = Inbox(max_bytes=3)
    for count in (1, 2, 1, 5):
        waiting = asyncio.create_task(inbox.wait())
        await asyncio.sleep(0)
        assert not waiting.done()
        for _ in range(count):
            inbox.put(FeedItem(b"x"))
        await asyncio.wait_for(waiting, 10)
        inbox.take()


def test_a_batch_is_put_together_once_for_all_who_send_it() -> None:
    frames, one, other = EncodedBatches(), FeedItem(b'{"a":1}'), FeedItem(b'{"b":2}')
    first = frames.of([one, other])
    assert first == [b'[{"a":1},{"b":2}]']
    assert frames.of([one, other])[0] is first[0]
    assert frames.of([one]) == [b'[{"a":1}]']
    assert frames.of([other]) == [b'[{"b":2}]']


@given(st.lists(st.integers(0, 200_000), min_size=1, max_size=8))
def test_a_large_batch_goes_in_several_frames(sizes: list[int]) -> None:
    items = [
        FeedItem(msgspec.json.encode(chr(97 + number) * size))
        for number, size in enumerate(sizes)
    ]
    found = EncodedBatches().of(items)
    assert [text for frame in found for text in msgspec.json.decode(frame)] == [
        msgspec.json.decode(item.data) for item in items
    ]
    assert all(len(frame) < 300_000 for frame in found)


def _show(*events: dict[str, Any]) -> tuple[str, str, dict[str, str]]:
    partial = LiveReply()
    for event in events:
        partial.note(event)
    shown = partial.event("s")
    assert partial.event("s") == shown
    return shown["text"], shown["reasoning"], shown["tools"]


def _delta(text: str, kind: str = "message") -> dict[str, Any]:
    return {"type": f"agent.{kind}.delta", "text": text, "turn_id": "t"}


def test_deltas_add_up_until_the_message_is_there() -> None:
    assert _show(_delta("a"), _delta("b"), _delta("c", "reasoning")) == ("ab", "c", {})
    for end in (
        "agent.message.assistant",
        "agent.model.retried",
        "agent.reply.rejected",
        "agent.turn.ended",
    ):
        assert _show(_delta("a"), {"type": end}, _delta("b")) == ("b", "", {})


def test_of_a_text_without_end_the_beginning_is_kept() -> None:
    piece = "x" * 1000
    shown = _show(_delta("first"), *[_delta(piece)] * 3000)
    assert len(shown[0]) == 1024 * 1024
    assert shown[0].startswith("firstx")
    partial = LiveReply()
    tracemalloc.start()
    try:
        for number in range(1000):
            partial.note(_delta("x" * (10_000 + number)))
        assert tracemalloc.get_traced_memory()[0] < 2 * 1024 * 1024
    finally:
        tracemalloc.stop()


def test_the_output_of_tools_that_run() -> None:
    def progress(call: str, text: str) -> dict[str, Any]:
        return {"type": "agent.tool.progress", "call_id": call, "text": text}

    done = {"type": "agent.tool.finished", "call_id": "1"}
    assert _show(progress("1", "x"), progress("2", "y"), progress("2", "z"), done)[
        2
    ] == {"2": "yz"}
    assert len(_show(progress("1", "x" * 200_000))[2]["1"]) == 64 * 1024
