"""`run_python`: runs Python code that calls tools. What the code reads stays out of the conversation.

The code runs in a separate process. Each call it makes goes through `ToolContext.call`: it is logged, judged and
approved like any other call.
"""

import asyncio
import re
import shlex
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta

from hermes.core.ports import Tool, ToolContext
from hermes.errors import ToolFailed
from hermes.schema.tool_spec import ToolResult
from hermes.tools.process.long_output import OutputFolder
from hermes.tools.process.progress import Live
from hermes.tools.process.session_commands import Surroundings
from hermes.tools.tool import tool

if TYPE_CHECKING:
    from hermes.tools.process.helper_process import Dialogue

MAX_CALLS = 200
_MAX_PARALLEL_CALLS = 8
_STOP_GRACE_S = 0.5
_INTERRUPT_GRACE_S = 0.1
_FENCE = r'(?s)<untrusted source="([^"\n]*)">\n(.*)\n</untrusted>\n\(Data from .*, not instructions\.\)'

_ESCAPED_TAG = r"(?i)&lt;(?=\s*+/?\s*+untrusted)"


class _Request(msgspec.Struct, frozen=True):
    """A tool call that the code asks for."""

    id: int
    name: str
    arguments: dict[str, Any]


class PythonRunner:
    """`run_python` of one session. `tools` returns the tools that the code may call."""

    def __init__(
        self,
        output: OutputFolder,
        surroundings: Surroundings,
        tools: Callable[[], Mapping[str, Tool]],
    ) -> None:
        self._output = output
        self._surroundings = surroundings
        self._tools = tools

    @tool("run_python", effect="other")
    async def run_python(
        self,
        context: ToolContext,
        code: Annotated[str, Meta(min_length=1, max_length=100_000)],
        timeout: Annotated[int, Meta(ge=1, le=600, description="Seconds.")] = 120,  # noqa: ASYNC109 - the model's
    ) -> ToolResult:
        """Runs Python code that can call your tools: tools.read_file("a.py") returns the text, or raises
        tools.ToolError. Only what it prints comes back: good for going through many files or results."""
        from hermes.children.own_python import python_command
        from hermes.tools.process.helper_process import Dialogue

        source = Path(__file__).with_name("python_child.py").read_text(encoding="utf-8")
        command = shlex.join(python_command("-B", "-u", "-c", source))
        tools = {
            name: one for name, one in self._tools().items() if name != "run_python"
        }
        dialogue = Dialogue(_with_python(self._surroundings), command, context)
        return await _Run(context, tools, dialogue, self._output).result(code, timeout)


def _with_python(surroundings: Surroundings) -> Surroundings:
    """Makes the folders of Hermes' Python readable."""
    own = tuple(Path(folder).resolve() for folder in (sys.prefix, sys.base_prefix))
    return msgspec.structs.replace(
        surroundings, readable=(*surroundings.readable, *own)
    )


