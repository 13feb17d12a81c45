"""A dashboard for each test that asks for one."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.integration.dashboard.harness import Harness, opened


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[Harness]:
    async with opened(tmp_path) as one:
        yield one
