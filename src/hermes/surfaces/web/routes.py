"""The routes of a server: which endpoint serves a request, and which scope it needs."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

from starlette.types import ASGIApp

from hermes.surfaces.web.access import Need

Protocol: TypeAlias = Literal["http", "websocket"]

READING = frozenset({"GET", "HEAD"})


class Route(NamedTuple):
    """A path and what serves it. Empty `methods` means all methods."""

    protocol: Protocol
    methods: frozenset[str]
    path: re.Pattern[str]
    need: Need
    serve: ASGIApp
    convertors: Mapping[str, Any] = {}
    is_page: bool = False
    """Whether it is a page that people open through a link on another site."""


class RoutedRequest(NamedTuple):
    """A route, with the values of its path parameters."""

    route: Route
    path_params: dict[str, Any]


class RouteTable:
    """Finds the route of a request. Paths that are not in the table can't be reached.

    Routes that come and go, such as those of a plugin, belong to a named group.
    """

    def __init__(
        self, routes: Iterable[Route] = (), *, ignore_trailing_slash: bool = False
    ) -> None:
        self._groups: dict[str, list[Route]] = {"": list(routes)}
        self._ignore_trailing_slash = ignore_trailing_slash

    def add(self, routes: Iterable[Route], group: str = "") -> None:
        """Adds routes. A named group replaces an existing group of that name."""
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
        """The route of a request; None if there is none."""
        for route, found in self._at(protocol, path):
            if route.methods and method not in route.methods:
                continue
            params = _converted(route, found)
            if params is not None:
                return RoutedRequest(route, params)
        return None

    def allowed_methods(self, protocol: str, path: str) -> frozenset[str]:
        """The methods that routes allow for exactly this path."""
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


def _converted(route: Route, found: re.Match[str]) -> dict[str, Any] | None:
    """The parameters of a path; None if one is no value of its type, such as a number with thousands of digits."""
    params: dict[str, Any] = found.groupdict()
    try:
        for name, convertor in route.convertors.items():
            params[name] = convertor.convert(params[name])
    except ValueError:
        return None
    return params
