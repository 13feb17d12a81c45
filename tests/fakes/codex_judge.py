"""A policy for what codex asks, with one opinion."""

from pathlib import Path
from typing import Any

from hermes.core.ports import PolicyDecision


class FixedJudge:
    """Always says the same, and remembers what it was asked. Without a decision, judging fails."""

    def __init__(self, decision: PolicyDecision | None = None) -> None:
        self.decision = decision
        self.asked: list[tuple[Any, ...]] = []

    def check(
        self, command: str, folder: Path, *, workspace: Path | None = None
    ) -> PolicyDecision:
        return self._say(command, folder, workspace)

    def check_files(
        self,
        paths: tuple[Path, ...],
        workspace: Path,
        *,
        below: tuple[Path, ...] = (),  # noqa: ARG002, RUF100
    ) -> PolicyDecision:
        return self._say(paths, below)

    def check_host(self, host: str) -> PolicyDecision:
        return self._say(host)

    def check_tool(self, name: str) -> PolicyDecision:
        return self._say(name)

    def _say(self, *about: Any) -> PolicyDecision:
        self.asked.append(about)
        if self.decision is None:
            raise RuntimeError("no policy")
        return self.decision
