"""Measures time and memory for a command that writes 1 GB of output."""

import argparse
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Sequence

SECONDS, MEGABYTES = 10.0, 200
COMMANDS = {
    "lines": "yes 0123456789abcdef | head -c 1000000000",
    "one line": "head -c 1000000000 /dev/zero | tr '\\0' x",
    "binary": "head -c 1000000000 /dev/zero",
}
RUN = """
    import asyncio, os, sys, time
    from pathlib import Path
    from hermes.core.ports import ToolContext
    from hermes.tools.process.long_output import OutputFolder
    from hermes.tools.process.terminal_tool import TerminalTool

    async def main(folder, command):
        terminal = TerminalTool(OutputFolder(folder / "outputs"), os.environ)
        context = ToolContext("c", "s", folder, lambda text: None)
        began = time.perf_counter()
        result = await terminal.terminal.run({"command": command, "timeout": 120}, context)
        seconds = time.perf_counter() - began
        await terminal.close()
        status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
        assert "1,000,000,000 bytes" in result.text, result.text[-300:]
        print(seconds, int(status["VmHWM"].split()[0]) / 1024, terminal.sandbox.kind)

    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
"""


def main(argv: Sequence[str]) -> int:
    """Measures each kind of output. Returns 1 if a bar is missed."""
    argparse.ArgumentParser(prog="benchmarks output", description=__doc__).parse_args(
        argv
    )
    missed = 0
    for name, command in COMMANDS.items():
        with tempfile.TemporaryDirectory(prefix="hermes-bench-") as folder:
            child = [sys.executable, "-c", textwrap.dedent(RUN), folder, command]
            words = subprocess.run(
                child, capture_output=True, text=True, check=True, timeout=300
            ).stdout.split()
        seconds, megabytes = float(words[0]), float(words[1])
        ok = seconds <= SECONDS and megabytes <= MEGABYTES
        missed |= not ok
        print(
            f"1 GB of {name:9s} {seconds:5.2f} s  bar {SECONDS:g}   {megabytes:4.0f} MB  bar {MEGABYTES}"
            f"  {'ok' if ok else 'MISSED'}  ({words[2]})"
        )
    return int(missed)
