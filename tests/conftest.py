"""For all tests: no example is judged by how long it took, and one that drives real processes gets a second try.

The machine may be busy with others, and a browser or a server that lost a race against its clock is no news. What was
tried again is listed at the end of the run, so that a test that needs it often is seen. Unit tests get one try.
"""

from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("house", deadline=None)
settings.load_profile("house")

_REAL = tuple(Path(__file__).parent / name for name in ("integration", "e2e"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if any(folder in item.path.parents for folder in _REAL):
            item.add_marker(pytest.mark.flaky(reruns=1))
