"""Make docs/images/dashboard-*.png: a real dashboard in a real browser, with a scripted model.

Run it after the look of the page has changed: `python scripts/capture_dashboard.py`. The pictures are screenshots: a
chat with an approval, the timeline of its session, the live events, what was learned, and the orb.
"""

import asyncio
import json
import re
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from playwright.async_api import Browser, Page, async_playwright

from hermes.settings.load import environment
from hermes.testing.chromium import installed_chromium
from hermes.testing.installed import InstalledHermes
from hermes.testing.model_server import ModelServer
from hermes.testing.scripted_responses import ScriptedResponse, ServedCall
from hermes.tools.browser.executable import browser_environment, needs_no_sandbox

PICTURES = Path(__file__).resolve().parent.parent / "docs" / "images"
WIDE, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 800}
BEFORE = "def total(items):\n    return sum(items[:-1])\n"
ANSWER = """\
The bug was in `total`: it **skipped the last item**. One line had to change, and the checks pass now.

| check | result |
|---|--:|
| `total([1, 2, 3])` | 6 |
| an empty list | 0 |

```python
def total(items: list[int]) -> int:
    return sum(items)  # all of them
```
"""
SKILL = """\
---
name: check-totals
description: How sums are checked in this shop. Use it before any change of prices.
---

# Check totals

Run `python3 -m shop.check`, then compare with the ledger.
"""


def script() -> list[ScriptedResponse]:
    """A small repair: read a file, change it, run the test, report; then something to learn."""
    edit = {"path": "shop.py", "old_text": "sum(items[:-1])", "new_text": "sum(items)"}
    notes = {
        "edits": [
            {
                "action": "add",
                "file": "user",
                "text": "Prefers small changes with a test.",
            }
        ]
    }
    skill = {"action": "write", "name": "check-totals", "text": SKILL}
    return [
        ScriptedResponse(
            text="Let me look at it.",
            reasoning="The total is too small, so an item is probably left out. I read the file first.",
            calls=(ServedCall("read_file", '{"path": "shop.py"}'),),
            input_tokens=3100,
        ),
        ScriptedResponse(
            calls=(ServedCall("edit_file", json.dumps(edit)),), input_tokens=3300
        ),
        ScriptedResponse(text=ANSWER, input_tokens=3700, output_tokens=160),
        ScriptedResponse(
            calls=(
                ServedCall("memory", json.dumps(notes)),
                ServedCall("skill_manage", json.dumps(skill)),
            ),
            input_tokens=3900,
        ),
        ScriptedResponse(
            text="I will remember that.", input_tokens=4000, output_tokens=20
        ),
    ]


@asynccontextmanager
async def dashboard(folder: Path) -> AsyncIterator[tuple[InstalledHermes, str, str]]:
    """Start a dashboard. Yields its Hermes, its address and its sign-in link."""
    async with ModelServer(*script()) as model:
        hermes = InstalledHermes(folder, model.url)
        (hermes.work / "shop.py").write_text(BEFORE)
        hermes.home.mkdir()
        (hermes.home / "config.yaml").write_text(
            "model:\n  default: gpt-5\nlearning:\n  mode: propose\n"
        )
        process = await hermes.start("dashboard", "--port", "0", "--no-open")
        if process.stdout is None:
            raise SystemExit("the dashboard has no output")
        try:
            said = ""
            while "code=" not in said:
                line = (await process.stdout.readline()).decode()
                if not line:
                    raise SystemExit("the dashboard did not start")
                said += line
            yield (
                hermes,
                re.findall(r"Hermes is at (\S+)", said)[0],
                re.findall(r"(\S+/login\?code=\S+)", said)[0],
            )
        finally:
            process.terminate()
            await process.communicate()


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=installed_chromium(environment()),
            env=dict[str, str | float | bool](browser_environment(environment())),
            chromium_sandbox=not needs_no_sandbox(),
        )
        yield browser
        await browser.close()


async def shoot(page: Page, name: str) -> None:
    """Take one picture, once nothing moves any more."""
    await page.mouse.move(0, 0)
    await page.evaluate("document.fonts.ready")
    await page.wait_for_load_state("networkidle")
    path = PICTURES / f"dashboard-{name}.png"
    await page.screenshot(path=path, animations="disabled", caret="hide")
    print(f"wrote {path.relative_to(PICTURES.parent.parent)}")


async def say(page: Page, text: str) -> None:
    await page.get_by_role("combobox", name="Message").fill(text)
    await page.get_by_role("combobox", name="Message").press("Enter")


async def chat(page: Page) -> str:
    """Run the repair, with a picture of the question and one of the end. Returns the session."""
    await say(page, "Why is the total in @shop.py too small? Repair it.")
    await page.get_by_role("button", name="Allow once").wait_for()
    await page.locator(".rail .badge").wait_for()
    await shoot(page, "approval")
    await page.get_by_role("button", name="Allow once").click()
    await page.get_by_text("skipped the last item").wait_for()
    await page.get_by_text("changes", exact=True).wait_for()
    await shoot(page, "chat")
    return page.url.rpartition("#/chat/")[2]


async def phone(browser: Browser, page: Page) -> None:
    """Show the same chat on a phone, in dark mode."""
    context = await browser.new_context(
        storage_state=await page.context.storage_state(),
        viewport=PHONE,
        color_scheme="dark",
        device_scale_factor=2,
        is_mobile=True,
    )
    other = await context.new_page()
    await other.goto(page.url)
    await other.get_by_text("skipped the last item").wait_for()
    await shoot(other, "phone")
    await context.close()


async def look_around(page: Page, session: str, hermes: InstalledHermes) -> None:
    """Take pictures of the other views, which show traces of the chat."""
    await page.goto(f"{page.url.partition('#')[0]}#/live")
    await (
        page.get_by_role("navigation", name="Views", exact=True)
        .get_by_role("link", name="Live")
        .wait_for()
    )
    await page.goto(f"{page.url.partition('#')[0]}#/sessions/{session}")
    await page.get_by_text("edit_file").first.wait_for()
    await shoot(page, "timeline")
    other = await page.context.new_page()
    await other.goto(f"{page.url.partition('#')[0]}#/chat/{session}")
    await page.goto(f"{page.url.partition('#')[0]}#/live")
    await page.locator("main h1").first.wait_for()
    await say(other, "Remember that I prefer small changes with a test.")
    await other.get_by_role("button", name="Decide later").click()
    await other.get_by_text("I will remember that.").wait_for()
    await page.get_by_text("agent.turn.ended").first.wait_for()
    await shoot(page, "live")
    await other.close()
    await page.goto(f"{page.url.partition('#')[0]}#/learning")
    await page.locator("main h1").first.wait_for()
    await shoot(page, "learning")
    await hermes.run("plugins", "enable", "orb")
    await page.goto(f"{page.url.partition('#')[0]}#/plugins/orb")
    await page.reload()
    await page.locator("main canvas, main svg.orb, main .orb").first.wait_for()
    await shoot(page, "orb")


async def capture() -> None:
    """Take all pictures."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="shop-") as name:
        async with dashboard(Path(name)) as (hermes, _, link), chromium() as browser:
            context = await browser.new_context(
                viewport=WIDE, color_scheme="light", device_scale_factor=2
            )
            context.set_default_timeout(30_000)
            page = await context.new_page()
            await page.goto(link)
            await page.get_by_role("combobox", name="Message").wait_for()
            session = await chat(page)
            await phone(browser, page)
            await look_around(page, session, hermes)


def main() -> int:
    """Write the pictures."""
    asyncio.run(capture())
    return 0


if __name__ == "__main__":
    sys.exit(main())
