"""A terminal in an event loop: viewers, pacing, input, the end."""

import asyncio
import hashlib
import sys

from hermes.pty import PtyBridge, Terminal, Viewer
from hermes.pty.terminal import MAX_BEHIND_BYTES, MAX_INPUT_BYTES


def _terminal(*argv: str) -> Terminal:
    return Terminal(PtyBridge.spawn(argv))


async def _take_until(viewer: Viewer, wanted: bytes) -> bytes:
    found = b""
    async with asyncio.timeout(20):
        while wanted not in found:
            piece = await viewer.take()
            assert piece is not None, found
            found += piece
    return found


async def _take_all(viewer: Viewer) -> bytes:
    found = b""
    async with asyncio.timeout(30):
        while (piece := await viewer.take()) is not None:
            found += piece
    return found


async def test_viewers_see_everything_and_newcomers_what_is_left() -> None:
    async with _terminal("cat") as terminal:
        first = terminal.watch(0)
        await terminal.write("grüße\n".encode())
        assert (
            await _take_until(first, b"\r\ngr\xc3\xbc\xc3\x9fe\r\n")
            == "grüße\r\ngrüße\r\n".encode()
        )
        second = terminal.watch(terminal.scrollback.fresh_start())
        assert await _take_until(second, b"\n") == "grüße\r\ngrüße\r\n".encode()
        await terminal.write(b"\x04")
        await terminal.finished()
        assert await _take_all(first) == b""
        assert terminal.exit_code == 0


async def test_all_output_arrives_in_order_however_slow_the_viewer() -> None:
    async with _terminal("seq", "1", "400000") as terminal:
        viewer = terminal.watch(0)
        text = await _take_all(viewer)
        assert text.replace(b"\r\n", b"\n") == b"".join(
            b"%d\n" % number for number in range(1, 400_001)
        )


async def test_a_viewer_who_does_not_take_stops_the_child() -> None:
    async with _terminal("yes") as terminal:
        viewer = terminal.watch(0)
        async with asyncio.timeout(20):
            while not terminal.paused:  # noqa: ASYNC110 - the loop's own reading is what is waited for
                await asyncio.sleep(0)
        assert MAX_BEHIND_BYTES < viewer.behind <= MAX_BEHIND_BYTES + 3 * 64 * 1024
        end = terminal.scrollback.end
        for _ in range(100):
            await asyncio.sleep(0)
        assert terminal.scrollback.end == end
        async with asyncio.timeout(20):
            while viewer.position < 3 * MAX_BEHIND_BYTES:
                await viewer.take()
        viewer.close()


async def test_a_window_holds_back_what_was_not_confirmed() -> None:
    async with _terminal("yes") as terminal:
        viewer = terminal.watch(0)
        viewer.window = 10_000
        assert await _taken(viewer, 10_000) == 10_000
        waiting = asyncio.ensure_future(viewer.take())
        done, _ = await asyncio.wait([waiting], timeout=0.05)
        assert not done
        viewer.confirm(4_000)
        first = len(await asyncio.wait_for(waiting, 20) or b"")
        assert first + await _taken(viewer, 4_000 - first) == 4_000
        viewer.close()


async def _taken(viewer: Viewer, wanted: int) -> int:
    """Takes what there is until it is as much as wanted, and returns how much it was."""
    taken = 0
    async with asyncio.timeout(20):
        while taken < wanted:
            taken += len(await viewer.take() or b"")
    return taken


def _watched_once(terminal: Terminal) -> Viewer:
    """Somebody who looked at the beginning and went away."""
    viewer = terminal.watch(0)
    viewer.window = 100_000
    return viewer


async def test_the_place_of_the_last_viewer_is_kept_for_a_while() -> None:
    async with Terminal(PtyBridge.spawn(["yes"]), grace=600) as terminal:
        viewer = _watched_once(terminal)
        await viewer.take()
        viewer.confirm(50_000)
        viewer.close()
        async with asyncio.timeout(20):
            while not terminal.paused:  # noqa: ASYNC110 - as above
                await asyncio.sleep(0)
        assert terminal.scrollback.start <= viewer.seen < terminal.scrollback.end


async def test_the_program_goes_on_when_the_last_viewer_stays_away() -> None:
    async with Terminal(PtyBridge.spawn(["yes"]), grace=0.1) as terminal:
        viewer = _watched_once(terminal)
        await viewer.take()
        viewer.close()
        end = terminal.scrollback.end
        async with asyncio.timeout(20):
            while terminal.scrollback.end < end + 2 * MAX_BEHIND_BYTES:  # noqa: ASYNC110 - as above
                await asyncio.sleep(0.01)


async def test_an_unwatched_program_goes_on_and_keeps_only_the_end() -> None:
    async with _terminal("seq", "1", "400000") as terminal:
        async with asyncio.timeout(60):
            await terminal.finished()
        kept = terminal.scrollback
        assert kept.end - kept.start <= 1024 * 1024
        viewer = terminal.watch(kept.fresh_start())
        lines = (await _take_all(viewer)).split()
        assert lines == [b"%d" % number for number in range(int(lines[0]), 400_001)]


async def test_input_for_a_child_that_does_not_read_waits_and_nothing_else_does() -> (
    None
):
    code = "import os, tty, time; tty.setraw(0); os.write(1, b'ready'); time.sleep(99)"
    async with _terminal(sys.executable, "-c", code) as terminal:
        viewer = terminal.watch(0)
        await _take_until(viewer, b"ready")
        await terminal.write(b"x" * (MAX_INPUT_BYTES + 100_000))
        assert terminal.waiting >= MAX_INPUT_BYTES
        more = asyncio.ensure_future(terminal.write(b"y"))
        done, _ = await asyncio.wait([more], timeout=0.05)
        assert not done
        await terminal.close()
        await asyncio.wait_for(more, 20)


async def test_input_arrives_whole_and_in_order() -> None:
    code = (
        "import os, sys, tty, hashlib; tty.setraw(0); os.write(1, b'ready'); left = 1_500_000; h = hashlib.sha256()\n"
        "while left: piece = os.read(0, 65536); h.update(piece); left -= len(piece)\n"
        "os.write(1, h.hexdigest().encode() + b'.')\n"
    )
    data = bytes(range(250)) * 6000
    async with _terminal(sys.executable, "-c", code) as terminal:
        viewer = terminal.watch(0)
        await _take_until(viewer, b"ready")
        for start in range(0, len(data), 70_000):
            await terminal.write(data[start : start + 70_000])
        assert (await _take_until(viewer, b".")).strip(b".").decode() == hashlib.sha256(
            data
        ).hexdigest()


async def test_closing_while_somebody_looks_tells_them() -> None:
    terminal = _terminal("cat")
    viewer = terminal.watch(0)
    waiting = asyncio.ensure_future(viewer.take())
    await terminal.close()
    assert await asyncio.wait_for(waiting, 20) is None
    await terminal.close()
    assert terminal.ended
