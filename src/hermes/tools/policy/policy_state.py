"""What all decisions share: the mode, the folders, the sensitive paths, and the user's rules."""

from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path

import msgspec

from hermes.core.ports import PolicyDecision
from hermes.schema.events import Mode, Reach
from hermes.text.translation import to_translate
from hermes.tools.policy.effects import Effect, Level
from hermes.tools.policy.paths import PathContext
from hermes.tools.policy.rule_file import RuleFile
from hermes.tools.policy.rules import RuleBook
from hermes.tools.sensitive import Guard

WHILE_BROKEN = to_translate(
    "Until you fix it, no rule allows anything, and Hermes asks about every effect."
)
PLAN_ONLY = to_translate(
    "in plan mode nothing is changed: only read, search and ask. Put it into the plan"
)
BY_USER = to_translate("your rules say so")
NO_SANDBOX = to_translate("it may change something, and it runs without a sandbox")


class Circumstances(msgspec.Struct, frozen=True):
    """What the policy needs to know about the process it works in."""

    hermes_home: Path
    user_home: Path
    sandboxed: bool | Callable[[], bool] = False
    """Whether commands really run in a sandbox. May be a function, called on first use, because finding out takes a moment."""
    strict: bool = False
    """Ask about every command that does more than read. Meant for small models."""
    guest: bool = False
    """Hermes works for somebody other than the user. Without approval it only reads the working directory and looks
    things up; remembered answers and rules that allow something do not count."""
    environment: Mapping[str, str] = msgspec.field(default_factory=dict)


class PolicyState:
    """The mode, the circumstances and the rules of one policy."""

    def __init__(
        self, mode: Mode, circumstances: Circumstances, rules: RuleFile | None
    ) -> None:
        home = circumstances.hermes_home
        self.mode: Mode = mode
        self.about = circumstances
        self.guard = Guard(home.resolve(), circumstances.user_home)
        self.rules = rules or RuleFile(home)

    @cached_property
    def is_sandboxed(self) -> bool:
        """Whether commands run in a sandbox."""
        sandboxed = self.about.sandboxed
        return sandboxed if isinstance(sandboxed, bool) else sandboxed()

    @property
    def is_careful(self) -> bool:
        """Whether every call that may have an effect needs approval, in every mode."""
        return self.about.strict or self.about.guest or bool(self.rules.problem)

    @property
    def warning(self) -> str:
        """The problem with `policy.yaml`; empty if there is none."""
        problem = self.rules.problem
        return f"{problem}. {WHILE_BROKEN}" if problem else ""

    def context(self, workspace: Path, folder: Path) -> PathContext:
        """The context of a command that runs in `folder`."""
        search_path = self.about.environment.get("PATH", "")
        return PathContext(
            workspace, (folder,), self.about.user_home, self.guard, search_path
        )

    def allows_code(self, effect: Effect, reach: Reach = "workspace") -> bool:
        """Whether code may run, or be typed into a running program, without approval."""
        if self.is_careful:
            return False
        if self.mode == "full" and effect.level < Level.UNCLEAR:
            return True
        is_work = effect.level <= Level.WORK
        return is_work and self.is_sandboxed and reach == "workspace"

    def with_earlier_answer(
        self, decision: PolicyDecision, book: RuleBook
    ) -> PolicyDecision:
        """Applies the user's remembered answers to a decision. For a guest, none count and none can be remembered."""
        if self.about.guest:
            return msgspec.structs.replace(
                decision, shape="", scope="", memorable=False
            )
        known = {decision.shape, decision.scope} - {""}
        is_remembered = decision.memorable and not known.isdisjoint(book.remembered)
        if decision.verdict == "ask" and is_remembered:
            return msgspec.structs.replace(decision, verdict="allow")
        return decision
