"""`policy.yaml` on a real disk: it only tightens when it is damaged, and two processes can remember at once."""

import stat
import subprocess
import sys
from pathlib import Path

import pytest

from hermes.errors import SettingsError
from hermes.schema.events import ApprovalRequested
from hermes.tools import default_tools
from hermes.tools.policy import ApprovalPolicy, Circumstances, RuleFile
from hermes.tools.tool import tool

RULES = "# mine\nforbid:\n  - {program: docker}\nallow:\n  - {program: npm, arguments: [ci], reach: network}\n"
BROKEN = [
    "allow: [",
    "version: 7\n",
    "forbid: docker\n",
    "allow:\n  - {prog: x}\n",
    "\x00\x01\x02",
    "- 1\n",
    RULES + "allow:\n  - {program: rm}\n",
]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir(mode=0o700)
    return folder


def write(home: Path, text: str) -> Path:
    path = home / "policy.yaml"
    path.write_text(text)
    path.chmod(0o600)
    return path


def policy(home: Path) -> ApprovalPolicy:
    return ApprovalPolicy("ask", Circumstances(home, home.parent, sandboxed=True))


def verdicts(judge: ApprovalPolicy, folder: Path) -> list[str]:
    return [
        judge.check(command, folder).verdict
        for command in ("docker ps", "npm ci", "make", "ls")
    ]


def test_rules_decide_and_are_read_again_when_they_change(
    home: Path, tmp_path: Path
) -> None:
    judge = policy(home)
    assert verdicts(judge, tmp_path) == ["ask", "ask", "allow", "allow"]
    write(home, RULES)
    assert verdicts(judge, tmp_path) == ["forbid", "allow", "allow", "allow"]
    assert judge.check("npm ci", tmp_path).reach == "network"
    assert judge.check("npm ci --registry http://x", tmp_path).verdict == "allow"
    assert judge.check("sudo npm ci", tmp_path).verdict == "ask"


OTHERS = """forbid:
  - {path: ~/archive}
  - {host: bad.example}
  - {tool: mcp.lab.erase}
network:
  - {host: good.example}
"""


def test_rules_hold_for_what_another_engine_asks_without_any_tool(
    home: Path, tmp_path: Path
) -> None:
    write(home, OTHERS)
    judge, archive = policy(home), home.parent / "archive"
    files = [
        judge.check_files((path,), tmp_path).verdict
        for path in (tmp_path / "a.py", archive / "b", archive)
    ]
    assert files == ["ask", "forbid", "forbid"]
    opened = [
        judge.check_files((), tmp_path, below=(path,)).verdict
        for path in (Path("/"), home.parent, Path("/srv"))
    ]
    assert opened == ["forbid", "forbid", "ask"]
    assert [
        judge.check_host(host).verdict
        for host in ("bad.example", "good.example", "x.example")
    ] == [
        "forbid",
        "allow",
        "ask",
    ]
    assert [
        judge.check_tool(name).verdict for name in ("mcp.lab.erase", "mcp.lab.read")
    ] == ["forbid", "ask"]
    ours = judge.check_files((home / "policy.yaml",), tmp_path)
    assert (ours.verdict, ours.memorable) == ("ask", False)
    assert "belongs to Hermes itself" in ours.reason


def test_a_link_does_not_hide_which_file_would_be_changed(
    home: Path, tmp_path: Path
) -> None:
    write(home, OTHERS)
    (home.parent / "archive").mkdir()
    (tmp_path / "link").symlink_to(home.parent / "archive")
    assert (
        policy(home).check_files((tmp_path / "link" / "a",), tmp_path).verdict
        == "forbid"
    )


@pytest.mark.parametrize("text", BROKEN)
def test_a_damaged_file_only_tightens(home: Path, tmp_path: Path, text: str) -> None:
    write(home, RULES)
    assert verdicts(policy(home), tmp_path) == ["forbid", "allow", "allow", "allow"]
    write(home, text)
    judge = policy(home)
    assert verdicts(judge, tmp_path) == ["forbid", "ask", "ask", "allow"]
    assert "policy.yaml" in judge.warning
    assert "policy.yaml" in judge.check("make", tmp_path).reason


def test_a_file_that_others_can_write_is_not_believed(
    home: Path, tmp_path: Path
) -> None:
    write(home, RULES).chmod(0o666)
    judge = policy(home)
    assert judge.check("npm ci", tmp_path).verdict == "ask"
    assert "chmod 600" in judge.warning


def test_an_answer_is_remembered_for_exactly_this_command_here(
    home: Path, tmp_path: Path
) -> None:
    path = write(home, RULES)
    judge, folder = policy(home), tmp_path / "work"
    folder.mkdir()
    asked = judge.check("git fetch origin", folder)
    judge.remember(
        ApprovalRequested(
            call_id="c", name="terminal", arguments="{}", summary="", shape=asked.shape
        )
    )
    again = policy(home).check("git fetch origin", folder)
    assert (again.verdict, again.reach, again.binding) == (
        "allow",
        "network",
        asked.binding,
    )
    assert policy(home).check("git fetch upstream", folder).verdict == "ask"
    assert policy(home).check("git fetch origin", tmp_path).verdict == "ask"
    assert path.read_text().startswith(RULES)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_what_is_not_understood_is_asked_about_each_time(
    home: Path, tmp_path: Path
) -> None:
    judge = policy(home)
    asked = judge.check("$X y", tmp_path)
    judge.remember(
        ApprovalRequested(
            call_id="c", name="terminal", arguments="{}", summary="", shape=asked.shape
        )
    )
    assert policy(home).check("$X y", tmp_path).verdict == "ask"


