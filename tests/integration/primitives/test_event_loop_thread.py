"""An event loop in a thread leaves nothing behind when it ends."""

import asyncio
import gc
import socket
import warnings
from concurrent.futures import CancelledError

import pytest

from hermes.primitives.threads import EventLoopThread

WAIT_TIMEOUT_S = 10.0


def test_a_connection_that_was_given_up_is_closed_with_the_loop() -> None:
    thread = EventLoopThread("test-loop")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(WAIT_TIMEOUT_S)
        kept = thread.start(connect_and_keep(listening.getsockname()[1]))
        accepted, _ = listening.accept()
        with accepted:
            accepted.settimeout(WAIT_TIMEOUT_S)
            writer = kept.result(WAIT_TIMEOUT_S)
            thread.stop()
            assert accepted.recv(1) == b""
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                del writer, kept
                gc.collect()
    assert [str(one.message) for one in seen] == []


async def connect_and_keep(port: int) -> asyncio.StreamWriter:
    return (await asyncio.open_connection("127.0.0.1", port))[1]


def test_work_that_still_runs_is_cancelled_when_the_loop_ends() -> None:
    thread = EventLoopThread("test-loop")
    endless = thread.start(asyncio.Event().wait())
    thread.stop()
    with pytest.raises(CancelledError):
        endless.result(WAIT_TIMEOUT_S)
    assert thread.loop.is_closed()
