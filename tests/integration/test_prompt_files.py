"""Commands and agents as Markdown files, in the project and in the home."""

from pathlib import Path

import pytest

from hermes.app.prompt_files import PromptFiles, called_prompt, stricter
from hermes.errors import NotFound, Refused


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


def test_links_out_of_the_project_and_broken_files_are_left_out(
    folders: PromptFolders, tmp_path: Path
) -> None:
    folders.write("elsewhere/a.md", "secret")
    (folders.project / ".hermes").mkdir()
    (folders.project / ".hermes" / "commands").symlink_to(tmp_path / "elsewhere")
    folders.write("project/.claude/commands/b.md", "---\n: [\n---\nx")
    link = folders.project / ".claude" / "commands" / "c.md"
    link.symlink_to(tmp_path / "elsewhere" / "a.md")
    assert folders.files.all(folders.project, "command") == []


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
