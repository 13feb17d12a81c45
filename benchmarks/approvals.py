"""Measures how long judging a command takes, for commands of people and attackers. The bar: a median of 1 ms."""

import argparse
import statistics
import time
from pathlib import Path

from hermes.tools.policy import ApprovalPolicy, Circumstances

ROOT = Path(__file__).resolve().parent.parent
CORPUS = ROOT / "tests" / "unit" / "tools" / "policy"
HOME = Path("/users-that-are-not/me")
BAR = 1.0


def commands() -> list[str]:
    """The corpora of the tests."""
    lines = [
        line
        for name in ("dangerous.txt", "benign.txt")
        for line in (CORPUS / name).read_text().splitlines()
    ]
    return [
        line.replace("⏎", "\n") for line in lines if line and not line.startswith("# ")
    ]


def measure(rounds: int) -> list[float]:
    """The milliseconds of each decision, best of several rounds."""
    policy = ApprovalPolicy(
        "ask", Circumstances(HOME / ".hermes", HOME, sandboxed=True)
    )
    folder = HOME / "work" / "app"
    policy.check("ls", folder)  # loads the grammar
    best: list[float] = []
    for command in commands():
        times: list[float] = []
        for _ in range(rounds):
            start = time.perf_counter()
            policy.check(command, folder)
            times.append((time.perf_counter() - start) * 1000)
        best.append(min(times))
    return sorted(best)


def main(argv: list[str]) -> int:
    """Prints the figures. Returns 1 if the bar is missed."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks approvals", description=__doc__
    )
    parser.add_argument("--quick", action="store_true", help="one round")
    times = measure(1 if parser.parse_args(argv).quick else 5)
    median, late = statistics.median(times), times[int(len(times) * 0.99)]
    verdict = "ok" if median <= BAR else "MISSED"
    print(
        f"  deciding about {len(times):,} commands: median {median:.3f} ms <= {BAR:g} {verdict}, p99 {late:.3f} ms"
    )
    return 0 if median <= BAR else 1
