"""`hermes doctor`: what is in order here, what is not, and what to do. It reads, it never repairs or creates."""

import argparse
import json
import sys
from collections.abc import Callable

from hermes.settings.load import environment, find_home
from hermes.surfaces.cli.checks import CHECKS, Finding, Site
from hermes.surfaces.terminal.style import (
    FAIL,
    OK,
    WARN,
    Style,
    hanging,
    printable,
    stdout_style,
)


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    site = Site(find_home(), environment())
    findings = [finding for check in CHECKS for finding in _look(check, site)]
    failed = sum(finding.mark == FAIL for finding in findings)
    warned = sum(finding.mark == WARN for finding in findings)
    if args.json:
        rows = [
            {
                "check": finding.check,
                "status": finding.mark,
                "message": finding.text,
                "to_do": finding.to_do,
            }
            for finding in findings
        ]
        print(
            json.dumps(
                {"ok": failed == 0, "findings": rows}, indent=2, ensure_ascii=False
            )
        )
    else:
        _print(findings, failed, warned)
    return 1 if failed else 0


def _look(check: Callable[[Site], list[Finding]], site: Site) -> list[Finding]:
    """What one check finds. One that can't look is a finding too, and the others still run."""
    try:
        return check(site)
    except OSError as error:
        name = check.__name__.partition("_")[0]
        what = f"can't be looked at: {error.filename or site.home.root} ({(error.strerror or str(error)).lower()})"
        return [
            Finding(
                name,
                FAIL,
                what,
                "Check the path and its permissions, or set HERMES_HOME to another folder.",
            )
        ]


def _print(findings: list[Finding], failed: int, warned: int) -> None:
    style = stdout_style()
    width = max(len(finding.check) for finding in findings)
    for finding in findings:
        print(_line(finding, width, style))
    print()
    if not failed and not warned:
        print("Everything is in order.")
        return
    counts = [(failed, FAIL, "to repair"), (warned, WARN, "to look at")]
    print(", ".join(f"{count} {what}" for count, _, what in counts if count) + ".")


def _line(finding: Finding, width: int, style: Style) -> str:
    indent = width + 8  # the mark, the name of the check, and the blanks between
    text = hanging(printable(finding.text), sys.stdout, indent)
    line = f"{style.status(finding.mark)}  {finding.check:<{width}}  {text}"
    if finding.mark == OK or not finding.to_do:
        return line
    to_do = hanging(printable(finding.to_do), sys.stdout, indent + 3)
    return f"{line}\n{' ' * indent}{style.dim('-> ' + to_do)}"
