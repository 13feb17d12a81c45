"""Judges calls to tools other than the terminal by what the tool does: read, change files, look up, or act."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from hermes.core.ports import Effect, PolicyDecision, Tool
from hermes.text.translation import to_translate, translator
from hermes.tools.escapes import shown
from hermes.tools.files.patch_plan import deletes_files
from hermes.tools.policy.effects import Level
from hermes.tools.policy.policy_state import BY_USER, NO_SANDBOX, PolicyState
from hermes.tools.policy.request import (
    JudgedCall,
    binding_hash,
    call_summary,
    change_summary,
    description,
    listed_paths,
    read_summary,
)
from hermes.tools.policy.rules import PolicyRule, RuleBook, host_of, path_of
from hermes.tools.policy.scope_words import calls_scope, changes_scope
from hermes.tools.sensitive import is_within

Arguments: TypeAlias = Mapping[str, Any]
t = translator(__name__)

FORBIDDEN_HOST = to_translate("your rules forbid this host")


class ToolCallRequest(msgspec.Struct, frozen=True):
    """A tool call that is to be judged."""

    tool: Tool
    arguments: Arguments
    cwd: Path
    paths: tuple[Path, ...]

    @property
    def name(self) -> str:
        """The name of the tool."""
        return self.tool.spec.name

    @property
    def effect(self) -> Effect:
        """The effect of this call, which may be less than the tool's own."""
        effect_of = getattr(self.tool, "effect_of", None)
        if callable(effect_of):
            return effect_of(self.arguments)
        return self.tool.effect

    @property
    def summary(self) -> str:
        """The call with its arguments, as a person reads it."""
        return call_summary(self.tool, self.arguments)

    @property
    def shape(self) -> str:
        """Identifies exactly this call."""
        encoded = msgspec.json.encode(self.arguments, order="deterministic")
        return f"{self.name} {encoded.decode()}"


