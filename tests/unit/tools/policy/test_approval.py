"""The policy as tables: what is free, what is asked about, what is never done."""

from pathlib import Path
from typing import Literal

import pytest

from hermes.tools import default_tools
from hermes.tools.policy import ApprovalPolicy, Circumstances, Mode
from hermes.tools.tool import tool

HOME = Path("/users-that-are-not/me")
OURS = HOME / ".hermes"
CWD = HOME / "project"
TOOLS = default_tools(OURS / "cache" / "out", environment={}, hermes_home=OURS)


def policy(
    mode: Mode = "ask", *, strict: bool = False, sandboxed: bool = False
) -> ApprovalPolicy:
    return ApprovalPolicy(mode, Circumstances(OURS, HOME, sandboxed, strict))


def verdict(
    mode: Mode, name: str, *, strict: bool = False, **arguments: object
) -> Literal["allow", "ask", "forbid"]:
    return policy(mode, strict=strict).judge(TOOLS[name], arguments, CWD).verdict


READ_ONLY = [
    "ls",
    "ls -la src",
    "pwd",
    "cat README.md",
    "head -n 20 src/a.py",
    "wc -l a b",
    "grep -n 'def main' src/a.py",
    "echo hello",
    "cat .env.example",
    "ls; id",
    "l\\s",
    "cd src && ls | wc -l",
    "cat a 2>/dev/null || echo none",
]
ASKED = [
    "git status",
    "git log --oneline -5",
    "[[ -n x ]]; ls",
    "((1)); ls",
    "ls $((1))",
    "f() { ls; }; ls",
    "if true; then ls; fi",
    "ls $'a'",
    "cat .env",
    "cat ~/.ssh/id_rsa",
    "cat /etc/shadow",
    f"cat {OURS}/config.yaml",
    "cat /proc/self/environ",
    "git show HEAD:.env",
    "ls && rm x",
    "cd ~/.ssh && cat config",
    "echo $(id)",
    "ls | sh",
    "ls > x",
    "cat $(echo x)",
    "cat `x`",
    "cat $HOME/x",
    "cat *",
    "cat <x",
    "ls\nrm x",
    "ls #\r rm",
    "./ls",
    "/opt/ls",
    "PATH=. ls",
    "git -c core.pager=x log",
    "git diff --output=x",
    "git diff --ext-diff",
    "git branch new",
    "git branch -D main",
    "git push",
    "git",
    "grep -r x .",
    "grep --include=x -f y z",
    "date -s 1",
    "find . -delete",
    "sort -o x y",
    "python3 x.py",
    "npm test",
    "rm x",
    "sudo ls",
    "echo 'unclosed",
    "ｌｓ",
]
FORBIDDEN = [
    "rm -rf /",
    "rm -rf /*",
    "rm 2>/dev/null -rf /",
    "rm -rf / > out.txt",
    "rm(){ :; }; rm -rf /",
    "echo 'rm -rf /' > x.sh; sh x.sh",
    "cat x | tee >(rm -rf /)",
    "rm -fr ~",
    "rm -r -f ~/",
    'rm -rf "$HOME"',
    "rm -rf ${HOME}/*",
    "rm --recursive --force /",
    "rm / -rf",
    '"r"m -rf /',
    "r\\m -rf /",
    "/bin/rm -rf -- /etc",
    "rm -rf ..",
    f"rm -rf {HOME}",
    "rm -rf a/../../../me",
    "sudo rm -rf /",
    "sudo -n env X=1 rm -rf /usr",
    "ls; rm -rf /",
    "true && (rm -rf ~)",
    "if true; then rm -rf /; fi",
    "echo $(rm -rf /)",
    'echo "$(rm -rf ~)"',
    "echo `rm -rf ~`",
    "bash -c 'rm -rf /'",
    "sh -ec 'sudo rm -rf ~'",
    "eval 'rm -rf /'",
    "find / -delete",
    "find ~ -exec rm {} +",
    "chmod -R 777 /",
    "chown -R me ~",
    "mv ~ /tmp/x",
    "mkfs.ext4 /dev/sda1",
    "dd if=/dev/zero of=/dev/sda",
    "cat x > /dev/nvme0n1",
    "shred /dev/sda",
    "wipefs -a /dev/vda",
    ":(){ :|:& };:",
    "bomb() { bomb | bomb & }; bomb",
    "shutdown -h now",
    "sudo reboot",
    "systemctl poweroff",
    "init 0",
    "kill -9 -1",
]
ORDINARY = [
    "rm -rf build",
    "rm -rf ./node_modules",
    "rm -f ~/x.txt",
    "echo 'rm -rf /'",
    "grep -rn 'rm -rf /' docs",
    "git commit -m 'stop; rm -rf / is bad'",
    "dd if=a of=b",
    "echo x > /dev/null",
    "find . -name '*.pyc' -delete",
    "mkdir -p a && cd a && ls | wc -l",
    "cat <<'EOF' > x\nit's rm -rf / here\nEOF",
    "# it's a comment\nls",
    "for f in *.txt; do echo $f; done",
    "npm run shutdown",
    "python3 -c 'print(1)'",
    "[ -e x ] && make test",
]
UNCLEAR = [
    "$(echo cm0= | base64 -d) -rf ~/x",
    "$X y",
    "/bin/r? -rf x",
    "`echo rm` x",
    "echo 'open",
    'echo "$(open"',
    "cat <<X\nno end",
]


