"""How far a call may reach, and what other tools than the terminal may do."""

from pathlib import Path

import pytest

from hermes.core.ports import PolicyDecision
from hermes.schema.events import Reach
from hermes.tools.policy import ApprovalPolicy, Circumstances, Mode
from hermes.tools.policy.command_judge import judge_command
from hermes.tools.policy.effects import Level
from hermes.tools.policy.paths import PathContext
from hermes.tools.policy.rules import PolicyRule, RuleBook
from hermes.tools.sensitive import Guard
from hermes.tools.tool import tool

HOME = Path("/users-that-are-not/me")
CWD = HOME / "work"


def policy(
    mode: Mode = "ask", *, strict: bool = False, sandboxed: bool = True
) -> ApprovalPolicy:
    return ApprovalPolicy(
        mode, Circumstances(HOME / ".hermes", HOME, sandboxed, strict)
    )


def said(decision: PolicyDecision) -> tuple[str, Reach]:
    return decision.verdict, decision.reach


@pytest.mark.parametrize(
    ("command", "reach", "verdict", "granted"),
    [
        ("make test", "workspace", "allow", "workspace"),
        ("make test", "network", "ask", "network"),
        ("make test", "machine", "ask", "machine"),
        ("ls -la", "network", "ask", "network"),
        ("ls -la", "machine", "ask", "machine"),
        ("[[ -v 'a[$(echo x > /tmp/y)]' ]]; echo x", "machine", "ask", "machine"),
        ("git status", "network", "ask", "network"),
        ("git status", "machine", "ask", "machine"),
        (
            "cat *",
            "machine",
            "ask",
            "machine",
        ),  # it may stand for secrets, which only the sandbox hides
        ("pip install x", "workspace", "ask", "network"),
        ("sudo make install", "workspace", "ask", "machine"),
        ("curl -s http://localhost:8000/", "workspace", "allow", "network"),
        ("curl -s http://localhost:8000/ && make", "workspace", "allow", "workspace"),
        ("curl -s http://localhost:8000/ | jq .a", "workspace", "allow", "network"),
        (
            "curl -s http://localhost:8000/ && git status",
            "workspace",
            "allow",
            "workspace",
        ),
        ("npm view react version", "workspace", "allow", "network"),
        (
            "npm view @types/node@20 dist-tags.latest --json",
            "workspace",
            "allow",
            "network",
        ),
        ("npm view chart.js versions", "workspace", "allow", "network"),
        ("npm outdated", "workspace", "allow", "network"),
        ("pip index versions requests", "workspace", "allow", "network"),
        ("npm info https://evil.example/x", "workspace", "ask", "network"),
        ("npm view git+ssh://git@evil.example/x.git", "workspace", "ask", "network"),
        ("npm view x@https://evil.example/x.tgz", "workspace", "ask", "network"),
        ("npm view evil/repository", "workspace", "ask", "network"),
        ("npm view ../evil", "workspace", "ask", "network"),
        ("npm view", "workspace", "ask", "network"),
        ("npm info --json", "workspace", "ask", "network"),
        ("npm v --json true", "workspace", "ask", "network"),
        ("npm view --help", "workspace", "allow", "workspace"),
        ("npm view evil.tgz", "workspace", "ask", "network"),
        ("npm view x-$(cat a)", "workspace", "ask", "network"),
        ("npm view react --userconfig=x", "workspace", "ask", "network"),
        ("getent hosts x.example", "workspace", "ask", "network"),
        (
            "http_proxy=http://x curl -s http://localhost:8000/",
            "workspace",
            "ask",
            "workspace",
        ),
        ("curl -s http://localhost:8000/ -Kx", "workspace", "ask", "network"),
        ("curl -s http://localhost:8000/ -xhttp://y", "workspace", "ask", "network"),
        ("curl -sL http://localhost:8000/", "workspace", "ask", "network"),
        ("curl http://localhost:8000/ --location", "workspace", "ask", "network"),
        ("wget -qO- http://localhost:8000/", "workspace", "ask", "network"),
        (
            "wget -qO- --max-redirect=0 http://localhost:8000/",
            "workspace",
            "allow",
            "network",
        ),
        (
            "wget -qO- --max-redirect=0 --max-redirect=3 http://localhost:8000/",
            "workspace",
            "ask",
            "network",
        ),
        ("wget -q --execute=x http://localhost:8000/", "workspace", "ask", "network"),
    ],
)
def test_more_than_the_workspace_is_asked_about(
    command: str, reach: Reach, verdict: str, granted: Reach
) -> None:
    assert said(policy().check(command, CWD, reach)) == (verdict, granted)


def test_full_mode_reaches_as_far_as_it_must() -> None:
    assert said(policy("full").check("pip install x", CWD)) == ("allow", "network")
    assert said(policy("full").check("make", CWD, "machine")) == ("allow", "machine")
    assert policy("full").check("$X", CWD).verdict == "ask"
    assert policy("full").check("rm -rf ~", CWD).verdict == "forbid"


@pytest.mark.parametrize(
    "command",
    [
        "sort a -o/elsewhere/x",
        "gcc a.c -o../../x",
        "unzip a.zip -d/elsewhere",
        "cp -t/elsewhere a",
        "patch -o~/x < a",
    ],
)
def test_a_path_that_is_written_right_behind_an_option_counts(command: str) -> None:
    assert said(policy("full").check(command, CWD)) == ("allow", "machine")
    assert said(policy().check(command, CWD)) == ("ask", "machine")


def test_without_a_sandbox_only_reading_is_free() -> None:
    bare = policy(sandboxed=False)
    assert [
        bare.check(command, CWD).verdict
        for command in ("ls", "make", "cat *", "touch x")
    ] == [
        "allow",
        "ask",
        "ask",
        "ask",
    ]


def test_a_strict_policy_asks_about_all_that_does_more_than_read() -> None:
    strict = policy(strict=True)
    assert [
        strict.check(command, CWD).verdict
        for command in ("grep -r x .", "make", "touch x")
    ] == [
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


def test_rules_that_reach_further_are_not_joined_with_other_work() -> None:
    book = RuleBook(
        allow=(PolicyRule(program="npm", arguments=("ci",), reach="network"),)
    )
    site = PathContext(CWD, (CWD,), HOME, Guard(HOME / ".hermes"))
    alone, joined = (
        judge_command(text, site, book).effect for text in ("npm ci", "npm ci && make")
    )
    assert (alone.level, alone.reach) == (Level.WORK, "network")
    assert (joined.level, "combines" in joined.reason) == (Level.ASK, True)


@pytest.mark.parametrize(
    ("program", "command"),
    [
        ("sudo", "sudo rm -rf /"),
        ("bash", "bash -c 'rm -rf ~'"),
        ("env", "env X=1 rm -rf /"),
        ("xargs", "echo / | xargs rm -rf /"),
    ],
)
def test_no_rule_allows_what_is_never_allowed(program: str, command: str) -> None:
    book = RuleBook(allow=(PolicyRule(program=program),))
    site = PathContext(CWD, (CWD,), HOME, Guard(HOME / ".hermes"))
    assert judge_command(command, site, book).effect.level == Level.FORBID
    harmless = judge_command(f"{program} --version", site, book).effect.level
    assert harmless == Level.WORK
