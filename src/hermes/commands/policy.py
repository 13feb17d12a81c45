"""The policy: show what runs without asking, check a command, forget a remembered answer."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from hermes.commands.command import Arg, command
from hermes.commands.context import CommandContext
from hermes.commands.views import Block, TextResult, line, message
from hermes.core.ports import PolicyDecision
from hermes.errors import NotFound, UsageError
from hermes.primitives.untyped import number_in_text
from hermes.settings.load import typed_path
from hermes.text.translation import (
    shown_approval_reason,
    shown_approval_scope,
    shown_reason,
    to_translate,
    translator,
)
from hermes.tools.escapes import shown
from hermes.tools.policy import ApprovalPolicy, Circumstances, RuleFile
from hermes.tools.policy.rules import RuleBook
from hermes.tools.sandbox.detect import find_sandbox

t = translator(__name__)


EXAMPLES = to_translate("""\
examples:
  hermes policy show                        rules, remembered answers, and whether there is a sandbox
  hermes policy check "rm -rf build"        would it run, need approval, or be refused?
  hermes policy forget 2                    forget the second remembered answer
  hermes policy accept                      accept the rules as they are, though some are gone
  hermes policy accept docs/AGENTS.md       let sessions in docs read it, though a command wrote it

policy.yaml, in the Hermes home, has your rules. Words are compared whole, from the first on:
  forbid:
    - {program: docker, arguments: [push]}
  ask:
    - {path: ~/archive}
  allow:
    - {program: npm, arguments: [ci], reach: network}
    - {tool: mcp.tracker.list_issues}
  network:
    - {host: api.example.com}
""")
_EXIT_CODES = {"allow": 0, "ask": 3, "forbid": 4}
_VERDICTS = {
    "allow": to_translate("allowed"),
    "ask": to_translate("needs approval"),
    "forbid": to_translate("never allowed"),
}
_RULE_LISTS = ("forbid", "ask", "allow", "network")
_MODES = {
    "ask": to_translate(
        "Hermes asks before every change to a file, and before commands that do more than work in this folder"
    ),
    "auto-edit": to_translate(
        "Hermes changes files in this folder without asking; commands as in ask"
    ),
    "plan": to_translate(
        "Hermes only reads, searches and asks, then shows you a plan; nothing is changed before you accept it"
    ),
    "full": to_translate("Hermes asks only about commands that it can't analyse"),
}


class ShownPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """The rules, the remembered answers, and the sandbox."""

    file: str
    is_there: bool
    problem: str
    sandbox: str
    why: str
    rules: RuleBook

    @property
    def exit_code(self) -> int:
        return int(bool(self.problem))

    def document(self) -> Any:
        return {
            "file": self.file,
            "problem": self.problem,
            "sandbox": self.sandbox,
            "why": self.why,
            "rules": msgspec.to_builtins(self.rules),
        }

    def view(self, _now: float) -> Iterable[Block]:
        missing = "" if self.is_there else t(" (does not exist yet)")
        why = f": {shown(shown_reason(self.why))}" if self.why else ""
        yield line(
            t("file       {file}{missing}", file=shown(self.file), missing=missing)
        )
        yield line(t("sandbox    {sandbox}{why}", sandbox=self.sandbox, why=why))
        if self.problem:
            yield line(f"\n{shown(self.problem)}.")
            yield line(
                t(
                    "Until you fix it, no rule allows anything, and Hermes asks about every effect."
                )
            )
            return
        yield from map(line, _rule_lines(self.rules))


class CommandVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a command would run."""

    verdict: str
    reason: str
    reach: str
    sandbox: bool

    @property
    def exit_code(self) -> int:
        return _EXIT_CODES[self.verdict]

    def view(self, _now: float) -> Iterable[Block]:
        reach = "" if self.reach == "workspace" else f" (reach: {self.reach})"
        reason = f": {shown_approval_reason(self.reason)}" if self.reason else ""
        yield line(f"{t.marked(_VERDICTS[self.verdict])}{reach}{reason}")


@command("policy show", scope="observe")
def show_policy(context: CommandContext) -> ShownPolicy:
    """Show the rules, what is remembered, and the sandbox."""
    rules = RuleFile(context.home.root)
    book = rules.current()
    sandbox = find_sandbox(context.environment.get("PATH", ""), Path.home())
    return ShownPolicy(
        file=str(rules.path),
        is_there=rules.path.exists(),
        problem=rules.problem,
        sandbox=sandbox.kind,
        why=sandbox.why,
        rules=book,
    )


