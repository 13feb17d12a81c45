"""A process that is in the middle of a review and stays there; the test kills it. Run with the home as its argument."""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path

from tests.integration.learning.world import remember, world, write_skill

from hermes.schema.model import ModelEvent, ModelRequest
from hermes.settings.sections import LearningSettings
from hermes.testing.scripted_model import ScriptedModel


class Stuck:
    """Answers twice, then never."""

    provider, name = "scripted", "scripted-1"

    def __init__(self) -> None:
        self._inner = ScriptedModel(remember("likes tea"), write_skill("brew"))

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        if not self._inner.left:
            sys.stdout.write("stuck\n")
            sys.stdout.flush()
            await asyncio.Event().wait()
        async for event in self._inner.stream(request):
            yield event


async def main() -> None:
    async with world(
        Path(sys.argv[1]), Stuck(), LearningSettings(mode="auto", turns=1)
    ) as place:
        place.say("one")
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
