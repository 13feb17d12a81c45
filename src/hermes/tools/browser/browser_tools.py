"""The browser tools: for pages that need scripts, a login or a click.

Until a page has been opened, a prompt describes only `browser_navigate`, because most sessions open none. Then the
others join. The browser and the code that drives it are loaded when the first page is opened.
"""

import asyncio
import os
import re
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import Meta

from hermes.core.ports import Tool, ToolContext
from hermes.errors import ToolFailed
from hermes.schema.tool_spec import ToolResult
from hermes.settings.secrets import Secrets
from hermes.settings.tools import BrowserSettings, WebSettings
from hermes.tools.process.long_output import OutputFolder
from hermes.tools.tool import tool

if TYPE_CHECKING:
    from playwright.async_api import Locator, Page

    from hermes.tools.browser.session import BrowserSession, PageView
    from hermes.tools.web.address_check import HostRule, Resolver

__all__ = ["BrowserTools", "Screenshot"]

_MAX_SNAPSHOT_CHARACTERS = 20_000
_MAX_STEP_CHARACTERS = 8_000
_SCROLL_PIXELS = 700

_ELEMENT = (
    r"^\s*- (?P<role>[^\s\[:]+)(?P<name> \"(?:[^\"\\\\]|\\\\.)*\")?[^\n]*\[ref={ref}\]"
)

Ref = Annotated[str, Meta(description="Element, such as e12.")]


_MAX_IMAGES = 60
_MAX_ADDRESS_CHARACTERS = 500
_IMAGES_SCRIPT = """most => [...document.images].slice(0, most).map(one => ({
  src: one.currentSrc || one.src, alt: one.alt, width: one.naturalWidth, height: one.naturalHeight }))"""


class Screenshot(msgspec.Struct, frozen=True):
    """A JPEG of what the browser showed, and the address of the page."""

    url: str
    data: bytes


def _has_opened(owner: "BrowserTools") -> bool:
    """Whether prompts describe the tools for an open page."""
    return owner.has_opened


def _about_page(owner: "BrowserTools", arguments: Mapping[str, Any]) -> str:  # noqa: ARG001 - the callback's shape
    """The page that a step affects, as the model last saw it."""
    return owner.place()


def _about_step(owner: "BrowserTools", arguments: Mapping[str, Any]) -> str:
    """The element and page that a step affects, as the model last saw them."""
    return owner.element(str(arguments.get("ref", "")))