def test_a_damaged_file_is_not_written_to(home: Path, tmp_path: Path) -> None:
    path = write(home, "allow: [")
    judge = policy(home)
    asked = judge.check("git fetch", tmp_path)
    judge.remember(
        ApprovalRequested(
            call_id="c", name="terminal", arguments="{}", summary="", shape=asked.shape
        )
    )
    assert path.read_text() == "allow: ["
    assert judge.check("git fetch", tmp_path).verdict == "ask"


def test_processes_that_remember_at_once_lose_nothing(home: Path) -> None:
    write(home, RULES)
    code = (
        "import sys; from pathlib import Path; from hermes.tools.policy import RuleFile\n"
        "for n in range(20): RuleFile(Path(sys.argv[1])).remember(f'{sys.argv[2]} {n}')"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", code, str(home), name])
        for name in ("a", "b", "c")
    ]
    assert [process.wait(60) for process in running] == [0, 0, 0]
    assert set(RuleFile(home).current().remembered) == {
        f"{name} {n}" for name in "abc" for n in range(20)
    }
    assert (home / "policy.yaml").read_text().startswith(RULES)


def test_what_was_approved_is_bound_to_the_files_it_names(
    home: Path, tmp_path: Path
) -> None:
    judge, folder = policy(home), tmp_path / "work"
    folder.mkdir()
    script = folder / "deploy.sh"
    script.write_text("echo one\n")
    bound = judge.check("bash deploy.sh prod", folder).binding
    assert judge.check("bash deploy.sh prod", folder).binding == bound
    script.write_text("echo other\n")
    assert judge.check("bash deploy.sh prod", folder).binding != bound
    bound = judge.check("bash deploy.sh prod", folder).binding
    script.rename(folder / "x")
    script.symlink_to("x")
    assert judge.check("bash deploy.sh prod", folder).binding != bound
    assert (
        judge.check("bash deploy.sh prod", folder, "network").binding
        != judge.check("bash deploy.sh prod", folder).binding
    )


def test_a_link_swapped_after_the_question_changes_the_binding(
    home: Path, tmp_path: Path
) -> None:
    write_file = default_tools(home / "out", environment={}, hermes_home=home)[
        "write_file"
    ]
    judge, folder = policy(home), tmp_path / "work"
    folder.mkdir()
    arguments = {"path": "notes", "content": "x"}
    (folder / "real").write_text("a")
    before = judge.judge(write_file, arguments, folder)
    (folder / "notes").symlink_to("real")
    linked = judge.judge(write_file, arguments, folder)
    (folder / "real").write_text("bb")
    changed = judge.judge(write_file, arguments, folder)
    assert len({before.binding, linked.binding, changed.binding}) == 3


LOSSES = [
    "",
    "\n",
    "# all gone\n",
    "null\n",
    "forbid:\n",
    "forbid: []\nask: null\n",
    "allow:\n  - {program: docker}\n",
]


@pytest.mark.parametrize("text", [*LOSSES, None])
def test_rules_that_vanish_hold_until_the_user_says_so(
    home: Path, tmp_path: Path, text: str | None
) -> None:
    path = write(home, RULES)
    assert verdicts(policy(home), tmp_path)[0] == "forbid"
    if text is None:
        path.unlink()
    else:
        write(home, text)
    judge = policy(home)
    assert verdicts(judge, tmp_path) == ["forbid", "ask", "ask", "allow"]
    assert "hermes policy accept" in judge.warning
    before = path.read_text() if path.exists() else None
    judge.remember(
        ApprovalRequested(
            call_id="c", name="terminal", arguments="{}", summary="", shape="terminal x"
        )
    )
    assert (path.read_text() if path.exists() else None) == before
    RuleFile(home).accept()
    assert (judge.warning, policy(home).warning) == ("", "")
    assert judge.check("docker ps", tmp_path).verdict != "forbid"


def test_a_rule_less_among_others_is_an_edit(home: Path, tmp_path: Path) -> None:
    write(home, "forbid:\n  - {program: docker}\n  - {program: make}\n")
    assert policy(home).check("make", tmp_path).verdict == "forbid"
    write(home, "forbid:\n  - {program: docker}\n")
    judge = policy(home)
    assert (judge.check("make", tmp_path).verdict, judge.warning) == ("allow", "")


def test_an_empty_file_that_never_had_rules_is_no_problem(home: Path) -> None:
    write(home, "")
    assert policy(home).warning == ""


