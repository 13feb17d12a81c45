"""How far a call may reach, and what other tools than the terminal may do."""

from pathlib import Path

import pytest

from hermes.core.ports import Decision
from hermes.schema.events import Reach
from hermes.tools.policy import ApprovalPolicy, Circumstances, Mode
from hermes.tools.tool import tool

HOME = Path("/users-that-are-not/me")
CWD = HOME / "work"


def policy(mode: Mode = "ask", *, strict: bool = False, sandboxed: bool = True) -> ApprovalPolicy:
    return ApprovalPolicy(mode, Circumstances(HOME / ".hermes", HOME, sandboxed, strict))


def said(decision: Decision) -> tuple[str, Reach]:
    return decision.verdict, decision.reach


@pytest.mark.parametrize(
    ("command", "reach", "verdict", "granted"),
    [
        ("make test", "workspace", "allow", "workspace"),
        ("make test", "network", "ask", "network"),
        ("make test", "machine", "ask", "machine"),
        ("ls -la", "network", "allow", "network"),
        ("ls -la", "machine", "allow", "machine"),
        ("cat *", "machine", "ask", "machine"),  # it may stand for secrets, which only the sandbox hides
        ("pip install x", "workspace", "ask", "network"),
        ("sudo make install", "workspace", "ask", "machine"),
        ("curl -s http://localhost:8000/", "workspace", "allow", "network"),
        ("curl -s http://localhost:8000/ && make", "workspace", "allow", "workspace"),
    ],
)
def test_more_than_the_workspace_is_asked_about(command: str, reach: Reach, verdict: str, granted: Reach) -> None:
    assert said(policy().check(command, CWD, reach)) == (verdict, granted)


def test_full_mode_reaches_as_far_as_it_must() -> None:
    assert said(policy("full").check("pip install x", CWD)) == ("allow", "network")
    assert said(policy("full").check("make", CWD, "machine")) == ("allow", "machine")
    assert policy("full").check("$X", CWD).verdict == "ask"
    assert policy("full").check("rm -rf ~", CWD).verdict == "forbid"


def test_without_a_sandbox_only_reading_is_free() -> None:
    bare = policy(sandboxed=False)
    assert [bare.check(command, CWD).verdict for command in ("ls", "make", "cat *", "touch x")] == [
        "allow",
        "ask",
        "ask",
        "ask",
    ]


def test_a_strict_policy_asks_about_all_that_does_more_than_read() -> None:
    strict = policy(strict=True)
    assert [strict.check(command, CWD).verdict for command in ("grep -r x .", "make", "touch x")] == [
        "allow",
        "ask",
        "ask",
    ]


def test_looking_something_up_is_free_unless_the_policy_is_strict() -> None:
    @tool("look", effect="network")
    async def look(url: str) -> str:
        """Looks."""
        return url

    arguments = {"url": "https://example.org/a"}
    assert said(policy().judge(look, arguments, CWD)) == ("allow", "network")
    assert policy(strict=True).judge(look, arguments, CWD).verdict == "ask"


def test_python_of_the_model_is_judged_by_what_it_can_do() -> None:
    @tool("run_python", effect="other")
    async def run_python(code: str) -> str:
        """Runs."""
        return code

    def verdict(code: str, **more: bool) -> str:
        return policy("ask", **more).judge(run_python, {"code": code}, CWD).verdict

    assert verdict("print(sum(range(9)))") == "allow"
    assert verdict("print(1)", sandboxed=False) == "ask"
    assert verdict("import shutil; shutil.rmtree('src')") == "ask"
    assert verdict("print(") == "ask"


def test_typing_into_a_program_is_judged_as_if_it_were_a_shell() -> None:
    @tool("process", effect="read")
    async def process(action: str, text: str = "") -> str:
        """Looks after programs."""
        return action + text

    def verdict(text: str, action: str = "write", mode: Mode = "ask", **more: bool) -> str:
        return policy(mode, **more).judge(process, {"action": action, "text": text}, CWD).verdict

    assert [verdict(text) for text in ("y\n", "ls\n", "rm -rf src\n", "rm -rf /\n")] == [
        "allow",
        "allow",
        "ask",
        "forbid",
    ]
    assert [verdict("rm -rf src\n", action="poll"), verdict("rm -rf src\n", mode="full")] == ["allow", "allow"]
    assert [verdict("y\n", sandboxed=False), verdict("y\n", strict=True)] == ["ask", "ask"]
