"""The user's rules and remembered answers, from `policy.yaml`. A broken file can only make the policy stricter.

    forbid:
      - {program: docker, arguments: [push]}
    ask:
      - {path: ~/archive}
    allow:
      - {program: npm, arguments: [ci], reach: network}
      - {tool: mcp.tracker.list_issues}
    network:
      - {host: api.example.com}
    remembered:
      - "terminal in /home/me/app (network): git fetch"

Arguments are compared as whole words, starting with the first. There are no patterns.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TypeAlias
from urllib.parse import urlsplit

import msgspec

from hermes.schema.events import Reach
from hermes.text.translation import translator
from hermes.tools.policy.shell_words import Word

t = translator(__name__)


VERSION = 1
List: TypeAlias = Literal["forbid", "ask", "allow", "network"]


class PolicyRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One rule. It names exactly one of: a program, a path, a tool, a host."""

    program: str = ""
    arguments: tuple[str, ...] = ()
    path: str = ""
    tool: str = ""
    host: str = ""
    reach: Reach = "workspace"

    def __post_init__(self) -> None:
        if (
            sum(
                bool(value) for value in (self.program, self.path, self.tool, self.host)
            )
            != 1
        ):
            raise ValueError(t.logged("a rule names one of: program, path, tool, host"))
        if self.arguments and not self.program:
            raise ValueError(t.logged("`arguments` belong to a program"))

    def describe(self) -> str:
        """The rule in a few words."""
        if self.program:
            return " ".join((self.program, *self.arguments)) + (
                f" ({self.reach})" if self.reach != "workspace" else ""
            )
        return self.path or self.tool or self.host


class RuleBook(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything in `policy.yaml`."""

    version: int = VERSION
    forbid: tuple[PolicyRule, ...] = ()
    ask: tuple[PolicyRule, ...] = ()
    allow: tuple[PolicyRule, ...] = ()
    network: tuple[PolicyRule, ...] = ()
    remembered: tuple[str, ...] = ()

    def for_program(
        self, name: str, words: Sequence[Word]
    ) -> tuple[List, PolicyRule] | None:
        """The strictest rule about a program with its arguments."""
        hosts = {host_of(word.text) for word in words[1:]}
        fetches = name in ("curl", "wget", "http", "https", "xh")
        for title, rule in self._strictest():
            is_program = rule.program and rule.program in (name, words[0].text)
            if is_program and _begins(words[1:], rule.arguments):
                return title, rule
            counts = title in ("forbid", "ask") or (title == "network" and fetches)
            if rule.host and counts and rule.host in hosts:
                return title, rule
        return None

    def for_call(
        self, name: str, words: Sequence[Word], paths: Sequence[Path], home: Path
    ) -> tuple[List, PolicyRule] | None:
        """The strictest rule about a program, its arguments, or the files it names."""
        by_program = self.for_program(name, words)
        if by_program is not None and by_program[0] in ("forbid", "ask"):
            return by_program
        by_paths = self.for_paths(paths, home)
        if by_paths is not None and by_paths[0] in ("forbid", "ask"):
            return by_paths
        return by_program

    def for_tool(self, name: str) -> tuple[List, PolicyRule] | None:
        """The strictest rule about a tool."""
        return next(
            ((title, rule) for title, rule in self._strictest() if rule.tool == name),
            None,
        )

    def for_host(self, host: str) -> tuple[List, PolicyRule] | None:
        """The strictest rule about a host."""
        return next(
            (
                (title, rule)
                for title, rule in self._strictest()
                if rule.host and rule.host == host
            ),
            None,
        )

    def for_paths(
        self, paths: Sequence[Path], home: Path
    ) -> tuple[List, PolicyRule] | None:
        """The strictest rule about files. A rule that allows must cover all of them."""
        for title, rule in self._strictest():
            place = path_of(rule, home)
            if place is None:
                continue
            inside = [place == path or place in path.parents for path in paths]
            if paths and (all(inside) if title == "allow" else any(inside)):
                return title, rule
        return None

    def forbidden_paths(self, home: Path) -> tuple[Path, ...]:
        """The paths that must not be changed."""
        return tuple(
            place for rule in self.forbid if (place := path_of(rule, home)) is not None
        )

    def _strictest(self) -> list[tuple[List, PolicyRule]]:
        lists: tuple[tuple[List, tuple[PolicyRule, ...]], ...] = (
            ("forbid", self.forbid),
            ("ask", self.ask),
            ("allow", self.allow),
            ("network", self.network),
        )
        return [(title, rule) for title, rules in lists for rule in rules]


def _begins(words: Sequence[Word], wanted: tuple[str, ...]) -> bool:
    given = words[: len(wanted)]
    return len(given) == len(wanted) and all(
        word.plain and word.text == text
        for word, text in zip(given, wanted, strict=True)
    )


def path_of(rule: PolicyRule, home: Path) -> Path | None:
    """The path that a rule names; None if it is not about a path."""
    if not rule.path:
        return None
    return Path(
        rule.path.replace("~", str(home), 1)
        if rule.path.startswith("~/")
        else rule.path
    )


def host_of(text: str) -> str:
    """The host of a URL; empty if the text is not a URL."""
    if "://" not in text:
        return ""
    try:
        return urlsplit(text).hostname or ""
    except ValueError:
        return ""
