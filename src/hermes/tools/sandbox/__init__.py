"""The sandbox: the kernel confines commands, whatever they are. `find` says by which means, `fence` to what."""

from pathlib import Path

from hermes.tools.sandbox.confinement import (
    ConfinedLaunch,
    Fence,
    NoSandbox,
    Sandbox,
    Started,
)

__all__ = ["ConfinedLaunch", "Fence", "NoSandbox", "Sandbox", "Started", "find_sandbox"]


def find_sandbox(
    search_path: str = "", user_home: Path = Path("/nonexistent")
) -> Sandbox:
    """The best sandbox that really works here, looked for once: the first time takes some milliseconds."""
    from hermes.tools.sandbox.detect import (
        find_sandbox as find,
    )  # what calls the kernel is only loaded for commands

    return find(search_path, user_home)
