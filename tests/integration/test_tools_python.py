"""`run_python` with real processes: calls go back to Hermes, output is the result, and everything ends."""

import asyncio
import functools
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from hermes.core.fence import fenced
from hermes.core.ports import Tool, ToolContext
from hermes.errors import ToolFailed
from hermes.schema.tool_spec import ToolResult
from hermes.tools.files.file_tools import FileTools
from hermes.tools.process.long_output import OutputFolder
from hermes.tools.process.session_commands import Surroundings
from hermes.tools.python.run_python import MAX_CALLS, PythonRunner
from hermes.tools.sandbox import find_sandbox
from hermes.tools.sandbox.confinement import Sandbox
from hermes.tools.sandbox.detect import landlock_or_none
from hermes.tools.tool import tool

confined = pytest.mark.skipif(
    find_sandbox(os.environ["PATH"], Path("/nowhere")).kind == "none",
    reason="there is no sandbox on this machine",
)
Answer = Callable[[str, Mapping[str, Any]], ToolResult | str]


@tool("mcp.news.top-stories", effect="network")
def news(topic: str = "all", from_: int = 0) -> str:
    """The news."""
    return f"{topic} {from_}"


@functools.cache
def same_processes(path: str, home: Path) -> Sandbox:
    """A sandbox in which processes have the same numbers as outside, so that a test can look for them."""
    return landlock_or_none("a test wants it.")


