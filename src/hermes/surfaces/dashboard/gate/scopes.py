"""Scopes: what a credential is good for."""

from collections.abc import Iterable
from typing import Literal, TypeAlias, get_args

Scope: TypeAlias = Literal[
    "observe", "chat", "approve", "terminal", "publish", "relay", "admin"
]
Need: TypeAlias = Literal["open"] | Scope
"""What a route asks for; `open` routes still pass the rest of the gate."""

SCOPES: tuple[Scope, ...] = get_args(Scope)


def covers(held: Iterable[str], need: Need) -> bool:
    """Whether a credential with these scopes may do what needs that one."""
    return need == "open" or need in held or "admin" in held
