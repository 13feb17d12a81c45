"""One browser with its pages, started on first use. Only this package knows playwright."""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from hermes.errors import ToolFailed
from hermes.primitives.tasks import BackgroundTasks
from hermes.settings.tools import BrowserSettings
from hermes.text.install_words import install_hint
from hermes.tools.browser.executable import (
    ARGUMENTS,
    browser_environment,
    find_executable,
    needs_no_sandbox,
)
from hermes.tools.browser.incidents import Incidents
from hermes.tools.browser.proxy import GateProxy
from hermes.tools.escapes import one_line
from hermes.tools.web.address_check import AddressCheck
from hermes.tools.web.urls import read_url

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Error, Locator, Page, Playwright

_REF = r"(f\d+)?e\d+"
_VIEWPORT_PIXELS = {"width": 1280, "height": 800}
_LOAD_TIMEOUT_S = 3.0
_BROWSER_CLOSE_TIMEOUT_S = 10.0
_STEPS_PER_CALL = 3  # limits of one step that a call may take: to act, to load, to look
_MISSING_LIBRARY = "The browser tools need playwright."
_ROOT_NOTE = "The browser runs without its own sandbox, because Hermes runs as root."


class PageView(msgspec.Struct, frozen=True):
    """A page as text: its address, its title, and its elements as a tree."""

    url: str
    title: str
    tree: str


