"""The routes of a server: which endpoint serves a request, and what it needs."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

from starlette.types import ASGIApp

from hermes.surfaces.web.access import Need

Protocol: TypeAlias = Literal["http", "websocket"]

READING = frozenset({"GET", "HEAD"})


class Route(NamedTuple):
    """Requests that are served alike. No `methods` stands for all of them."""

    protocol: Protocol
    methods: frozenset[str]
    path: re.Pattern[str]
    need: Need
    serve: ASGIApp
    convertors: Mapping[str, Any] = {}
    is_page: bool = False
    """A page that people reach by a link from another site."""


class RoutedRequest(NamedTuple):
    """A route with the values that a path has for its parameters."""

    route: Route
    path_params: dict[str, Any]


class RouteTable:
    """Finds the route of a request. A path that is not in the table can't be reached.

    Routes that come and go, such as those of a plugin, belong to a named group.
    """

    def __init__(
        self, routes: Iterable[Route] = (), *, ignore_trailing_slash: bool = False
    ) -> None:
        self._groups: dict[str, list[Route]] = {"": list(routes)}
        self._ignore_trailing_slash = ignore_trailing_slash

    def add(self, routes: Iterable[Route], group: str = "") -> None:
        """Adds routes. A named group replaces the one of that name."""
        if group:
            self._groups[group] = list(routes)
        else:
            self._groups[""] += routes

    def remove_group(self, name: str) -> None:
        """Removes the routes of a group, if there are any."""
        self._groups.pop(name, None)

    @property
    def routes(self) -> list[Route]:
        """All routes, those without a group first."""
        return [route for group in self._groups.values() for route in group]

    def find(self, protocol: str, method: str, path: str) -> RoutedRequest | None:
        """The route of a request; None when there is none."""
        for route, found in self._at(protocol, path):
            if route.methods and method not in route.methods:
                continue
            params = found.groupdict()
            for name, convertor in route.convertors.items():
                params[name] = convertor.convert(params[name])
            return RoutedRequest(route, params)
        return None

    def allowed_methods(self, protocol: str, path: str) -> frozenset[str]:
        """The methods of the routes whose path is exactly this one."""
        exact = (
            route.methods
            for route, found in self._at(protocol, path)
            if not found.groupdict()
        )
        return frozenset().union(*exact)

    def _at(self, protocol: str, path: str) -> Iterable[tuple[Route, re.Match[str]]]:
        if self._ignore_trailing_slash:
            path = path.rstrip("/")
        for group in self._groups.values():
            for route in group:
                if route.protocol != protocol:
                    continue
                if found := route.path.fullmatch(path):
                    yield route, found
