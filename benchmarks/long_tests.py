"""Runs the tests of kills, races and random input at full length; `make test` repeats them only a few times.

    make bench BENCH=long_tests                        all of them
    make bench BENCH=long_tests ARGS="-k durability"   some

Options are pytest's. Nothing is measured; the exit code says whether everything passed.
"""

import os
import subprocess
import sys
from pathlib import Path

from tests.fakes.thoroughness import VARIABLE

ROOT = Path(__file__).resolve().parent.parent
_MARKS = ("import rounds", "from hypothesis")
_TIMEOUT_S = 1800


def main(argv: list[str]) -> int:
    """Runs every test file that has a long form, with pytest's options."""
    files = [
        str(path.relative_to(ROOT))
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        if any(mark in path.read_text() for mark in _MARKS)
    ]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", f"--timeout={_TIMEOUT_S}", *files, *argv],
        cwd=ROOT,
        env=os.environ | {VARIABLE: "1"},
        check=False,
    )
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
