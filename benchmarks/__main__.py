"""Run one benchmark by its name, or all of them."""

import importlib
import pkgutil
import sys
from pathlib import Path


def main(argv: list[str]) -> int:
    """`[name] [options]`; without a name, runs every benchmark. Returns the highest exit code."""
    names = [
        module.name
        for module in pkgutil.iter_modules([str(Path(__file__).parent)])
        if not module.name.startswith("_")
    ]
    if argv and not argv[0].startswith("-"):
        name, *options = argv
        if name not in names:
            print(
                f"There is no benchmark {name!r}; there are: {', '.join(names)}",
                file=sys.stderr,
            )
            return 2
        return _run(name, options)
    return max((_run(name, argv) for name in names), default=0)


def _run(name: str, options: list[str]) -> int:
    return int(importlib.import_module(f"benchmarks.{name}").main(options) or 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
