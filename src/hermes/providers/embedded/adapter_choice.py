"""How a local model uses tools: by native calls (`native`), in lines of text (`lines`), or not at all (`chat`).

A short test of the model decides, once. The result is stored beside the model files, keyed by the file or by the server
and model.
"""

import re
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol, runtime_checkable

import msgspec

from hermes.core.ports import Model
from hermes.errors import ModelError
from hermes.primitives.files import replace_file
from hermes.providers.embedded.catalogue import AdapterKind
from hermes.providers.embedded.gguf_header import GgufFacts
from hermes.schema.messages import (
    AssistantMessage,
    Message,
    ToolCall,
    ToolFinished,
    UserMessage,
)
from hermes.schema.model import ModelRequest, ReplyFinished
from hermes.schema.tool_spec import ToolSpec
from hermes.text.translation import translator

t = translator(__name__)

MIN_NATIVE_PARAMETERS = 2_800_000_000  # models sold as 3B
_FILE_NAME = "adapters.json"
_MAX_MEMORY_ENTRIES = 200
_MAX_TOKENS = 160
_SYSTEM = (
    "You are an assistant with tools that work in the current folder.",  # not translated
    "Use them when needed, then answer shortly.",  # not translated
)
_READ = ToolSpec(
    name="read_file",
    description="Read a text file.",
    parameters={
        "type": "object",
        "properties": {"path": {"type": "string", "description": "the file"}},
        "required": ["path"],
    },
)
_LIST = ToolSpec(
    name="list_files",
    description="List the files of a folder.",
    parameters={
        "type": "object",
        "properties": {"path": {"type": "string", "description": "the folder"}},
    },
)
_TOOLS = (_READ, _LIST)
_REQUEST = UserMessage(text="What does the file notes.md say?")  # not translated
_NOTE = "Call Ana about the blue bicycle."  # not translated


class AdapterRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The adapter that works for a model, and why the better ones did not."""

    adapter: AdapterKind
    reason: str = ""


class AdapterMemory:
    """The adapter records of this machine, by file or by server and model. A damaged file counts as empty."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / _FILE_NAME

    def get(self, key: str) -> AdapterRecord | None:
        """Returns the record of a model."""
        return self._read().get(key)

    def put(self, key: str, record: AdapterRecord) -> None:
        """Stores a record. If the folder can't be written, the test runs again next time."""
        records = {**self._read(), key: record}
        newest = dict(list(records.items())[-_MAX_MEMORY_ENTRIES:])
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(self._path, msgspec.json.encode(newest), alone=False)
        except OSError:
            return

    def _read(self) -> Mapping[str, AdapterRecord]:
        try:
            data = self._path.read_bytes()
            return msgspec.json.decode(data, type=dict[str, AdapterRecord])
        except (OSError, msgspec.DecodeError):
            return {}


def possible_adapters(facts: GgufFacts) -> tuple[AdapterKind, ...]:
    """Returns the adapters to test, best first. The last one needs no test."""
    is_large = facts.parameters >= MIN_NATIVE_PARAMETERS
    if is_large and facts.has_tools:
        return ("native", "lines", "chat")
    return ("lines", "chat")


@runtime_checkable
class _Closable(Protocol):
    async def close(self) -> None: ...


async def choose_adapter(
    kinds: tuple[AdapterKind, ...],
    build: Callable[[AdapterKind], Model],
    on_step: Callable[[int, int], None] = lambda _done, _total: None,
) -> AdapterRecord:
    """Tests one adapter after another and returns the first that works. `on_step` receives the progress.

    Raises ModelError if the model can't run at all, which says nothing about the adapter.
    """
    problems: list[str] = []
    for number, kind in enumerate(kinds[:-1]):
        on_step(number, len(kinds))
        model = build(kind)
        try:
            problem = await find_problem(model)
        finally:
            if isinstance(model, _Closable):
                await model.close()
        if not problem:
            return AdapterRecord(adapter=kind, reason="; ".join(problems))
        problems.append(f"{kind}: {problem}")
    return AdapterRecord(adapter=kinds[-1], reason="; ".join(problems))


async def find_problem(model: Model) -> str:
    """Asks the model to read a file, then to use its content, then a question that needs no tool.

    Returns the problem; empty if the model can use tools this way.
    """
    with tempfile.TemporaryDirectory(prefix="hermes-") as folder:
        (Path(folder) / "notes.md").write_text(_NOTE)
        return await _find_problem(model, folder)


async def _find_problem(model: Model, folder: str) -> str:
    first = await _ask(model, folder, _REQUEST)
    if [call.name for call in first.tool_calls] != [_READ.name]:
        return t.logged("it did not call the tool that reads a file")
    call = first.tool_calls[0]
    if not _names_notes(call):
        return t.logged("it called the tool with wrong arguments")
    result = ToolFinished(call_id=call.id, name=call.name, text=_NOTE)
    second = await _ask(model, folder, _REQUEST, first, result)
    if second.tool_calls or not re.search(
        "ana|bicycle|bike", second.text, re.IGNORECASE
    ):
        return t.logged("it did not use what the tool returned")
    third = await _ask(
        model, folder, UserMessage(text="What is 2 + 2?")
    )  # not translated
    if third.tool_calls or not re.search(r"\b4\b|four", third.text, re.IGNORECASE):
        return t.logged("it called a tool where none was needed")
    return ""


def _names_notes(call: ToolCall) -> bool:
    try:
        arguments = msgspec.json.decode(call.arguments, type=dict[str, object])
    except msgspec.DecodeError:
        return False
    return str(arguments.get("path", "")).removeprefix("./") == "notes.md"


async def _ask(model: Model, folder: str, *messages: Message) -> AssistantMessage:
    request = ModelRequest(
        system=_SYSTEM,
        messages=messages,
        tools=_TOOLS,
        max_output_tokens=_MAX_TOKENS,
        folder=folder,
    )
    async for event in model.stream(request):
        if isinstance(event, ReplyFinished):
            return event.message
    raise ModelError(t.later("the reply did not end"), reason="malformed")
