"""Measures the sandbox: a command inside it and the same command without it, alternating, in one run."""

import argparse
import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from hermes.core.ports import ToolContext
from hermes.schema.events import Reach
from hermes.tools.process.long_output import OutputFolder
from hermes.tools.process.session_commands import Surroundings
from hermes.tools.process.terminal_tool import TerminalTool
from hermes.tools.sandbox import Sandbox, find_sandbox
from hermes.tools.sandbox.detect import landlock_or_none

BAR = 15.0  # milliseconds, median


def main(argv: Sequence[str]) -> int:
    """Measures each available kind of sandbox. Returns 1 if one costs too much, or if there is none."""
    parser = argparse.ArgumentParser(prog="benchmarks sandbox", description=__doc__)
    parser.add_argument("--rounds", type=int, default=60)
    rounds = parser.parse_args(argv).rounds
    began = time.perf_counter()
    best = find_sandbox(os.environ.get("PATH", ""), Path.home())
    print(
        f"finding it, once: {1000 * (time.perf_counter() - began):.1f} ms; {best.kind}. {best.why}"
    )
    kinds = {
        sandbox.kind: sandbox
        for sandbox in (best, landlock_or_none("It is measured too."))
    }
    kinds.pop("none", None)
    missed = 0 if kinds else 1
    for sandbox in kinds.values():
        with tempfile.TemporaryDirectory(
            prefix="hermes-bench-", dir=Path.home()
        ) as folder:
            missed += asyncio.run(measure(sandbox, Path(folder), rounds))
    return min(1, missed)


async def measure(sandbox: Sandbox, folder: Path, rounds: int) -> bool:
    """Prints one line; returns whether the bar was missed."""
    home = Path.home() / ".hermes"
    around = Surroundings(os.environ, home, sandbox=lambda *_: sandbox)
    terminal = TerminalTool(OutputFolder(folder / "outputs"), os.environ, around)
    times: dict[Reach, list[float]] = {"workspace": [], "machine": []}
    for number in range(rounds + 3):
        for reach, taken in times.items():
            context = ToolContext("c", "s", folder, lambda _: None, reach=reach)
            began = time.perf_counter()
            result = await terminal.terminal.run(
                {"command": "true", "reach": reach}, context
            )
            assert result.ok, result.text
            if number >= 3:
                taken.append(1000 * (time.perf_counter() - began))
    await terminal.close()
    inside, outside = (
        statistics.median(times["workspace"]),
        statistics.median(times["machine"]),
    )
    ok = inside - outside <= BAR
    print(
        f"{sandbox.kind:11s} adds {inside - outside:5.1f} ms  bar {BAR:g} {'ok' if ok else 'MISSED'}"
        f"  (inside {inside:.1f}, outside {outside:.1f}, medians of {rounds})"
    )
    return not ok