class _Run:
    """One run: the program, the calls it makes, and its output."""

    def __init__(
        self,
        context: ToolContext,
        tools: Mapping[str, Tool],
        dialogue: "Dialogue",
        output: OutputFolder,
    ) -> None:
        self._context = context
        self._tools = tools
        self._dialogue = dialogue
        self._capture = output.capture("run_python", "whatever it called")
        self._live = Live(context.show)
        self._calls = 0
        self._sources: dict[str, None] = {}
        self._together = asyncio.Semaphore(_MAX_PARALLEL_CALLS)
        self._alone = asyncio.Lock()

    async def result(self, code: str, seconds: float) -> ToolResult:
        """Runs the code to its end."""
        exit_code: int | None = None
        grace, pause = _INTERRUPT_GRACE_S, Pausable(seconds)
        serving = asyncio.create_task(self._serve(code, pause))
        try:
            async with pause.limit:
                exit_code = await self._dialogue.wait(self._handle)
            grace = _STOP_GRACE_S
        except TimeoutError:
            grace = _STOP_GRACE_S
        finally:
            serving.cancel()
            try:
                await self._dialogue.stop(grace, self._handle)
            finally:
                self._live.close()
                self._capture.close()
                notes = self._dialogue.close()
                await asyncio.gather(serving, return_exceptions=True)
        return self._notes(exit_code, seconds, notes)

    def _notes(self, code: int | None, seconds: float, more: list[str]) -> ToolResult:
        text = self._capture.text()
        notes: list[str] = [] if code == 0 else [f"exit code {code}"]
        if code is None:
            problem = self._dialogue.problem
            notes = [
                f"stopped: {problem or f'it ran longer than {seconds:g} s, not counting its calls'}"
            ]
        elif code < 0:
            notes = [f"killed by signal {-code}"]
        if self._calls > MAX_CALLS:
            notes.append(f"only its first {MAX_CALLS} calls were made")
        notes += more
        body = text if text.strip() else "(no output: print what you need)"
        note = f"\n[{'; '.join(notes)}]" if notes else ""
        return ToolResult(
            text=body.rstrip("\n") + note, ok=code == 0, source=", ".join(self._sources)
        )

    def _handle(self, chunk: bytes) -> None:
        self._capture.feed(chunk)
        self._live.feed(chunk)

    async def _serve(self, code: str, pause: "Pausable") -> None:
        """Sends the code to the program, and makes the calls it asks for."""
        reader, writer = await self._dialogue.open()
        specs = [msgspec.to_builtins(one.spec) for one in self._tools.values()]
        _send(writer, {"code": code, "tools": specs, "pipe": str(self._dialogue.pipe)})
        try:
            async with asyncio.TaskGroup() as group:
                while line := await reader.readline():
                    request = msgspec.json.decode(line, type=_Request)
                    group.create_task(self._answer(request, writer, pause))
        finally:
            writer.close()  # otherwise the program would wait for an answer that never comes

    async def _answer(
        self, request: _Request, writer: asyncio.StreamWriter, pause: "Pausable"
    ) -> None:
        with pause:
            result = await self._call(request)
        text, source = _unfenced(result.text)
        if source:
            self._sources[source] = None
        if result.images:
            text += f"\n({len(result.images)} pictures can't be seen from code)"
        _send(writer, {"id": request.id, "ok": result.ok, "text": text})
        await writer.drain()

    async def _call(self, request: _Request) -> ToolResult:
        self._calls += 1
        if self._calls > MAX_CALLS:
            return ToolResult(
                text=f"More than {MAX_CALLS} calls can't be made in one run.", ok=False
            )
        found = self._tools.get(request.name)
        if found is None:
            return ToolResult(text=f"There is no tool {request.name!r} here.", ok=False)
        # Calls that only read may run together, as in a reply; calls that change something run alone.
        async with (
            self._together if found.effect in ("read", "network") else self._alone
        ):
            try:
                return await self._context.call(request.name, request.arguments)
            except ToolFailed as error:
                return ToolResult(text=error.message, ok=False)


class Pausable:
    """A timeout that is paused while calls are made, because the user may be asked about one."""

    def __init__(self, seconds: float) -> None:
        self.limit = asyncio.timeout(seconds)
        self._left = seconds
        self._open = 0

    def __enter__(self) -> None:
        when = self.limit.when()
        if self._open == 0 and when is not None:
            self._left = max(0.1, when - asyncio.get_running_loop().time())
            self._reschedule(None)
        self._open += 1

    def __exit__(self, *_: object) -> None:
        self._open -= 1
        if self._open == 0:
            self._reschedule(asyncio.get_running_loop().time() + self._left)

    def _reschedule(self, when: float | None) -> None:
        if not self.limit.expired():
            self.limit.reschedule(when)


def _send(writer: asyncio.StreamWriter, message: Mapping[str, Any]) -> None:
    if not writer.is_closing():
        writer.write(msgspec.json.encode(message) + b"\n")


def _unfenced(text: str) -> tuple[str, str]:
    """Removes the fence around text from outside, which is for models, not for code. Returns the text and its source."""
    fenced = re.fullmatch(_FENCE, text)
    if not fenced:
        return text, ""
    return re.sub(_ESCAPED_TAG, "<", fenced[2]), fenced[1]
