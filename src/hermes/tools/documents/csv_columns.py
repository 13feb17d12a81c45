"""The columns of a CSV file, with the type that all their values share."""

import csv
import re

_MAX_ROWS = 500
_MAX_COLUMNS = 60
_TYPES = (
    ("integer", re.compile(r"[+-]?\d+")),
    ("number", re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?")),
    ("boolean", re.compile(r"true|false|yes|no", re.IGNORECASE)),
    ("date", re.compile(r"\d{4}-\d\d-\d\d|\d\d?[./]\d\d?[./]\d{4}")),
    (
        "time",
        re.compile(
            r"(\d{4}-\d\d-\d\d[T ])?\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?"
        ),
    ),
)


def describe_columns(text: str) -> str:
    """Returns `; columns: day (date), amount (number)` for the first lines of a file; empty if they are not a table."""
    try:
        dialect = csv.Sniffer().sniff(text[:8192], delimiters=",;\t|")
        rows = list(csv.reader(text.splitlines()[:_MAX_ROWS], dialect))
    except csv.Error:
        return ""
    if len(rows) < 2 or not 1 < len(rows[0]) <= _MAX_COLUMNS:
        return ""
    header, body = rows[0], rows[1:]
    columns = [
        f"{name.strip() or index} ({_type([row[index - 1] for row in body if len(row) >= index])})"
        for index, name in enumerate(header, 1)
    ]
    return f"; columns: {', '.join(columns)}"


def _type(values: list[str]) -> str:
    filled = [value.strip() for value in values if value.strip()]
    if not filled:
        return "empty"
    for name, pattern in _TYPES:
        if all(pattern.fullmatch(value) for value in filled):
            return name
    return "text"