class ToolApproval:
    """Judges calls to tools other than the terminal."""

    def __init__(self, state: PolicyState) -> None:
        self._state = state

    def decide(self, tool: Tool, arguments: Arguments, cwd: Path) -> PolicyDecision:
        """Judges a call."""
        book = self._state.rules.current()
        call = ToolCallRequest(tool, arguments, cwd, tool.paths(arguments, cwd))
        decision = self._bound(call, self._ruled(call, book))
        return self._state.with_earlier_answer(decision, book)

    def _ruled(self, call: ToolCallRequest, book: RuleBook) -> PolicyDecision:
        """Judges by the user's rules, then by what the tool does."""
        found = book.for_tool(call.name) or book.for_paths(
            call.paths, self._state.about.user_home
        )
        if found is not None and found[0] in ("forbid", "ask"):
            return PolicyDecision(
                "forbid" if found[0] == "forbid" else "ask",
                change_summary(call.tool, call.arguments, call.paths, call.cwd),
                BY_USER,
                memorable=not self._state.guard.protected_reason(call.paths, call.cwd),
            )
        decide = {
            "read": self._read,
            "files": self._write,
            "network": self._look_up,
            "other": self._act,
        }[call.effect]
        decision = decide(call)
        is_allowed = found is not None and self._covers(found[1], call)
        if decision.verdict == "ask" and is_allowed:
            return PolicyDecision("allow", reach=decision.reach)
        return decision

    def _covers(self, rule: PolicyRule, call: ToolCallRequest) -> bool:
        """Whether an `allow` rule covers these files. It must name a sensitive file exactly, and can't allow Hermes' own."""
        if self._state.about.guest:
            return False
        guard = self._state.guard
        named = path_of(rule, self._state.about.user_home)
        for path in call.paths:
            sensitive = guard.protected_reason((path,), call.cwd) or guard.secret(
                (path,), call.cwd
            )
            if guard.is_ours(path) or (sensitive and path != named):
                return False
        return True

    def _bound(self, call: ToolCallRequest, decision: PolicyDecision) -> PolicyDecision:
        """Adds the files, and the hash of what was judged. An allowed call needs no hash, because nothing can change before
        it runs.
        """
        if decision.verdict == "allow":
            return msgspec.structs.replace(decision, targets=call.paths)
        described = description(call.tool, call.arguments)
        arguments = call.arguments
        if described:
            arguments = {**arguments, "described": described}
        judged = JudgedCall(
            call.name, arguments, str(call.cwd), "workspace", call.paths
        )
        return msgspec.structs.replace(
            decision,
            binding=binding_hash(judged, self._state.about.environment),
            targets=call.paths,
        )

    def _read(self, call: ToolCallRequest) -> PolicyDecision:
        reason = self._state.guard.secret(call.paths, call.cwd)
        if not reason and self._state.about.guest:
            reason = self._outside_of_guest(call)
        if not reason:
            return PolicyDecision("allow")
        return PolicyDecision(
            "ask",
            read_summary(call.tool, call.paths),
            shown(reason),
            shape=f"{call.name} {listed_paths(call.paths)}",
        )

    def _outside_of_guest(self, call: ToolCallRequest) -> str:
        """Why a guest needs approval to read this. Saved outputs are readable, because their names can't be guessed."""
        outputs = self._state.guard.home / "cache" / "outputs"
        for path in call.paths:
            is_output = call.name == "read_file" and path.parent == outputs
            inside = is_within(path, call.cwd) or is_within(path, call.cwd.resolve())
            if not is_output and not inside:
                return t.logged(
                    "{path} is outside the folder of the person who asked", path=path
                )
        return ""

    def _write(self, call: ToolCallRequest) -> PolicyDecision:
        state = self._state
        reason = t.logged("it does not say which file it changes")
        if call.paths:
            reason = state.guard.write_reason(call.paths, call.cwd)
        is_ordinary = not reason and not state.rules.problem
        if is_ordinary and state.mode in ("auto-edit", "full"):
            return PolicyDecision("allow")
        # A remembered answer covers only the identical change, and for protected files not even that.
        shape = f"{call.name} {listed_paths(call.paths)} {_digest(call.arguments)}"
        is_wide = is_ordinary and not deletes_files(call.arguments)
        return PolicyDecision(
            "ask",
            change_summary(call.tool, call.arguments, call.paths, call.cwd),
            shown(reason or t.logged("it changes a file")),
            shape="" if reason else shape,
            memorable=bool(call.paths)
            and not state.guard.protected_reason(call.paths, call.cwd),
            scope=changes_scope(call.cwd) if is_wide else "",
            # A patch that can't be read names no file: trying it reads none.
            may_precheck=(is_ordinary or not call.paths)
            and not state.about.guest
            and not state.guard.secret(call.paths, call.cwd),
        )

    def _look_up(self, call: ToolCallRequest) -> PolicyDecision:
        if call.paths and (reading := self._read(call)).verdict != "allow":
            return reading  # the file would be sent over the network
        book = self._state.rules.current()
        texts = [value for value in call.arguments.values() if isinstance(value, str)]
        found = [book.for_host(host_of(text)) for text in texts]
        titles = {rule[0] for rule in found if rule is not None}
        if "forbid" in titles:
            return PolicyDecision("forbid", call.summary, FORBIDDEN_HOST, "network")
        # A guest may look things up, so this is less strict than `PolicyState.is_careful`.
        is_careful = self._state.about.strict or bool(self._state.rules.problem)
        if "ask" in titles or (is_careful and not titles):
            reason = _caution(call.tool) or t.logged("it uses the network")
            return PolicyDecision("ask", call.summary, reason, "network", call.shape)
        return PolicyDecision("allow", reach="network")

    def _act(self, call: ToolCallRequest) -> PolicyDecision:
        if call.name == "process_write":
            return self._type(call)
        code = call.arguments.get("code")
        if call.name == "run_python" and isinstance(code, str):
            return self._run_python(call, code)
        if self._state.mode == "full" and not self._state.is_careful:
            return PolicyDecision("allow")
        caution = _caution(call.tool)
        is_wide = call.name.startswith("mcp.") and not caution
        is_changing = description(call.tool, call.arguments) or "ref" in call.arguments
        return PolicyDecision(
            "ask",
            call.summary,
            caution or t.logged("it may change something"),
            shape=call.shape,
            scope=calls_scope(call.name)
            if is_wide and not self._state.rules.problem
            else "",
            memorable=not is_changing,  # the same reference may mean another element next time
        )

    def _run_python(self, call: ToolCallRequest, code: str) -> PolicyDecision:
        from hermes.tools.policy.inline_code import judge_code

        effect = judge_code("python", code)
        if self._state.allows_code(effect):
            return PolicyDecision("allow")
        return PolicyDecision(
            "ask",
            shown(f"run_python:\n{code}"),
            shown(effect.reason or NO_SANDBOX),
            effect.reach,
            call.shape,
            memorable=not effect.once,
        )

    def _type(self, call: ToolCallRequest) -> PolicyDecision:
        """Judges input to a running program, together with what was already typed on the same line."""
        from hermes.tools.policy.terminal_input import judge_terminal_input

        context = self._state.context(call.cwd, call.cwd)
        owner = getattr(call.tool, "owner", None)
        reach, effect = judge_terminal_input(owner, call.arguments, context)
        if effect.level == Level.FORBID:
            return PolicyDecision("forbid", call.summary, shown(effect.reason), reach)
        if self._state.allows_code(effect, reach):
            return PolicyDecision("allow", reach=reach)
        reason = effect.reason or t.logged("it types into a running program")
        return PolicyDecision(
            "ask", call.summary, shown(reason), reach, memorable=False
        )


def _caution(tool: Tool) -> str:
    """The tool's own warning to the person; empty if it has none."""
    caution = getattr(tool, "caution", "")
    return shown(caution) if isinstance(caution, str) else ""


def _digest(arguments: Arguments) -> str:
    """Distinguishes changes without storing their content."""
    encoded = msgspec.json.encode(arguments, order="deterministic")
    return hashlib.sha256(encoded).hexdigest()[:24]
