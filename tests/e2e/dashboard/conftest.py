"""The page in a real browser: one Chromium for all tests of a process, a dashboard of its own for each test.

Tests and fixtures here share one event loop, because a browser belongs to the loop it was started in.
"""

import asyncio
import re
import sys
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio
from playwright.async_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    StorageState,
    async_playwright,
    expect,
)

from hermes.settings.load import environment
from hermes.testing.installed import InstalledHermes
from hermes.testing.model_server import ModelServer, Recorded
from hermes.testing.scripted_responses import ScriptedResponse, ServerFault
from hermes.tools.browser.executable import browser_environment, needs_no_sandbox

PATIENCE = 30.0
MODEL = "gpt-5"
_SWITCHED_OFF = (
    # Chromium's suggestions below the address bar: pages of its own, which cost as much as ours with each new window.
    *("WebUIOmniboxPopup", "WebUIOmniboxAimPopup", "WebUIOmniboxFullPopup"),
    "PreloadTopChromeWebUI",
    # Playwright's own list, in whose place ours is read.
    *("AimEnabled", "AvoidCorsURLLoaderRestartOnRedirect"),
    *("AvoidUnnecessaryBeforeUnloadCheckSync", "DestroyProfileOnBrowserClose"),
    *("HttpsFirstBalancedModeAutoEnable", "HttpsUpgrades", "LensOverlay"),
    *("MediaRouter", "NetworkTimeServiceQuerying", "OptimizationHints"),
    *("PaintHolding", "PreconnectToSearch", "ThirdPartyStoragePartitioning"),
)
CHROMIUM_ARGUMENTS = [
    f"--disable-features={','.join(_SWITCHED_OFF)}",
    "--disable-gpu",  # to draw in software costs less than a graphics card in software
]
_FAILED = pytest.StashKey[bool]()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent.parts
    for item in items:
        if item.path.parts[: len(here)] == here:
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        item.stash[_FAILED] = True
    return report


class Board:
    """A running dashboard with a model that says what the test tells it to."""

    def __init__(
        self,
        hermes: InstalledHermes,
        model: ModelServer,
        replies: list[ScriptedResponse],
    ) -> None:
        self.hermes = hermes
        self.model = model
        self.url = ""
        self.link = ""
        self.cookies: StorageState | None = None  # of a browser that is signed in
        self._replies = replies

    def says(self, *replies: ScriptedResponse | str) -> None:
        """What the model answers next, in this order."""
        self._replies += [
            ScriptedResponse(text=reply) if isinstance(reply, str) else reply
            for reply in replies
        ]

    def forget(self) -> None:
        """Answers that a test before did not ask for are not given to others."""
        self._replies.clear()

    @property
    def left(self) -> int:
        """Answers that were not asked for."""
        return len(self._replies)

    async def new_link(self) -> str:
        """Another link that works once."""
        return (await self.hermes.run("dashboard", "--link")).out.strip()

    def sign_in_with(self, link: str) -> None:
        """The next page signs in anew: no browser is known any more."""
        self.link, self.cookies = link, None

    def asked(self, number: int = -1) -> list[dict[str, Any]]:
        """The messages of a request to the model."""
        return msgspec.json.decode(self.model.posts[number].body)["messages"]


def answering(
    replies: list[ScriptedResponse],
) -> Callable[[Recorded], ScriptedResponse]:
    def next_reply(_: Recorded) -> ScriptedResponse:
        if not replies:
            return ScriptedResponse(
                fault=ServerFault(status=400, message="the script has no reply left")
            )
        return replies.pop(0)

    return next_reply


@asynccontextmanager
async def running(folder: Path, settings: str = "") -> AsyncIterator[Board]:
    """The installed `hermes dashboard` with further settings, until the end of the block."""
    replies: list[ScriptedResponse] = []
    async with ModelServer(respond=answering(replies)) as model:
        hermes = InstalledHermes(folder, model.url)
        hermes.home.mkdir()
        config = f"model:\n  default: {MODEL}\n{settings}"
        (hermes.home / "config.yaml").write_text(config)
        # A shell on the page must not read the start-up files of whoever runs the tests.
        own = folder / "user"
        own.mkdir()
        async with started(hermes, HOME=str(own)) as (url, link):
            board = Board(hermes, model, replies)
            board.url, board.link = url, link
            yield board


