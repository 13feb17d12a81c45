"""What Hermes promises, tried out: attacks that are obeyed, commands that destroy, kills, races and costs.

    make bench BENCH=proofs [ARGS="--only agentdojo,kills --full"]

Prints every figure and writes them to `docs/proofs.md`. `--full` takes all cases and large numbers; `--cases` takes a few, for
trying the benchmark itself, and leaves the page alone. Ends with 1 when a promise is broken or a part could not be run.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from benchmarks.local.public_data import DataMissing
from benchmarks.proofs.figures import Figure, PartFigures, keep, kept_figures, measured
from benchmarks.proofs.page import PARTS, write_page

_ATTACKS, _COMMANDS = 120, 24  # of a usual run; a full one takes all


class RunSize(msgspec.Struct, frozen=True):
    """How much is to be tried, and a folder that is removed afterwards."""

    folder: Path
    full: bool
    cases: int

    def count(self, usual: int, large: int) -> int:
        """How many cases to take: those asked for, or as many as this kind of run has."""
        return self.cases or (large if self.full else usual)


def _agentdojo(size: RunSize) -> list[Figure]:
    from benchmarks.proofs.agentdojo import run_agentdojo

    return run_agentdojo(size.folder, size.count(_ATTACKS, 0))


def _bfcl(size: RunSize) -> list[Figure]:
    from benchmarks.proofs.bfcl_turns import run_bfcl

    return run_bfcl(size.folder, size.cases)


def _destruction(size: RunSize) -> list[Figure]:
    from benchmarks.proofs.destruction import run_destruction

    return run_destruction(size.count(_COMMANDS, 0))


def _kills(size: RunSize) -> list[Figure]:
    from benchmarks.proofs.losses import run_kills_of_writers

    return run_kills_of_writers(max(3, size.count(30, 300)))  # one for each writer


def _caps(size: RunSize) -> list[Figure]:
    from benchmarks.proofs.losses import run_cap_races

    return run_cap_races(size.count(10, 100))


def _restarts(size: RunSize) -> list[Figure]:
    from benchmarks.proofs.losses import run_restarts

    return run_restarts(size.count(3, 100))


def _growth(size: RunSize) -> list[Figure]:
    from benchmarks.proofs.growth import run_growth

    return run_growth(size.folder, size.count(2_200, 20_000))


def _cost(size: RunSize) -> list[Figure]:  # noqa: ARG001 - all parts have this shape
    from benchmarks.proofs.cost import run_cost

    return run_cost()


RUNS: dict[str, Callable[[RunSize], list[Figure]]] = {
    "agentdojo": _agentdojo,
    "bfcl": _bfcl,
    "destruction": _destruction,
    "kills": _kills,
    "caps": _caps,
    "restarts": _restarts,
    "growth": _growth,
    "cost": _cost,
}


def main(argv: Sequence[str]) -> int:
    """Runs the parts, prints their figures and writes the page."""
    parser = argparse.ArgumentParser(prog="benchmarks proofs", description=__doc__)
    parser.add_argument("--only", default=",".join(RUNS), help="parts, with commas")
    parser.add_argument("--full", action="store_true", help="all cases, large numbers")
    parser.add_argument("--cases", type=int, default=0, help="of each part; no page")
    given = parser.parse_args(argv)
    names = [name for name in given.only.split(",") if name]
    if unknown := set(names) - set(RUNS):
        parser.error(f"there is no part {min(unknown)}; there are: {', '.join(RUNS)}")
    done = {name: _run(name, full=given.full, cases=given.cases) for name in names}
    found = {name: part for name, part in done.items() if part is not None}
    if not given.cases:
        parts = {**kept_figures(), **found}
        keep(parts)
        write_page(parts)
    broken = any(one.met is False for part in found.values() for one in part.figures)
    return int(broken or len(found) < len(names))


def _run(name: str, *, full: bool, cases: int) -> PartFigures | None:
    """Runs one part and prints its figures; None if it could not be run."""
    print(PARTS[name].title, flush=True)
    try:
        with tempfile.TemporaryDirectory(prefix="hermes-proofs-") as folder:
            part = measured(RUNS[name](RunSize(Path(folder), full, cases)))
    except (DataMissing, RuntimeError) as error:
        print(f"  not measured: {error}", file=sys.stderr)
        return None
    for one in part.figures:
        verdict = {True: "  ok", False: "  BROKEN", None: ""}[one.met]
        print(f"  {one.name}: {one.value}, {one.cases:,} cases{verdict}", flush=True)
    return part
