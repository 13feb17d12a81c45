"""Programs that Hermes talks to through pipes."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from hermes.children.piped_child import PipedChild

STEPS = range(12)


@pytest.fixture
async def started(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[list[Any]]:
    """The processes that were started, also those whose start was given up."""
    processes: list[Any] = []
    plain = PipedChild.__init__

    def note(self: PipedChild, process: Any, *rest: Any) -> None:
        processes.append(process)
        plain(self, process, *rest)

    monkeypatch.setattr(PipedChild, "__init__", note)
    yield processes
    for process in processes:
        await asyncio.to_thread(process.wait, 30)


@pytest.mark.parametrize("steps", STEPS)
async def test_a_start_that_is_cancelled_leaves_no_pipe_open(
    steps: int, started: list[Any], tmp_path: Path
) -> None:
    start = asyncio.create_task(
        PipedChild.start(["/bin/cat"], cwd=tmp_path, environment=dict(os.environ))
    )
    for _ in range(steps):
        await asyncio.sleep(0)
    start.cancel()
    await asyncio.wait([start])
    if not start.cancelled():
        await start.result().stop()
    await asyncio.sleep(0)
    for process in started:
        assert process.stdin.closed
        assert process.stdout.closed
        assert process.stderr.closed
