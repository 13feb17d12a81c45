"""Facts that code computes better than a small model: sums, dates, counts in a file. The model gets them as notes."""

import ast
import csv
import datetime as dt
import io
import math
import operator
import re
from collections.abc import Callable, Mapping

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
_NUMBER = r"\d[\d,]{0,400}(?!\d)(?:\.\d{1,400}(?!\d))?"
_EXPRESSION = re.compile(
    rf"(?<![\w.])[-(]{{0,20}}\s{{0,20}}{_NUMBER}\){{0,20}}(?:\s{{0,20}}(?:[-+*/×÷^]|\*\*)\s{{0,20}}[-(]{{0,20}}\s{{0,20}}{_NUMBER}\){{0,20}}){{1,200}}(?![\w])"
)
_SPOKEN = (
    (re.compile(r"\b(?:multiplied by|times|mal|fois|por)\b", re.IGNORECASE), "*"),
    (re.compile(r"\b(?:divided by|geteilt durch)\b", re.IGNORECASE), "/"),
    (re.compile(r"\bplus\b", re.IGNORECASE), "+"),
    (re.compile(r"\bminus\b", re.IGNORECASE), "-"),
    (re.compile(rf"\bdivide ({_NUMBER}) by ({_NUMBER})", re.IGNORECASE), r"\1 / \2"),
    (re.compile(rf"\bmultiply ({_NUMBER}) (?:by|with|and) ({_NUMBER})", re.IGNORECASE), r"\1 * \2"),
    (re.compile(rf"\badd ({_NUMBER}) (?:to|and) ({_NUMBER})", re.IGNORECASE), r"\1 + \2"),
    (re.compile(rf"\b(?:split|share|divide)\b\D{{1,40}}({_NUMBER})\D{{1,20}}\b(?:between|among|amongst|by)\s+({_NUMBER})",
                re.IGNORECASE), r"\1 / \2"),
    (re.compile(rf"\bsubtract ({_NUMBER}) from ({_NUMBER})", re.IGNORECASE), r"\2 - \1"),
)  # fmt: skip
_PERCENT = re.compile(
    rf"(?<![\d,.])({_NUMBER})\s*(?:%|percent|per cent|prozent|pour cent|por ciento)\s*(?:of|von|de)\s*({_NUMBER})",
    re.IGNORECASE,
)
_OFF = re.compile(
    rf"(?<![\d,.])({_NUMBER})(?!\s*(?:%|percent))[^.?!\n%\d]{{1,60}}({_NUMBER})\s*(?:%|percent)\s+(?:off|cheaper|discount|less)\b",
    re.IGNORECASE,
)
_SECONDS = {"second": 1, "minute": 60, "hour": 3_600, "day": 86_400, "week": 604_800}
_METRES = {
    "mm": 0.001, "millimetre": 0.001, "millimeter": 0.001, "cm": 0.01, "centimetre": 0.01, "centimeter": 0.01,
    "metre": 1, "meter": 1, "km": 1_000, "kilometre": 1_000, "kilometer": 1_000,
    "inch": 0.0254, "inche": 0.0254, "foot": 0.3048, "feet": 0.3048, "yard": 0.9144, "mile": 1_609.344,
}  # fmt: skip
_GRAMS = {
    "gram": 1, "kg": 1_000, "kilo": 1_000, "kilogram": 1_000, "pound": 453.59237, "lb": 453.59237, "ounce": 28.349523,
}  # fmt: skip
_UNITS = _SECONDS | _METRES | _GRAMS
_UNIT = rf"(?:{'|'.join(sorted(_UNITS, key=len, reverse=True))})s?"
_WORD_NUMBERS = {
    "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
    "ten": 10, "eleven": 11, "twelve": 12,
}  # fmt: skip
_AMOUNT = rf"({_NUMBER}|{'|'.join(_WORD_NUMBERS)})( and a half)?"
_HOW_MANY_UNITS = re.compile(
    rf"\bhow many ({_UNIT}) (?:(?:are|is|there|in|do|does|has|have|makes?|equals?) ){{0,4}}{_AMOUNT} ({_UNIT})\b",
    re.IGNORECASE,
)
_IN_UNITS = re.compile(
    rf"(?<![\w.,]){_AMOUNT} ?({_UNIT}) (?:in|to|into|as) ({_UNIT})\b", re.IGNORECASE
)
_ROOT = re.compile(
    rf"(?:square root of|sqrt\(?|wurzel aus|racine carrée de)\s*({_NUMBER})",
    re.IGNORECASE,
)
_MAX_EXPONENT = 200
_MAX_SUM_CHARACTERS = 400
_MAX_VALUE = 1e100
"""Larger results are useless, and computing their powers takes too long."""
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
    r"lowest|maximum|minimum|oldest|youngest|longest|shortest|wie ?viele|anzahl|summe|durchschnitt|combien|cu[aá]nt|quant",
    re.IGNORECASE,
)
_SHORTER = re.compile(
    r"\b(?:shorter|shorten|briefer|more concise|kürzer|kürze|plus court|raccourci\w*|más corto|acorta\w*|più breve)\b",
    re.IGNORECASE,
)
_MIN_WORDS_TO_SHORTEN = 8
_LINES = re.compile(r"\blines?\b|zeile|ligne|línea|rig[ah]e?\b", re.IGNORECASE)
_WORDS = re.compile(r"\bwords?\b|wörter|\bmots\b|palabras", re.IGNORECASE)
_MAX_COLUMNS = 8
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July",
    "August", "September", "October", "November", "December",
)  # fmt: skip


def day_text(day: dt.date) -> str:
    """Returns a date in English, independent of the machine's locale."""
    return f"{_DAYS[day.weekday()]}, {day.day} {_MONTHS[day.month - 1]} {day.year}"


