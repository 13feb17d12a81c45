"""Compares the whole program with its peers: start, tool turns, growth, memory, first request, tokens to the screen.

Drives the harness of `../shared/bench`: one fake model server, every contender headless against it, CPU time and
memory of whole process trees, in one run. Peers are installed by package name on first use; one that can't be installed
is left out, with a note. CPU figures are scaled by the harness' own calibration loop, so that a busy machine counts less.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
HARNESS = ROOT.parent / "shared" / "bench"
LAB = Path(os.environ.get("LAB", Path.home() / ".cache" / "hermes-bench"))
QUIET = 14.7  # milliseconds of the calibration loop on a quiet machine
OURS = "ours"
FLOOR = "floor_httpx"

Runs = list[dict[str, Any]]


class Report:
    """The figures of each contender, and the bars for ours."""

    def __init__(self) -> None:
        self.missed = 0

    def row(self, what: str, figures: dict[str, float], bar: float, unit: str) -> None:
        """Prints one line: everybody's figure, ours compared with the floor, and whether the bar is met."""
        ours = figures.get(OURS)
        if ours is None:
            print(f"{what}: not measured")
            self.missed += 1
            return
        ok = ours <= bar
        self.missed += not ok
        others = "  ".join(
            f"{name} {value:,.2f}" for name, value in figures.items() if name != OURS
        )
        floor = f"  ({ours / figures[FLOOR]:.2f}x floor)" if figures.get(FLOOR) else ""
        print(
            f"{what:34s} {ours:10,.2f} {unit:5s} bar {bar:g} {'ok' if ok else 'MISSED':6s}{floor}  {others}",
            flush=True,
        )


class Harness:
    """Runs `bench_peers.py` and reads its results."""

    def __init__(self, peers: Sequence[str], out: Path) -> None:
        self._peers = [FLOOR, *peers]
        self._out = out

    def run(
        self, command: str, *options: str, peers: Sequence[str] | None = None
    ) -> None:
        """Runs one command of the harness, for all contenders."""
        ours = [
            "--cmd-name", OURS, "--cmd", f"{ROOT / '.venv/bin/hermes'} -z {{prompt}}",
            "--cmd-env", "OPENAI_BASE_URL={base}", "--cmd-env", "OPENAI_API_KEY=sk-bench",
            "--cmd-env", "HERMES_HOME={home}/h",
            "--tool-read", 'read_file:{"path":"{work}/f{i}.txt"}',
        ]  # fmt: skip
        names = [*(self._peers if peers is None else peers), OURS]
        argv = [
            str(_server_python()),
            "bench_peers.py",
            command,
            *options,
            "--out",
            str(self._out),
            *ours,
            *names,
        ]
        environment = {
            k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"
        }
        subprocess.run(
            argv, cwd=HARNESS, env=environment, check=True, stdout=subprocess.DEVNULL
        )

    def results(self, prefix: str) -> dict[str, Any]:
        """The results of each contender."""
        files = sorted(self._out.glob(f"{prefix}-*.json"))
        return {
            file.stem.removeprefix(f"{prefix}-"): json.loads(file.read_text())
            for file in files
        }


def main(argv: Sequence[str]) -> int:
    """Measures and prints. Returns 1 if a bar is missed; 0 also if the harness is missing."""
    parser = argparse.ArgumentParser(prog="benchmarks agent", description=__doc__)
    parser.add_argument(
        "--peers",
        default="llm,pi",
        help="comma-separated, of those install_peers.sh knows; '' for none",
    )
    parser.add_argument("--runs", type=int, default=5)
    args = parser.parse_args(argv)
    if not (HARNESS / "bench_peers.py").exists():
        print("agent: skipped, there is no ../shared/bench beside the project")
        return 0
    peers = [peer for peer in args.peers.split(",") if peer and _install(peer)]
    if not _install("srv"):
        print("agent: skipped, the fake model server's packages can't be had")
        return 0
    with tempfile.TemporaryDirectory(prefix="hermes-bench-") as folder:
        report = Report()
        harness = Harness(peers, Path(folder))
        _cold(harness, report, args.runs)
        _turns(harness, report, args.runs)
        _growth(harness, report)
        _screen(harness, report)
    return 1 if report.missed else 0


