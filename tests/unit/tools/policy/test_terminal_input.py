"""Input for programs that run: the whole line counts, and who reads it."""

from pathlib import Path

import pytest

from hermes.core.ports import PolicyDecision
from hermes.schema.events import Reach
from hermes.schema.tool_spec import ToolSpec
from hermes.tools.policy import ApprovalPolicy, Circumstances, Mode
from hermes.tools.process.background import Processes

HOME = Path("/users-that-are-not/me")
CWD = HOME / "work"


class Running:
    """Programs in the background, as the owner of the tool knows them."""

    def __init__(
        self, command: str, before: str = "", reach: Reach = "workspace"
    ) -> None:
        self._known: tuple[Reach, str] = (reach, command)
        self._before = before

    def typed(self, handle: str) -> str:
        return self._before if handle == "p1" else ""

    def about(self, handle: str) -> tuple[Reach, str]:
        return self._known if handle == "p1" else ("workspace", "")


class Process:
    """The tool as the policy sees it."""

    spec = ToolSpec(name="process_write", description="", parameters={})
    effect = "other"

    def __init__(self, owner: object = None) -> None:
        self.owner = owner

    def paths(self, arguments: object, cwd: object) -> tuple[Path, ...]:
        return ()


def judged(
    owner: object, text: str, mode: Mode = "ask", **more: bool
) -> PolicyDecision:
    sandboxed, strict = more.get("sandboxed", True), more.get("strict", False)
    policy = ApprovalPolicy(
        mode, Circumstances(HOME / ".hermes", HOME, sandboxed, strict)
    )
    return policy.judge(Process(owner), {"id": "p1", "text": text}, CWD)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("command", "before", "text", "verdict"),
    [
        ("bash", "", "ls\n", "allow"),
        ("bash", "", "rm -rf src\n", "ask"),
        ("bash", "", "rm -rf /\n", "forbid"),
        ("bash", "rm -rf ", "src\n", "ask"),
        ("bash", "rm -rf", " /\n", "forbid"),
        ("bash", "", "y\n", "ask"),
        ("bash", "", "rm \\\n", "ask"),
        ("bash", "", "ls \\\n", "ask"),
        ("bash", "", "ls \\", "ask"),
        ("bash", "", "[ a ] \\\n", "ask"),
        ("npm init", "", "y\n", "allow"),
        ("npm init", "", "rm -rf src\n", "ask"),
        ("env A=1 bash -i", "", "payload\n", "ask"),
        ("python3 -i", "", "print(1)\n", "allow"),
        ("python3 -i", "import shutil; ", "shutil.rmtree('src')\n", "ask"),
        ("node", "", "require('child_process')\n", "ask"),
        ("ssh host", "", "y\n", "ask"),
        ("$X", "", "y\n", "ask"),
    ],
)
def test_the_whole_line_counts_and_who_reads_it(
    command: str, before: str, text: str, verdict: str
) -> None:
    assert judged(Running(command, before), text).verdict == verdict


def test_more_than_the_workspace_is_always_asked_about() -> None:
    decision = judged(Running("npm init", reach="machine"), "y\n")
    assert (decision.verdict, decision.reach, decision.memorable) == (
        "ask",
        "machine",
        False,
    )
    assert judged(Running("npm init", reach="network"), "y\n").verdict == "ask"
    assert (
        judged(Running("npm init", reach="machine"), "y\n", "full").reach == "machine"
    )


def test_where_nothing_is_known_of_the_line_it_must_be_whole() -> None:
    assert [judged(None, text).verdict for text in ("ls\n", "rm ", "y\n")] == [
        "allow",
        "ask",
        "ask",
    ]


def test_the_mode_and_careful_policies_count() -> None:
    shell, prompt = Running("bash"), Running("npm init")
    assert judged(shell, "rm -rf src\n", "full").verdict == "allow"
    assert judged(shell, "$(x)\n", "full").verdict == "ask"
    assert [
        judged(prompt, "y\n", sandboxed=False).verdict,
        judged(prompt, "y\n", strict=True).verdict,
    ] == ["ask"] * 2


def test_the_tool_that_types_is_the_one_the_policy_knows(tmp_path: Path) -> None:
    processes = Processes.process_write.__get__(Running("bash", "rm -rf"), Processes)
    policy = ApprovalPolicy(
        "full", Circumstances(HOME / ".hermes", HOME, sandboxed=True)
    )
    assert (
        policy.judge(processes, {"id": "p1", "text": " /\n"}, tmp_path).verdict
        == "forbid"
    )
