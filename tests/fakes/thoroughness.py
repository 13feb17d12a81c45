"""How often a test of kills, races or random input tries: a few times in `make test`, many in `make bench BENCH=long_tests`."""

import os

VARIABLE = "HERMES_LONG_TESTS"


def rounds(few: int, many: int) -> int:
    """How often to try in this run."""
    return many if os.environ.get(VARIABLE) else few
