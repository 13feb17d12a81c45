"""For all tests: no example is judged by how long it took, tests of the installed program and of the page get a second
try, and the browser is installed before the first test, because a test's time is limited.

What was tried again is listed at the end of the run; each is a bug to find. Unit and integration tests get one try.
"""

import contextlib
import gc
import os
import shutil
import signal
import sys
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from tests.fakes.thoroughness import rounds

from hermes.testing.chromium import installed_chromium
from hermes.testing.fetched import NotFetched

settings.register_profile("house", deadline=None, max_examples=rounds(25, 100))
settings.load_profile("house")

_CHROMIUM = pytest.StashKey[Path | NotFetched]()
_TESTS = Path(__file__).parent
_TRIED_TWICE = _TESTS / "e2e"


def pytest_configure(config: pytest.Config) -> None:
    _begin_elsewhere(config)
    _hear_signals()


def _begin_elsewhere(config: pytest.Config) -> None:
    """Each worker that reads all tests begins at another place: what one has compiled the others find done."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    asked = [config.invocation_params.dir / argument for argument in config.args]
    if not worker.isdigit() or workers < 2 or asked != [_TESTS]:
        return
    places = sorted(
        path
        for path in _TESTS.glob("*/*")
        if path.match("test_*.py") or (path.is_dir() and path.name != "__pycache__")
    )
    start = int(worker) * len(places) // workers
    config.args[:] = [str(path) for path in places[start:] + places[:start]]


def _hear_signals() -> None:
    """Programs started in the background ignore Ctrl-C and a closed terminal, and so would everything they start."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        if signal.getsignal(number) is signal.SIG_IGN:
            is_interrupt = number == signal.SIGINT
            signal.signal(
                number, signal.default_int_handler if is_interrupt else signal.SIG_DFL
            )


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is read stays to the end, so it is not looked through for garbage, neither now nor later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.path.parts)  # all workers must have one order
    tried_twice = _TRIED_TWICE.parts  # of 10,000 paths: `parents` would make 80,000
    for item in items:
        if item.path.parts[: len(tried_twice)] == tried_twice:
            item.add_marker(pytest.mark.flaky(reruns=1))


def pytest_collection_finish(session: pytest.Session) -> None:
    config = session.config
    wanted = any(
        "chromium" in getattr(item, "fixturenames", ()) for item in session.items
    )
    if config.option.collectonly or not wanted:
        return
    capture = config.pluginmanager.getplugin("capturemanager")
    with getattr(
        capture, "global_and_fixture_disabled", contextlib.nullcontext
    )():  # what is said must be seen
        try:
            config.stash[_CHROMIUM] = installed_chromium(os.environ)
        except NotFetched as why:
            config.stash[_CHROMIUM] = why
            if os.environ.get("PYTEST_XDIST_WORKER", "gw0") == "gw0":
                sys.stderr.write(f"Tests in a browser are left out. {why}\n")


@pytest.fixture(scope="session")
def chromium(pytestconfig: pytest.Config) -> Iterator[Path]:
    """The browser's program, which is on PATH too."""
    found = pytestconfig.stash[_CHROMIUM]
    if isinstance(found, NotFetched):
        if os.environ.get("CI") == "true":
            pytest.fail(str(found))
        pytest.skip(str(found))
    with pytest.MonkeyPatch.context() as patch:
        if shutil.which(found.name) is None:
            patch.setenv("PATH", str(found.parent), prepend=os.pathsep)
        yield found
