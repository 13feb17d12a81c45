"""The rules of a project: what they forbid, and that they allow nothing."""

from pathlib import Path

import pytest

from hermes.core.ports import PolicyDecision
from hermes.tools import default_tools
from hermes.tools.policy import ApprovalPolicy, Circumstances, Mode
from hermes.tools.project_rules import project_rules


class RuledProject:
    """A project with rules, and the policy that judges calls in it."""

    def __init__(self, tmp_path: Path, rules: str, mode: Mode = "full") -> None:
        self.folder = tmp_path.resolve() / "project"
        (self.folder / ".hermes").mkdir(parents=True)
        (self.folder / ".hermes" / "rules.yaml").write_text(rules)
        home = tmp_path.resolve() / "home"
        self._tools = default_tools(home / "out", environment={}, hermes_home=home)
        around = Circumstances(home, tmp_path / "user", sandboxed=True)
        self.policy = ApprovalPolicy(mode, around)

    def write(self, path: str) -> PolicyDecision:
        arguments = {"path": path, "content": "x"}
        return self.policy.judge(self._tools["write_file"], arguments, self.folder)

    def read(self, path: str) -> PolicyDecision:
        return self.policy.judge(self._tools["read_file"], {"path": path}, self.folder)

    def run(self, command: str) -> PolicyDecision:
        arguments = {"command": command}
        return self.policy.judge(self._tools["terminal"], arguments, self.folder)


def test_protected_paths_can_be_read_but_not_changed_in_any_mode(
    tmp_path: Path,
) -> None:
    project = RuledProject(tmp_path, 'protect: [LICENSE, migrations/, "*.lock"]')
    for path in ("LICENSE", "migrations/0001.sql", "sub/poetry.lock"):
        assert project.write(path).verdict == "forbid", path
        assert "the project's rules protect" in project.write(path).reason
    assert project.write("main.py").verdict == "allow"
    assert project.read("LICENSE").verdict == "allow"
    for command in (
        "echo x > LICENSE",
        "rm -r migrations",
        "sed -i s/a/b/ sub/a.lock",
        "cd migrations && touch new.sql",
    ):
        assert project.run(command).verdict == "forbid", command
    assert project.run("cat LICENSE").verdict == "allow"
    check = project.policy.check_files((project.folder / "LICENSE",), project.folder)
    assert check.verdict == "forbid"


def test_forbidden_commands_do_not_run_wherever_they_stand(tmp_path: Path) -> None:
    project = RuledProject(tmp_path, "forbid: [git push, npm publish]")
    for command in ("git push origin main", "make && bash -c 'git push'"):
        decision = project.run(command)
        assert decision.verdict == "forbid", command
        assert "the project's rules forbid it: git push" in decision.reason
    assert project.run("git status").verdict == "allow"


def test_rules_that_cannot_be_read_make_every_effect_a_question(
    tmp_path: Path,
) -> None:
    project = RuledProject(tmp_path, "protect: [LICENSE\nallow: everything")
    decision = project.write("main.py")
    assert (decision.verdict, decision.memorable) == ("ask", False)
    assert "rules can't be read (.hermes/rules.yaml" in decision.reason
    assert "new file, 1 line" in decision.summary, "not its arguments"
    assert project.run("touch x").summary.endswith("touch x")
    assert project.read("main.py").verdict == "allow"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("allow: [rm]", "unknown key 'allow'"),
        ("verify: 3", "verify: expected text"),
        ('forbid: ["git \'push"]', "No closing quotation"),
    ],
)
def test_what_is_no_rule_is_said(tmp_path: Path, text: str, problem: str) -> None:
    assert problem in project_rules(RuledProject(tmp_path, text).folder).problem


def test_rules_in_the_front_matter_of_the_notes_count_too(tmp_path: Path) -> None:
    project = RuledProject(tmp_path, "verify: make test")
    (project.folder / "AGENTS.md").write_text(
        "---\ntitle: our notes\nverify: make lint\nprotect: docs\n---\nBe kind.\n"
    )
    rules = project_rules(project.folder)
    assert rules.verify == ("make test", "make lint")
    assert (rules.protect, rules.problem) == (("docs",), "")
    (project.folder / "AGENTS.md").write_text("---\nJust a line above.\n")
    assert project_rules(project.folder).protect == ()


def test_a_link_in_the_place_of_the_rules_is_not_followed(tmp_path: Path) -> None:
    project = RuledProject(tmp_path, "")
    (tmp_path / "elsewhere").write_text("verify: cat secrets")
    rules = project.folder / ".hermes" / "rules.yaml"
    rules.unlink()
    rules.symlink_to(tmp_path / "elsewhere")
    found = project_rules(project.folder)
    assert (found.verify, bool(found.problem)) == ((), True)
