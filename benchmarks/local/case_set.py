"""A set of cases, each asked of a model and judged by code, and the score of a run."""

import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias, TypeVar

import msgspec

from hermes.core.ports import Model
from hermes.errors import ModelError

T = TypeVar("T")
Judge: TypeAlias = Callable[[Model], Awaitable[str]]


class BenchCase(msgspec.Struct, frozen=True):
    """One case. `judge` asks the model and returns what is wrong; nothing if it is right."""

    id: str
    judge: Judge


class CaseSet(msgspec.Struct, frozen=True):
    """A named set. `load` gets its data, which may have to be downloaded."""

    name: str
    load: Callable[[], Sequence[BenchCase]]


class SetScore(msgspec.Struct, frozen=True, kw_only=True):
    """How a set went."""

    name: str
    passed: int
    total: int
    median_s: float

    def __str__(self) -> str:
        share = self.passed / self.total if self.total else 0.0
        return f"{self.name:18} {self.passed:3} of {self.total:3} ({share:4.0%}), median {self.median_s:.1f} s"


def evenly_spaced(cases: Sequence[T], count: int) -> list[T]:
    """Returns `count` cases from all over the set, always the same ones; all of them for 0."""
    if not count or count >= len(cases):
        return list(cases)
    return [cases[number * len(cases) // count] for number in range(count)]


async def run_set(
    name: str, cases: Sequence[BenchCase], model: Model, *, verbose: bool = False
) -> SetScore:
    """Asks one case after the other. A model that fails has failed the case."""
    passed, seconds = 0, [0.0] if not cases else []
    for case in cases:
        started = time.monotonic()
        try:
            problem = await case.judge(model)
        except ModelError as error:
            problem = f"the model failed: {error.message}"
        seconds.append(time.monotonic() - started)
        passed += not problem
        if verbose and problem:
            print(f"  {case.id}: {problem}", flush=True)
    return SetScore(
        name=name,
        passed=passed,
        total=len(cases),
        median_s=statistics.median(seconds),
    )
