"""A policy for what codex asks, with one opinion."""

from pathlib import Path
from typing import Any

from hermes.core.ports import Decision


class FixedJudge:
    """Always says the same, and remembers what it was asked. Without a decision, judging fails."""

    def __init__(self, decision: Decision | None = None) -> None:
        self.decision = decision
        self.asked: list[tuple[Any, ...]] = []

    def check(
        self, command: str, folder: Path, *, workspace: Path | None = None
    ) -> Decision:
        return self._say(command, folder, workspace)

    def check_files(
        self,
        paths: tuple[Path, ...],
        workspace: Path,
        *,
        below: tuple[Path, ...] = (),  # noqa: ARG002, RUF100
    ) -> Decision:
        return self._say(paths, below)

    def check_host(self, host: str) -> Decision:
        return self._say(host)

    def check_tool(self, name: str) -> Decision:
        return self._say(name)

    def _say(self, *about: Any) -> Decision:
        self.asked.append(about)
        if self.decision is None:
            raise RuntimeError("no policy")
        return self.decision