@asynccontextmanager
async def started(
    hermes: InstalledHermes, **environ: str
) -> AsyncIterator[tuple[str, str]]:
    """`hermes dashboard` until the end of the block: its address, and a link that signs in."""
    # Shells must not read the start-up files of whoever runs the tests: some wait for one another.
    user = hermes.home.parent / "user"
    user.mkdir(exist_ok=True)
    environ = {"HOME": str(user), **environ}
    process = await hermes.start("dashboard", "--port", "0", "--no-open", **environ)
    assert process.stdout is not None
    try:
        said = ""
        async with asyncio.timeout(PATIENCE):
            while "code=" not in said:
                line = (await process.stdout.readline()).decode()
                assert line, said
                said += line
        (url,) = re.findall(r"Hermes is at (\S+)", said)
        (link,) = re.findall(r"(\S+/login\?code=\S+)", said)
        yield url, link
    finally:
        if process.returncode is None:
            process.terminate()
        await asyncio.wait_for(process.communicate(), PATIENCE)


@pytest_asyncio.fixture(loop_scope="session", scope="session")
async def browser(chromium: Path) -> AsyncIterator[Browser]:
    expect.set_options(
        timeout=PATIENCE * 1000
    )  # its own 5 seconds are too few for a busy machine
    async with async_playwright() as playwright:
        found = await playwright.chromium.launch(
            executable_path=chromium,
            env=dict[str, str | float | bool](browser_environment(environment())),
            chromium_sandbox=not needs_no_sandbox(),
            args=CHROMIUM_ARGUMENTS,
        )
        yield found
        await found.close()


@pytest_asyncio.fixture(loop_scope="session")
async def dashboard(tmp_path: Path) -> AsyncIterator[Board]:
    async with running(tmp_path) as board:
        yield board


class Complaints:
    """Whatever a page said on its console that it should not have."""

    def __init__(self) -> None:
        self.all: list[str] = []
        # What Playwright says where service workers are blocked.
        self._expected = ["Service Worker registration blocked"]

    def watch(self, page: Page) -> None:
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.all.append(f"{error}"))

    def _console(self, message: ConsoleMessage) -> None:
        if message.type not in {"error", "warning"}:
            return
        text = f"{message.type}: {message.text} {message.location.get('url', '')}"
        if not any(re.search(pattern, text) for pattern in self._expected):
            self.all.append(text)

    def expect(self, pattern: str) -> None:
        """Takes out what a test brought about itself, whether the browser has said it yet or says it later."""
        self._expected.append(pattern)
        self.all = [one for one in self.all if not re.search(pattern, one)]


@pytest.fixture
def complaints() -> Complaints:
    return Complaints()


@asynccontextmanager
async def visiting(
    browser: Browser, link: str, complaints: Complaints, **options: Any
) -> AsyncIterator[Page]:
    """A signed-in page in a context of its own; at the end it must not have complained.

    Without a service worker, whose requests a test could neither see nor hold back, and without animations, which
    keep a processor busy.
    """
    options = {"service_workers": "block", "reduced_motion": "reduce", **options}
    context: BrowserContext = await browser.new_context(**options)
    context.set_default_timeout(PATIENCE * 1000)
    try:
        page = await context.new_page()
        complaints.watch(page)
        await page.goto(link)
        await page.wait_for_selector("#main:not([aria-busy])")
        yield page
    finally:
        await context.close()
    assert complaints.all == []


async def describe(page: Page, node: pytest.Item) -> None:
    """Says, with the test's failure, what was on the page."""
    if node.stash.get(_FAILED, False):
        sys.stderr.write(
            f"The page was at {page.url} and showed:\n{await page.inner_text('body')}\n"
        )


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Board]:
    """One dashboard for all tests of a module, each with sessions of its own."""
    async with running(tmp_path_factory.mktemp("shared")) as board:
        yield board


@asynccontextmanager
async def again(
    browser: Browser, board: Board, complaints: Complaints, **options: Any
) -> AsyncIterator[Page]:
    """A page on a dashboard that other tests may have visited: signed in once, with nothing else kept."""
    if board.cookies is None:
        context = await browser.new_context()
        await (await context.new_page()).goto(board.link)
        board.cookies = await context.storage_state()
        await context.close()
    options = {"viewport": {"width": 1280, "height": 800}, **options}
    async with visiting(
        browser, f"{board.url}/", complaints, storage_state=board.cookies, **options
    ) as one:
        yield one


@pytest_asyncio.fixture(loop_scope="session")
async def visit(
    browser: Browser,
    shared: Board,
    complaints: Complaints,
    request: pytest.FixtureRequest,
) -> AsyncIterator[Page]:
    """A page on the shared dashboard; the model must have been asked for all its answers."""
    shared.forget()
    async with again(browser, shared, complaints) as one:
        yield one
        await describe(one, request.node)
    assert shared.left == 0


@pytest_asyncio.fixture(loop_scope="session")
async def page(
    browser: Browser,
    dashboard: Board,
    complaints: Complaints,
    request: pytest.FixtureRequest,
) -> AsyncIterator[Page]:
    async with visiting(
        browser, dashboard.link, complaints, viewport={"width": 1280, "height": 800}
    ) as one:
        yield one
        await describe(one, request.node)
