"""Answers that must be JSON: checked before the client sees them, and asked for once more if they are not."""

import re
from collections.abc import AsyncGenerator, Callable
from typing import TypeAlias

import msgspec

from hermes.schema.messages import Usage
from hermes.surfaces.gateway.api_server.request_formats import AnswerFormat
from hermes.surfaces.gateway.api_server.turn_stream import End, TextPiece

_FENCED = re.compile(r"```(?:json)?\s*(.*?)\s*```", re.DOTALL)
_Pieces: TypeAlias = AsyncGenerator[TextPiece | End]


async def json_answer(
    wanted: AnswerFormat, pieces: _Pieces, ask_again: Callable[[str], _Pieces]
) -> _Pieces:
    """The pieces of an answer that is held back until it is known to be right. One that is wrong twice ends as failed."""
    problem = ""
    for attempt in (pieces, None):
        text, end = "", End("failed")
        source = attempt or ask_again(_correction(wanted, problem))
        async for piece in source:
            if isinstance(piece, End):
                end = piece
            elif piece.text:
                text += piece.text
            else:
                yield piece
        if end.reason != "done":
            yield TextPiece(text)
            yield end
            return
        found = _FENCED.fullmatch(text.strip())
        text = found[1] if found else text.strip()
        problem = _problem(wanted, text)
        if not problem:
            yield TextPiece(text)
            yield end
            return
    yield End(
        "failed", f"The answer is not the JSON that was asked for: {problem}", Usage()
    )


def _correction(wanted: AnswerFormat, problem: str) -> str:
    return f"Your answer can't be used: {problem}. {wanted.instructions}"


def _problem(wanted: AnswerFormat, text: str) -> str:
    """What is wrong with an answer; empty if nothing is."""
    try:
        value = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        return f"it is not JSON ({error})"
    if wanted.schema is None:
        return "" if isinstance(value, dict) else "it is not an object"
    from jsonschema import Draft202012Validator, SchemaError

    try:
        error = next(Draft202012Validator(wanted.schema).iter_errors(value), None)
    except SchemaError as wrong:
        return f"its schema is not valid ({wrong.message})"
    return f"{error.json_path}: {error.message}"[:500] if error else ""
