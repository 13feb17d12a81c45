"""The `hermes` command. `main` answers `--version` by itself; it loads everything else only when needed."""

import gc
import os
import sys

from hermes import __version__

_FIRST_COLLECTION_OBJECTS = 120_000
"""More than a start allocates. With Python's 700 it would collect dozens of times, and find nothing."""
_COLLECTION_OBJECTS = 10_000
"""From then on; a collection of so many takes about a millisecond."""


def program() -> None:
    """`hermes` as a process. It exits at once: everything is closed and written by then, and Python's own cleanup takes
    longer than many commands."""
    gc.set_threshold(_FIRST_COLLECTION_OBJECTS)
    gc.callbacks.append(_keep_what_is_loaded)
    _drop_relative_pythonpath()
    code = main()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (
            AttributeError,
            OSError,
            ValueError,
        ):  # closed, or its reader is gone: `main` has said so
            code = code or 1
    os._exit(code)


def _keep_what_is_loaded(phase: str, _info: object) -> None:
    """After the first garbage collection, makes later ones skip the modules and everything else that exists by then."""
    if phase == "stop":
        gc.callbacks.remove(_keep_what_is_loaded)
        gc.freeze()
        gc.set_threshold(_COLLECTION_OBJECTS)


def _drop_relative_pythonpath() -> None:
    """Drops relative PYTHONPATH entries: modules loaded later would come from whichever folder we are in."""
    folders = os.environ.get("PYTHONPATH", os.sep).split(os.pathsep)
    relative = [folder for folder in folders if not folder.startswith(os.sep)]
    try:
        here = set(map(os.path.abspath, relative))
    except FileNotFoundError:  # the folder was deleted: nothing can be loaded from it
        return
    here.discard(os.path.dirname(sys.modules["hermes"].__path__[0]))  # noqa: PTH120 - this Hermes was found there
    sys.path[:] = [folder for folder in sys.path if folder not in here]


def main(argv: list[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Until a command handles it, Ctrl-C ends the process silently: an exception in the middle of an import would be
    shown with its traceback, or be swallowed.
    """
    arguments = sys.argv[1:] if argv is None else argv
    if arguments[:1] in (["--version"], ["-V"]) and sys.stdout is not None:
        return _print_version()
    import signal  # here, because it takes as long as all of --version

    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler:  # ignored, or somebody else's
        return _run(arguments)
    try:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    except ValueError:  # not the main thread, which signals don't reach
        return _run(arguments)
    try:
        return _run(arguments)
    finally:
        signal.signal(signal.SIGINT, before)


def _load_msgspec() -> None:
    """Loads msgspec without typing_extensions. It prefers that to Python's own `typing`, which does as well here; a tenth
    of the time until the prompt would go into loading it.
    """
    name = "typing_extensions"
    if name in sys.modules:
        return
    sys.modules[name] = None  # type: ignore[assignment] - an import fails, as if it were not installed
    try:
        import msgspec  # noqa: F401
    finally:
        del sys.modules[name]


def _print_version() -> int:
    try:
        print(f"hermes {__version__}", flush=True)
    except OSError as error:
        from hermes.surfaces.cli.dispatch import output_failed

        return output_failed(error)
    return 0


def _run(arguments: list[str]) -> int:
    import signal

    _load_msgspec()
    if any(word.startswith("--profile") for word in arguments):
        from hermes.surfaces.cli.profile_option import take_profile

        arguments, code = take_profile(arguments)
        if code:
            return code
        if arguments[:1] in (["--version"], ["-V"]):
            return _print_version()
    from hermes.commands.table import find_topic
    from hermes.surfaces.cli.dispatch import run

    name = next((word for word in arguments if word != "--debug"), "")
    if (
        find_topic(name) is not None
        and signal.getsignal(signal.SIGINT) is signal.SIG_DFL
    ):
        signal.signal(
            signal.SIGINT, signal.default_int_handler
        )  # commands tidy up after KeyboardInterrupt
    return run(arguments)
