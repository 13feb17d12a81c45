"""The real tools for `hermes model test`, confined to the folder of a task. Nobody is asked, so in doubt it is no."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hermes.core.arguments import BadArguments, parse_arguments
from hermes.core.calls import check_arguments
from hermes.core.ports import Tool, ToolContext
from hermes.errors import ToolFailed
from hermes.schema.messages import ToolCall, ToolFinished
from hermes.schema.tools import ToolResult, ToolSpec
from hermes.tools import ApprovalPolicy, default_tools
from hermes.tools.policy import Circumstances

_CHANGING = frozenset(
    ("mkdir", "mv", "cp", "touch", "rmdir", "rm", "ln")
)  # inside the folder, with plain arguments
_REFUSED = "Not run: a test may not do this."


class TaskTools:
    """Runs calls in a folder, each folder with tools of its own."""

    def __init__(self, hermes_home: Path, environ: Mapping[str, str]) -> None:
        self._home = hermes_home
        self._environ = environ
        self._policy = ApprovalPolicy(
            "auto-edit", Circumstances(hermes_home, Path.home(), strict=True)
        )
        self._folder: Path | None = None
        self._tools = self._make(hermes_home)

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """What the model is offered."""
        return tuple(tool.spec for tool in self._tools.values())

    async def run(self, call: ToolCall, folder: Path) -> ToolFinished:
        """Runs one call; what can't be done is a result too."""
        if folder != self._folder:
            self._folder, self._tools = folder, self._make(folder)
        try:
            result = await self._result(call, folder)
        except (ToolFailed, BadArguments) as error:
            result = ToolResult(text=str(error), ok=False)
        return ToolFinished(
            call_id=call.id, name=call.name, text=result.text, ok=result.ok
        )

    async def _result(self, call: ToolCall, folder: Path) -> ToolResult:
        tool = self._tools.get(call.name)
        if tool is None:
            return ToolResult(text=f"There is no tool {call.name!r}.", ok=False)
        arguments = parse_arguments(call.arguments)
        if not isinstance(arguments, dict):
            return ToolResult(text="The arguments must be a JSON object.", ok=False)
        problem = check_arguments(arguments, tool.spec.parameters)
        if problem or not self._may(tool, arguments, folder):
            return ToolResult(text=problem or _REFUSED, ok=False)
        return await tool.run(
            arguments, ToolContext(call.id, "test", folder, lambda _: None)
        )

    def _may(self, tool: Tool, arguments: Mapping[str, Any], folder: Path) -> bool:
        inside = folder.resolve()
        if not all(
            path.resolve().is_relative_to(inside)
            for path in tool.paths(arguments, folder)
        ):
            return False
        verdict = self._policy.judge(tool, arguments, folder).verdict
        return verdict == "allow" or (
            verdict == "ask" and is_harmless(str(arguments.get("command", "")))
        )

    def _make(self, folder: Path) -> dict[str, Tool]:
        return default_tools(
            folder / ".outputs", environment=self._environ, hermes_home=self._home
        )


def is_harmless(command: str) -> bool:
    """Whether a command changes at most what is in its folder: one program of a few, and plain relative names."""
    try:
        words = shlex.split(command)
    except ValueError:
        return False
    if (
        not words
        or words[0] not in _CHANGING
        or any(sign in command for sign in ";|&`$<>*?~\n(")
    ):
        return False
    return not any(word.startswith("/") or ".." in word for word in words)
