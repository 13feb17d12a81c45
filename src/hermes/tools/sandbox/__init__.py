"""The sandbox: the kernel confines commands, whatever they are. `detect` finds the means, `confinement` describes the
bounds.
"""

from collections.abc import Mapping
from pathlib import Path

from hermes.children.helper_programs import personal_program_folders
from hermes.tools.sandbox.confinement import (
    ConfinedLaunch,
    Fence,
    NoSandbox,
    Sandbox,
    Started,
)

__all__ = [
    "ConfinedLaunch",
    "Fence",
    "NoSandbox",
    "Sandbox",
    "Started",
    "find_sandbox",
    "read_only_programs",
]


def find_sandbox(
    search_path: str = "", user_home: Path = Path("/nonexistent")
) -> Sandbox:
    """The best sandbox that really works here, looked for once: the first time takes some milliseconds."""
    from hermes.tools.sandbox.detect import (
        find_sandbox as find,
    )  # what calls the kernel is only loaded for commands

    return find(search_path, user_home)


def read_only_programs(workspace: Path, environ: Mapping[str, str]) -> tuple[str, ...]:
    """The user's own program folders in a workspace that holds the home, if the sandbox makes them read-only."""
    folders = personal_program_folders(workspace, environ)
    if not folders:
        return ()
    sandbox = find_sandbox(environ.get("PATH", ""), Path.home())
    return folders if sandbox.kind == "bubblewrap" else ()
