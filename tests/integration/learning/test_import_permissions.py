"""Permissions and MCP servers of Claude Code and codex come over, and never allow what the policy forbids."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.app import App, build
from hermes.app.learning.import_journal import past_import
from hermes.app.learning.import_plan import ImportPlan
from hermes.app.learning.import_undo import ImportUndo
from hermes.app.learning.importer import Importer
from hermes.learning.learning_service import open_learning
from hermes.settings import Home, Settings
from hermes.settings.load import load, load_secrets
from hermes.settings.sections import LearningSettings
from hermes.tools.policy import RuleFile
from hermes.tools.policy.rules import PolicyRule


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    with build(Settings(), Home(tmp_path / "home")) as made:
        yield made


def importer(app: App) -> Importer:
    return Importer(app, open_learning(app.home, LearningSettings(), os.environ))


def claude_home(root: Path, **permissions: list[str]) -> Path:
    home = root / ".claude"
    home.mkdir()
    (home / "settings.json").write_text(json.dumps({"permissions": permissions}))
    return home


def why(plan: ImportPlan, original: str) -> str:
    return next(entry.why for entry in plan.left if entry.what.endswith(original))


def test_permissions_of_claude_code_become_rules_in_words_first(
    app: App, tmp_path: Path
) -> None:
    source = claude_home(
        tmp_path,
        deny=["Bash(docker push:*)", "Read(~/.ssh/**)", "WebFetch(domain:evil.example)", "Read(./.env)"],
        ask=["Bash(git push)"],
        allow=["Bash(npm ci:*)", "mcp__tracker__list_issues", "WebFetch(domain:docs.example)", "Bash(npm run x)"],
    )  # fmt: skip
    plan = importer(app).plan(source)
    assert [rule.describe() for rule in plan.rules] == [
        "never: docker push",
        "never: ~/.ssh",
        "never: evil.example",
        "always ask before: git push",
        "without asking: npm ci",
        "without asking: mcp.tracker.list_issues",
        "without asking, from the network: docs.example",
    ]
    assert "relative to a project" in why(plan, "Read(./.env)")
    assert "longer ones" in why(plan, "Bash(npm run x)")
    done = importer(app).carry_out(plan, said=lambda text: None)
    assert (done.rules, done.missing) == (7, [])
    book = RuleFile(app.home.root).current()
    assert PolicyRule(program="npm", arguments=("ci",)) in book.allow
    assert PolicyRule(path="~/.ssh") in book.forbid
    assert importer(app).plan(source).empty


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        ("Bash(rm -rf /:*)", "never allows"),
        ("Bash(*)", "every command"),
        ("Bash(sudo:*)", "never allows"),
        ("Bash(env:*)", "already"),
        ("Bash(curl x | sh:*)", "operators"),
        ("Bash(docker run:*)", "never allows"),
        ("Edit(~/notes/**)", "asked about"),
        ("mcp__tracker", "one tool"),
        (f"Bash(gh --token ghp_{'a1B2' * 9}:*)", "a key"),
    ],
)
def test_an_allowance_never_allows_what_the_policy_forbids(
    app: App, tmp_path: Path, rule: str, reason: str
) -> None:
    app.home.ensure()
    RuleFile(app.home.root).add_rule("forbid", PolicyRule(program="docker"))
    plan = importer(app).plan(claude_home(tmp_path, allow=[rule]))
    assert plan.rules == ()
    assert reason in why(plan, rule)


def test_rules_are_undone_and_the_users_own_stay(app: App, tmp_path: Path) -> None:
    app.home.ensure()
    own = "# mine\nforbid:\n  - {program: docker}\n"
    (app.home.root / "policy.yaml").write_text(own)
    (app.home.root / "policy.yaml").chmod(0o600)
    source = claude_home(tmp_path, deny=["Bash(scp:*)"], ask=["Bash(git push)"])
    work = importer(app)
    work.carry_out(work.plan(source), said=lambda text: None)
    assert len(RuleFile(app.home.root).current().forbid) == 2
    learning = open_learning(app.home, LearningSettings(), os.environ)
    report = ImportUndo(app, learning, past_import(app.home.root)).run()
    assert (report.removed, report.kept) == (2, [])
    assert (app.home.root / "policy.yaml").read_text() == own
    assert RuleFile(app.home.root).problem == ""


def test_mcp_servers_of_claude_code_come_with_the_home(
    app: App, tmp_path: Path
) -> None:
    source = claude_home(tmp_path)
    servers = {"far": {"url": "https://far.example/mcp", "headers": {"Authorization": "Bearer abc-456-xyz"}},
               "old": {"type": "sse", "url": "https://old.example"}}  # fmt: skip
    (tmp_path / ".claude.json").write_text(json.dumps({"mcpServers": servers}))
    work = importer(app)
    plan = work.plan(source, secrets=True)
    work.carry_out(plan, said=lambda text: None)
    settings = load({}, home=app.home)
    assert set(settings.mcp_servers) == {"far"}
    assert "abc-456-xyz" not in app.home.config.read_text()
    assert load_secrets({}, home=app.home).get("FAR_AUTHORIZATION_TOKEN")
    assert "SSE" in why(plan, "MCP server old")


def test_rules_and_servers_of_codex_come_over(app: App, tmp_path: Path) -> None:
    source = tmp_path / ".codex"
    (source / "rules").mkdir(parents=True)
    (source / "config.toml").write_text(
        'sandbox_mode = "danger-full-access"\n[mcp_servers.files]\ncommand = "npx"\nargs = ["files"]\n'
        'enabled_tools = ["search"]\nenv = {KEY = "of-the-files-server"}\n'
    )
    (source / "rules" / "default.rules").write_text(
        'prefix_rule(pattern=["git", ["push", "fetch"]], decision="forbidden")\n'
        'prefix_rule(pattern=["npm", "ci"], decision="allow")\n'
        'prefix_rule(pattern=["rm", "-rf", "/"], decision="allow")\n'
        'host_executable(name="git")\n'
    )
    work = importer(app)
    plan = work.plan(source)
    assert [rule.describe() for rule in plan.rules] == [
        "never: git push",
        "never: git fetch",
        "without asking: npm ci",
    ]
    assert plan.settings["mcp_servers.files.command"] == "npx"
    assert "everything" in why(plan, "danger-full-access")
    assert "never allows" in why(plan, "rm -rf /")
    assert work.carry_out(plan, said=lambda text: None).problems == []
    assert load({}, home=app.home).mcp_servers["files"].tools.include == ("search",)
    assert "of-the-files-server" not in app.home.config.read_text()
