"""`ApprovalPolicy`: allows, asks about or forbids every tool call before it runs.

Reading needs no approval, except for secrets. Commands may change the workspace without approval while a sandbox
confines them to it. Anything dangerous, or that reaches beyond the workspace, needs approval. Some effects are never
allowed.
"""

import logging
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import msgspec

from hermes.core.ports import PolicyDecision, Tool
from hermes.errors import SettingsError
from hermes.schema.events import ApprovalRequested, Reach
from hermes.tools.escapes import shown
from hermes.tools.policy.policy_state import (
    BY_USER,
    PLAN_ONLY,
    Circumstances,
    Mode,
    PolicyState,
)
from hermes.tools.policy.project_limits import ProjectLimits
from hermes.tools.policy.rule_file import RuleFile
from hermes.tools.sensitive import is_within

if TYPE_CHECKING:
    from hermes.tools.policy.command_approval import CommandApproval
    from hermes.tools.policy.tool_approval import ToolApproval

log = logging.getLogger("hermes.tools")


@runtime_checkable
class _HasFolder(Protocol):
    """A tool that knows the folder in which its next command will run, such as the terminal."""

    def folder(self, cwd: Path) -> Path: ...


_NOT_FOR_PLANS = frozenset(("memory", "skill_manage", "image_generate"))
"""Tools that plan mode excludes although they count as reading or looking up: they write notes for the user to review,
or make pictures, which cost money.
"""


def _not_planned(decision: PolicyDecision) -> PolicyDecision:
    """Turns a decision into a refusal, because plan mode does not allow the call."""
    return msgspec.structs.replace(decision, verdict="forbid", reason=PLAN_ONLY)


class ApprovalPolicy:
    """Judges calls by the mode: `ask` (the default), `auto-edit` for files of the working directory, `plan`, or `full`."""

    def __init__(
        self, mode: Mode, circumstances: Circumstances, rules: RuleFile | None = None
    ) -> None:
        self._state = PolicyState(mode, circumstances, rules)
        self._project = ProjectLimits(self._state)

    @cached_property
    def _commands(self) -> "CommandApproval":  # loaded for the first call
        from hermes.tools.policy.command_approval import CommandApproval

        return CommandApproval(self._state)

    @cached_property
    def _tools(self) -> "ToolApproval":
        from hermes.tools.policy.tool_approval import ToolApproval

        return ToolApproval(self._state)

    @property
    def warning(self) -> str:
        """The problem with `policy.yaml`; empty if there is none."""
        return self._state.warning

    def judge(
        self, tool: Tool, arguments: Mapping[str, Any], cwd: Path
    ) -> PolicyDecision:
        """Judges a call by the user's rules, and by the project's, which can only make the verdict stricter."""
        decision = self._judge(tool, arguments, cwd)
        return self._project.limited(decision, tool, arguments, cwd)

    def _judge(
        self, tool: Tool, arguments: Mapping[str, Any], cwd: Path
    ) -> PolicyDecision:
        owner = getattr(tool, "owner", None)
        if tool.spec.name != "terminal" or not isinstance(owner, _HasFolder):
            decision = self._tools.decide(tool, arguments, cwd)
            return decision if self._may_plan_with(tool) else _not_planned(decision)
        if not isinstance(arguments.get("command"), str):
            return PolicyDecision("allow")  # the tool itself rejects these arguments
        return self._commands.decide(tool.spec.name, arguments, cwd, owner.folder(cwd))

    def _may_plan_with(self, tool: Tool) -> bool:
        """Whether the mode allows this tool at all: plan mode allows only tools that read, search and ask."""
        if self._state.mode != "plan":
            return True
        return (
            tool.effect in ("read", "network") and tool.spec.name not in _NOT_FOR_PLANS
        )

    def check(
        self,
        command: str,
        folder: Path,
        reach: Reach = "workspace",
        *,
        workspace: Path | None = None,
    ) -> PolicyDecision:
        """Judges a command that no Hermes tool runs: for `hermes policy check` and for codex's commands."""
        arguments = {"command": command, "reach": reach}
        root = workspace or folder
        decision = self._commands.decide("terminal", arguments, root, folder)
        return self._project.limited_command(decision, command, root, folder)

    def check_files(
        self, paths: tuple[Path, ...], workspace: Path, *, below: tuple[Path, ...] = ()
    ) -> PolicyDecision:
        """Judges changes to these files, and to anything in the folders `below`. Never allows them without asking."""
        state = self._state
        if state.mode == "plan":
            return PolicyDecision("forbid", reason=PLAN_ONLY)
        book, home = state.rules.current(), state.about.user_home
        files = tuple(path.resolve() for path in (*paths, *below))
        rule = book.for_paths(files, home)
        is_forbidden = rule is not None and rule[0] == "forbid"
        holds_forbidden = any(
            is_within(path, folder)
            for folder in below
            for path in book.forbidden_paths(home)
        )
        if is_forbidden or holds_forbidden:
            return PolicyDecision("forbid", reason=BY_USER)
        if why := self._project.protection(files, workspace):
            return PolicyDecision("forbid", reason=why)
        reason = state.guard.write_reason(files, workspace)
        is_memorable = bool(files) and not state.guard.protected_reason(
            files, workspace
        )
        return PolicyDecision(
            "ask",
            reason=shown(reason),
            memorable=is_memorable and not state.about.guest,
        )

    def check_host(self, host: str) -> PolicyDecision:
        """Judges a connection to a host."""
        if self._state.mode == "plan":
            return PolicyDecision("forbid", reason=PLAN_ONLY, reach="network")
        rule = self._state.rules.current().for_host(host)
        if rule is not None and rule[0] == "forbid":
            from hermes.tools.policy.tool_approval import FORBIDDEN_HOST

            return PolicyDecision("forbid", reason=FORBIDDEN_HOST, reach="network")
        is_allowed = rule is not None and rule[0] == "network"
        return PolicyDecision(
            "allow" if is_allowed and not self._state.is_careful else "ask",
            reach="network",
            memorable=not self._state.about.guest,
        )

    def check_tool(self, name: str) -> PolicyDecision:
        """Judges a tool that is not one of Hermes' own. Never allows it without asking."""
        if self._state.mode == "plan":
            return PolicyDecision("forbid", reason=PLAN_ONLY)
        rule = self._state.rules.current().for_tool(name)
        if rule is not None and rule[0] == "forbid":
            return PolicyDecision("forbid", reason=BY_USER)
        return PolicyDecision("ask", memorable=not self._state.about.guest)

    def remember(self, request: ApprovalRequested, rule: str = "") -> None:
        """Allows calls of exactly this shape from now on or, with a `rule`, all calls in the request's scope.

        If the file can't be written, that is logged.
        """
        allowed = rule if rule and rule == request.scope else request.shape
        if not request.memorable or not allowed:
            return
        try:
            self._state.rules.remember(allowed)
        except SettingsError as error:
            log.warning(
                "the answer was not remembered: %s %s", error.message, error.hint
            )