def _cold(harness: Harness, report: Report, runs: int) -> None:
    harness.run("cold", "--runs", str(runs))
    cold = harness.results("cold")
    report.row("start and one answer, CPU", _medians(cold, _cpu), 0.30, "s")
    report.row("peak memory", _medians(cold, _megabytes), 60, "MB")
    harness.run("first", peers=[])
    report.row(
        "first request",
        {OURS: harness.results("first")[OURS]["total"]},
        12_000,
        "bytes",
    )
    version = [
        _process_cpu([str(ROOT / ".venv/bin/hermes"), "--version"]) * 1000
        for _ in range(9)
    ]
    bare = [_process_cpu([sys.executable, "-c", "pass"]) * 1000 for _ in range(9)]
    report.row(
        "hermes --version, CPU",
        {OURS: statistics.median(version), FLOOR: statistics.median(bare)},
        40,
        "ms",
    )


def _turns(harness: Harness, report: Report, runs: int) -> None:
    harness.run(
        "session", "--turns", "50", "--tool", "read", "--runs", str(max(2, runs // 2))
    )
    cold, session = (
        _medians(harness.results("cold"), _cpu),
        harness.results("session50-read"),
    )
    per_turn = {
        name: (cpu - cold[name]) / 50 * 1000
        for name, cpu in _medians(session, _cpu).items()
        if name in cold
    }
    report.row("tool turn, CPU", per_turn, 3, "ms")
    overhead = {
        name: statistics.median(
            o * _scale(run) for run in runs for _, o, _ in run["over"]
        )
        for name, runs in session.items()
        if runs and runs[0]["ok"]
    }
    report.row("answer to next request, median", overhead, 3, "ms")


def _growth(harness: Harness, report: Report) -> None:
    harness.run("session", "--turns", "200", "--tool", "read", "--runs", "2")
    growth: dict[str, float] = {}
    for name, runs in harness.results("session200-read").items():
        early = [o for run in runs for turn, o, _ in run["over"] if 5 <= turn <= 24]
        late = [o for run in runs for turn, o, _ in run["over"] if 176 <= turn <= 195]
        if early and late:
            growth[name] = statistics.median(late) / statistics.median(early)
    report.row("turn 190 against turn 10", growth, 1.2, "x")


def _screen(harness: Harness, report: Report) -> None:
    harness.run("tui", "--runs", "1", peers=[])
    delays = [
        delay
        for run in harness.results("streamtui")[OURS]
        for delay in run["paced"]["lat"]
    ]
    if not delays:
        report.row("token to the terminal", {}, 8, "ms")
        return
    cuts = statistics.quantiles(delays, n=20)
    report.row("token to the terminal, p50", {OURS: cuts[9]}, 8, "ms")
    report.row("token to the terminal, p95", {OURS: cuts[18]}, 16, "ms")


def _medians(
    results: dict[str, Runs], figure: Callable[[dict[str, Any]], float]
) -> dict[str, float]:
    return {
        name: statistics.median(map(figure, runs))
        for name, runs in results.items()
        if runs and runs[0]["ok"]
    }


def _scale(run: dict[str, Any]) -> float:
    return min(1.0, QUIET / run["calib"]) if run.get("calib") else 1.0


def _cpu(run: dict[str, Any]) -> float:
    return float(run["cpu"]) * _scale(run)


def _megabytes(run: dict[str, Any]) -> float:
    return float(run["tree_rss"]) / 2**20


def _process_cpu(argv: list[str]) -> float:
    before = os.times()
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    return (after.children_user + after.children_system) - (
        before.children_user + before.children_system
    )


def _server_python() -> Path:
    return LAB / "venvs" / "srv" / "bin" / "python"


def _install(peer: str) -> bool:
    done = subprocess.run(
        ["bash", str(HARNESS / "install_peers.sh"), peer],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        print(f"{peer}: left out, it can't be installed here")
    return done.returncode == 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
