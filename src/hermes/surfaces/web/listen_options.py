"""The options `--host` and `--port` of commands that serve."""

from typing import Annotated, Protocol, TypeAlias, TypeVar

import msgspec

from hermes.commands.command import Arg
from hermes.errors import UsageError


class _Listening(Protocol):
    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int: ...


_S = TypeVar("_S", bound=_Listening)

Host: TypeAlias = Annotated[
    str | None,
    Arg("the address to listen on; by default that of the settings", metavar="ADDRESS"),
]
Port: TypeAlias = Annotated[
    int | None, Arg("the port to listen on; 0 for any", metavar="NUMBER")
]


def listening_on(section: _S, host: str | None, port: int | None) -> _S:
    """A section of the settings with what the options say instead."""
    if port is not None and not 0 <= port <= 65535:
        raise UsageError(f"There is no port {port}.", hint="0 to 65535 are possible.")
    given = {"host": host, "port": port}
    wanted = {name: value for name, value in given.items() if value is not None}
    return msgspec.structs.replace(section, **wanted)  # pyrefly: ignore