@pytest.mark.parametrize("command", READ_ONLY)
def test_commands_that_only_read_are_free(command: str) -> None:
    assert verdict("ask", "terminal", command=command) == "allow"
    assert verdict("ask", "terminal", command=command, strict=True) == "allow"


@pytest.mark.parametrize("command", ASKED)
def test_other_commands_are_asked_about(command: str) -> None:
    for mode in ("ask", "auto-edit"):
        assert verdict(mode, "terminal", command=command) == "ask"
    assert verdict("full", "terminal", command=command, strict=True) == "ask"


@pytest.mark.parametrize("command", FORBIDDEN)
def test_no_mode_lifts_the_floor(command: str) -> None:
    for mode in ("ask", "auto-edit", "full"):
        assert verdict(mode, "terminal", command=command) == "forbid"


@pytest.mark.parametrize("command", ORDINARY)
def test_full_mode_runs_ordinary_commands(command: str) -> None:
    assert verdict("full", "terminal", command=command) == "allow"
    assert verdict("ask", "terminal", command=command) != "forbid"


@pytest.mark.parametrize("command", UNCLEAR)
def test_what_cannot_be_understood_is_asked_about_in_every_mode(command: str) -> None:
    assert verdict("full", "terminal", command=command) == "ask"


FREE = ["a.py", "src/new/b.py", "./x/../c", str(CWD / "d")]
GUARDED = [
    "/etc/passwd",
    "../other/x",
    "~/.bashrc",
    str(HOME / ".ssh" / "authorized_keys"),
    str(OURS / "config.yaml"),
    ".git/hooks/pre-commit",
    ".git/config",
    ".env",
    ".envrc",
    ".vscode/tasks.json",
    ".bashrc",
    "x/crontab",
    "deep/.ssh/config",
    "id_rsa",
    "lib/site.pth",
]


@pytest.mark.parametrize("path", FREE)
def test_files_of_the_working_directory_follow_the_mode(path: str) -> None:
    verdicts = [
        verdict(mode, "write_file", path=path, content="x")
        for mode in ("ask", "auto-edit", "full")
    ]
    assert verdicts == ["ask", "allow", "allow"]
    edit = {"path": path, "old_text": "a", "new_text": "b"}
    assert [
        verdict(mode, "edit_file", **edit) for mode in ("ask", "auto-edit", "full")
    ] == ["ask", "allow", "allow"]