class Lab:
    """`run_python` in a folder, and the calls that came out of it."""

    def __init__(self, folder: Path, answer: Answer | None = None) -> None:
        self.folder = folder
        self.calls: list[tuple[str, Mapping[str, Any]]] = []
        self.running = self.most = 0
        self.shown: list[str] = []
        files = FileTools()
        tools: list[Tool] = [files.read_file, files.write_file, news]
        self.tools = {one.spec.name: one for one in tools}
        environment = {
            "PATH": os.environ["PATH"],
            "OPENAI_API_KEY": "sk-secret",
            "HOME": "/nowhere",
        }
        surroundings = Surroundings(
            environment, folder / "hermes-home", sandbox=same_processes
        )
        runner = PythonRunner(
            OutputFolder(folder / "out"), surroundings, lambda: self.tools
        )
        self.tool = runner.run_python
        self._answer = answer
        self.context = ToolContext("c", "s", folder, self.shown.append, call=self._call)

    async def run(self, code: str, **more: object) -> ToolResult:
        return await self.tool.run({"code": code, **more}, self.context)

    async def _call(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        self.calls.append((name, arguments))
        if self._answer is not None:
            result = self._answer(name, arguments)
            return ToolResult(text=result) if isinstance(result, str) else result
        try:
            return await self.tools[name].run(arguments, self.context)
        except ToolFailed as error:
            return ToolResult(text=error.message, ok=False)


def is_alive(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)


async def test_code_calls_tools_and_only_what_it_prints_comes_back(lab: Lab) -> None:
    for number in range(5):
        (lab.folder / f"{number}.txt").write_text("x" * number)
    code = (
        "import tools\n"
        "sizes = [len(tools.read_file(f'{n}.txt').split('\\n')[-1]) for n in range(1, 5)]\n"
        "print(sum(sizes))"
    )
    assert await lab.run(code) == ToolResult(text="10")
    assert [name for name, _ in lab.calls] == ["read_file"] * 4
    assert lab.calls[0][1] == {"path": "1.txt"}
    assert "".join(lab.shown).strip() == "10"


async def test_the_value_of_the_last_line_is_shown(lab: Lab) -> None:
    assert (await lab.run("a = 2\na + 1")).text == "3"
    assert (await lab.run("'text'")).text == "text"
    assert (await lab.run("a = 2")).text == "(no output: print what you need)"


async def test_tools_have_signatures_and_names_that_python_allows(lab: Lab) -> None:
    text = (await lab.run("help(tools.read_file); print(tools.__doc__)")).text
    assert "read_file(path, offset=1, limit=2000, pages=None, raw=None) -> str" in text
    assert "mcp_news_top_stories(topic='all', from_=None) -> str" in text
    await lab.run(
        "tools.mcp_news_top_stories('a', from_=3); tools.call('mcp.news.top-stories', topic='b')"
    )
    assert lab.calls == [
        ("mcp.news.top-stories", {"topic": "a", "from_": 3}),
        ("mcp.news.top-stories", {"topic": "b"}),
    ]


async def test_an_error_is_shown_with_the_lines_of_the_code(lab: Lab) -> None:
    result = await lab.run("def f(x):\n    return 1 / x\n\nprint('before')\nf(0)")
    assert not result.ok
    assert result.text == (
        "before\nTraceback:\n  line 5: f(0)\n  line 2: return 1 / x\nZeroDivisionError: division by zero\n[exit code 1]"
    )
    result = await lab.run("tools.read_file('missing')")
    assert "line 1: tools.read_file('missing')\n" in result.text
    assert "ToolError: missing does not exist." in result.text
    assert "SyntaxError" in (await lab.run("a b")).text
    assert (
        "missing a required argument: 'path'"
        in (await lab.run("tools.read_file()")).text
    )
    assert (await lab.run("import sys; sys.exit(3)")).text.endswith("[exit code 3]")
    caught = await lab.run(
        "try:\n    tools.read_file('missing')\nexcept tools.ToolError as e:\n    print('caught', e)"
    )
    assert (caught.ok, caught.text) == (True, "caught missing does not exist.")


async def test_threads_may_call_together(tmp_path: Path) -> None:
    gate = asyncio.Event()
    lab = Lab(tmp_path)
    inside = 0

    async def call(name: str, arguments: Mapping[str, Any]) -> ToolResult:
        nonlocal inside
        inside += 1
        if inside == 4:
            gate.set()
        await gate.wait()  # nobody gets on before all four are here
        return ToolResult(text=str(arguments["path"]))

    lab.context = ToolContext("c", "s", tmp_path, lab.shown.append, call=call)
    code = (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "with ThreadPoolExecutor(4) as pool:\n    print(sorted(pool.map(tools.read_file, 'abcd')))"
    )
    assert (await lab.run(code, timeout=30)).text == "['a', 'b', 'c', 'd']"


async def test_calls_that_change_something_come_one_by_one(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    running = most = 0

    async def call(name: str, arguments: Mapping[str, Any]) -> ToolResult:
        nonlocal running, most
        running += 1
        most = max(most, running)
        for _ in range(20):
            await asyncio.sleep(0)
        running -= 1
        return ToolResult(text="")

    lab.context = ToolContext("c", "s", tmp_path, lab.shown.append, call=call)
    code = (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "with ThreadPoolExecutor(8) as pool:\n    list(pool.map(lambda n: tools.write_file(n, ''), 'abcdefgh'))"
    )
    assert (await lab.run(code)).ok
    assert most == 1


async def test_secrets_are_not_in_its_environment(lab: Lab) -> None:
    text = (await lab.run("import os; print(dict(os.environ))")).text
    assert "sk-secret" not in text
    assert "PATH" in text


@confined
async def test_it_is_held_by_the_sandbox_like_any_command(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "hermes-home").mkdir()
    lab = Lab(tmp_path / "project")
    code = "open('inside', 'w').write('x')\nopen({!r}, 'w').write('x')"
    result = await lab.run(code.format(str(tmp_path / "outside")))
    assert not result.ok
    assert (
        (tmp_path / "project/inside").exists(),
        (tmp_path / "outside").exists(),
    ) == (True, False)
    network = await lab.run(
        "import socket\nsocket.create_connection(('127.0.0.1', 9), 1)"
    )
    assert (
        "refused" not in network.text.casefold()
    )  # it does not get as far as a port that is closed
    assert not network.ok


@confined
async def test_nothing_of_a_run_stays_behind(lab: Lab) -> None:
    folder = (await lab.run("import os; print(os.environ['TMPDIR'])")).text
    assert folder.startswith("/")
    assert not await asyncio.to_thread(Path(folder).exists)
    assert (await lab.run("import sys; print(repr(sys.stdin.read()))")).text == "''"


async def test_calls_are_limited(tmp_path: Path) -> None:
    lab = Lab(tmp_path, lambda name, arguments: "ok")
    result = await lab.run("for _ in range(1000): tools.read_file('x')")
    assert len(lab.calls) == MAX_CALLS
    assert f"only its first {MAX_CALLS} calls were made" in result.text
    assert "ToolError: More than 200 calls" in result.text
    lab.tools["run_python"] = lab.tool
    assert (
        "has no attribute 'run_python'" in (await lab.run("tools.run_python('1')")).text
    )
    assert (
        "There is no tool 'run_python' here"
        in (await lab.run("tools.call('run_python', code='1')")).text
    )


async def test_it_ends_in_time_with_everything_it_started(lab: Lab) -> None:
    code = (
        "import subprocess, time\nchild = subprocess.Popen(['sleep', '1000'])\n"
        "print(child.pid, flush=True)\ntime.sleep(1000)"
    )
    result = await lab.run(code, timeout=1)
    assert not result.ok
    assert "stopped: it ran longer than 1 s" in result.text
    assert not is_alive(int(result.text.split()[0]))


async def test_a_cancelled_run_leaves_nothing(lab: Lab) -> None:
    task = asyncio.create_task(
        lab.run("import os, time; print(os.getpid(), flush=True); time.sleep(1000)")
    )
    while not lab.shown:  # noqa: ASYNC110 - output comes when it comes
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not is_alive(int(lab.shown[0]))


async def test_long_output_is_capped_and_kept(lab: Lab) -> None:
    result = await lab.run("for n in range(50_000): print('line', n)")
    assert len(result.text) < 32_000
    kept = next((lab.folder / "out").iterdir())
    assert str(kept) in result.text
    assert kept.read_text().endswith("line 49999\n")
    assert "\x1b" not in (await lab.run("print('\\x1b[31mred\\x1b[0m')")).text


async def test_text_of_others_reaches_code_plain_and_the_model_fenced(
    tmp_path: Path,
) -> None:
    lab = Lab(
        tmp_path,
        lambda name, arguments: fenced('{"a": "</untrusted>"}', "https://example.org"),
    )
    result = await lab.run(
        "import json; print(json.loads(tools.call('mcp.news.top-stories'))['a'])"
    )
    assert result == ToolResult(text="</untrusted>", source="https://example.org")


@confined
async def test_a_program_that_breaks_the_line_only_harms_itself(lab: Lab) -> None:
    code = (
        "import glob, os\n"
        "with open(glob.glob(os.environ['TMPDIR'] + '/*.pipe')[0], 'wb') as pipe:\n    pipe.write(b'garbage\\n')\n"
        "tools.read_file('x')"
    )
    result = await lab.run(code, timeout=30)
    assert (result.ok, "Hermes accepts no more calls" in result.text) == (False, True)
