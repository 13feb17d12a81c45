"""The tools as a turn calls them: logged, judged, approved; also the calls that code makes."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from hermes.core.calls import CallRunner, CallScope
from hermes.core.ports import PolicyDecision, Tool
from hermes.providers.embedded.tool_verbs import OfferedTools
from hermes.schema.event_base import Event
from hermes.schema.events import (
    ApprovalAnswered,
    ApprovalRequested,
    QuestionAnswered,
    QuestionAsked,
    ToolStarted,
)
from hermes.schema.messages import ToolCall, ToolFinished
from hermes.tools import Needs, session_tools
from hermes.tools.toolsets import ToolChoice


class Book:
    """A journal that keeps what is written."""

    def __init__(self) -> None:
        self.rows: list[Event] = []

    async def record(self, *events: Event) -> tuple[int, ...]:
        self.rows += events
        return tuple(range(len(events)))

    def note(self, *events: Event) -> None:
        self.rows += events

    async def flush(self) -> None:
        pass

    async def nothing_under_way(self) -> None:
        pass

    def show(self, event: Event) -> None:
        pass


class Rules:
    """Forbids secrets, asks about every change."""

    def judge(
        self, tool: Tool, arguments: Mapping[str, Any], cwd: Path
    ) -> PolicyDecision:
        paths = tool.paths(arguments, cwd)
        if any(path.name == ".env" for path in paths):
            return PolicyDecision("forbid", reason="it is secret")
        return (
            PolicyDecision("ask", " ".join(map(str, paths)))
            if tool.effect == "files"
            else PolicyDecision("allow")
        )

    def remember(self, request: ApprovalRequested, rule: str = "") -> None:
        pass


class Person:
    """Answers what is asked."""

    def __init__(self, answer: str | None = "blue") -> None:
        self.asked: list[str] = []
        self._answer = answer

    async def ask(self, request: ApprovalRequested) -> ApprovalAnswered:
        self.asked.append(f"{request.name} {request.summary}")
        return ApprovalAnswered(call_id=request.call_id, answer="deny", by="user")

    async def question(self, request: QuestionAsked) -> QuestionAnswered:
        self.asked.append(f"{request.text} {request.options}")
        return QuestionAnswered(
            call_id=request.call_id,
            text=self._answer,
            by="user" if self._answer else "nobody",
        )


class Bench:
    """A session's tools behind the real runner of calls."""

    def __init__(
        self,
        folder: Path,
        person: Person | None = None,
        choice: ToolChoice = ToolChoice(),  # noqa: B008
    ) -> None:
        self.folder = folder.resolve()
        self.book, self.person = Book(), person or Person()
        environment = {"PATH": os.environ["PATH"]}
        home = self.folder / "home"
        self.tools = session_tools(
            Needs(
                outputs=home / "cache/outputs",
                environment=environment,
                hermes_home=home,
                choice=choice,
            )
        )
        self._runner = CallRunner(self.tools, Rules(), self.person)

    async def call(self, name: str, **arguments: object) -> ToolFinished:
        call = ToolCall(
            id="c1", name=name, arguments=msgspec.json.encode(arguments).decode()
        )
        place = CallScope(self.book, "s", "t", self.folder)
        await self._runner.run(place, self._runner.prepare([call]), [])
        last = self.book.rows[-1]
        assert isinstance(last, ToolFinished)
        return last


async def test_calls_from_code_are_logged_judged_and_approved(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    (tmp_path / "a").write_text("text of a")
    (tmp_path / ".env").write_text("KEY=precious")
    code = (
        "print(tools.read_file('a'))\n"
        "for call in (lambda: tools.read_file('.env'), lambda: tools.write_file('b', 'x')):\n"
        "    try:\n        print(call())\n    except tools.ToolError as error:\n        print('refused:', error)"
    )
    result = await bench.call("run_python", code=code)
    assert "text of a" in result.text
    assert "refused: Not run: forbidden by policy: it is secret" in result.text
    assert "refused: Not run: the user said no" in result.text
    assert "precious" not in result.text
    assert bench.person.asked == [f"write_file {bench.folder}/b"]
    assert not (tmp_path / "b").exists()
    rows = [
        (type(row), row.call_id, row.name)
        for row in bench.book.rows
        if isinstance(row, ToolStarted | ToolFinished)
    ]
    assert rows == [
        (ToolStarted, "c1", "run_python"),
        (ToolStarted, "c1/1", "read_file"), (ToolFinished, "c1/1", "read_file"),
        (ToolStarted, "c1/2", "read_file"), (ToolFinished, "c1/2", "read_file"),
        (ToolStarted, "c1/3", "write_file"), (ToolFinished, "c1/3", "write_file"),
        (ToolFinished, "c1", "run_python"),
    ]  # fmt: skip


async def test_code_sees_only_the_tools_that_are_offered(tmp_path: Path) -> None:
    bench = Bench(tmp_path, choice=ToolChoice(disabled=("write_file",)))
    result = await bench.call(
        "run_python",
        code="print(hasattr(tools, 'read_file'), hasattr(tools, 'write_file'))",
    )
    assert result.text == "True False"


async def test_every_file_of_a_patch_is_judged(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    (tmp_path / "a").write_text("1\n")
    patch = "*** Begin Patch\n*** Update File: a\n@@\n-1\n+2\n{}*** End Patch"
    harmless = await bench.call("apply_patch", patch=patch.format(""))
    assert (harmless.ok, bench.person.asked) == (
        False,
        [f"apply_patch {bench.folder}/a"],
    )
    secret = await bench.call(
        "apply_patch", patch=patch.format("*** Add File: .env\n+x\n")
    )
    assert "forbidden by policy" in secret.text
    assert (tmp_path / "a").read_text() == "1\n"


async def test_a_question_reaches_the_user(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    assert (
        await bench.call("ask_user", question="Which colour?", options=["red", "blue"])
    ).text == "blue"
    assert bench.person.asked == ["Which colour? ('red', 'blue')"]
    nobody = await Bench(tmp_path, Person(None)).call(
        "ask_user", question="Which colour?"
    )
    assert (nobody.ok, nobody.text.startswith("Nobody can be asked here.")) == (
        False,
        True,
    )


def test_the_embedded_model_sees_the_tools_it_knows(tmp_path: Path) -> None:
    tools = Bench(tmp_path).tools.values()
    every, first = (
        OfferedTools(one.spec for one in tools),
        OfferedTools([one.spec for one in tools][:7]),
    )
    assert every.verbs == first.verbs
    assert len(every.verbs) >= 7
