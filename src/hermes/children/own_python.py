"""Command lines that start our own Python. The child loads nothing from its start folder, and runs this Hermes.

`-E` ignores PYTHONPATH and similar variables, `-P` keeps the current folder off the module path. Only `children` starts
Python.
"""

import os
import site
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

_RUN_MODULE = Path(__file__).with_name("run_module.py")
_INSTALLED_IN = _RUN_MODULE.parents[2]


def python_command(*arguments: str) -> tuple[str, ...]:
    """Returns a command for this Python that loads no code from the folder it starts in."""
    return (sys.executable, *_isolation(), *arguments)


def module_command(module: str, *arguments: str) -> tuple[str, ...]:
    """Returns a command that runs a module as a program.

    A copy of Hermes that Python can't import by itself is started by its path. The command may be stored (in a systemd
    unit, in codex's settings), so it contains no path that changes with the version of Python.
    """
    if str(_INSTALLED_IN) in (*site.getsitepackages(), site.getusersitepackages()):
        return python_command("-m", module, *arguments)
    return python_command(str(_RUN_MODULE), module, *arguments)


def hermes_command(*arguments: str) -> tuple[str, ...]:
    """Returns a command that starts this Hermes, as `hermes` would."""
    return module_command("hermes", *arguments)


def replace_process(command: Sequence[str]) -> NoReturn:
    """Continues as another program, by its absolute path, in this same process."""
    os.execv(command[0], list(command))  # noqa: S606 - our own program


def own_code() -> tuple[Path, ...]:
    """Returns the real paths of the environment and the packages that this Hermes runs from."""
    package = Path(__file__).resolve().parents[1]
    return (Path(sys.prefix).resolve(), package, package.with_name("hermes_events"))


def _isolation() -> tuple[str, ...]:
    """Returns the isolating options, and options that replace this process's own PYTHON* variables."""
    options = ["-E", "-P"]
    if (
        site.getusersitepackages() not in sys.path
    ):  # otherwise Hermes itself may be installed there
        options.append("-s")
    if sys.dont_write_bytecode:
        options.append("-B")
    if sys.flags.utf8_mode:
        options += ["-X", "utf8"]
    if sys.pycache_prefix:
        options += ["-X", f"pycache_prefix={sys.pycache_prefix}"]
    return tuple(options)
