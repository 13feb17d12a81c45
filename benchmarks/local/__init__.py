"""The local model: everyday requests and slices of public sets. Each module beside this one has a `main`.

`make bench BENCH=local` runs all of them; `ARGS="everyday --set unseen"` or `ARGS="public --cases 50"` runs one.
"""

import importlib
from collections.abc import Sequence

PARTS: tuple[str, ...] = ("everyday", "public")


def main(argv: Sequence[str]) -> int:
    """Runs one part by its name, or all of them. The exit code is that of the worst."""
    if argv and argv[0] in PARTS:
        return _run(argv[0], argv[1:])
    if argv:
        print(f"Options belong to one part; name it first: {', '.join(PARTS)}")
        return 2
    return max(_run(name, ()) for name in PARTS)


def _run(name: str, options: Sequence[str]) -> int:
    return int(importlib.import_module(f"benchmarks.local.{name}").main(options) or 0)
