"""A review that is killed in the middle leaves nothing half-written, and the next one can begin."""

import asyncio
import os
import sys
from pathlib import Path

from hermes.app import build
from hermes.learning.learning_service import open_learning
from hermes.learning.review import lease
from hermes.settings import Home, Settings
from hermes.settings.sections import LearningSettings

ROOT = Path(__file__).parents[3]


async def test_nothing_is_left_of_a_review_that_was_killed(tmp_path: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.integration.learning.reviewing", str(tmp_path),
        stdout=asyncio.subprocess.PIPE, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert process.stdout
    try:
        async with asyncio.timeout(60):
            assert await process.stdout.readline() == b"stuck\n"
        with lease(tmp_path / "learning") as alone:
            assert not alone
    finally:
        process.kill()
        await process.wait()
    learning = open_learning(Home(tmp_path), LearningSettings(), os.environ)
    assert learning.memory.read("memory") == ""
    assert [
        skill.name for skill in learning.skills.all() if skill.origin != "bundled"
    ] == []
    assert learning.proposals.all() == []
    assert learning.history.log("memories") == []
    with lease(tmp_path / "learning") as alone:
        assert alone
    with build(Settings(), Home(tmp_path)) as app:
        (info,) = app.store.sessions.recent()
        types = [row.type for row in app.store.log.every_event(info.id)]
    assert "agent.learning.reviewed" not in types
