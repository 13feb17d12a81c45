"""The figures of a proof, kept in `figures.json` so that the page also shows those of parts that were not run this time."""

import datetime as dt
import os
import platform
from pathlib import Path

import msgspec

KEPT = Path(__file__).with_name("figures.json")


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One measured figure: what was found in how many cases, and whether that is what Hermes promises."""

    name: str
    value: str
    cases: int
    met: bool | None = None
    """None for what is only reported."""


class PartFigures(msgspec.Struct, frozen=True, kw_only=True):
    """The last figures of a part of the proofs."""

    date: str
    machine: str
    figures: list[Figure]


def measured(figures: list[Figure]) -> PartFigures:
    """The figures with today's date and this machine."""
    return PartFigures(
        date=dt.datetime.now(dt.UTC).date().isoformat(),
        machine=f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        figures=figures,
    )


def kept_figures() -> dict[str, PartFigures]:
    """The last figures of every part that was ever run."""
    if not KEPT.is_file():
        return {}
    return msgspec.json.decode(KEPT.read_bytes(), type=dict[str, PartFigures])


def keep(parts: dict[str, PartFigures]) -> None:
    """Replaces the kept figures."""
    encoded = msgspec.json.encode(parts, order="sorted")
    KEPT.write_bytes(msgspec.json.format(encoded, indent=2) + b"\n")


def share(part: int, whole: int) -> str:
    """A count with its share of the whole."""
    return f"{part:,} of {whole:,} ({part / whole:.1%})" if whole else "none of 0"
