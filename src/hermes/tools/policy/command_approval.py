"""Judges commands from the terminal tool, `hermes policy check` and codex."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from hermes.core.ports import PolicyDecision
from hermes.schema.events import Reach
from hermes.text.translation import to_translate, translator
from hermes.tools.escapes import shown
from hermes.tools.policy.effects import (
    ASKS_FOR_NETWORK,
    BY_RULE,
    EFFECTS,
    Effect,
    Level,
    asks,
    widest,
)
from hermes.tools.policy.paths import PathContext
from hermes.tools.policy.policy_state import (
    BY_USER,
    NO_SANDBOX,
    PLAN_ONLY,
    PolicyState,
)
from hermes.tools.policy.request import (
    JudgedCall,
    binding_hash,
    command_summary,
    existing,
)
from hermes.tools.policy.scope_words import with_network
from hermes.tools.policy.unicode_escapes import spoof_reason

if TYPE_CHECKING:
    from hermes.tools.policy.command_judge import Judgement

t = translator(__name__)

_MORE_THAN_READS = to_translate("it does more than read")


class CommandApproval:
    """Judges commands by what they do."""

    def __init__(self, state: PolicyState) -> None:
        self._state = state

    def decide(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        workspace: Path,
        folder: Path,
    ) -> PolicyDecision:
        """Judges a command that would run in `folder`."""
        from hermes.tools.policy.command_judge import judge_command

        command = str(arguments["command"])
        requested = _requested_reach(arguments)
        context = self._state.context(workspace, folder)
        book = self._state.rules.current()
        found = judge_command(command, context, book)
        effect = self._effect(command, found, context, requested)
        rule = book.for_tool(tool)
        if rule is not None and rule[0] in ("forbid", "ask"):
            level = Level.FORBID if rule[0] == "forbid" else Level.ASK
            if level > effect.level:
                effect = Effect(level, BY_USER, once=effect.once)
        reach = widest((requested, effect.reach))
        call = JudgedCall(tool, arguments, str(folder), reach, existing(found.paths))
        decision = PolicyDecision(
            "ask",
            command_summary(command, folder),
            self._reason(effect),
            reach,
            "" if effect.once else _shape(call, command, found.effects),
            binding_hash(call, self._state.about.environment),
            memorable=not effect.once,
        )
        if effect.level == Level.FORBID:
            return msgspec.structs.replace(decision, verdict="forbid")
        is_free = self._is_free(effect, command, context)
        if self._state.mode == "plan":
            if is_free and effect.level == Level.READ and reach == "workspace":
                # Some programs that normally read can write with an option. The sandbox prevents that.
                return msgspec.structs.replace(
                    decision, verdict="allow", reason="", read_only=True
                )
            return msgspec.structs.replace(decision, verdict="forbid", reason=PLAN_ONLY)
        if is_free:
            return msgspec.structs.replace(
                decision, verdict="allow", summary="", reason=""
            )
        if rule is None and not effect.once and not self._state.rules.problem:
            effects = (*found.effects, effect)
            scope = self._scope(command, effects, context, reach)
            decision = msgspec.structs.replace(decision, scope=scope)
        return self._state.with_earlier_answer(decision, book)

    def _effect(
        self,
        command: str,
        found: "Judgement",
        context: PathContext,
        requested: Reach,
    ) -> Effect:
        """The effect of a command, raised if it looks like something else or requests a wider reach."""
        effect = found.effect
        spoof = spoof_reason(command)
        if spoof:
            effect = Effect(max(Level.UNCLEAR, effect.level), spoof, once=True)
        effect = self._with_project_programs(effect, found, context)
        if effect.level >= Level.ASK or requested in ("workspace", effect.reach):
            return effect
        # The command needs neither the network nor the machine, so a request for one of them is suspicious.
        if requested == "network":
            return asks(ASKS_FOR_NETWORK, requested)
        return asks("it asks to run outside the sandbox", requested)

    def _with_project_programs(
        self, effect: Effect, found: "Judgement", context: PathContext
    ) -> Effect:
        """Asks about a command that is harmless by its program's name, if that name would run a file of the project.

        In the sandbox, without the network, such a program can do no harm.
        """
        from hermes.tools.policy.program_table import program

        is_held = effect.reach == "workspace" and self._state.is_sandboxed
        if effect.level >= Level.ASK or is_held:
            return effect
        for name in sorted(found.programs):
            if effect.reason == BY_RULE and program(name).judge != "fetch":
                continue
            file = context.project_program(name)
            if file is not None:
                reason = t.logged(
                    "here {name} is {file}, a program of the project that could do anything",
                    name=name,
                    file=file,
                )
                return Effect(Level.ASK, reason, effect.reach, once=True)
        return effect

    def _is_free(self, effect: Effect, command: str, context: PathContext) -> bool:
        """Whether a command may run without asking."""
        state = self._state
        if effect.level >= Level.UNCLEAR or state.about.guest:
            return False
        if state.mode == "full" and not state.is_careful:
            return True
        if state.is_sandboxed and not state.is_careful:
            return effect.level <= Level.WORK
        if state.is_sandboxed and effect.level == Level.READ:
            return True
        if effect.level > Level.WORK or effect.reason == BY_RULE:
            return effect.level <= Level.WORK
        from hermes.tools.policy.session_scope import only_reads

        return only_reads(command, context)

    def _reason(self, effect: Effect) -> str:
        reason = effect.reason
        if not reason or reason == BY_RULE:
            reason = _MORE_THAN_READS if self._state.is_sandboxed else NO_SANDBOX
        warning = self._state.warning
        return shown(f"{reason}. {warning}" if warning else reason)

    def _scope(
        self,
        command: str,
        effects: Sequence[Effect],
        context: PathContext,
        reach: Reach,
    ) -> str:
        """The commands that an answer for the session covers, with the reasons; empty if it covers only this one."""
        from hermes.tools.policy.session_scope import command_scope

        is_held = self._state.is_sandboxed and reach == "workspace"
        scope = command_scope(command, effects, context, is_held=is_held)
        if scope is None or reach == "machine":
            return ""
        asked = [one.reason for one in effects if one.level >= Level.ASK]
        reasons = list(dict.fromkeys(asked))
        if reach == "network":  # replaces the reason that says the same
            uses_network = EFFECTS["network"].reason
            rest = [reason for reason in reasons if reason != uses_network]
            reasons = [with_network(), *rest]
        return shown(scope.describe(context.folders[0], reasons))


def _shape(call: JudgedCall, command: str, effects: Iterable[Effect]) -> str:
    """What an approval of the call covers: the same command in the same place, with the same files that decide what
    it does.
    """
    files = "".join(f" [{one.depends_on}]" for one in effects if one.depends_on)
    return f"{call.tool} in {call.folder} ({call.reach}){files}: {command}"


def _requested_reach(arguments: Mapping[str, Any]) -> Reach:
    reach = arguments.get("reach")
    return reach if reach in ("network", "machine") else "workspace"
