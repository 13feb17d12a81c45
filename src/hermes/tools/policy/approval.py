"""`ApprovalPolicy`: decides about every call before it runs.

Reading is free, but secrets are not. Work in the workspace is free for commands when a sandbox holds them there. What
is dangerous all the same, or needs more than the workspace, is asked about; some things are never done.
"""

import hashlib
import logging
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, runtime_checkable

import msgspec

from hermes.core.ports import PolicyDecision, Tool
from hermes.errors import SettingsError
from hermes.schema.events import ApprovalRequested, Reach
from hermes.tools.escapes import shown
from hermes.tools.files.apply_patch import deletes_files
from hermes.tools.policy.binding import Judged, binding, existing
from hermes.tools.policy.effects import (
    ASKS_FOR_NETWORK,
    BY_RULE,
    Finding,
    Level,
    asks,
    farthest,
)
from hermes.tools.policy.places import Site
from hermes.tools.policy.rulefile import NAME, RuleFile
from hermes.tools.policy.rules import Rule, RuleBook, host_of, place_of
from hermes.tools.policy.spoofs import spoof
from hermes.tools.policy.summary import (
    call_summary,
    change_summary,
    command_summary,
    description,
    reading_summary,
)
from hermes.tools.sensitive import Guard, is_within

if TYPE_CHECKING:
    from hermes.tools.policy.analysis import Judgement
    from hermes.tools.policy.kinds import Kind

log = logging.getLogger("hermes.tools")

Mode: TypeAlias = Literal["ask", "auto-edit", "full"]
_TYPES = "process_write"
_COMMAND_TOOLS = frozenset(("terminal",))
WHILE_BROKEN = (
    "Until that is corrected, no rule allows anything and every effect is asked about."
)
_NO_SANDBOX = "it may change something, and no sandbox holds it"
_MORE_THAN_READS = "it does more than read"
_BY_USER = "your rules say so"


@runtime_checkable
class _HasFolder(Protocol):
    """A terminal: it knows where its next command will run."""

    def folder(self, cwd: Path) -> Path: ...


class Circumstances(msgspec.Struct, frozen=True):
    """What the policy has to know of where it works."""

    hermes_home: Path
    user_home: Path
    sandboxed: bool | Callable[[], bool] = False
    """Whether commands really run in a sandbox; asked when it matters, as finding out takes a moment."""
    strict: bool = False
    """Ask about every command that does more than read, as small models need it."""
    guest: bool = False
    """It works for somebody else than the user: unasked it only reads the working directory, and no earlier answer or
    rule that allows something counts."""
    environment: Mapping[str, str] = msgspec.field(default_factory=dict)


