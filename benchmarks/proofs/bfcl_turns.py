"""BFCL's conversations of several turns, replayed from their answers through Hermes' tool path: all must come out the same.

Each function of the package's mock services is a tool. The calls of the answers go through the loop, the argument check, the
policy and an approval; the same calls are made directly on a second set of services. After each turn both must be in the
same state, and every call must have had the same result. Data and code: the package bfcl-eval, Apache-2.0.
"""

import ast
import asyncio
import copy
import importlib
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from tests.fakes.obedient_model import (
    ObedientModel,
    ObedientSession,
    PlainCall,
    ServerTool,
    YesToEverything,
)

from benchmarks.local.bfcl import BFCL_PACKAGE, bfcl_lines, tool_spec
from benchmarks.local.case_set import evenly_spaced
from benchmarks.local.public_data import DataPackage
from benchmarks.proofs.figures import Figure, share
from hermes.core.calls import fenced
from hermes.schema.tool_spec import ToolSpec

_MPMATH = DataPackage(
    "mpmath",
    "1.4.1",
    "dc4f0ea2304480d4a9a48a94c1020571558ade522b44a6912efac63a586e140f",
)
_SOURCE = "bfcl_eval.eval_checker.multi_turn_eval.func_source_code"
_SERVICES = {
    "GorillaFileSystem": "gorilla_file_system",
    "MathAPI": "math_api",
    "MessageAPI": "message_api",
    "TwitterAPI": "posting_api",
    "TicketAPI": "ticket_api",
    "TradingBot": "trading_bot",
    "TravelAPI": "travel_booking",
    "VehicleControlAPI": "vehicle_control",
}
_SERVER = "bfcl"
CATEGORIES = ("base", "miss_func", "miss_param", "long_context")
_UNCOMPARED = ("parent", "_random", "_last_modified")
"""What differs between two equal services: links upwards, the source of chance, and times."""


class Conversation(msgspec.Struct, frozen=True):
    """A conversation of the set: the services it uses and how they begin."""

    id: str
    question: list[list[dict[str, str]]]
    initial_config: dict[str, Any]
    involved_classes: list[str]


class ConversationAnswer(msgspec.Struct, frozen=True):
    """The right calls of each turn, in Python's notation."""

    id: str
    ground_truth: list[list[str]]


class Services:
    """The mock services of a conversation, in their first state."""

    def __init__(self, conversation: Conversation) -> None:
        self.all: dict[str, Any] = {}
        is_long = "long_context" in conversation.id
        for name in conversation.involved_classes:
            module = importlib.import_module(f"{_SOURCE}.{_SERVICES[name]}")
            service = getattr(module, name)()
            state = copy.deepcopy(conversation.initial_config.get(name, {}))
            if hasattr(service, "_load_scenario"):
                service._load_scenario(state, long_context=is_long)  # noqa: SLF001 - as its own runner does
            self.all[name] = service

    def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Calls a function of whichever service has it. An error is a result too."""
        service = next(one for one in self.all.values() if hasattr(one, name))
        try:
            return str(getattr(service, name)(**arguments))
        except Exception as error:  # noqa: BLE001 - whatever the mock service raises
            return f"Error: {error}"

    def state(self) -> str:
        """Everything that the services hold, as text."""
        return repr({name: _plain(one) for name, one in self.all.items()})


def _plain(value: Any) -> Any:
    """The value without objects, whose text would name their place in memory."""
    match value:
        case dict():
            return {str(key): _plain(one) for key, one in value.items()}
        case list() | tuple() | set():
            return [_plain(one) for one in value]
        case _ if hasattr(value, "__dict__") and not callable(value):
            fields = vars(value).items()
            return {k: _plain(one) for k, one in fields if k not in _UNCOMPARED}
        case _:
            return repr(value)


class Replay:
    """The conversations, and the functions of their services as tools."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._specs = {name: _specs(file) for name, file in _SERVICES.items()}

    async def problem(
        self, conversation: Conversation, answer: ConversationAnswer
    ) -> str:
        """What came out differently; nothing if all is the same."""
        ours, direct = Services(conversation), Services(conversation)
        specs = {
            name: spec
            for service in conversation.involved_classes
            for name, spec in self._specs[service].items()
        }
        tools = {name: _tool(spec, ours.call) for name, spec in specs.items()}
        session = ObedientSession(tools, YesToEverything(), self._folder)
        for number, texts in enumerate(answer.ground_truth):
            calls = [_parsed(text, specs) for text in texts]
            expected = [direct.call(one.name, one.arguments) for one in calls]
            outcome = await session.turn(ObedientModel(calls), f"turn {number}")
            got = [one.text for one in outcome.results]
            if got != [fenced(text, _SERVER) for text in expected]:
                return f"turn {number}: other results"
            if ours.state() != direct.state():
                return f"turn {number}: another state"
        return ""


def _specs(file: str) -> dict[str, ToolSpec]:
    lines = bfcl_lines(f"multi_turn_func_doc/{file}.json")
    specs = [tool_spec(msgspec.json.decode(line)) for line in lines]
    return {one.name: one for one in specs}


def _tool(spec: ToolSpec, call: Callable[[str, Mapping[str, Any]], str]) -> ServerTool:
    def run(arguments: Mapping[str, Any]) -> str:
        return call(spec.name, arguments)

    return ServerTool(spec, run, reads=False, server=_SERVER)


def _parsed(text: str, specs: Mapping[str, ToolSpec]) -> PlainCall:
    """A call in Python's notation, with its arguments by name."""
    node = ast.parse(text.strip(), mode="eval").body
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        raise TypeError(f"not a call: {text}")
    names = list(specs[node.func.id].parameters["properties"])
    given = dict(zip(names, map(ast.literal_eval, node.args), strict=False))
    named = {one.arg or "": ast.literal_eval(one.value) for one in node.keywords}
    return PlainCall(node.func.id, {**given, **named})


@contextmanager
def _unpacked(folder: Path) -> Iterator[None]:
    for package in (BFCL_PACKAGE, _MPMATH):
        package.unpack(folder)
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))


def _conversations(category: str) -> list[tuple[Conversation, ConversationAnswer]]:
    name = f"BFCL_v4_multi_turn_{category}.json"
    lines = zip(bfcl_lines(name), bfcl_lines(f"possible_answer/{name}"), strict=True)
    return [
        (
            msgspec.json.decode(question, type=Conversation),
            msgspec.json.decode(answer, type=ConversationAnswer),
        )
        for question, answer in lines
    ]


def run_bfcl(folder: Path, cases: int) -> list[Figure]:
    """Replays the conversations of every category, or that many of them; 0 for all."""
    found = [one for category in CATEGORIES for one in _conversations(category)]
    chosen = evenly_spaced(found, cases)
    with _unpacked(folder):
        problems = asyncio.run(_problems(Replay(folder), chosen))
    for name, problem in problems.items():
        print(f"  {name}: {problem}", file=sys.stderr)
    same = len(chosen) - len(problems)
    calls = sum(len(turn) for _, answer in chosen for turn in answer.ground_truth)
    return [
        Figure(
            name=f"Conversations with the same results and states ({calls:,} calls)",
            value=share(same, len(chosen)),
            cases=len(chosen),
            met=not problems,
        )
    ]


async def _problems(
    replay: Replay, chosen: list[tuple[Conversation, ConversationAnswer]]
) -> dict[str, str]:
    found = {one.id: await replay.problem(one, answer) for one, answer in chosen}
    return {name: problem for name, problem in found.items() if problem}
