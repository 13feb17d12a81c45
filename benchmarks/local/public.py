"""Slices of public sets with the local model, each with the number of cases and the score.

Nothing is gated: the figures are for reading. `python -m benchmarks local public [SET ...] [--cases N] [--model NAME]`
"""

import argparse
import asyncio
from collections.abc import Sequence

from benchmarks.local.case_set import CaseSet, evenly_spaced, run_set
from benchmarks.local.public_data import DataMissing
from hermes.errors import HermesError

DEFAULT_CASES = 20


def case_sets() -> dict[str, CaseSet]:
    """Returns every set by its name. Their data is loaded when they are run."""
    from benchmarks.local import bfcl, human_eval

    sets = (*bfcl.SETS, *human_eval.SETS)
    return {one.name: one for one in sets}


def main(argv: Sequence[str]) -> int:
    """Runs the sets and prints a line for each. Returns 1 only if a set could not be run."""
    sets = case_sets()
    options = _options(argv, sets)
    try:
        failed = asyncio.run(_run(options, sets))
    except HermesError as error:
        print(f"local: {error.message} {error.hint}")
        return 0 if error.hint else 1
    return int(failed)


def _options(argv: Sequence[str], sets: dict[str, CaseSet]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="benchmarks local public", description=__doc__
    )
    parser.add_argument("sets", nargs="*", metavar="SET", help=", ".join(sets))
    parser.add_argument(
        "--cases", type=int, default=DEFAULT_CASES, help="cases per set; 0 for all"
    )
    parser.add_argument(
        "--model", default="", help="a local model's name or a GGUF file"
    )
    parser.add_argument(
        "--adapter",
        choices=("native", "lines", "chat"),
        default="native",
        help="how the model uses tools: the line protocol knows only Hermes' own (default: native)",
    )
    parser.add_argument("--verbose", action="store_true", help="list what failed")
    options = parser.parse_args(argv)
    if unknown := set(options.sets) - set(sets):
        parser.error(f"no set {', '.join(unknown)}; there are: {', '.join(sets)}")
    return options


async def _run(options: argparse.Namespace, sets: dict[str, CaseSet]) -> bool:
    from hermes.providers.local_model import LocalModel, require_weights

    model = LocalModel(options.model, adapter=options.adapter)
    require_weights(model.name)
    print(f"local model: {model.name}, tools: {options.adapter}")
    failed = False
    try:
        for name in options.sets or sets:
            try:
                cases = sets[name].load()
            except DataMissing as error:
                print(f"{name}: {error}")
                failed = True
                continue
            chosen = evenly_spaced(cases, options.cases)
            score = await run_set(name, chosen, model, verbose=options.verbose)
            print(f"{score} (of {len(cases)} in the set)", flush=True)
    finally:
        await model.close()
    return failed