@command("policy check", scope="admin")
def check_command(
    context: CommandContext,
    command_text: Annotated[str, Arg("the command, in quotes", metavar="COMMAND")],
    *,
    mode: Annotated[
        Literal["ask", "auto-edit", "plan", "full"], "the approval mode"
    ] = "ask",
    cwd: Annotated[
        str, Arg("the workspace (default: this folder)", metavar="DIR")
    ] = ".",
    reach: Annotated[
        Literal["workspace", "network", "machine"], "the reach that the call asks for"
    ] = "workspace",
    no_sandbox: Annotated[bool, "as if there were no sandbox"] = False,
) -> CommandVerdict:
    """Say whether a command would run; exit code 0: it runs, 3: it needs approval, 4: never."""
    path = context.environment.get("PATH", "")
    sandboxed = not no_sandbox and find_sandbox(path, Path.home()).kind != "none"
    around = Circumstances(
        context.home.root,
        Path.home(),
        sandboxed=sandboxed,
        environment=context.environment,
    )
    policy = ApprovalPolicy(mode, around)
    decision: PolicyDecision = policy.check(command_text, Path(cwd).resolve(), reach)
    return CommandVerdict(
        verdict=decision.verdict,
        reason=decision.reason,
        reach=decision.reach,
        sandbox=sandboxed,
    )


@command("policy forget")
def forget_answers(
    context: CommandContext,
    which: Annotated[
        str, Arg("its number in `hermes policy show`, or its text", metavar="NUMBER")
    ] = "",
    *,
    all_: Annotated[bool, "all of them"] = False,
) -> TextResult:
    """Forget a remembered answer."""
    rules = RuleFile(context.home.root)
    remembered = rules.current().remembered
    hint = t("Nothing was changed. See the numbers with: hermes policy show")
    if not which and not all_:
        raise UsageError(t("Which answer should be forgotten?"), hint=hint)
    if all_:
        chosen = remembered
    elif which in remembered:
        chosen = (which,)
    elif 1 <= (number := number_in_text(which) or 0) <= len(remembered):
        chosen = (remembered[number - 1],)
    else:
        raise NotFound(
            t("There is no remembered answer {which!r}.", which=which), hint=hint
        )
    if not chosen:
        return message(t("Nothing was remembered."))
    rules.forget(chosen)
    return message(
        t(
            "{count:,} answer forgotten.",
            "{count:,} answers forgotten.",
            count=len(chosen),
        )
    )


@command("policy accept")
def accept_rules(
    context: CommandContext, file: Annotated[str, Arg(metavar="FILE")] = ""
) -> TextResult:
    """Accept the current rules, although earlier restrictions are gone; or a project's notes that an agent's command wrote."""
    if file:
        return _accept_notes(context, typed_path(file))
    rules = RuleFile(context.home.root)
    rules.accept()
    return message(
        t("The rules are accepted as they are now."), *_rule_lines(rules.current())
    )


def _accept_notes(context: CommandContext, path: Path) -> TextResult:
    from hermes.tools.sandbox.written_notes import accept

    home = Path(os.path.realpath(context.home.root))
    if not accept(home, path):
        raise NotFound(
            t(
                "There is nothing to accept in {path}: no command wrote it as it is now.",
                path=path,
            )
        )
    return message(
        t("New sessions in {parent} read {name}.", parent=path.parent, name=path.name)
    )


@command(slash="approvals mode", role="owner", group="Permissions")
async def choose_approvals(
    context: CommandContext,
    mode: Annotated[
        Literal["ask", "auto-edit", "plan", "full"] | None, Arg(metavar="MODE")
    ] = None,
) -> TextResult:
    """Show what runs without asking, or change it: ask, auto-edit, plan or full."""
    chat = context.chat
    note = await chat.use_approvals(mode) if mode is not None else ""
    current = chat.approvals
    about = t(
        "Approvals: {current}; {meaning}.",
        current=current,
        meaning=t.marked(_MODES[current]),
    )
    how = "" if mode else t("Change it: /approvals ask|auto-edit|plan|full")
    return message(*filter(None, (about, note, how)))


