"""Datasets: the prompts of a batch, from JSON lines or CSV. A dataset is read whole and checked before anything runs."""

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from hermes.errors import UsageError, os_reason
from hermes.text.translation import translator
from hermes.tools.toolsets import TOOLSETS

t = translator(__name__)


_MAX_DATASET_BYTES = 1024 * 1024 * 1024
_COLUMNS = t.later("Columns: prompt (required), id, expected, check and toolsets.")
_SETS = frozenset(one.name for one in TOOLSETS)


class BatchRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One prompt. Rows are told apart by their number, so equal prompts are rows of their own."""

    prompt: str
    id: str = ""
    """A name from the dataset, which an export repeats."""
    expected: str = ""
    """What the answer must contain to score 1."""
    check: str = ""
    """A command that succeeds if the work is right."""
    toolsets: tuple[str, ...] = ()
    """The only sets of tools of this row, instead of drawn ones."""


def read_dataset(path: Path) -> list[BatchRow]:
    """Reads a dataset; `.csv` has a header line, anything else is JSON lines. Raises UsageError for the first bad row."""
    try:
        if path.stat().st_size > _MAX_DATASET_BYTES:
            raise UsageError(
                t.later("{path} is larger than 1 GB.", path=path),
                hint=t.later("Split it."),
            )
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(t.later("{path} is not UTF-8 text.", path=path)) from error
    except OSError as error:
        raise UsageError(
            t.later(
                "{path} can't be read ({error}).", path=path, error=os_reason(error)
            )
        ) from error
    records = _csv_records(text) if path.suffix.lower() == ".csv" else _records(text)
    rows = [_row(path, line, record) for line, record in records]
    if not rows:
        raise UsageError(t.later("{path} has no rows.", path=path), hint=_COLUMNS)
    return rows


def encode_rows(rows: list[BatchRow]) -> bytes:
    """The rows as JSON lines."""
    return b"".join(msgspec.json.encode(row) + b"\n" for row in rows)


def decode_rows(data: bytes) -> list[BatchRow]:
    """The rows of `encode_rows`."""
    return [msgspec.json.decode(line, type=BatchRow) for line in data.splitlines()]


def _records(text: str) -> Iterator[tuple[int, Any]]:
    """The lines that are not empty, decoded; text where a line is not JSON."""
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                yield number, msgspec.json.decode(line)
            except (msgspec.DecodeError, RecursionError):
                yield number, line


def _csv_records(text: str) -> Iterator[tuple[int, Any]]:
    csv.field_size_limit(2**31 - 1)
    reader = csv.DictReader(io.StringIO(text, newline=""), restkey="", strict=True)
    try:
        for record in reader:
            known = {name: value for name, value in record.items() if name and value}
            if "toolsets" in known:
                known["toolsets"] = known["toolsets"].replace(",", " ").split()
            yield reader.line_num, known
    except csv.Error as error:
        raise UsageError(
            t.later(
                "line {line_num} is not CSV: {error}.",
                line_num=reader.line_num,
                error=error,
            )
        ) from error


def _row(path: Path, line: int, record: Any) -> BatchRow:
    place = f"{path}, line {line}"
    if not isinstance(record, dict):
        raise UsageError(
            t.later("{place}: expected a JSON object.", place=place), hint=_COLUMNS
        )
    if "id" in record:
        record = {**record, "id": str(record["id"])}
    try:
        row = msgspec.convert(record, BatchRow)
    except msgspec.ValidationError as error:
        raise UsageError(f"{place}: {error}.", hint=_COLUMNS) from error
    if not row.prompt.strip():
        raise UsageError(
            t.later("{place}: the prompt is empty.", place=place), hint=_COLUMNS
        )
    check_toolsets(row.toolsets, f"{place}: ")
    return row


def check_toolsets(names: tuple[str, ...], place: str = "") -> None:
    """Raises UsageError for a set of tools that does not exist."""
    for name in names:
        if name not in _SETS:
            known = ", ".join(sorted(_SETS))
            raise UsageError(
                t.later("{place}there is no toolset {name!r}.", place=place, name=name),
                hint=t.later("There are: {known}.", known=known),
            )
