"""Fixtures: each kind of sandbox, and a throwaway machine around it."""

import os
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from tests.integration.sandbox.machine import (
    Machine,
    fetch_bubblewrap,
    make_sandbox,
    missing,
)

from hermes.tools.process.resource_limits import ResourceLimits
from hermes.tools.sandbox import Sandbox


@pytest.fixture(scope="session")
def bubblewrap() -> Path:
    program = fetch_bubblewrap()
    if program is None:
        missing("bubblewrap is not installed and could not be fetched")
    assert program is not None
    return program


@pytest.fixture(params=["bubblewrap", "landlock"])
def sandbox(request: pytest.FixtureRequest) -> Sandbox:
    program = (
        request.getfixturevalue("bubblewrap") if request.param == "bubblewrap" else None
    )
    return make_sandbox(request.param, program)


@pytest.fixture
def limits() -> ResourceLimits:
    return ResourceLimits(processes=200, temporary=8 * 1024**2, free=1024**2)


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that is there inside a sandbox too: not in /tmp, which is another one there.

    The scripts of these tests don't quote it, so it has no spaces in its name; one test is about such names.
    """
    places = (Path.home() / ".cache/hermes", Path(sys.prefix) / "cache")
    cache = next(
        (each for each in places if not any(map(str.isspace, str(each)))), places[0]
    )
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="machine-", dir=cache) as folder:
        yield Path(folder)


@pytest.fixture
async def machine(
    place: Path, sandbox: Sandbox, limits: ResourceLimits
) -> AsyncIterator[Machine]:
    made = Machine(place, sandbox, limits)
    yield made
    await made.close()


@pytest.fixture(autouse=True)
def quiet_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)