class ApprovalPolicy:
    """Decides by mode: `ask` (the default), `auto-edit` for files of the working directory, or `full`."""

    def __init__(
        self, mode: Mode, circumstances: Circumstances, rules: RuleFile | None = None
    ) -> None:
        self._mode: Mode = mode
        self._about = circumstances
        self._guard = Guard(
            circumstances.hermes_home.resolve(), circumstances.user_home
        )
        self._rules = rules or RuleFile(circumstances.hermes_home)

    @cached_property
    def _is_sandboxed(self) -> bool:
        sandboxed = self._about.sandboxed
        return sandboxed if isinstance(sandboxed, bool) else sandboxed()

    @property
    def _is_careful(self) -> bool:
        """Whether what may have an effect is asked about in every mode."""
        return self._about.strict or self._about.guest or bool(self._rules.problem)

    @property
    def warning(self) -> str:
        """What is wrong with `policy.yaml`; empty when nothing is."""
        problem = self._rules.problem
        return f"{problem}. {WHILE_BROKEN}" if problem else ""

    def judge(
        self, tool: Tool, arguments: Mapping[str, Any], cwd: Path
    ) -> PolicyDecision:
        """What may be done with this call."""
        book = self._rules.current()
        command = arguments.get("command")
        owner = getattr(tool, "owner", None)
        if tool.spec.name in _COMMAND_TOOLS and isinstance(owner, _HasFolder):
            if not isinstance(command, str):
                return PolicyDecision("allow")  # the tool refuses it
            return self._command(
                tool.spec.name, arguments, (cwd, owner.folder(cwd)), book
            )
        return self._remembered(self._other(tool, arguments, cwd, book), book)

    def check(
        self,
        command: str,
        folder: Path,
        reach: Reach = "workspace",
        *,
        workspace: Path | None = None,
    ) -> PolicyDecision:
        """Judges a command outside any tool: for `hermes policy check` and for codex's commands."""
        places = (workspace or folder, folder)
        return self._command(
            "terminal",
            {"command": command, "reach": reach},
            places,
            self._rules.current(),
        )

    def check_files(
        self, paths: tuple[Path, ...], workspace: Path, *, below: tuple[Path, ...] = ()
    ) -> PolicyDecision:
        """Judges changes to these files, and to anything in the folders `below`. Never allows them without asking."""
        book, home = self._rules.current(), self._about.user_home
        places = tuple(path.resolve() for path in (*paths, *below))
        rule = book.for_paths(places, home)
        inside = any(
            is_within(place, one)
            for one in below
            for place in book.forbidden_places(home)
        )
        if inside or (rule is not None and rule[0] == "forbid"):
            return PolicyDecision("forbid", reason=_BY_USER)
        reason = self._guard.carrying(places, workspace)
        memorable = bool(places) and not self._guard.delicate(places, workspace)
        return PolicyDecision(
            "ask", reason=shown(reason), memorable=memorable and not self._about.guest
        )

    def check_host(self, host: str) -> PolicyDecision:
        """Judges reaching a host."""
        rule = self._rules.current().for_host(host)
        if rule is not None and rule[0] == "forbid":
            return PolicyDecision(
                "forbid", reason="your rules forbid this host", reach="network"
            )
        free = rule is not None and rule[0] == "network" and not self._is_careful
        return PolicyDecision(
            "allow" if free else "ask", reach="network", memorable=not self._about.guest
        )

    def check_tool(self, name: str) -> PolicyDecision:
        """Judges a tool that Hermes itself does not have. Never allows it without asking."""
        rule = self._rules.current().for_tool(name)
        if rule is not None and rule[0] == "forbid":
            return PolicyDecision("forbid", reason=_BY_USER)
        return PolicyDecision("ask", memorable=not self._about.guest)

    def remember(self, request: ApprovalRequested) -> None:
        """Allows calls of exactly this shape from now on. What can't be written is said in the log."""
        if not request.memorable or not request.shape:
            return
        try:
            self._rules.remember(request.shape)
        except SettingsError as error:
            log.warning(
                "the answer was not remembered: %s %s", error.message, error.hint
            )

    def _command(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        places: tuple[Path, Path],
        book: RuleBook,
    ) -> PolicyDecision:
        command = str(arguments["command"])
        workspace, folder = places
        site = self._site(workspace, folder)
        wanted: Reach = (
            arguments["reach"]
            if arguments.get("reach") in ("network", "machine")
            else "workspace"
        )
        found = _judgement(command, site, book)
        hidden = spoof(command)
        finding = (
            Finding(max(Level.UNCLEAR, found.finding.level), hidden, once=True)
            if hidden
            else found.finding
        )
        finding = _reached(self._resolved(finding, found, site), wanted)
        tool_rule = book.for_tool(tool)
        if tool_rule is not None and tool_rule[0] in ("forbid", "ask"):
            finding = max(
                finding,
                Finding(
                    Level.FORBID if tool_rule[0] == "forbid" else Level.ASK,
                    _BY_USER,
                    once=finding.once,
                ),
                key=lambda one: one.level,
            )
        reach = farthest((wanted, finding.reach))
        shape = "" if finding.once else f"{tool} in {folder} ({reach}): {command}"
        is_free = self._is_free(finding, command, site)
        wide = (
            not is_free
            and not finding.once
            and tool_rule is None
            and not self._rules.problem
        )
        return self._decided(
            finding,
            PolicyDecision(
                "allow" if is_free else "ask",
                command_summary(command, folder),
                self._because(finding),
                reach,
                shape,
                binding(
                    Judged(tool, arguments, str(folder), reach, existing(found.paths)),
                    self._about.environment,
                ),
                memorable=not finding.once,
                scope=self._scope(command, (*found.findings, finding), site, reach)
                if wide
                else "",
            ),
            book,
        )

    def _scope(
        self, command: str, findings: tuple[Finding, ...], site: Site, reach: Reach
    ) -> str:
        """The kind of command that an answer for the session covers, with why it is asked; empty for only this one."""
        kind = _kind(
            command, findings, site, is_held=self._is_sandboxed and reach == "workspace"
        )
        if kind is None or reach == "machine":
            return ""
        reasons = dict.fromkeys(
            one.reason for one in findings if one.level >= Level.ASK
        )
        why = "; ".join(
            [*(["with the network"] if reach == "network" else []), *reasons]
        )
        return shown(
            f"{kind.describe()} in {site.folders[0]}{f' ({why})' if why else ''}"
        )

    def _site(self, workspace: Path, folder: Path) -> Site:
        path = self._about.environment.get("PATH", "")
        return Site(workspace, (folder,), self._about.user_home, self._guard, path)

    def _resolved(self, finding: Finding, found: "Judgement", site: Site) -> Finding:
        """Asks about a command that is free by its program's name, if that name means a program of the workspace here.

        Inside the sandbox and without the network such a program does no harm, whatever it is called.
        """
        if finding.level >= Level.ASK or (
            finding.reach == "workspace" and self._is_sandboxed
        ):
            return finding
        for name in sorted(
            found.programs
            if finding.reason != BY_RULE
            else found.programs & _fetchers()
        ):
            if program := site.own_program(name):
                reason = f"{name} is {program} here, a program of the project that could do anything"
                return Finding(Level.ASK, reason, finding.reach, once=True)
        return finding

    def _is_free(self, finding: Finding, command: str, site: Site) -> bool:
        """Whether a command may run unasked."""
        if finding.level >= Level.UNCLEAR:
            return False
        if self._about.guest:
            return False
        if not self._is_careful:
            if self._mode == "full":
                return True
            if self._is_sandboxed:
                return finding.level <= Level.WORK
        if self._is_sandboxed and finding.level == Level.READ:
            return True
        return finding.level <= Level.WORK and (
            finding.reason == BY_RULE or _only_reads(command, site)
        )

    def _because(self, finding: Finding) -> str:
        reason = finding.reason if finding.reason != BY_RULE else ""
        if not reason:
            reason = _NO_SANDBOX if not self._is_sandboxed else _MORE_THAN_READS
        return shown(f"{reason}. {self.warning}" if self.warning else reason)

    def _decided(
        self, finding: Finding, decision: PolicyDecision, book: RuleBook
    ) -> PolicyDecision:
        if finding.level == Level.FORBID:
            return msgspec.structs.replace(decision, verdict="forbid")
        if decision.verdict == "allow":
            return msgspec.structs.replace(decision, summary="", reason="")
        return self._remembered(decision, book)

    def _remembered(self, decision: PolicyDecision, book: RuleBook) -> PolicyDecision:
        if self._about.guest:
            return msgspec.structs.replace(
                decision, shape="", scope="", memorable=False
            )
        if (
            decision.verdict == "ask"
            and decision.memorable
            and decision.shape in book.remembered
        ):
            return msgspec.structs.replace(decision, verdict="allow")
        return decision

    def _other(
        self, tool: Tool, arguments: Mapping[str, Any], cwd: Path, book: RuleBook
    ) -> PolicyDecision:
        """A tool that is no terminal."""
        paths = tool.paths(arguments, cwd)
        by_tool = book.for_tool(tool.spec.name) or book.for_paths(
            paths, self._about.user_home
        )
        if by_tool is not None and by_tool[0] in ("forbid", "ask"):
            verdict: Literal["forbid", "ask"] = (
                "forbid" if by_tool[0] == "forbid" else "ask"
            )
            decision = PolicyDecision(
                verdict,
                change_summary(tool, arguments, paths, cwd),
                _BY_USER,
                memorable=not self._guard.delicate(paths, cwd),
            )
            return self._bound(decision, tool, arguments, cwd, paths)
        decide = {
            "read": self._reading,
            "files": self._writing,
            "network": self._looking_up,
            "other": self._doing,
        }[tool.effect]
        decision = decide(tool, arguments, cwd, paths)
        if (
            decision.verdict == "ask"
            and by_tool
            and not self._about.guest
            and self._covers(by_tool[1], paths, cwd)
        ):
            decision = PolicyDecision("allow", reach=decision.reach)
        return self._bound(decision, tool, arguments, cwd, paths)

    def _covers(self, rule: Rule, paths: tuple[Path, ...], cwd: Path) -> bool:
        """Whether an allowance holds for these files. What is delicate it must name itself; what is ours none can."""
        named = place_of(rule, self._about.user_home)
        for path in paths:
            if self._guard.is_ours(path):
                return False
            if path != named and (
                self._guard.delicate((path,), cwd) or self._guard.secret((path,), cwd)
            ):
                return False
        return True

    def _bound(
        self,
        decision: PolicyDecision,
        tool: Tool,
        arguments: Mapping[str, Any],
        cwd: Path,
        paths: tuple[Path, ...],
    ) -> PolicyDecision:
        """The decision with what was judged. What is allowed at once needs no hash: nothing comes in between."""
        if decision.verdict == "allow":
            return msgspec.structs.replace(decision, targets=paths)
        described = description(tool, arguments)
        seen = {**arguments, "described": described} if described else arguments
        judged = Judged(tool.spec.name, seen, str(cwd), "workspace", paths)
        return msgspec.structs.replace(
            decision, binding=binding(judged, self._about.environment), targets=paths
        )

    def _reading(
        self,
        tool: Tool,
        arguments: Mapping[str, Any],
        cwd: Path,
        paths: tuple[Path, ...],
    ) -> PolicyDecision:
        del arguments
        reason = self._guard.secret(paths, cwd) or (
            self._elsewhere(tool, paths, cwd) if self._about.guest else ""
        )
        if not reason:
            return PolicyDecision("allow")
        return PolicyDecision(
            "ask",
            reading_summary(tool, paths),
            shown(reason),
            shape=f"{tool.spec.name} {_listed(paths)}",
        )

    def _elsewhere(self, tool: Tool, paths: tuple[Path, ...], cwd: Path) -> str:
        """Why a guest may not simply read this. Long outputs are kept under names that nobody can guess."""
        kept = self._guard.home / "cache" / "outputs"
        for path in paths:
            is_output = tool.spec.name == "read_file" and path.parent == kept
            if (
                not is_output
                and not is_within(path, cwd)
                and not is_within(path, cwd.resolve())
            ):
                return f"{path} is outside the folder of whoever asks for it"
        return ""

    def _typing(
        self, tool: Tool, arguments: Mapping[str, Any], cwd: Path
    ) -> PolicyDecision:
        """Input for a program that runs. It counts together with what was typed of its line before."""
        place = self._site(cwd, cwd)
        reach, finding = _typed(getattr(tool, "owner", None), arguments, place)
        if finding.level == Level.FORBID:
            return PolicyDecision(
                "forbid", call_summary(tool, arguments), shown(finding.reason), reach
            )
        free = (
            finding.level <= Level.WORK and self._is_sandboxed and reach == "workspace"
        )
        if not self._is_careful and (
            free or (self._mode == "full" and finding.level < Level.UNCLEAR)
        ):
            return PolicyDecision("allow", reach=reach)
        reason = finding.reason or "it types into a program that is running"
        return PolicyDecision(
            "ask", call_summary(tool, arguments), shown(reason), reach, memorable=False
        )

    def _writing(
        self,
        tool: Tool,
        arguments: Mapping[str, Any],
        cwd: Path,
        paths: tuple[Path, ...],
    ) -> PolicyDecision:
        reason = (
            self._guard.carrying(paths, cwd)
            if paths
            else "it does not say which file it changes"
        )
        if not reason and self._mode != "ask" and not self._rules.problem:
            return PolicyDecision("allow")
        # Of a file outside only the same change again is the same thing; of one that carries policy nothing is.
        wide = not reason and not self._rules.problem and not deletes_files(arguments)
        return PolicyDecision(
            "ask",
            change_summary(tool, arguments, paths, cwd),
            shown(reason or "it changes a file"),
            shape=""
            if reason
            else f"{tool.spec.name} {_listed(paths)} {_digest(arguments)}",
            memorable=bool(paths) and not self._guard.delicate(paths, cwd),
            scope=f"changes to files in {cwd}" if wide else "",
        )

    def _looking_up(
        self,
        tool: Tool,
        arguments: Mapping[str, Any],
        cwd: Path,
        paths: tuple[Path, ...],
    ) -> PolicyDecision:
        del cwd, paths
        hosts = [
            host_of(value) for value in arguments.values() if isinstance(value, str)
        ]
        rules = [self._rules.current().for_host(host) for host in hosts if host]
        titles = {found[0] for found in rules if found is not None}
        if "forbid" in titles:
            return PolicyDecision(
                "forbid",
                call_summary(tool, arguments),
                "your rules forbid this host",
                "network",
            )
        careful = self._about.strict or bool(
            self._rules.problem
        )  # a guest may look things up
        if "ask" in titles or (careful and not titles):
            return PolicyDecision(
                "ask",
                call_summary(tool, arguments),
                _caution(tool) or "it uses the network",
                "network",
                shape=_exactly(tool, arguments),
            )
        return PolicyDecision("allow", reach="network")

    def _doing(
        self,
        tool: Tool,
        arguments: Mapping[str, Any],
        cwd: Path,
        paths: tuple[Path, ...],
    ) -> PolicyDecision:
        del paths
        if tool.spec.name == _TYPES:
            return self._typing(tool, arguments, cwd)
        code = arguments.get("code")
        if tool.spec.name == "run_python" and isinstance(code, str):
            finding = _python(code)
            free = finding.level <= Level.WORK and self._is_sandboxed
            if not self._is_careful and (
                free or (self._mode == "full" and finding.level < Level.UNCLEAR)
            ):
                return PolicyDecision("allow")
            reason = finding.reason or _NO_SANDBOX
            return PolicyDecision(
                "ask",
                shown(f"run_python:\n{code}"),
                shown(reason),
                finding.reach,
                _exactly(tool, arguments),
                memorable=not finding.once,
            )
        if self._mode == "full" and not self._is_careful:
            return PolicyDecision("allow")
        reason = _caution(tool) or "it may change something"
        return PolicyDecision(
            "ask",
            call_summary(tool, arguments),
            reason,
            shape=_exactly(tool, arguments),
            scope="" if self._rules.problem else _tool_scope(tool),
            memorable=not description(tool, arguments)
            and "ref" not in arguments,  # what that is changes with the page
        )


