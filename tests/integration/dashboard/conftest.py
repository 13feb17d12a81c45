"""A dashboard for each test that asks for one."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.integration.dashboard.house import House, opened


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with opened(tmp_path) as one:
        yield one