def test_a_broken_file_is_not_accepted(home: Path) -> None:
    write(home, RULES)
    assert policy(home).warning == ""
    write(home, "allow: [")
    with pytest.raises(SettingsError):
        RuleFile(home).accept()
    assert policy(home).warning


@pytest.mark.parametrize(
    "text",
    [
        "---\nallow: []\n---\n" + RULES,
        RULES + "---\n",
        RULES + "...\nallow: []\n",
        "--- {}\n---\n",
    ],
)
def test_several_documents_are_refused(home: Path, text: str) -> None:
    write(home, text)
    assert "a second document" in policy(home).warning


def test_one_document_may_be_marked(home: Path, tmp_path: Path) -> None:
    write(home, "# mine\n---\n" + RULES)
    assert verdicts(policy(home), tmp_path) == ["forbid", "allow", "allow", "allow"]


@pytest.mark.parametrize(
    "rule", ["{path: %s}", "{tool: write_file}", "{tool: read_file}"]
)
@pytest.mark.parametrize(
    "name", [".git/hooks/pre-commit", ".env", "AGENTS.md", ".vscode/tasks.json"]
)
def test_an_allowance_lifts_no_protection_it_does_not_name(
    home: Path, tmp_path: Path, rule: str, name: str
) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    tools = default_tools(home / "out", environment={}, hermes_home=home)
    write(home, f"allow:\n  - {rule % folder if '%' in rule else rule}\n")
    judge = policy(home)
    written = judge.judge(tools["write_file"], {"path": name, "content": "x"}, folder)
    assert (written.verdict, written.memorable) == ("ask", False)
    if name == ".env":
        assert judge.judge(tools["read_file"], {"path": name}, folder).verdict == "ask"
    write(home, f"allow:\n  - {{path: {folder / name}}}\n")
    assert (
        policy(home)
        .judge(tools["write_file"], {"path": name, "content": "x"}, folder)
        .verdict
        == "allow"
    )


def test_no_rule_opens_what_hermes_keeps(home: Path, tmp_path: Path) -> None:
    tools = default_tools(home / "out", environment={}, hermes_home=home)
    write(home, f"allow:\n  - {{path: {home / 'policy.yaml'}}}\n")
    decision = policy(home).judge(
        tools["write_file"],
        {"path": str(home / "policy.yaml"), "content": "x"},
        tmp_path,
    )
    assert (decision.verdict, decision.memorable) == ("ask", False)


def test_an_allowance_for_a_program_covers_no_secrets(
    home: Path, tmp_path: Path
) -> None:
    write(
        home, "allow:\n  - {program: cat}\n  - {program: cp}\n  - {path: ~/archive}\n"
    )
    judge = policy(home)
    assert [
        judge.check(one, tmp_path).verdict
        for one in ("cat .env", "cp x .git/hooks/pre-push", "cat a")
    ] == [
        "ask",
        "ask",
        "allow",
    ]


def test_an_allowance_may_open_a_folder_elsewhere(home: Path, tmp_path: Path) -> None:
    tools = default_tools(home / "out", environment={}, hermes_home=home)
    write(home, f"allow:\n  - {{path: {tmp_path / 'archive'}}}\n")
    folder = tmp_path / "work"
    folder.mkdir()
    arguments = {"path": str(tmp_path / "archive" / "a.txt"), "content": "x"}
    assert policy(home).judge(tools["write_file"], arguments, folder).verdict == "allow"


def test_the_environment_belongs_to_what_was_approved(
    home: Path, tmp_path: Path
) -> None:
    def bound(environment: dict[str, str]) -> str:
        judge = ApprovalPolicy(
            "ask",
            Circumstances(home, home.parent, sandboxed=True, environment=environment),
        )
        return judge.check("git push", tmp_path).binding

    assert bound({"PATH": "/bin"}) == bound({"PATH": "/bin", "COLUMNS": "80"})
    assert bound({"PATH": "/bin"}) != bound({"PATH": "/x:/bin"})
    assert bound({}) != bound({"GIT_SSH_COMMAND": "x"})


def test_what_covers_only_one_call_is_neither_written_nor_used(
    home: Path, tmp_path: Path
) -> None:
    judge = policy(home)
    once = ApprovalRequested(
        call_id="c", name="x", arguments="{}", summary="", shape="x {}", memorable=False
    )
    judge.remember(once)
    judge.remember(
        ApprovalRequested(call_id="c", name="x", arguments="{}", summary="", shape="")
    )
    assert not (home / "policy.yaml").exists()

    @tool("press", effect="other")
    async def press(ref: str) -> str:
        """Presses what a page calls so."""
        return ref

    asked = judge.judge(press, {"ref": "e1"}, tmp_path)
    assert (asked.verdict, asked.memorable) == ("ask", False)
    RuleFile(home).remember(asked.shape)
    assert policy(home).judge(press, {"ref": "e1"}, tmp_path).verdict == "ask"


def test_no_command_writes_the_policy_or_its_copy(home: Path, tmp_path: Path) -> None:
    for name in ("policy.yaml", ".policy.good.yaml"):
        assert (
            policy(home).check(f"echo x > {home / name}", tmp_path).verdict == "forbid"
        )