def _reached(finding: Finding, wanted: Reach) -> Finding:
    """What it means that the model asks for more than the workspace: a question, unless exactly that was found.

    What only reads needs neither the network nor the machine, so asking for them is a reason to look.
    """
    if finding.level >= Level.ASK or wanted in ("workspace", finding.reach):
        return finding
    words = {
        "network": ASKS_FOR_NETWORK,
        "machine": "it asks to run outside the sandbox",
    }
    return asks(words[wanted], wanted)


def _caution(tool: Tool) -> str:
    """What a tool says of itself that a person should know."""
    caution = getattr(tool, "caution", "")
    return shown(caution) if isinstance(caution, str) else ""


def _tool_scope(tool: Tool) -> str:
    """A tool of a server says by its name what it does; one that carries a caution is asked about each time."""
    return (
        f"every call of {tool.spec.name}"
        if tool.spec.name.startswith("mcp.") and not _caution(tool)
        else ""
    )


# The catalogue and the grammar are large: they are loaded when the first command is judged.


def _judgement(command: str, site: Site, book: RuleBook) -> "Judgement":
    from hermes.tools.policy.analysis import judge_command

    return judge_command(command, site, book)


def _fetchers() -> frozenset[str]:
    from hermes.tools.policy.analysis import FETCHERS

    return FETCHERS


