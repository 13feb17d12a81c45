"""The `hermes` command. `main` answers `--version` by itself; everything else is loaded when it is needed."""

import sys

from hermes import __version__


def main(argv: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    arguments = sys.argv[1:] if argv is None else argv
    if arguments[:1] in (["--version"], ["-V"]) and sys.stdout is not None:
        try:
            print(f"hermes {__version__}", flush=True)
        except OSError as error:
            from hermes.surfaces.cli.frame import output_failed

            return output_failed(error)
        return 0
    from hermes.surfaces.cli.frame import run

    return run(arguments)