def request_notes(request: str, now: dt.datetime) -> list[str]:
    """Returns what code knows about a request: results of sums, the time, the days around today."""
    notes = arithmetic(request)
    if _CLOCK.search(request):
        notes.append(f"the time is {now:%H:%M}")
    if _RELATIVE_DAY.search(request):
        day = dt.timedelta(days=1)
        notes.append(
            f"today is {day_text(now.date())}, tomorrow {day_text(now.date() + day)}, "
            f"yesterday {day_text(now.date() - day)}"
        )
    return notes


def length_notes(request: str, answer_before: str) -> list[str]:
    """Returns a word limit if the previous answer should become shorter: half of its words."""
    words = len(answer_before.split())
    if words < _MIN_WORDS_TO_SHORTEN or not _SHORTER.search(request):
        return []
    return [f"it has {words} words now; write at most {words // 2}"]


def arithmetic(request: str) -> list[str]:
    """Returns the sums at the beginning of a request, with results. The patterns take quadratic time in its length."""
    request = request[:_MAX_SUM_CHARACTERS]
    found: list[tuple[str, float | None]] = [
        (f"{part}% of {whole}", _value(part) * _value(whole) / 100)
        for part, whole in _PERCENT.findall(request)
    ]
    found += [
        (f"the square root of {number}", math.sqrt(_value(number)))
        for number in _ROOT.findall(request)
    ]
    found += [
        (f"{part}% off {whole}", _value(whole) * (1 - _value(part) / 100))
        for whole, part in _OFF.findall(request)
    ]
    found += _conversions(request)
    text = request
    for pattern, sign in _SPOKEN:
        text = pattern.sub(sign, text)
    found += [(sum_.strip(), _evaluated(sum_)) for sum_ in _EXPRESSION.findall(text)]
    return [
        f"{sum_} = {_written(value)}"
        for sum_, value in found
        if value is not None and abs(value) <= _MAX_VALUE
    ]


def _conversions(request: str) -> list[tuple[str, float | None]]:
    """Returns the unit conversions that the request asks for."""
    asked = [
        (amount, half, unit, wanted)
        for wanted, amount, half, unit in _HOW_MANY_UNITS.findall(request)
    ]
    asked += _IN_UNITS.findall(request)
    return [
        (f"{amount}{half} {unit} in {wanted}", _converted(amount, half, unit, wanted))
        for amount, half, unit, wanted in asked
    ]


def _converted(amount: str, half: str, unit: str, wanted: str) -> float | None:
    """Returns the amount in the other unit; None if the units measure different things."""
    number = _WORD_NUMBERS.get(amount.lower()) or _value(amount)
    for table in (_SECONDS, _METRES, _GRAMS):
        factors = [_factor(table, name.lower()) for name in (unit, wanted)]
        if all(factors):
            return (number + bool(half) / 2) * factors[0] / factors[1]
    return None


def _factor(table: Mapping[str, float], name: str) -> float:
    return table.get(name) or table.get(name.removesuffix("s"), 0.0)


def _value(number: str) -> float:
    return float(number.replace(",", ""))


def _written(value: float) -> str:
    if abs(value - round(value)) < 1e-9:
        return str(round(value))
    return f"{value:.6g}" if abs(value) < 1e6 else f"{value:.2f}"


def _evaluated(expression: str) -> float | None:
    """Returns the value of a sum; None if it is not a sum (a date, a phone number) or can't be computed."""
    if re.fullmatch(r"\s*\d+([-/])\d+\1\d+\s*", expression):
        return None
    signs = str.maketrans({"×": "*", "÷": "/", "^": "^", ",": ""})
    source = expression.translate(signs).replace("^", "**").strip()
    try:
        return float(_node(ast.parse(source, mode="eval").body))
    except (SyntaxError, ValueError, ArithmeticError, KeyError, RecursionError):
        return None


def _node(node: ast.AST) -> float:
    match node:
        case ast.Constant(value=int() | float() as value):
            return _bounded(value)
        case ast.UnaryOp():
            return _OPERATORS[type(node.op)](_node(node.operand))
        case ast.BinOp():
            left, right = _node(node.left), _node(node.right)
            if isinstance(node.op, ast.Pow) and abs(right) > _MAX_EXPONENT:
                raise ValueError("too large")
            return _bounded(_OPERATORS[type(node.op)](left, right))
        case _:
            raise ValueError("not a sum")


def _bounded(value: complex) -> float:
    """Returns the value. Raises ValueError for a complex number, and for one that is too large to continue with."""
    if isinstance(value, complex) or abs(value) > _MAX_VALUE:
        raise ValueError("no usable number")
    return value


def asks_for_numbers(request: str) -> bool:
    """Returns whether a request asks for something that can be counted or compared."""
    return _COUNTING.search(request) is not None


def file_note(path: str, text: str, request: str) -> str:
    """Returns what can be counted in a completely read file, as far as it may matter for the request."""
    if path.lower().endswith((".csv", ".tsv")) and not _LINES.search(request):
        note = _table_note(text, "\t" if path.lower().endswith(".tsv") else ",")
        return f"{path} has {note}"
    words = f", {len(text.split())} words" if _WORDS.search(request) else ""
    return f"{path} has {len(text.splitlines())} lines{words}"


def _table_note(text: str, delimiter: str) -> str:
    rows = [row for row in csv.reader(io.StringIO(text), delimiter=delimiter) if row]
    header, body = (rows[0], rows[1:]) if rows else ([], [])
    note = f"{len(body)} entries (rows without the header)"
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
    """Returns the label of a row: its first cell that is not the number itself."""
    return next(
        (cell.strip() for at, cell in enumerate(row) if at != but and cell.strip()), ""
    )
