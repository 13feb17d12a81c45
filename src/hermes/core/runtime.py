"""The port through which a session runs a turn: our own loop, or another engine behind the same door."""

from typing import Protocol

from hermes.core.turn import Turn
from hermes.schema.events import TurnEnded


class Runtime(Protocol):
    """Runs one turn to its end, writing everything to the turn's journal. The caller records the end."""

    name: str

    async def run(self, turn: Turn) -> TurnEnded: ...
