"""`ApprovalPolicy`: decides about every call before it runs.

Reading is free, except secrets. Commands may work in the workspace without asking while a sandbox holds them there.
Whatever is dangerous anyway, or needs more than the workspace, is asked about; some effects are never allowed.
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
    """A terminal: it knows where its next command will run."""

    def folder(self, cwd: Path) -> Path: ...


_NOT_FOR_PLANS = frozenset(("memory", "skill_manage", "image_generate"))
"""Tools that count as reading or looking up, but leave something behind: notes, about which the user decides later, or
pictures, which cost money.
"""


def _not_planned(decision: PolicyDecision) -> PolicyDecision:
    """The decision about a call that plan mode does not allow."""
    return msgspec.structs.replace(decision, verdict="forbid", reason=PLAN_ONLY)


class ApprovalPolicy:
    """Decides by mode: `ask` (the default), `auto-edit` for files of the working directory, `plan`, or `full`."""

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
        """What is wrong with `policy.yaml`; empty when nothing is."""
        return self._state.warning

    def judge(
        self, tool: Tool, arguments: Mapping[str, Any], cwd: Path
    ) -> PolicyDecision:
        """What may be done with this call, by the user's rules and by the project's, which can only forbid more."""
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
            return PolicyDecision("allow")  # the tool refuses it
        return self._commands.decide(tool.spec.name, arguments, cwd, owner.folder(cwd))

    def _may_plan_with(self, tool: Tool) -> bool:
        """Whether the mode allows such a tool at all: in plan mode, only those that read, search and ask."""
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
        """Judges a command outside any tool: for `hermes policy check` and for codex's commands."""
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
        reason = state.guard.carrying(files, workspace)
        is_memorable = bool(files) and not state.guard.delicate(files, workspace)
        return PolicyDecision(
            "ask",
            reason=shown(reason),
            memorable=is_memorable and not state.about.guest,
        )

    def check_host(self, host: str) -> PolicyDecision:
        """Judges reaching a host."""
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
        """Judges a tool that Hermes itself does not have. Never allows it without asking."""
        if self._state.mode == "plan":
            return PolicyDecision("forbid", reason=PLAN_ONLY)
        rule = self._state.rules.current().for_tool(name)
        if rule is not None and rule[0] == "forbid":
            return PolicyDecision("forbid", reason=BY_USER)
        return PolicyDecision("ask", memorable=not self._state.about.guest)

    def remember(self, request: ApprovalRequested, rule: str = "") -> None:
        """Allows from now on calls of exactly this shape or, as a `rule`, all calls of the request's scope.

        A file that can't be written is reported in the log.
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