class BrowserSession:
    """A browser that is started on first use and closed when idle."""

    def __init__(
        self,
        settings: BrowserSettings,
        gate: AddressCheck,
        environment: Mapping[str, str],
    ) -> None:
        self._settings = settings
        self.gate = gate
        self._environment = environment
        self.approved: set[str] = set()
        """The hosts that `browser_navigate` was allowed to open."""
        self._lock = asyncio.Lock()
        self._proxy: GateProxy | None = None
        self._playwright: Playwright | None = None
        self._context: BrowserContext | None = None
        self._incidents = Incidents()
        self._idle: asyncio.TimerHandle | None = None
        self._closing = BackgroundTasks("closing an idle browser")

    @contextlib.asynccontextmanager
    async def page(self, *, start: bool = False) -> "AsyncIterator[Page]":
        """Yields the current page, for one step at a time. `start` starts the browser if it is not running."""
        async with self._lock:
            self._schedule_close(None)
            if self._context is None and not start:
                raise ToolFailed(
                    "No page is open.", hint="Open one with browser_navigate."
                )
            failure = _library_error()
            limit = _STEPS_PER_CALL * self._settings.timeout
            try:
                async with asyncio.timeout(limit):
                    context = self._context or await self._start()
                    yield newest(context.pages) or await context.new_page()
            except TimeoutError as error:
                await self._stop()
                raise ToolFailed(
                    f"The page did not answer within {limit:g} s; the browser was closed."
                ) from error
            except failure as error:
                refused = self._proxy.refusals() if self._proxy else []
                raise ToolFailed(" ".join([_first_line(error), *refused])) from error
            finally:
                if self._context is not None:
                    self._schedule_close(self._settings.idle_timeout)

    async def view(self, page: "Page") -> "PageView":
        """Returns the page after a step: the newest one, if the step opened or closed one."""
        from playwright.async_api import Error

        for last in (False, True):
            try:
                page = newest(page.context.pages) or await page.context.new_page()
                await self._wait_for_load(page)
                self.check_rules(page)
                return PageView(
                    page.url, await page.title(), await page.aria_snapshot(mode="ai")
                )
            except Error:  # the page moved on to another one while it was being read
                if last:
                    raise
        raise AssertionError

    def check_rules(self, page: "Page") -> None:
        """Raises ToolFailed if the user's rules forbid the host of a page.

        The proxy lets nothing through from such a host; but a cache needs no connection, and a rule may be newer than the page.
        """
        address = page.url.removeprefix("blob:")
        if address.startswith(("http://", "https://")):
            self.gate.check_rule(read_url(address), self.approved)

    def notes(self) -> list[str]:
        """Returns notes since the last call: dialogs, refused downloads and refused addresses."""
        return self._incidents.take() + (self._proxy.refusals() if self._proxy else [])

    def console(self) -> list[str]:
        """Returns what scripts wrote to the console since the last call."""
        return self._incidents.take_console()

    async def _wait_for_load(self, page: "Page") -> None:
        """Waits until a page has loaded, but not long."""
        from playwright.async_api import TimeoutError as Late

        with contextlib.suppress(Late):
            await page.wait_for_load_state("load", timeout=_LOAD_TIMEOUT_S * 1000)

    async def close(self) -> None:
        """Ends the browser and everything it started. Idempotent."""
        async with self._lock:
            await self._stop()

    async def _start(self) -> "BrowserContext":
        from playwright.async_api import async_playwright

        await self._stop()  # left over from a browser that ended by itself
        try:
            self._playwright = await async_playwright().start()
            self._proxy = GateProxy(self.gate, self.approved)
            self._context = await self._launch(self._playwright, self._proxy)
        except BaseException:
            await self._stop()
            raise
        self._watch(self._context)
        return self._context

    async def _launch(
        self, playwright: "Playwright", proxy: GateProxy
    ) -> "BrowserContext":
        settings = self._settings
        kind = playwright.chromium
        executable = find_executable(
            settings.executable, self._environment, kind.executable_path
        )
        if needs_no_sandbox():
            self._incidents.note(_ROOT_NOTE)
        return await kind.launch_persistent_context(
            _folder(settings.profile),  # nothing: a fresh one, removed afterwards
            executable_path=executable,
            headless=settings.headless,
            args=list(ARGUMENTS),
            env=dict(browser_environment(self._environment)),
            proxy={
                "server": await proxy.start(),
                "username": proxy.user,
                "password": proxy.password,
            },
            chromium_sandbox=not needs_no_sandbox(),
            accept_downloads=False,
            viewport={
                "width": _VIEWPORT_PIXELS["width"],
                "height": _VIEWPORT_PIXELS["height"],
            },
            handle_sigint=False,
            handle_sigterm=False,
            handle_sighup=False,
            timeout=settings.timeout * 1000,
        )

    def _watch(self, context: "BrowserContext") -> None:
        context.set_default_timeout(self._settings.timeout * 1000)
        context.on("close", lambda _: self._forget(context))
        context.on("page", self._incidents.watch)
        for page in context.pages:
            self._incidents.watch(page)

    def _forget(self, context: "BrowserContext") -> None:
        if self._context is context:
            self._context = None
            self._incidents.note("The browser was closed.")

    def _schedule_close(self, seconds: float | None) -> None:
        """Closes the browser after so many seconds without a step; None stops the timer during a step."""
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        if seconds is not None:
            self._idle = asyncio.get_running_loop().call_later(seconds, self._expire)

    def _expire(self) -> None:
        self._closing.start(self.close())

    async def _stop(self) -> None:
        self._schedule_close(None)
        context, self._context = self._context, None
        playwright, self._playwright = self._playwright, None
        proxy, self._proxy = self._proxy, None
        if context is not None:
            from playwright.async_api import Error

            with contextlib.suppress(
                Error, TimeoutError
            ):  # it has ended by itself, or ends with its driver
                async with asyncio.timeout(_BROWSER_CLOSE_TIMEOUT_S):
                    await context.close()
        if playwright is not None:
            await playwright.stop()
        if proxy is not None:
            await proxy.close()


def newest(pages: "Sequence[Page]") -> "Page | None":
    """Returns the page that was opened last."""
    return pages[-1] if pages else None


def located(page: "Page", ref: str) -> "Locator":
    """Returns the element that a snapshot calls `ref`."""
    if not re.fullmatch(_REF, ref):
        raise ToolFailed(
            f"{ref!r} is not an element reference.",
            hint="Use one such as e12 from browser_snapshot.",
        )
    return page.locator(f"aria-ref={ref}")


def _folder(profile: str) -> str:
    return str(Path(profile).expanduser()) if profile else ""


def _library_error() -> "type[Error]":
    """Returns playwright's exception type. Raises ToolFailed if playwright is not installed."""
    try:
        from playwright.async_api import Error
    except ImportError as error:
        raise ToolFailed(
            _MISSING_LIBRARY, hint=f"For the user: {install_hint('browser')}"
        ) from error
    return Error


def _first_line(error: "Error") -> str:
    """Returns the first line of an error; the rest is a log for developers."""
    first = one_line(error.message.strip().partition("\n")[0])
    return f"The browser could not do that: {first.removesuffix('.')}."
