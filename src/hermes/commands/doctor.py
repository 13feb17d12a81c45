"""`hermes doctor`: says what works, what does not, and what to do. It only reads; it repairs and creates nothing."""

import subprocess
from collections.abc import Callable, Iterable

import msgspec

from hermes.children.own_python import hermes_command
from hermes.commands.command import command
from hermes.commands.context import CommandContext
from hermes.commands.doctor_checks import CHECKS, Finding, Site
from hermes.commands.views import FAIL, OK, WARN, Block, Line, Look, Span, line
from hermes.errors import HermesError, os_reason
from hermes.text.translation import translator

t = translator(__name__)


_CHILD_TIMEOUT_S = 60.0
_LOOKS: dict[str, Look] = {OK: "good", WARN: "warn", FAIL: "bad"}


class _Row(msgspec.Struct, frozen=True):
    check: str
    status: str
    message: str
    to_do: str


class _Document(msgspec.Struct, frozen=True):
    ok: bool
    findings: list[_Row]


class DoctorReport(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that was checked."""

    findings: tuple[Finding, ...]

    @property
    def exit_code(self) -> int:
        return int(any(one.mark == FAIL for one in self.findings))

    def document(self) -> "_Document":
        rows = [_Row(one.check, one.mark, one.text, one.to_do) for one in self.findings]
        return _Document(not self.exit_code, rows)

    def view(self, _now: float) -> Iterable[Block]:
        size = max(len(one.check) for one in self.findings)
        for one in self.findings:
            name = f"  {one.check:<{size}} "
            mark = Span(f"{one.mark:<4}", _LOOKS[one.mark])
            yield Line((mark, Span(name), Span(one.text)), "hang")
            if one.mark != OK and one.to_do:
                indent = Span(" " * (size + 7))
                yield Line((indent, Span(f"-> {one.to_do}", "dim")), "hang")
        counts = ((t("to repair"), FAIL), (t("to look at"), WARN))
        found = [
            f"{number} {what}"
            for what, mark in counts
            if (number := sum(one.mark == mark for one in self.findings))
        ]
        yield line(
            f"\n{', '.join(found)}." if found else t("\nEverything is in order.")
        )


@command("doctor", slash="doctor", scope="admin", group="Settings")
def check_installation(context: CommandContext) -> DoctorReport:
    """Check this installation and say what to do."""
    if context.is_shared:
        return _checked_in_child(context)
    site = Site(context.home, context.environment)
    findings = [finding for check in CHECKS for finding in _findings(check, site)]
    return DoctorReport(findings=tuple(findings))


def _checked_in_child(context: CommandContext) -> DoctorReport:
    """Runs the checks in a separate process: opening and closing the database file here, where SQLite has it open,
    would drop this process's locks.
    """
    try:
        done = subprocess.run(
            hermes_command("doctor", "--json"),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env={**context.environment, "HERMES_HOME": str(context.home.root)},
            timeout=_CHILD_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise HermesError(
            t("The checks took too long."), hint=t("Run them yourself: hermes doctor")
        ) from error
    document = msgspec.json.decode(done.stdout, type=_Document)
    return DoctorReport(
        findings=tuple(
            Finding(row.check, row.status, row.message, row.to_do)
            for row in document.findings
        )
    )


def _findings(check: Callable[[Site], list[Finding]], site: Site) -> list[Finding]:
    """The findings of one check. A check that fails becomes a finding itself, and the others still run."""
    try:
        return check(site)
    except OSError as error:
        name = check.__name__.partition("_")[0]
        reason = os_reason(error)
        text = t(
            "can't be checked: {path} ({reason})",
            path=error.filename or site.home.root,
            reason=reason,
        )
        to_do = t(
            "Check the path and its permissions, or set HERMES_HOME to another folder."
        )
        return [Finding(name, FAIL, text, to_do)]