def _kind(
    command: str, findings: tuple[Finding, ...], site: Site, *, is_held: bool
) -> "Kind | None":
    from hermes.tools.policy.kinds import command_kind

    return command_kind(command, findings, site, is_held=is_held)


def _only_reads(command: str, site: Site) -> bool:
    from hermes.tools.policy.readers import only_reads

    return only_reads(command, site)


def _typed(
    owner: object, arguments: Mapping[str, Any], site: Site
) -> tuple[Reach, Finding]:
    from hermes.tools.policy.typed import judge_typed

    return judge_typed(owner, arguments, site)


def _python(code: str) -> Finding:
    from hermes.tools.policy.code import judge_code

    return judge_code("python", code)


def _exactly(tool: Tool, arguments: Mapping[str, Any]) -> str:
    return f"{tool.spec.name} {msgspec.json.encode(arguments, order='deterministic').decode()}"


def _digest(arguments: Mapping[str, Any]) -> str:
    """Tells one change from every other, without keeping what is in it."""
    return hashlib.sha256(
        msgspec.json.encode(arguments, order="deterministic")
    ).hexdigest()[:24]


def _listed(paths: tuple[Path, ...]) -> str:
    return " -> ".join(str(path) for path in paths)


__all__ = ["NAME", "ApprovalPolicy", "Circumstances", "Mode"]
