"""What code knows better than a small model: sums, dates, and what can be counted in a file. Given to it as notes."""

import ast
import csv
import datetime
import io
import math
import operator
import re
from collections.abc import Callable

_OPERATORS: dict[type[ast.AST], Callable[..., float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}
_NUMBER = r"\d[\d,]*(?:\.\d+)?"
_EXPRESSION = re.compile(
    rf"(?<![\w.])[-(]*\s*{_NUMBER}\)*(?:\s*(?:[-+*/×÷^]|\*\*)\s*[-(]*\s*{_NUMBER}\)*)+(?![\w])"
)
_SPOKEN = (
    (re.compile(r"\b(?:multiplied by|times|mal|fois|por)\b", re.IGNORECASE), "*"),
    (re.compile(r"\b(?:divided by|geteilt durch)\b", re.IGNORECASE), "/"),
    (re.compile(r"\bplus\b", re.IGNORECASE), "+"),
    (re.compile(r"\bminus\b", re.IGNORECASE), "-"),
    (re.compile(rf"\bdivide ({_NUMBER}) by ({_NUMBER})", re.IGNORECASE), r"\1 / \2"),
    (re.compile(rf"\bmultiply ({_NUMBER}) (?:by|with|and) ({_NUMBER})", re.IGNORECASE), r"\1 * \2"),
    (re.compile(rf"\badd ({_NUMBER}) (?:to|and) ({_NUMBER})", re.IGNORECASE), r"\1 + \2"),
    (re.compile(rf"\bsubtract ({_NUMBER}) from ({_NUMBER})", re.IGNORECASE), r"\2 - \1"),
)  # fmt: skip
_PERCENT = re.compile(
    rf"({_NUMBER})\s*(?:%|percent|per cent|prozent|pour cent|por ciento)\s*(?:of|von|de)\s*({_NUMBER})",
    re.IGNORECASE,
)
_ROOT = re.compile(
    rf"(?:square root of|sqrt\(?|wurzel aus|racine carrée de)\s*({_NUMBER})",
    re.IGNORECASE,
)
_MAX_EXPONENT = 200
_CLOCK = re.compile(
    r"\btime\b|o'clock|\bclock\b|uhr|wie spät|quelle heure|qué hora|che ore",
    re.IGNORECASE,
)
_RELATIVE_DAY = re.compile(
    r"\b(?:tomorrow|yesterday|next week|weekday|day of the week|which day|what day|morgen|gestern|demain|hier|mañana|ayer)\b",
    re.IGNORECASE,
)
_COUNTING = re.compile(
    r"how (?:many|much|long|large|big)|count|number of|total|\bsum\b|average|\bmean\b|most|least|largest|smallest|highest|"
    r"lowest|maximum|minimum|oldest|youngest|longest|shortest|wie ?viele|anzahl|summe|durchschnitt|combien|cu[aá]nt|quant|total",
    re.IGNORECASE,
)
_MAX_COLUMNS = 8
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July",
    "August", "September", "October", "November", "December",
)  # fmt: skip


def day_text(day: datetime.date) -> str:
    """A day as people write it, whatever the machine's locale."""
    return f"{_DAYS[day.weekday()]}, {day.day} {_MONTHS[day.month - 1]} {day.year}"


def request_notes(request: str, now: datetime.datetime) -> list[str]:
    """What is known about a request without a model: results of sums, the time, the days around today."""
    notes = arithmetic(request)
    if _CLOCK.search(request):
        notes.append(f"the time is {now:%H:%M}")
    if _RELATIVE_DAY.search(request):
        day = datetime.timedelta(days=1)
        notes.append(
            f"today is {day_text(now.date())}, tomorrow {day_text(now.date() + day)}, "
            f"yesterday {day_text(now.date() - day)}"
        )
    return notes


def arithmetic(request: str) -> list[str]:
    """Every sum in a request with its result."""
    notes = [
        f"{part}% of {whole} = {_written(_value(part) * _value(whole) / 100)}"
        for part, whole in _PERCENT.findall(request)
    ]
    notes += [
        f"the square root of {number} = {_written(math.sqrt(_value(number)))}"
        for number in _ROOT.findall(request)
    ]
    text = request
    for pattern, sign in _SPOKEN:
        text = pattern.sub(sign, text)
    for found in _EXPRESSION.findall(text):
        value = _evaluated(found)
        if value is not None:
            notes.append(f"{found.strip()} = {_written(value)}")
    return notes


def _value(number: str) -> float:
    return float(number.replace(",", ""))


def _written(value: float) -> str:
    if abs(value - round(value)) < 1e-9:
        return str(round(value))
    return f"{value:.6g}" if abs(value) < 1e6 else f"{value:.2f}"


def _evaluated(expression: str) -> float | None:
    """The value of a sum; None when it is none, such as a date or a phone number."""
    if re.fullmatch(r"\s*\d{1,4}([-/])\d{1,2}\1\d{1,4}\s*", expression):
        return None
    signs = str.maketrans({"×": "*", "÷": "/", "^": "^", ",": ""})
    source = expression.translate(signs).replace("^", "**").strip()
    try:
        return float(_node(ast.parse(source, mode="eval").body))
    except (SyntaxError, ValueError, ArithmeticError, KeyError):
        return None


def _node(node: ast.AST) -> float:
    match node:
        case ast.Constant(value=int() | float() as value):
            return value
        case ast.UnaryOp():
            return _OPERATORS[type(node.op)](_node(node.operand))
        case ast.BinOp():
            left, right = _node(node.left), _node(node.right)
            if isinstance(node.op, ast.Pow) and abs(right) > _MAX_EXPONENT:
                raise ValueError("too large")
            return _OPERATORS[type(node.op)](left, right)
        case _:
            raise ValueError("not a sum")


def asks_for_numbers(request: str) -> bool:
    """Whether a request asks for something that can be counted or compared."""
    return _COUNTING.search(request) is not None


def file_note(path: str, text: str) -> str:
    """What can be counted in a file that was seen whole."""
    lines = text.splitlines()
    words = len(text.split())
    note = f"{path} has {len(lines)} lines, {words} words"
    if path.lower().endswith((".csv", ".tsv")) and lines:
        note += _table_note(text, "\t" if path.lower().endswith(".tsv") else ",")
    return note


def _table_note(text: str, delimiter: str) -> str:
    rows = [row for row in csv.reader(io.StringIO(text), delimiter=delimiter) if row]
    header, body = rows[0], rows[1:]
    note = f"; {len(body)} rows below the header"
    for index, name in enumerate(header[:_MAX_COLUMNS]):
        try:
            values = [(float(row[index]), row) for row in body]
        except (ValueError, IndexError):
            continue
        if not values:
            continue
        numbers = [value for value, _ in values]
        top = max(values, key=lambda item: item[0])[1]
        low = min(values, key=lambda item: item[0])[1]
        note += (
            f"; {name}: sum {_written(sum(numbers))}, average {_written(sum(numbers) / len(numbers))}, "
            f"largest {_written(max(numbers))} ({_label(top, index)}), smallest {_written(min(numbers))} ({_label(low, index)})"
        )
    return note


def _label(row: list[str], but: int) -> str:
    """What a row is about: its first cell that is not the number itself."""
    return next(
        (cell.strip() for at, cell in enumerate(row) if at != but and cell.strip()), ""
    )