@pytest.mark.parametrize("path", GUARDED)
def test_delicate_files_are_asked_about_in_every_mode(path: str) -> None:
    for mode in ("ask", "auto-edit", "full"):
        assert verdict(mode, "write_file", path=path, content="x") == "ask"
        assert (
            verdict(mode, "edit_file", path=path, old_text="a", new_text="b") == "ask"
        )


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a.py", "allow"),
        ("/etc/os-release", "allow"),
        (".env.example", "allow"),
        ("src/tokenizer.py", "allow"),
        ("src/environment.py", "allow"),
        (str(OURS / "cache" / "out" / "x.txt"), "allow"),
        (str(OURS / "skills" / "x" / "SKILL.md"), "allow"),
        (".env", "ask"),
        ("prod.env", "ask"),
        (".env.local", "ask"),
        ("x/../.env", "ask"),
        (str(OURS / ".env"), "ask"),
        (str(OURS / "state.db"), "ask"),
        (str(OURS / "cache" / ".." / "auth.json"), "ask"),
        (str(HOME / ".aws" / "credentials"), "ask"),
        (str(HOME / ".config" / "gh" / "hosts.yml"), "ask"),
        (str(HOME / ".bash_history"), "ask"),
        ("server.key", "ask"),
        ("/proc/1/environ", "ask"),
        ("/etc/shadow", "ask"),
        ("/dev/sda", "ask"),
    ],
)
def test_reading_is_free_but_secrets_are_not(path: str, expected: str) -> None:
    for mode in ("ask", "auto-edit", "full"):
        assert verdict(mode, "read_file", path=path) == expected
    assert verdict("ask", "search_files", pattern="x", path=path) == expected


def test_harmless_tools_are_free_and_unknown_effects_are_not() -> None:
    @tool("launch", effect="other")
    async def launch(target: str) -> str:
        """Launches."""
        return target

    @tool("patch", effect="files")
    async def patch(text: str) -> str:
        """Changes files it does not name."""
        return text

    assert verdict("ask", "todo", items=[]) == "allow"
    assert [
        policy(mode).judge(launch, {"target": "x"}, CWD).verdict
        for mode in ("ask", "full")
    ] == ["ask", "allow"]
    assert (
        policy("full", strict=True).judge(launch, {"target": "x"}, CWD).verdict == "ask"
    )
    assert policy("full").judge(patch, {"text": "x"}, CWD).verdict == "ask"


def test_what_a_tool_warns_of_is_said() -> None:
    class Cautious:
        """A tool of somebody else."""

        spec = TOOLS["todo"].spec
        effect = "other"
        caution = "its description has changed\x1b"

        def paths(self, arguments: object, cwd: object) -> tuple[Path, ...]:
            return ()

    asked = policy().judge(Cautious(), {}, CWD)  # type: ignore[arg-type]
    assert (asked.verdict, asked.reason) == ("ask", "its description has changed\\x1b")


def test_the_summary_says_exactly_what_will_happen() -> None:
    decision = policy().judge(
        TOOLS["terminal"], {"command": "rm x #\u202e\r ls" + " " * 99 + "; y"}, CWD
    )
    assert decision.summary == f"Run in {CWD}:\nrm x #\\u202e\\x0d ls[99 spaces]; y"
    decision = policy().judge(
        TOOLS["write_file"], {"path": "a", "content": "one\ntwo\x1b"}, CWD
    )
    assert (
        decision.summary
        == f"write_file {CWD}/a\nnew file, 2 lines, 8 bytes:\none\ntwo\\x1b"
    )
    decision = policy().judge(
        TOOLS["edit_file"], {"path": "a", "old_text": "x\ny", "new_text": "z"}, CWD
    )
    assert decision.summary == f"edit_file {CWD}/a\n-x\n-y\n+z"


def test_what_is_left_out_of_a_long_call_is_counted() -> None:
    @tool("launch", effect="other")
    async def launch(target: str) -> str:
        """Launches."""
        return target

    long = policy().judge(launch, {"target": "x" * 3_000 + "END"}, CWD).summary
    assert long.endswith("END")
    longer = policy().judge(launch, {"target": "x" * 30_000 + "END"}, CWD).summary
    assert "more characters are not shown here" in longer


def test_an_answer_for_a_change_of_a_file_covers_exactly_that_change() -> None:
    one, same, other = (
        policy().judge(TOOLS["write_file"], {"path": "a.py", "content": content}, CWD)
        for content in ("x", "x", "y")
    )
    assert one.shape == same.shape
    assert one.shape != other.shape
