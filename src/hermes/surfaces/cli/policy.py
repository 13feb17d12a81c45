"""`hermes policy`: what may be done without asking, what would be said of a command, and forgetting an answer."""

import argparse
from pathlib import Path

import msgspec

from hermes.core.ports import PolicyDecision
from hermes.errors import UsageError
from hermes.settings.home import Home
from hermes.settings.load import environment, find_home
from hermes.surfaces.cli.parser import Parser, add_action
from hermes.surfaces.terminal.text import count
from hermes.tools.escapes import shown
from hermes.tools.policy import ApprovalPolicy, Circumstances, Mode, RuleFile
from hermes.tools.policy.rules import RuleBook
from hermes.tools.sandbox.detect import find_sandbox

_EXAMPLES = """\
examples:
  hermes policy show                        rules, remembered answers, and whether there is a sandbox
  hermes policy check "rm -rf build"        would it run, be asked about, or never be done?
  hermes policy forget 2                    forget the second remembered answer
  hermes policy accept                      the rules are meant to be as they are, though some are gone

policy.yaml, in the Hermes home, holds your rules. Words are compared whole, from the first on:
  forbid:
    - {program: docker, arguments: [push]}
  ask:
    - {path: ~/archive}
  allow:
    - {program: npm, arguments: [ci], reach: network}
    - {tool: mcp.tracker.list_issues}
  network:
    - {host: api.example.com}
"""
_CODES = {"allow": 0, "ask": 3, "forbid": 4}
_WORDS = {"allow": "allowed", "ask": "asked about", "forbid": "never done"}
_LISTS = ("forbid", "ask", "allow", "network")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EXAMPLES
    actions = parser.add_subparsers(
        dest="action", metavar="ACTION", parser_class=Parser
    )
    show = add_action(
        actions, "show", "show the rules, what is remembered, and the sandbox"
    )
    show.add_argument("--json", action="store_true", help="print JSON")
    check = add_action(
        actions,
        "check",
        "say what would be done with a command; exit code 0 allowed, 3 asked, 4 never",
    )
    check.add_argument(
        "command", metavar="COMMAND", help="the command, as one word in quotes"
    )
    check.add_argument(
        "--mode",
        choices=("ask", "auto-edit", "full"),
        default="ask",
        help="the mode of approvals",
    )
    check.add_argument(
        "--cwd", metavar="DIR", default=".", help="the workspace; this folder otherwise"
    )
    check.add_argument(
        "--reach",
        choices=("workspace", "network", "machine"),
        default="workspace",
        help="how far it asks to reach",
    )
    check.add_argument(
        "--no-sandbox", action="store_true", help="as if there were no sandbox"
    )
    check.add_argument("--json", action="store_true", help="print JSON")
    forget = add_action(actions, "forget", "forget a remembered answer")
    forget.add_argument(
        "which",
        metavar="NUMBER",
        nargs="?",
        default="",
        help="its number in `hermes policy show`",
    )
    forget.add_argument("--all", action="store_true", help="all of them")
    add_action(
        actions,
        "accept",
        "take the rules as they are now, though what they forbade or asked about is gone",
    )


def run(args: argparse.Namespace) -> int:
    home = find_home()
    if args.action == "check":
        return _check(args, home)
    if args.action == "forget":
        return _forget(args, home)
    if args.action == "accept":
        return _accept(home)
    return _show(home, as_json=getattr(args, "json", False))


def _show(home: Home, *, as_json: bool) -> int:
    rules = RuleFile(home.root)
    book, problem = rules.current(), rules.problem
    sandbox = find_sandbox(environment().get("PATH", ""), Path.home())
    if as_json:
        data = {
            "file": str(rules.path),
            "problem": problem,
            "sandbox": sandbox.kind,
            "why": sandbox.why,
            "rules": msgspec.to_builtins(book),
        }
        print(msgspec.json.format(msgspec.json.encode(data), indent=2).decode())
        return 1 if problem else 0
    print(
        f"file       {shown(str(rules.path))}{'' if rules.path.exists() else ' (not there yet)'}"
    )
    print(
        f"sandbox    {sandbox.kind}{f': {shown(sandbox.why)}' if sandbox.why else ''}"
    )
    if problem:
        print(f"\n{shown(problem)}.")
        print(
            "Until that is corrected, no rule allows anything and every effect is asked about."
        )
        return 1
    for line in _rule_lines(book):
        print(line)
    return 0


def _rule_lines(book: RuleBook) -> list[str]:
    lines: list[str] = []
    for title in _LISTS:
        lines += [
            f"{title:<10} {shown(rule.describe())}" for rule in getattr(book, title)
        ]
    lines = lines or ["rules      none: the built-in policy decides"]
    if not book.remembered:
        return [*lines, "remembered nothing"]
    lines += ["", "remembered answers:"]
    return lines + [
        f"{number:>4}  {shown(shape)}"
        for number, shape in enumerate(book.remembered, 1)
    ]


def _check(args: argparse.Namespace, home: Home) -> int:
    mode: Mode = args.mode
    sandboxed = (
        not args.no_sandbox
        and find_sandbox(environment().get("PATH", ""), Path.home()).kind != "none"
    )
    policy = ApprovalPolicy(
        mode, Circumstances(home.root, Path.home(), sandboxed=sandboxed)
    )
    decision = policy.check(args.command, Path(args.cwd).resolve(), args.reach)
    if args.json:
        data = {
            "verdict": decision.verdict,
            "reason": decision.reason,
            "reach": decision.reach,
            "sandbox": sandboxed,
        }
        print(msgspec.json.format(msgspec.json.encode(data), indent=2).decode())
    else:
        print(_verdict(decision))
    return _CODES[decision.verdict]


def _verdict(decision: PolicyDecision) -> str:
    words = _WORDS[decision.verdict]
    far = "" if decision.reach == "workspace" else f" (reach: {decision.reach})"
    return f"{words}{far}: {decision.reason}" if decision.reason else f"{words}{far}"


def _forget(args: argparse.Namespace, home: Home) -> int:
    rules = RuleFile(home.root)
    remembered = rules.current().remembered
    if args.all:
        chosen = remembered
    elif args.which.isdecimal() and 1 <= int(args.which) <= len(remembered):
        chosen = (remembered[int(args.which) - 1],)
    else:
        raise UsageError(
            f"There is no remembered answer {args.which!r}."
            if args.which
            else "Which answer is to be forgotten?",
            hint="Nothing was changed. See the numbers with: hermes policy show",
        )
    if chosen:
        rules.forget(chosen)
    print(
        f"{count(len(chosen), 'answer')} forgotten."
        if chosen
        else "Nothing was remembered."
    )
    return 0


def _accept(home: Home) -> int:
    rules = RuleFile(home.root)
    rules.accept()
    print("The rules are taken as they are now.")
    for line in _rule_lines(rules.current()):
        print(line)
    return 0
