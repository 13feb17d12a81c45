"""`policy.yaml` on a real disk: it only tightens when it is damaged, and two processes can remember at once."""

import stat
import subprocess
import sys
from pathlib import Path

import pytest

from hermes.schema.events import ApprovalRequested
from hermes.tools import default_tools
from hermes.tools.policy import ApprovalPolicy, Circumstances, RuleFile

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
    return [judge.check(command, folder).verdict for command in ("docker ps", "npm ci", "make", "ls")]


def test_rules_decide_and_are_read_again_when_they_change(home: Path, tmp_path: Path) -> None:
    judge = policy(home)
    assert verdicts(judge, tmp_path) == ["ask", "ask", "allow", "allow"]
    write(home, RULES)
    assert verdicts(judge, tmp_path) == ["forbid", "allow", "allow", "allow"]
    assert judge.check("npm ci", tmp_path).reach == "network"
    assert judge.check("npm ci --registry http://x", tmp_path).verdict == "allow"
    assert judge.check("sudo npm ci", tmp_path).verdict == "ask"


@pytest.mark.parametrize("text", BROKEN)
def test_a_damaged_file_only_tightens(home: Path, tmp_path: Path, text: str) -> None:
    write(home, RULES)
    assert verdicts(policy(home), tmp_path) == ["forbid", "allow", "allow", "allow"]
    write(home, text)
    judge = policy(home)
    assert verdicts(judge, tmp_path) == ["forbid", "ask", "ask", "allow"]
    assert "policy.yaml" in judge.warning
    assert "policy.yaml" in judge.check("make", tmp_path).reason


def test_a_file_that_others_can_write_is_not_believed(home: Path, tmp_path: Path) -> None:
    write(home, RULES).chmod(0o666)
    judge = policy(home)
    assert judge.check("npm ci", tmp_path).verdict == "ask"
    assert "chmod 600" in judge.warning


def test_an_answer_is_remembered_for_exactly_this_command_here(home: Path, tmp_path: Path) -> None:
    path = write(home, RULES)
    judge, folder = policy(home), tmp_path / "work"
    folder.mkdir()
    asked = judge.check("git fetch origin", folder)
    judge.remember(ApprovalRequested(call_id="c", name="terminal", arguments="{}", summary="", shape=asked.shape))
    again = policy(home).check("git fetch origin", folder)
    assert (again.verdict, again.reach, again.binding) == ("allow", "network", asked.binding)
    assert policy(home).check("git fetch upstream", folder).verdict == "ask"
    assert policy(home).check("git fetch origin", tmp_path).verdict == "ask"
    assert path.read_text().startswith(RULES)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_what_is_not_understood_is_asked_about_each_time(home: Path, tmp_path: Path) -> None:
    judge = policy(home)
    asked = judge.check("$X y", tmp_path)
    judge.remember(ApprovalRequested(call_id="c", name="terminal", arguments="{}", summary="", shape=asked.shape))
    assert policy(home).check("$X y", tmp_path).verdict == "ask"


def test_a_damaged_file_is_not_written_to(home: Path, tmp_path: Path) -> None:
    path = write(home, "allow: [")
    judge = policy(home)
    asked = judge.check("git fetch", tmp_path)
    judge.remember(ApprovalRequested(call_id="c", name="terminal", arguments="{}", summary="", shape=asked.shape))
    assert path.read_text() == "allow: ["
    assert judge.check("git fetch", tmp_path).verdict == "ask"


def test_processes_that_remember_at_once_lose_nothing(home: Path) -> None:
    write(home, RULES)
    code = (
        "import sys; from pathlib import Path; from hermes.tools.policy import RuleFile\n"
        "for n in range(20): RuleFile(Path(sys.argv[1])).remember(f'{sys.argv[2]} {n}')"
    )
    running = [subprocess.Popen([sys.executable, "-c", code, str(home), name]) for name in ("a", "b", "c")]
    assert [process.wait(60) for process in running] == [0, 0, 0]
    assert set(RuleFile(home).current().remembered) == {f"{name} {n}" for name in "abc" for n in range(20)}
    assert (home / "policy.yaml").read_text().startswith(RULES)


def test_what_was_approved_is_bound_to_the_files_it_names(home: Path, tmp_path: Path) -> None:
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


def test_a_link_swapped_after_the_question_changes_the_binding(home: Path, tmp_path: Path) -> None:
    write_file = default_tools(home / "out", environment={}, hermes_home=home)["write_file"]
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
