"""Command lines that start our own Python. The child loads nothing from the folder it starts in, and runs this Hermes.

`-E` ignores PYTHONPATH and its kin, `-P` keeps the current folder off the module path. Only `children` starts Python.
"""

import site
import sys
from pathlib import Path

_RUN_MODULE = Path(__file__).with_name("run_module.py")
_INSTALLED_IN = _RUN_MODULE.parents[2]


def python_command(*arguments: str) -> tuple[str, ...]:
    """This Python with these arguments, deaf to the folder it starts in."""
    return (sys.executable, *_isolation(), *arguments)


def module_command(module: str, *arguments: str) -> tuple[str, ...]:
    """A module as a program. A copy that Python does not find by itself is named by its path.

    The line may be written down for later (a systemd unit, codex's settings), so it holds no path that changes with
    the version of Python.
    """
    if str(_INSTALLED_IN) in (*site.getsitepackages(), site.getusersitepackages()):
        return python_command("-m", module, *arguments)
    return python_command(str(_RUN_MODULE), module, *arguments)


def hermes_command(*arguments: str) -> tuple[str, ...]:
    """This Hermes, as `hermes` would start it."""
    return module_command("hermes", *arguments)


def own_code() -> tuple[Path, ...]:
    """Where what runs as this Hermes lies: its environment and its packages, by their real paths."""
    package = Path(__file__).resolve().parents[1]
    return (Path(sys.prefix).resolve(), package, package.with_name("hermes_events"))


def _isolation() -> tuple[str, ...]:
    """The options, with what this process was itself told through PYTHON* variables."""
    options = ["-E", "-P"]
    if site.getusersitepackages() not in sys.path:  # else Hermes itself may be installed there
        options.append("-s")
    if sys.dont_write_bytecode:
        options.append("-B")
    if sys.flags.utf8_mode:
        options += ["-X", "utf8"]
    if sys.pycache_prefix:
        options += ["-X", f"pycache_prefix={sys.pycache_prefix}"]
    return tuple(options)
