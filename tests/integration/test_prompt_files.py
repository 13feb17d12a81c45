"""Commands and agents as Markdown files, in the project and in the home."""

from pathlib import Path

import pytest

from hermes.app.prompt_files import PromptFiles, called_prompt, stricter
from hermes.errors import NotFound, Refused, SettingsError


class PromptFolders:
    """A project, a Hermes home and a user's home with files."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name in ("project", "home", "user"):
            (root / name).mkdir()
        self.files = PromptFiles(root / "home", root / "user")
        self.project = root / "project"

    def write(self, path: str, text: str) -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file


@pytest.fixture
def folders(tmp_path: Path) -> PromptFolders:
    return PromptFolders(tmp_path)


def test_a_command_of_the_home_is_expanded_with_its_arguments(
    folders: PromptFolders,
) -> None:
    text = "---\ndescription: explain\nargument-hint: FILE\n---\nExplain $1: $ARGUMENTS"
    folders.write("home/commands/explain.md", text)
    (file,) = folders.files.all(folders.project, "command")
    assert (file.name, file.description, file.hint) == ("explain", "explain", "FILE")
    called = called_prompt(folders.files, folders.project, "/explain a.py briefly")
    assert called is not None
    assert called.startswith("/explain a.py briefly\n\n<command")
    assert "Explain a.py: a.py briefly" in called
    assert called_prompt(folders.files, folders.project, "/other") is None


def test_a_file_of_the_project_is_used_only_as_the_user_agreed_to_it(
    folders: PromptFolders,
) -> None:
    path = folders.write("project/.claude/commands/git/fix.md", "Fix it.")
    with pytest.raises(Refused, match="you have not agreed to it"):
        folders.files.find(folders.project, "command", "fix")
    folders.files.agree(folders.files.untrusted(folders.project))
    assert folders.files.find(folders.project, "command", "fix").body == "Fix it."
    path.write_text("Delete it.")
    with pytest.raises(Refused):
        folders.files.find(folders.project, "command", "fix")


def test_a_file_that_changed_since_it_was_found_is_not_shown_to_be_agreed_to(
    folders: PromptFolders,
) -> None:
    """Otherwise a command could show one text and have another agreed to."""
    path = folders.write("project/.claude/agents/helper.md", "Delete it.")
    (found,) = folders.files.untrusted(folders.project)
    assert folders.files.content(found) == "Delete it."
    path.write_text("Help.")
    assert not folders.files.content(found)
    path.unlink()
    assert not folders.files.content(found)


def test_a_file_of_the_project_never_hides_the_users_own_unasked(
    folders: PromptFolders,
) -> None:
    folders.write("home/commands/fix.md", "mine")
    folders.write("project/.hermes/commands/fix.md", "theirs")
    assert folders.files.find(folders.project, "command", "fix").body == "mine"


def test_agents_of_other_programs_are_understood(folders: PromptFolders) -> None:
    folders.write(
        "user/.claude/agents/r.md",
        "---\nname: reviewer\ntools: Read, Grep, Bash(git diff:*)\nmodel: sonnet\npermissionMode: plan\n---\nReview.",
    )
    folders.write(
        "user/.config/opencode/agent/docs.md",
        "---\nmode: subagent\nmodel: openai/gpt-5\ntools:\n  write: false\n  bash: false\n---\nWrite docs.",
    )
    reviewer = folders.files.find(folders.project, "agent", "reviewer")
    assert reviewer.tools == ("read_file", "search_files", "terminal")
    assert (reviewer.model, reviewer.mode) == ("", "plan")
    docs = folders.files.find(folders.project, "agent", "docs")
    assert (docs.model, docs.mode) == ("openai:gpt-5", "")
    session = {"read_file": 1, "write_file": 2, "terminal": 3}
    assert docs.offered(session) == {"read_file": 1}
    assert reviewer.offered(session) == {"read_file": 1, "terminal": 3}
    with pytest.raises(NotFound, match="no agent 'x'"):
        folders.files.find(folders.project, "agent", "x")


def test_links_out_of_the_project_are_left_out_and_broken_files_are_named(
    folders: PromptFolders, tmp_path: Path
) -> None:
    folders.write("elsewhere/a.md", "secret")
    (folders.project / ".hermes").mkdir()
    (folders.project / ".hermes" / "commands").symlink_to(tmp_path / "elsewhere")
    folders.write("project/.claude/commands/b.md", "---\n: [\n---\nx")
    link = folders.project / ".claude" / "commands" / "c.md"
    link.symlink_to(tmp_path / "elsewhere" / "a.md")
    (broken,) = folders.files.all(folders.project, "command")
    assert f"{broken.path}:2: " in broken.problem
    with pytest.raises(SettingsError, match=r"/b\.md:2: "):
        called_prompt(folders.files, folders.project, "/b")


def test_a_mode_can_only_make_a_session_stricter() -> None:
    assert stricter("plan", "ask")
    assert stricter("ask", "full")
    assert not stricter("full", "ask")
    assert not stricter("", "ask")


def test_a_folder_of_commands_that_is_the_whole_project_ends_early(
    folders: PromptFolders,
) -> None:
    big = folders.project / "a"
    big.mkdir(parents=True)
    for number in range(6_000):
        (big / f"{number}.txt").touch()
    deep = folders.project / "z"
    deep.mkdir()
    (deep / "far.md").write_text("Text.")
    (folders.project / ".hermes").mkdir(exist_ok=True)
    (folders.project / ".hermes" / "commands").symlink_to(folders.project)
    assert folders.files.all(folders.project, "command") == []


@pytest.mark.parametrize(
    ("head", "line", "what"),
    [
        ("description: [\n", 2, "did not find expected"),
        (
            "description: x\ntool: [files]\n",
            3,
            "unknown key 'tool'; did you mean tools",
        ),
        ("description: x\nmode: loose\n", 3, "unknown mode 'loose'"),
        ("budget: lots\n", 2, "'lots' is not an amount"),
        ("description: x\nbudget: {steps: 0}\n", 3, "steps must be a number"),
        ("tools: 5\n", 2, "expected a list of tools"),
        ("name: ../x\n", 2, "'../x' is not a valid name"),
    ],
)
def test_an_agent_that_is_wrong_is_refused_with_its_file_and_line(
    folders: PromptFolders, head: str, line: int, what: str
) -> None:
    path = folders.write("home/agents/helper.md", f"---\n{head}---\nHelp.")
    with pytest.raises(SettingsError) as error:
        folders.files.find(folders.project, "agent", "helper")
    assert f"{path}:{line}: " in error.value.message
    assert what in error.value.message


def test_an_agent_without_the_end_of_its_front_matter_is_refused(
    folders: PromptFolders,
) -> None:
    folders.write("home/agents/helper.md", "---\ntools: [files]\nHelp.")
    with pytest.raises(
        SettingsError, match=r"helper\.md:1: the front matter has no end"
    ):
        folders.files.find(folders.project, "agent", "helper")


def test_an_agent_names_tools_by_set_server_pattern_and_name(
    folders: PromptFolders,
) -> None:
    head = "tools: [web, github, mcp__jira, mcp.db.read*, read_file, nothing]\ndisallowed-tools: [web_search]"
    folders.write("home/agents/helper.md", f"---\n{head}\n---\nHelp.")
    file = folders.files.find(folders.project, "agent", "helper")
    names = "web_search web_fetch mcp.github.issue mcp.jira.find mcp.db.read_row mcp.db.drop read_file write_file"
    session: dict[str, int] = dict.fromkeys(map(str, names.split()), 1)
    assert list(file.offered(session)) == [
        *("web_fetch", "mcp.github.issue", "mcp.jira.find", "mcp.db.read_row"),
        "read_file",
    ]
    assert file.unknown_tools(session) == ("nothing",)
    assert file.place("tools").endswith("helper.md:2")


def test_an_agent_has_a_budget_and_skills(folders: PromptFolders) -> None:
    head = "budget: {money: $0.50, tokens: 200k, steps: 30}\nskills: [python, git]"
    folders.write("home/agents/helper.md", f"---\n{head}\n---\nHelp.")
    file = folders.files.find(folders.project, "agent", "helper")
    assert (file.budget.money, file.budget.tokens, file.budget.steps) == ("$0.50", "200k tokens", 30)  # fmt: skip
    assert (str(file.budget), file.skills) == ("$0.50, 200k tokens, 30 steps", ("python", "git"))  # fmt: skip
    folders.write("home/agents/helper.md", "---\nbudget: 50k tokens\n---\nHelp.")
    file = folders.files.find(folders.project, "agent", "helper")
    assert (file.budget.tokens, file.budget.steps) == ("50k tokens", 0)
