"""What each route asks for. A path that is not in the table can't be reached at all."""

import re
from collections.abc import Iterable
from typing import Literal, NamedTuple, TypeAlias

from hermes.surfaces.dashboard.gate.scopes import Need

Protocol: TypeAlias = Literal["http", "websocket"]

READING = frozenset({"GET", "HEAD"})


class AccessRule(NamedTuple):
    """Requests that are treated alike. `methods` is empty for a WebSocket, and for all methods."""

    protocol: Protocol
    methods: frozenset[str]
    path: re.Pattern[str]
    need: Need
    is_page: bool = False
    """A page that people come to from elsewhere, by a link."""


class AccessTable:
    """Looks up what a request needs. Plugins come and go, so theirs are kept by name."""

    def __init__(self, rules: Iterable[AccessRule]) -> None:
        self._rules = list(rules)
        self._plugins: dict[str, list[AccessRule]] = {}

    def add(self, rule: AccessRule) -> None:
        self._rules.append(rule)

    @property
    def rules(self) -> list[AccessRule]:
        return [
            *self._rules,
            *(rule for rules in self._plugins.values() for rule in rules),
        ]

    def find(self, protocol: str, method: str, path: str) -> AccessRule | None:
        """The rule for a request; None when there is nothing behind that path."""
        for rule in self.rules:
            if (
                rule.protocol == protocol
                and (not rule.methods or method in rule.methods)
                and rule.path.fullmatch(path)
            ):
                return rule
        return None

    def admit_plugin(self, name: str) -> None:
        """Opens a plugin's routes: reading to those who may observe, everything else to an admin."""
        path = re.compile(re.escape(f"/api/plugins/{name}") + "(/.*)?")
        self._plugins[name] = [
            AccessRule("http", READING, path, "observe"),
            AccessRule("http", frozenset(), path, "admin"),
            AccessRule("websocket", frozenset(), path, "observe"),
        ]

    def dismiss_plugin(self, name: str) -> None:
        self._plugins.pop(name, None)
