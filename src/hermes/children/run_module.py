"""Runs a module as a program: `python -E -P run_module.py MODULE ARGUMENTS...`

This script is started by its path, so the module comes from the same installation, wherever that is.
"""

import os
import runpy
import sys


def main(arguments: list[str]) -> None:
    """Runs the module with the arguments after it."""
    installed_in = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))  # noqa: PTH118, PTH120
    if installed_in not in map(
        os.path.realpath, sys.path
    ):  # a copy that was found through PYTHONPATH
        sys.path.insert(0, installed_in)
    sys.argv = arguments
    runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(sys.argv[1:])
