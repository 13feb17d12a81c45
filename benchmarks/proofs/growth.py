"""What grows while a gateway answers thousands of messages: memory and open files."""

from pathlib import Path

from benchmarks.proofs.figures import Figure
from benchmarks.soak import MAX_GROWTH_MB, soaked

MAX_MORE_HANDLES = 8


def run_growth(folder: Path, messages: int) -> list[Figure]:
    """From a quarter of the messages to the last one."""
    soak = soaked(folder, messages)
    sizes, handles = [*soak.memory.values()], [*soak.handles.values()]
    growth = sizes[-1] - sizes[0]
    return [
        Figure(
            name=f"Memory after the last message, grown by {growth:.1f} MB since a quarter (bar {MAX_GROWTH_MB:g} MB)",
            value=f"{sizes[-1]:.0f} MB",
            cases=messages,
            met=growth <= MAX_GROWTH_MB,
        ),
        Figure(
            name=f"Open files after the last message, {handles[0]} after a quarter (bar {MAX_MORE_HANDLES} more)",
            value=str(handles[-1]),
            cases=messages,
            met=handles[-1] - handles[0] <= MAX_MORE_HANDLES,
        ),
    ]