@command(slash="plan task", role="owner", group="Chat")
async def plan_first(
    context: CommandContext,
    task: Annotated[str, Arg("what to plan", metavar="TASK")] = "",
) -> TextResult:
    """Plan before working, as in the mode plan: nothing changes before you accept the plan."""
    chosen = await choose_approvals.function(context, "plan")
    chat = context.chat
    if task.strip():
        await chat.agent.service.submit(chat.session, task, via=chat.via)
    return chosen


def shown_permission(text: str) -> str:
    """Returns what runs without asking, for a person. An answer for only one call is that call."""
    return shown(shown_approval_scope(text))


class Permissions(msgspec.Struct, frozen=True, kw_only=True):
    """What runs without asking because the user said so."""

    mode: str
    rules: tuple[str, ...]
    """Written in policy.yaml by hand."""
    remembered: tuple[str, ...]
    """Answers for every session."""
    granted: tuple[str, ...]
    """Answers until the end of this session."""

    def view(self, _now: float) -> Iterable[Block]:
        if self.mode:
            yield line(t("Mode: {mode}", mode=self.mode))
        for title, entries, start in (
            (t("Always allowed:"), self.remembered, 1),
            (t("Allowed in this session:"), self.granted, 1 + len(self.remembered)),
        ):
            if entries:
                yield line(title, "bold")
            for number, text in enumerate(entries, start):
                yield line(f"{number:>4}  {shown_permission(text)}", fit="wrap")
        if self.rules:
            yield line(t("Your rules in policy.yaml:"), "bold")
        for text in self.rules:
            yield line(f"      {shown(text)}", fit="wrap")
        if self.remembered or self.granted:
            yield line(
                t("Remove one: /permissions NUMBER. Remove all: /permissions all")
            )
        elif not self.rules:
            yield line(
                t(
                    "No rules or permissions: the mode alone decides what Hermes asks about."
                )
            )


@command(
    "policy permissions",
    slash="permissions which",
    role="owner",
    scope="admin",
    group="Permissions",
    private=True,
)
async def show_permissions(
    context: CommandContext,
    which: Annotated[
        str, Arg("a number to take back, or `all`", metavar="NUMBER")
    ] = "",
) -> Permissions | TextResult:
    """List what you allowed to run without asking, and remove it again."""
    rules = RuleFile(context.home.root)
    book, chat = rules.current(), context.conversation
    service = chat.agent.service if chat is not None else None
    allowed: set[str] = set()
    if service is not None:
        allowed = await service.permissions(context.session)
    granted = tuple(sorted(allowed - set(book.remembered)))
    if not which:
        lists = ("forbid", "ask", "allow", "network")
        written = [
            f"{title}: {rule.describe()}"
            for title in lists
            for rule in getattr(book, title)
        ]
        return Permissions(
            mode=chat.approvals if chat is not None else "",
            rules=tuple(written),
            remembered=book.remembered,
            granted=granted,
        )
    chosen = _numbered((*book.remembered, *granted), which)
    rules.forget(tuple(one for one in chosen if one in book.remembered))
    if service is not None and allowed.intersection(chosen):
        await service.revoke(context.session, chosen, by=context.surface.name)
    taken = [f"Removed: {shown(one)}" for one in chosen]
    return message(*taken, t("Hermes will ask again."))


def _numbered(entries: tuple[str, ...], which: str) -> tuple[str, ...]:
    """The entries that a number or `all` names."""
    if which == "all" and entries:
        return entries
    if 1 <= (number := number_in_text(which) or 0) <= len(entries):
        return (entries[number - 1],)
    raise NotFound(
        t("There is no permission {which!r}.", which=which),
        hint=t("See the numbers with: /permissions"),
    )


def _rule_lines(book: RuleBook) -> Iterator[str]:
    lines = [
        f"{title:<10} {shown(rule.describe())}"
        for title in _RULE_LISTS
        for rule in getattr(book, title)
    ]
    yield from lines or [t("rules      none: the built-in policy decides")]
    if not book.remembered:
        yield t("remembered nothing")
        return
    yield f"\n{t('remembered answers:')}"
    for number, shape in enumerate(book.remembered, 1):
        yield f"{number:>4}  {shown_permission(shape)}"
