"""The processor time of a process."""

import os
from pathlib import Path


def cpu_s(pid: int) -> float:
    """Seconds that a process has used, 0 if it is gone."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return 0.0
    fields = stat.rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
