"""Applies the project's rules to decisions. They can only forbid, never allow."""

from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import msgspec

from hermes.core.ports import PolicyDecision, Tool
from hermes.text.translation import translator
from hermes.tools.escapes import shown
from hermes.tools.policy.effects import Level
from hermes.tools.policy.policy_state import PolicyState
from hermes.tools.policy.request import change_summary, command_summary
from hermes.tools.policy.rules import RuleBook

if TYPE_CHECKING:
    from hermes.tools.project_rules import ProjectRules

t = translator(__name__)


@runtime_checkable
class _HasCurrentFolder(Protocol):
    def folder(self, cwd: Path) -> Path: ...


class ProjectLimits:
    """Applies `.hermes/rules.yaml` and the front matter of AGENTS.md."""

    def __init__(self, state: PolicyState) -> None:
        self._state = state

    def limited(
        self,
        decision: PolicyDecision,
        tool: Tool,
        arguments: Mapping[str, Any],
        cwd: Path,
    ) -> PolicyDecision:
        """Applies the project's rules to a decision about a tool call."""
        rules = _rules(cwd)
        if decision.verdict == "forbid" or tool.effect == "read" or not _limits(rules):
            return decision
        command = arguments.get("command")
        if tool.spec.name == "terminal" and isinstance(command, str):
            owner = getattr(tool, "owner", None)
            at = owner.folder(cwd) if isinstance(owner, _HasCurrentFolder) else cwd
            return self.limited_command(decision, command, cwd, at)
        if tool.effect == "files" and (
            why := self.protection(tool.paths(arguments, cwd), cwd)
        ):
            return _forbidden(decision, why)
        if not _is_unclear(decision, rules):
            return decision
        summary = change_summary(tool, arguments, tool.paths(arguments, cwd), cwd)
        return _with_problem(decision, rules, summary)

    def limited_command(
        self, decision: PolicyDecision, command: str, workspace: Path, folder: Path
    ) -> PolicyDecision:
        """Applies the project's rules to a decision about a command."""
        rules = _rules(workspace)
        if decision.verdict == "forbid" or not _limits(rules):
            return decision
        from hermes.tools.policy.command_judge import judge_command

        context = msgspec.structs.replace(
            self._state.context(workspace, folder),
            protects=partial(rules.protects, root=workspace),
        )
        book = RuleBook(forbid=rules.forbidden_commands)
        for effect in judge_command(command, context, book).effects:
            if effect.level == Level.FORBID:
                return _forbidden(decision, _of_project(effect.reason))
        if not _is_unclear(decision, rules):
            return decision
        return _with_problem(decision, rules, command_summary(command, folder))

    def protection(self, paths: Iterable[Path], workspace: Path) -> str:
        """Why the project forbids changing one of these files; empty if it does not."""
        rules = _rules(workspace)
        found = (rules.protects(path, workspace) for path in paths)
        rule = next(filter(None, found), "")
        if not rule:
            return ""
        return t.logged("the project's rules protect {rule}", rule=rule)


def _rules(root: Path) -> "ProjectRules":
    from hermes.tools.project_rules import project_rules

    return project_rules(root)


def _limits(rules: "ProjectRules") -> bool:
    return bool(rules.protect or rules.forbid or rules.problem)


def _forbidden(decision: PolicyDecision, why: str) -> PolicyDecision:
    return msgspec.structs.replace(decision, verdict="forbid", reason=shown(why))


def _of_project(reason: str) -> str:
    """The reason, reworded to say that the rule is the project's, not the user's."""
    start, found, rule = reason.partition("your rules forbid it: ")  # not translated
    if start or not found:
        return reason
    return t.logged("the project's rules forbid it: {rule}", rule=rule)


def _is_unclear(decision: PolicyDecision, rules: "ProjectRules") -> bool:
    """Whether a call would run although the project's rules can't be read."""
    return bool(rules.problem) and decision.verdict == "allow"


def _with_problem(
    decision: PolicyDecision, rules: "ProjectRules", summary: str
) -> PolicyDecision:
    """Asks about a call because the project's rules can't be read."""
    why = t.logged(
        "the project's rules can't be read ({problem})", problem=rules.problem
    )
    return msgspec.structs.replace(
        decision,
        verdict="ask",
        summary=summary,
        reason=shown(why),
        memorable=False,
        shape="",
        scope="",
    )
