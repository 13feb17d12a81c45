"""The chat at a real pseudo-terminal: CPU until its first prompt, how long a token takes to the screen, and the CPU
that a token takes at the end of a long paragraph, table or code block. Beside them are the figures of the least
possible Python program in the same seconds, and of pi in the same run: where those are late too, the machine was,
because other load makes every program slower and dearer. A bar is therefore met in milliseconds, or as a multiple of
pi's figure: the multiple that it was of pi's on the machine where the bars were set.

`--without-peer` leaves pi out.
"""

import argparse
import asyncio
import statistics
import tempfile
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import msgspec

from benchmarks.chat.measure import cpu_per_token, delays, start_cpu
from benchmarks.chat.programs import (
    NOWHERE,
    ChatProgram,
    long_session,
    ours,
    peer,
)
from benchmarks.chat.servers import BLOCKS, KINDS
from hermes.testing.fetched import NotFetched

STARTS = 7
_PEER_STARTS = 3
_PERCENTILES = (50, 95, 99)
TURNS = 2_000  # of the session that is resumed


class Bar(msgspec.Struct, frozen=True):
    """The most that a figure may be: in milliseconds, and as a multiple of pi's."""

    most_ms: float
    most_of_peer: float | None = None


PROMPT = Bar(150.0)
SCREEN = {50: Bar(8.0, 8 / 9.6), 95: Bar(16.0), 99: Bar(18.0, 18 / 19)}
RESUME = Bar(500.0)
TOKEN = Bar(0.5, 0.5 / 0.54)


class Measured(msgspec.Struct, frozen=True):
    """A figure of ours in milliseconds, with the floor's and pi's where they were measured."""

    name: str
    ms: float
    bar: Bar
    floor: float | None = None
    peer: float | None = None

    @property
    def is_met(self) -> bool:
        """Whether it is within its bar, in one of the two ways."""
        return self.ms <= self.bar.most_ms or self._is_met_beside_peer

    @property
    def _is_met_beside_peer(self) -> bool:
        most = self.bar.most_of_peer
        return bool(self.peer and most) and self.ms <= (self.peer or 0) * (most or 0)

    def line(self) -> str:
        """One line of the report."""
        line = f"chat: {self.name:28s} {self.ms:8.2f} ms  bar {self.bar.most_ms:g} {_word(self.ms <= self.bar.most_ms)}"
        if self.floor:
            line += f"  floor {self.floor:.2f} ({self.ms / self.floor:.1f}x)"
        if self.peer:
            line += f"  pi {self.peer:.2f} ({self.ms / self.peer:.2f}x"
            if self.bar.most_of_peer:
                line += f", bar {self.bar.most_of_peer:.2f}x {_word(self._is_met_beside_peer)}"
            line += ")"
        return line


def _word(is_met: bool) -> str:
    return "ok" if is_met else "MISSED"


def _prompt(other: ChatProgram | None) -> Measured:
    mine = _median_start(ours(), STARTS)
    theirs = _median_start(other, _PEER_STARTS) if other else None
    return Measured("cpu until the prompt", mine, PROMPT, peer=theirs)


def _median_start(program: ChatProgram, times: int) -> float:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        launch = program.launch(Path(folder), NOWHERE)
        starts = [start_cpu(launch, program.prompt) for _ in range(times)]
    return statistics.median(starts)


def _screen(other: ChatProgram | None) -> list[Measured]:
    mine: list[tuple[list[float], list[float]]] = []
    theirs: list[list[float]] = []
    for kind in KINDS:
        mine.append(asyncio.run(delays(ours(), kind)))
        if other:
            theirs.append(asyncio.run(delays(other, kind))[0])
    passed, floor = (_cuts(each) for each in zip(*mine, strict=True))
    peers = _cuts(theirs) if theirs else None
    return [
        Measured(
            f"token to the screen, p{at}",
            passed[at - 1],
            SCREEN[at],
            floor[at - 1],
            peers[at - 1] if peers else None,
        )
        for at in _PERCENTILES
    ]


def _cuts(runs: Sequence[Sequence[float]]) -> list[float]:
    return statistics.quantiles(chain.from_iterable(runs), n=100)


def _token(kind: str, other: ChatProgram | None) -> Measured:
    used, floor = asyncio.run(cpu_per_token(ours(), kind))
    theirs = asyncio.run(cpu_per_token(other, kind))[0] if other else None
    return Measured(f"cpu of a token, long {kind}", used, TOKEN, floor, theirs)


def _resume() -> Measured:
    """CPU until the end of a long conversation is shown again."""
    with tempfile.TemporaryDirectory() as folder:
        launch = long_session(Path(folder), TURNS)
        last = f"The answer is {TURNS - 1}.".encode()
        used = statistics.median(start_cpu(launch, last) for _ in range(3))
    return Measured("cpu until 2,000 turns are back", used, RESUME)


def _find_peer(argv: Sequence[str]) -> ChatProgram | None:
    parser = argparse.ArgumentParser(prog="chat")
    parser.add_argument("--without-peer", action="store_true")
    if parser.parse_args(argv).without_peer:
        return None
    try:
        return peer()
    except NotFetched as reason:
        print(f"chat: pi is left out: {reason}")
        return None


def main(argv: Sequence[str]) -> int:
    """Measures and prints; 1 when a bar is missed."""
    other = _find_peer(argv)
    figures = [_prompt(other), *_screen(other), _resume()]
    for figure in figures:
        print(figure.line())
    for kind in BLOCKS:
        figure = _token(kind, other)
        print(figure.line())
        figures.append(figure)
    return int(not all(figure.is_met for figure in figures))
