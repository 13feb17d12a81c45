"""The child process of `run_python`: the code around the model's code.

Its text is given to a fresh interpreter, so it imports only the standard library. It exchanges lines of JSON with
Hermes: its input brings the code, the tools and the name of a pipe; it writes requests for calls into that pipe, and
the results arrive on its input. The code itself has no input.
"""

import ast
import inspect
import itertools
import json
import keyword
import linecache
import os
import queue
import sys
import threading
import traceback
import types
from collections.abc import Callable, Mapping
from typing import Any

_NAME = "<code>"


class ToolError(Exception):
    """A tool could not do what it was asked to do."""


class Channel:
    """The connection to Hermes. Several threads may make calls."""

    def __init__(self) -> None:
        self._lines = os.fdopen(os.dup(0), "rb")
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        self._handle = -1
        self._sending = threading.Lock()
        self._numbers = itertools.count(1)
        self._waiting: dict[int, queue.SimpleQueue[dict[str, Any]]] = {}
        self._is_over = False

    def task(self) -> dict[str, Any]:
        """Returns the task; from then on, results are accepted."""
        task: dict[str, Any] = json.loads(self._lines.readline())
        self._handle = os.open(task["pipe"], os.O_WRONLY)
        threading.Thread(target=self._listen, daemon=True).start()
        return task

    def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Makes Hermes call a tool, and waits for the result."""
        number = next(self._numbers)
        answer = self._waiting.setdefault(number, queue.SimpleQueue())
        line = (
            json.dumps({"id": number, "name": name, "arguments": arguments}).encode()
            + b"\n"
        )
        with self._sending:
            view = memoryview(line)
            while view and not self._is_over:
                view = view[os.write(self._handle, view) :]
        if self._is_over:
            raise ToolError("Hermes accepts no more calls.")
        reply = answer.get()
        if not reply["ok"]:
            raise ToolError(reply["text"])
        return str(reply["text"])

    def _listen(self) -> None:
        for line in self._lines:
            reply = json.loads(line)
            self._waiting.pop(reply["id"]).put(reply)
        self._is_over = True
        for answer in list(self._waiting.values()):
            answer.put({"ok": False, "text": "Hermes accepts no more calls."})


def tools_module(
    specs: list[dict[str, Any]], call: Callable[[str, Mapping[str, Any]], str]
) -> types.ModuleType:
    """The module `tools`: one function per tool, with its signature and description."""

    def by_name(name: str, **arguments: Any) -> str:
        """Calls a tool by its name in Hermes."""
        return call(name, arguments)

    module = types.ModuleType("tools")
    functions = [_function(spec, call) for spec in specs]
    listed = "\n".join(
        f"{function.__name__}{inspect.signature(function)}" for function in functions
    )
    module.__doc__ = (
        f"The tools of this session. Each returns text or raises ToolError.\n\n{listed}"
    )
    for function in functions:
        setattr(module, function.__name__, function)
    module.__dict__["ToolError"] = ToolError
    module.__dict__["call"] = by_name
    module.__dict__["__all__"] = [function.__name__ for function in functions]
    return module


def _function(
    spec: dict[str, Any], call: Callable[[str, Mapping[str, Any]], str]
) -> Callable[..., str]:
    properties = spec["parameters"].get("properties", {})
    required = spec["parameters"].get("required", [])
    ordered = sorted((name for name in properties if name.isidentifier() and not keyword.iskeyword(name)),
                     key=lambda name: name not in required)  # fmt: skip
    parameters = [
        inspect.Parameter(
            name,
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=inspect.Parameter.empty
            if name in required
            else properties[name].get("default"),
        )
        for name in ordered
    ]
    signature = inspect.Signature(parameters, return_annotation=str)

    def function(*given: Any, **named: Any) -> str:
        return call(spec["name"], signature.bind(*given, **named).arguments)

    function.__name__ = function.__qualname__ = (
        spec["name"].replace(".", "_").replace("-", "_")
    )
    function.__doc__ = spec["description"]
    function.__dict__["__signature__"] = signature
    return function


def run(code: str, namespace: dict[str, Any]) -> int:
    """Runs the code and shows the value of an expression in its last line. Returns the exit code."""
    linecache.cache[_NAME] = (len(code), None, code.splitlines(keepends=True), _NAME)
    try:
        tree = ast.parse(code, _NAME)
        last = (
            tree.body.pop()
            if tree.body and isinstance(tree.body[-1], ast.Expr)
            else None
        )
        exec(compile(tree, _NAME, "exec"), namespace)  # noqa: S102 - that is what this process is for
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), _NAME, "eval"), namespace)  # noqa: S307
            if value is not None:
                sys.stdout.write(
                    f"{value if isinstance(value, str) else repr(value)}\n"
                )
    except SystemExit as leaving:
        if isinstance(leaving.code, int):
            return leaving.code
        return bool(leaving.code)
    except BaseException as error:  # noqa: BLE001 - the boundary of the model's code: whatever it raises is shown
        sys.stdout.flush()
        sys.stderr.write(short_traceback(error))
        return 1
    return 0


def short_traceback(error: BaseException) -> str:
    """The lines of the model's own code that led to an error, and the error."""
    told = traceback.TracebackException.from_exception(error, lookup_lines=True)
    own = [frame for frame in told.stack if frame.filename == _NAME]
    lines = [f"  line {frame.lineno}: {frame.line}\n" for frame in own[-8:]]
    return "".join(
        [*(["Traceback:\n"] if lines else []), *lines, *told.format_exception_only()]
    )


def main() -> int:
    channel = Channel()
    task = channel.task()
    module = tools_module(task["tools"], channel.call)
    sys.modules["tools"] = module
    return run(task["code"], {"__name__": "__main__", "tools": module})


if __name__ == "__main__":
    sys.exit(main())
