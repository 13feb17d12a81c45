"""The git branch of a folder, read from its files: no program is started."""

from pathlib import Path

from hermes.tools.project_rules import read_small_file

_MAX_HEAD_BYTES = 4_096


def git_branch(folder: Path) -> str:
    """Returns the branch, the start of a commit if there is none, or nothing outside a repository."""
    for parent in (folder, *folder.parents):
        found = parent / ".git"
        try:
            if found.is_dir():
                return _branch(found / "HEAD")
            if found.is_file():  # a worktree or a submodule
                link = _start_of(found).removeprefix("gitdir:").strip()
                return _branch((parent / link) / "HEAD")
        except (OSError, ValueError):  # perhaps a pipe, a link or a large file
            return ""
    return ""


def _branch(head: Path) -> str:
    text = _start_of(head)
    return (
        text.removeprefix("ref: refs/heads/") if text.startswith("ref:") else text[:8]
    )


def _start_of(path: Path) -> str:
    return read_small_file(path, _MAX_HEAD_BYTES).strip()
