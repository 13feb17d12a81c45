"""Measures finding a tool among 500 by a person's request, and the size of the first request with all of them deferred.

Functions and questions come from the Berkeley Function Calling Leaderboard. Related words and cues were chosen on every
second question of `simple_python`, `live_simple` and `live_multiple`. The other questions are held out (the first weights
were chosen before the sets were halved), and so are all of `multiple` and `parallel`, for which the bar holds. A question
counts as found if the function that answers it is among the first five; another function that would do as well is a miss.
The live sets have many such twins, and questions in other languages, which `tool_search` asks a model to translate.
"""

import sys
import time
from typing import Any

import msgspec

from benchmarks.local.bfcl import BfclAnswer, BfclQuestion, bfcl_lines, tool_spec
from hermes.app.deferred_tools.catalogue import ToolCatalogue, ToolIndexes
from hermes.app.deferred_tools.tool_index import ToolIndex
from hermes.schema.tool_spec import ToolSpec

POOL = 500
TOP = 5
MIN_FOUND = 0.95
MAX_CATALOGUE_BYTES = 2_000
"""What the three tools may add to a first request; 14 KB in all with the default prompt of 12,000 bytes."""
TUNED = (
    "BFCL_v4_simple_python.json",
    "BFCL_v4_live_simple.json",
    "BFCL_v4_live_multiple.json",
)
HELD_OUT = ("BFCL_v4_multiple.json", "BFCL_v4_parallel.json")


class RequestSet(msgspec.Struct, frozen=True):
    """Questions with the name of the function that answers each, and all functions of the set."""

    name: str
    questions: list[tuple[str, str]]
    functions: dict[str, ToolSpec]


def main(_options: list[str]) -> int:
    """Prints the figures. The exit code is 1 if a bar is missed."""
    sets = {name: _load(name) for name in (*TUNED, *HELD_OUT)}
    everything = [one.functions for one in sets.values()]
    for name in TUNED:
        pool = _pool(sets[name], everything)
        _print(_half(sets[name], 0), pool, "tuned on")
        _print(_half(sets[name], 1), pool, "held out")
    found = 1.0
    for name in HELD_OUT:
        pool = _pool(sets[name], everything)
        found = min(found, _print(sets[name], pool, "held out"))
    size = _catalogue_bytes(pool)
    print(f"schemas of all {len(pool)} tools: {_bytes(pool.values()):,} bytes")
    print(f"in the prompt instead: {size:,} bytes (bar {MAX_CATALOGUE_BYTES:,})")
    return int(found < MIN_FOUND or size > MAX_CATALOGUE_BYTES)


def _load(name: str) -> RequestSet:
    answers = {
        one.id: next(iter(one.ground_truth[0]))
        for one in (
            msgspec.json.decode(line, type=BfclAnswer)
            for line in bfcl_lines(f"possible_answer/{name}")
        )
    }
    questions: list[tuple[str, str]] = []
    functions: dict[str, ToolSpec] = {}
    for line in bfcl_lines(name):
        one = msgspec.json.decode(line, type=BfclQuestion)
        said = [turn["content"] for turn in one.question[0] if turn["role"] == "user"]
        questions.append((" ".join(said), answers[one.id]))
        for function in one.function:
            functions.setdefault(function["name"], tool_spec(function))
    return RequestSet(name, questions, functions)


def _half(requests: RequestSet, first: int) -> RequestSet:
    """Every second question."""
    return msgspec.structs.replace(requests, questions=requests.questions[first::2])


def _pool(
    wanted: RequestSet, everything: list[dict[str, ToolSpec]]
) -> dict[str, ToolSpec]:
    """The functions that answer the questions, then others up to 500, starting with those of the same set."""
    pool = {name: wanted.functions[name] for _, name in wanted.questions}
    for functions in (wanted.functions, *everything):
        for name, spec in functions.items():
            if len(pool) >= POOL:
                return pool
            pool.setdefault(name, spec)
    return pool


def _print(requests: RequestSet, pool: dict[str, ToolSpec], what: str) -> float:
    index = ToolIndex(pool.values())
    began = time.process_time()
    ranks = [_rank(index, text, name) for text, name in requests.questions]
    each_ms = (time.process_time() - began) / len(ranks) * 1000
    found = sum(rank <= TOP for rank in ranks) / len(ranks)
    first = sum(rank == 1 for rank in ranks) / len(ranks)
    print(
        f"{requests.name} ({what}): {len(ranks)} requests, {len(pool)} tools: "
        f"{found:.1%} in the top {TOP}, {first:.1%} first, {each_ms:.2f} ms each"
    )
    return found


def _rank(index: ToolIndex, text: str, name: str) -> int:
    names = [one.name for one in index.search(text, TOP)]
    return names.index(name) + 1 if name in names else TOP + 1


def _bytes(specs: Any) -> int:
    return sum(len(msgspec.json.encode(spec)) for spec in specs)


class _ListedTool:
    """A tool that has only a description."""

    effect = "other"

    def __init__(self, spec: ToolSpec) -> None:
        self.spec = spec


def _catalogue_bytes(pool: dict[str, ToolSpec]) -> int:
    """The size of the three tools for this pool, spread over five servers."""
    tools: dict[str, Any] = {}
    for number, spec in enumerate(pool.values()):
        name = f"mcp.server{number % 5}.{spec.name}"
        tools[name] = _ListedTool(msgspec.structs.replace(spec, name=name))
    made = ToolCatalogue(tools, ToolIndexes()).tools()
    return _bytes(one.spec for one in made)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