class BrowserTools:
    """The tools of one session and its browser. Whoever made it calls `close` at the session's end."""

    def __init__(  # noqa: PLR0913 - what a session gives
        self,
        settings: BrowserSettings,
        web: WebSettings,
        folder: OutputFolder,
        environment: Mapping[str, str],
        resolver: "Resolver | None" = None,
        *,
        secrets: Secrets,
        rule: "HostRule | None" = None,
    ) -> None:
        self.has_opened = False
        """Whether a page was ever opened."""
        self._settings = settings
        self._web = web
        self._folder = folder
        self._environment = environment
        self._resolver = resolver
        self._secrets = secrets
        self._rule = rule
        self._shown: PageView | None = None

    @property
    def tools(self) -> list[Tool]:
        """All browser tools."""
        return [
            self.browser_navigate,
            self.browser_snapshot,
            self.browser_click,
            self.browser_type,
            self.browser_select,
            self.browser_press,
            self.browser_scroll,
            self.browser_back,
            self.browser_get_images,
            self.browser_console,
            self.browser_close,
        ]

    async def close(self) -> None:
        """Ends the browser, if one was started."""
        if "_session" in self.__dict__:
            await self._session.close()

    @cached_property
    def _session(self) -> "BrowserSession":
        from hermes.tools.browser.session import BrowserSession
        from hermes.tools.web.web_settings import build_gate

        gate = build_gate(self._web, self._resolver, self._rule)
        return BrowserSession(self._settings, gate, self._environment)

    @tool("browser_navigate", effect="network")
    async def browser_navigate(self, url: str) -> ToolResult:
        """Opens a public page in a browser with scripts; then tools to read, click and type join."""
        from hermes.tools.web.address_check import require_no_secret
        from hermes.tools.web.urls import read_url

        place = read_url(url)
        require_no_secret(url, self._secrets)
        self._session.approved.add(place.host)
        await self._session.gate.check(
            place, self._session.approved
        )  # the proxy checks again; here the reason can be reported
        async with self._session.page(start=True) as page:
            await page.goto(str(place), wait_until="domcontentloaded")
            opened = await self._page_text(page, _MAX_STEP_CHARACTERS)
        self.has_opened = True
        return opened

    @tool("browser_snapshot", effect="read", joins=_has_opened)
    async def browser_snapshot(self) -> ToolResult:
        """The open page's elements, with refs."""
        async with self._session.page() as page:
            return await self._page_text(page, _MAX_SNAPSHOT_CHARACTERS)

    @tool("browser_click", effect="other", about=_about_step, joins=_has_opened)
    async def browser_click(self, ref: Ref) -> ToolResult:
        """Clicks an element."""
        async with self._session.page() as page:
            await (await self._judged(page, ref)).click()
            return await self._page_text(page, _MAX_STEP_CHARACTERS)

    @tool("browser_type", effect="other", about=_about_step, joins=_has_opened)
    async def browser_type(
        self, ref: Ref, text: str, submit: bool = False
    ) -> ToolResult:
        """Fills a field; submit presses Enter."""
        async with self._session.page() as page:
            element = await self._judged(page, ref)
            await element.fill(text)
            if submit:
                await element.press("Enter")
            return await self._page_text(page, _MAX_STEP_CHARACTERS)

    @tool("browser_select", effect="other", about=_about_step, joins=_has_opened)
    async def browser_select(self, ref: Ref, option: str) -> ToolResult:
        """Chooses an option by label or value."""
        async with self._session.page() as page:
            await (await self._judged(page, ref)).select_option(option)
            return await self._page_text(page, _MAX_STEP_CHARACTERS)

    @tool("browser_press", effect="other", about=_about_page, joins=_has_opened)
    async def browser_press(
        self, key: Annotated[str, Meta(description="Such as Enter, Tab, Control+A.")]
    ) -> ToolResult:
        """Presses a key."""
        async with self._session.page() as page:
            if self._shown is not None and self._shown.url != page.url:
                raise ToolFailed(
                    "Another page is open than the one last shown.",
                    hint="Nothing was done. Call browser_snapshot before you continue.",
                )
            await page.keyboard.press(key)
            return await self._page_text(page, _MAX_STEP_CHARACTERS)

    @tool("browser_scroll", effect="network", joins=_has_opened)
    async def browser_scroll(
        self, direction: Literal["down", "up"] = "down"
    ) -> ToolResult:
        """Scrolls a screen."""
        async with self._session.page() as page:
            await page.mouse.wheel(
                0, _SCROLL_PIXELS if direction == "down" else -_SCROLL_PIXELS
            )
            return await self._page_text(page, _MAX_STEP_CHARACTERS)

    @tool("browser_back", effect="network", joins=_has_opened)
    async def browser_back(self) -> ToolResult:
        """Goes back a page."""
        async with self._session.page() as page:
            await page.go_back(wait_until="domcontentloaded")
            return await self._page_text(page, _MAX_STEP_CHARACTERS)

    @tool("browser_get_images", effect="read", joins=_has_opened)
    async def browser_get_images(self) -> ToolResult:
        """The page's pictures: address, size, description. vision_analyze looks at one."""
        from hermes.tools.escapes import one_line

        async with self._session.page() as page:
            self._session.check_rules(page)
            found = await page.evaluate(_IMAGES_SCRIPT, _MAX_IMAGES)
            source = page.url
        lines = [
            f"{one_line(one['src'])[:_MAX_ADDRESS_CHARACTERS]} ({one['width']} x {one['height']})"
            f" {one_line(one['alt'])[:200]}".rstrip()
            for one in found
        ]
        return ToolResult(text="\n".join(lines) or "(no pictures)", source=source)

    @tool("browser_console", effect="read", joins=_has_opened)
    async def browser_console(self) -> ToolResult:
        """What scripts wrote to the console since the last call, with their errors."""
        async with self._session.page() as page:
            self._session.check_rules(page)
            lines = self._session.console()
            source = page.url
        return ToolResult(text="\n".join(lines) or "(nothing)", source=source)

    async def screenshot(self) -> "Screenshot":
        """What the browser shows now. Raises ToolFailed if no page is open."""
        async with self._session.page() as page:
            self._session.check_rules(page)
            data = await page.screenshot(type="jpeg", quality=75)
            return Screenshot(page.url, data)

    @tool("browser_close", effect="read", joins=_has_opened)
    async def browser_close(self, context: ToolContext) -> str:
        """Closes the browser."""
        context.show("Closing the browser\n")
        await self.close()
        return "The browser is closed."

    def element(self, ref: str) -> str:
        """An element by its role and name, and the page it is on, as they were last shown; empty without a page."""
        if self._shown is None:
            return ""
        return f"{_named(self._shown.tree, ref) or 'an element that was not shown'} on {self._shown.url}"

    def place(self) -> str:
        """The address of the page that was last shown; empty if there is none."""
        return f"on {self._shown.url}" if self._shown is not None else ""

    async def _judged(self, page: "Page", ref: str) -> "Locator":
        """The element that was shown with this ref. Raises ToolFailed if the page has changed to another one since."""
        from hermes.tools.browser.session import located

        element, shown = located(page, ref), self._shown
        now = await page.aria_snapshot(mode="ai")
        if shown is not None and (shown.url, _named(shown.tree, ref)) != (
            page.url,
            _named(now, ref),
        ):
            hint = "Nothing was done. Call browser_snapshot before you continue."
            raise ToolFailed(
                f"{ref} has changed since the page was last shown.", hint=hint
            )
        return element

    async def _page_text(self, page: "Page", limit: int) -> ToolResult:
        """The text of a page that the model sees after a step: that of the newest page, if the step opened one."""
        from hermes.tools.escapes import one_line, visible

        sight = self._shown = await self._session.view(page)
        shown = tree = visible(sight.tree)
        notes = self._session.notes()
        if len(tree) > limit:
            path = await asyncio.to_thread(
                self._save, tree.encode(errors="replace"), ".yaml"
            )
            shown = tree[: tree.rfind("\n", 0, limit)]
            notes.append(
                f"{len(tree) - len(shown):,} more characters: the whole text is in {path}"
            )
        lines = [
            f"Page: {one_line(sight.title)}",
            f"Address: {sight.url}",
            *(f"[{note}]" for note in notes),
            shown or "(empty page)",
        ]
        return ToolResult(text="\n".join(lines), source=sight.url)

    def _save(self, data: bytes, suffix: str) -> Path:
        path, handle = self._folder.create_foreign("browser")
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        return path.rename(path.with_suffix(suffix))


def _named(tree: str, ref: str) -> str:
    """The role and name of an element in a tree; empty if it is not there."""
    from hermes.tools.escapes import one_line

    found = re.search(_ELEMENT.replace("{ref}", re.escape(ref)), tree, re.MULTILINE)
    return one_line(f"{found['role']}{found['name'] or ''}")[:300] if found else ""
