"""The Berkeley Function Calling Leaderboard: one Python function to call (simple), or none that fits (irrelevance).

Its answers list, for each parameter, every value that is right; an empty text among them means that the parameter may
be left out. Data: the package bfcl-eval, Apache-2.0.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from benchmarks.local.case_set import BenchCase, CaseSet
from benchmarks.local.public_data import DataPackage
from hermes.core.ports import Model
from hermes.schema.messages import AssistantMessage, ToolCall, UserMessage
from hermes.schema.model import ModelRequest, ReplyFinished
from hermes.schema.tool_spec import ToolSpec

BFCL_PACKAGE = DataPackage(
    "bfcl-eval",
    "2026.3.23",
    "3bb6dfa5f0c68ad403c9ec50b00db2bb3b4cc9b38ab1ff33f48fe30d853d3a0a",
)
_FOLDER = "bfcl_eval/data"
_SYSTEM = (
    "You are an assistant with tools. Call a tool if one does what the user asks for. "
    "If none fits, answer without a tool and say what is missing."
)
_JSON_TYPES = {
    "dict": "object",
    "float": "number",
    "tuple": "array",
    "any": "string",
}
_IGNORED = re.compile(r"[ ,./\-_*^]")
_MAX_TOKENS = 300


class BfclQuestion(msgspec.Struct, frozen=True):
    """A request, and the functions to choose from."""

    id: str
    question: list[list[dict[str, str]]]
    function: list[dict[str, Any]]


class BfclAnswer(msgspec.Struct, frozen=True):
    """The right calls of a request, each with the values that its arguments may have."""

    id: str
    ground_truth: list[dict[str, dict[str, list[Any]]]]


def _simple() -> list[BenchCase]:
    name = "BFCL_v4_simple_python.json"
    lines = bfcl_lines(f"possible_answer/{name}")
    answers = {
        one.id: one.ground_truth[0]
        for one in (msgspec.json.decode(line, type=BfclAnswer) for line in lines)
    }
    return [_simple_case(one, answers[one.id]) for one in _questions(name)]


def _irrelevance() -> list[BenchCase]:
    return [_irrelevant_case(one) for one in _questions("BFCL_v4_irrelevance.json")]


SETS = (CaseSet("bfcl-simple", _simple), CaseSet("bfcl-irrelevance", _irrelevance))


def bfcl_lines(name: str) -> list[bytes]:
    """Returns the lines of a file of the set, one JSON object each."""
    return BFCL_PACKAGE.member(f"{_FOLDER}/{name}").splitlines()


def _questions(name: str) -> list[BfclQuestion]:
    lines = bfcl_lines(name)
    return [msgspec.json.decode(line, type=BfclQuestion) for line in lines]


def _simple_case(
    question: BfclQuestion, answer: Mapping[str, Mapping[str, Sequence[Any]]]
) -> BenchCase:
    async def judge(model: Model) -> str:
        reply = await _ask(model, question)
        return wrong_calls(reply.tool_calls, answer)

    return BenchCase(question.id, judge)


def _irrelevant_case(question: BfclQuestion) -> BenchCase:
    async def judge(model: Model) -> str:
        calls = (await _ask(model, question)).tool_calls
        return f"called {calls[0].name}, which does not fit" if calls else ""

    return BenchCase(question.id, judge)


async def _ask(model: Model, question: BfclQuestion) -> AssistantMessage:
    request = ModelRequest(
        system=(_SYSTEM,),
        messages=tuple(
            UserMessage(text=turn["content"]) for turn in question.question[0]
        ),
        tools=tuple(map(tool_spec, question.function)),
        max_output_tokens=_MAX_TOKENS,
    )
    async for event in model.stream(request):
        if isinstance(event, ReplyFinished):
            return event.message
    raise AssertionError("a stream ends with ReplyFinished")


def tool_spec(function: Mapping[str, Any]) -> ToolSpec:
    """Returns a function of the set as a tool. Its types have Python's names, a schema has JSON's."""
    return ToolSpec(
        name=function["name"],
        description=function["description"],
        parameters=_schema(function["parameters"]),
    )


def _schema(value: Any) -> Any:
    if isinstance(value, list):
        return [_schema(one) for one in value]
    if not isinstance(value, dict):
        return value
    changed = {key: _schema(one) for key, one in value.items()}
    kind = value.get("type")
    if isinstance(kind, str):
        changed["type"] = _JSON_TYPES.get(kind, kind)
    return changed


def wrong_calls(
    calls: Sequence[ToolCall], answer: Mapping[str, Mapping[str, Sequence[Any]]]
) -> str:
    """Returns what is wrong with the calls; nothing if they are the one right call."""
    ((name, allowed),) = answer.items()
    if len(calls) != 1:
        return f"{len(calls)} calls instead of one"
    if calls[0].name != name:
        return f"called {calls[0].name} instead of {name}"
    try:
        given = msgspec.json.decode(calls[0].arguments or "{}", type=dict[str, Any])
    except msgspec.DecodeError as error:
        return f"its arguments can't be read: {error}"
    return wrong_values(given, allowed)


def wrong_values(given: Mapping[str, Any], allowed: Mapping[str, Any]) -> str:
    """Returns what is wrong with an object of which each key may have certain values."""
    if unknown := set(given) - set(allowed):
        return f"{min(unknown)} is not expected"
    for key, right in allowed.items():
        values = right if isinstance(right, list) else [right]
        if key not in given:
            if "" not in values:
                return f"{key} is missing"
        elif not any(_is_same(given[key], value) for value in values):
            return f"{key} is {given[key]!r}, not one of {values!r}"
    return ""


def _is_same(given: Any, right: Any) -> bool:
    """Whether a value is right. Texts are compared without case, spaces and most punctuation; 5 and 5.0 are the same."""
    if isinstance(given, str) and isinstance(right, str):
        return _plain(given) == _plain(right)
    if isinstance(given, bool) or isinstance(right, bool):
        return given is right
    if isinstance(given, list) and isinstance(right, list):
        return len(given) == len(right) and all(map(_is_same, given, right))
    if isinstance(given, dict) and isinstance(right, dict):
        return not wrong_values(given, right)
    return type(given) in {int, float} and given == right


def _plain(text: str) -> str:
    return _IGNORED.sub("", text).lower().replace("'", '"')
