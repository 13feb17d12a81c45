"""For everybody: by keyboard alone, on a phone, with a screen reader; and nothing hostile in a text does anything."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Locator, Page, expect
from tests.e2e.dashboard.chatting import box, rests, say, width
from tests.e2e.dashboard.conftest import Board, Complaints, again
from tests.e2e.dashboard.walking import go

from hermes.testing.scripted_responses import ScriptedResponse, ServedCall, ServerFault

AXE = (
    Path(__file__).resolve().parents[2]
    / "data"
    / "vendor"
    / "axe-core-4.14.0"
    / "axe.min.js"
)
WIDE = f"""\
A {"very" * 60}longword and `{"code" * 50}`

| {" | ".join(f"column {number}" for number in range(12))} |
|{"---|" * 12}
| {" | ".join("cell" for _ in range(12))} |

```python
{"print('a long line'); " * 12}
```
"""
HOSTILE = """\
<img src=x onerror="window.hacked=1"> <script>window.hacked=1</script> <svg/onload=window.hacked=1>

[click](javascript:window.hacked=1) [tabbed](java\tscript:window.hacked=1)
[data](data:text/html,<script>window.hacked=1</script>)
[entity](&#106;avascript:window.hacked=1) <javascript:window.hacked=1> ![pixel](https://evil.example/pixel.png "x")

<details open ontoggle=window.hacked=1><summary>s</summary></details>

```html
<img src=x onerror="window.hacked=1">
```

| <img src=x onerror=window.hacked=1> |
|---|
| <iframe src="javascript:window.hacked=1"> |
"""


@pytest.fixture
def dashboard(shared: Board) -> Board:
    return shared


@pytest.fixture
def page(visit: Page) -> Page:
    return visit


def change(board: Board, name: str) -> tuple[ScriptedResponse, str]:
    arguments = {"path": name, "content": f"{'wide ' * 60}\nline\n"}
    return ScriptedResponse(
        text="I write it.", calls=(ServedCall("write_file", json.dumps(arguments)),)
    ), WIDE


_AT_REST = """() => Promise.all(document.getAnimations()
  .filter((one) => one.effect.getComputedTiming().endTime !== Infinity)
  .map((one) => one.finished.catch(() => null)))"""


async def found_by_axe(page: Page) -> list[str]:
    """Serious problems of the page as it is, once what moves for a moment has come to rest.

    A list that is drawn again while axe looks has elements without text for it, so what it finds must last.
    """
    return await _found_once(page) and await _found_once(page)


async def _found_once(page: Page) -> list[str]:
    await page.evaluate(_AT_REST)
    if not await page.evaluate("'axe' in window"):
        await page.evaluate(AXE.read_text())
    found: dict[str, Any] = await page.evaluate(
        "axe.run(document, {resultTypes: ['violations']})"
    )
    return [
        f"{one['id']}: {node['html'][:200]} {node['any'][0]['message'] if node['any'] else ''}"
        for one in found["violations"]
        if one["impact"] in {"serious", "critical"}
        for node in one["nodes"]
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_axe_finds_nothing_serious_and_a_phone_never_scrolls_sideways(
    scheme: Any, browser: Browser, shared: Board, complaints: Complaints
) -> None:
    shared.forget()
    view = {"width": 360, "height": 740}
    async with again(
        browser, shared, complaints, viewport=view, color_scheme=scheme, has_touch=True
    ) as page:
        # A new chat has no menu, so what is chosen for it is in sight.
        await expect(page.get_by_role("button", name="Approvals: Ask")).to_be_visible()
        assert await width(page) <= 360
        assert await found_by_axe(page) == []
        shared.says(*change(shared, f"{scheme}.txt"))
        await say(page, "write something wide: " + "w" * 300)
        await expect(page.get_by_role("button", name="Allow once")).to_be_visible()
        assert await width(page) <= 360
        assert await found_by_axe(page) == []
        await page.get_by_role("button", name="Allow once").click()
        await rests(page, 1)
        for head in await page.locator(".tool-head").all():
            await head.click()
        assert await width(page) <= 360
        assert await found_by_axe(page) == []
        await page.get_by_role("button", name="Sessions").click()
        await expect(
            page.get_by_role("navigation", name="Recent sessions")
        ).to_be_visible()
        assert await found_by_axe(page) == []
        await page.get_by_role("button", name="Close the list").click()
        await page.get_by_role("button", name="More", exact=True).first.click()
        await expect(page.get_by_role("dialog")).to_be_visible()
        assert await found_by_axe(page) == []
        await page.keyboard.press("Escape")
        await page.set_viewport_size({"width": 1440, "height": 900})
        assert await found_by_axe(page) == []
        await page.evaluate("document.body.append(document.createElement('button'))")
        assert [one.partition(":")[0] for one in await found_by_axe(page)] == [
            "button-name"
        ]  # it does look


async def test_by_keyboard_alone(page: Page, dashboard: Board) -> None:
    """A new chat, an approval, another message, the palette: without a pointer."""
    dashboard.says(*change(dashboard, "keys.txt"), "And the second.")
    await page.keyboard.press("Control+k")
    await expect(page.get_by_role("combobox", name="Find a command")).to_be_focused()
    await page.keyboard.type("new chat")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await page.evaluate("document.activeElement.blur()")
    await page.keyboard.type("write it")
    await expect(box(page)).to_have_value("write it")
    await page.keyboard.press("Enter")
    allow = page.get_by_role("button", name="Allow once")
    await expect(allow).to_be_visible()
    for _ in range(60):
        if await allow.evaluate("element => element === document.activeElement"):
            break
        await page.keyboard.press("Shift+Tab")
    await expect(allow).to_be_focused()
    outline = await allow.evaluate("element => getComputedStyle(element).outlineStyle")
    assert outline != "none"
    await page.keyboard.press("Enter")
    await rests(page, 1)
    assert (dashboard.hermes.work / "keys.txt").exists()
    await page.evaluate("document.activeElement.blur()")
    await page.keyboard.type("and another")
    await page.keyboard.press("Enter")
    await rests(page, 2)
    await page.evaluate("document.activeElement.blur()")
    await page.keyboard.press("Alt+c")
    await expect(page).to_have_url(re.compile(r"#/chat$"))


async def test_hostile_text_does_nothing_anywhere(page: Page, dashboard: Board) -> None:
    name = "<img src=x onerror=window.hacked=1>.txt"
    (dashboard.hermes.work / name).write_text(HOSTILE)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    call = ServedCall("read_file", json.dumps({"path": name}))
    dashboard.says(
        ScriptedResponse(text=HOSTILE, reasoning=HOSTILE, calls=(call,)), HOSTILE
    )
    await say(page, HOSTILE.replace("\n", " "))
    await rests(page, 1)
    await say(page, f"/title {HOSTILE.splitlines()[0]}")
    await expect(page.get_by_role("heading", level=1)).to_contain_text(
        "<img src=x onerror="
    )
    await page.locator(".tool-head").click()
    await expect(page.locator(".tool")).to_contain_text("onerror=")
    await box(page).fill("look at @<im")
    await box(page).press("g")
    await expect(page.get_by_role("option", name=name)).to_be_visible()
    for kind in ("click", "tabbed", "data", "entity"):
        assert await page.get_by_role("link", name=kind).count() == 0
    await expect(
        page.locator(
            ".message.assistant", has_text="<script>window.hacked=1</script>"
        ).first
    ).to_be_visible()
    assert await page.evaluate("window.hacked") is None
    assert (
        await page.locator(
            "#main :is(script, iframe, svg[onload], [onerror], [ontoggle])"
        ).count()
        == 0
    )
    hrefs = await page.locator("a").evaluate_all(
        "links => links.map(link => link.getAttribute('href'))"
    )
    assert [href for href in hrefs if not re.match(r"(#|https?:|/)", href)] == []
    assert [url for url in asked if not url.startswith(dashboard.url)] == []


async def test_the_focus_stays_near_what_was_done(page: Page, dashboard: Board) -> None:
    """Whatever an action takes off the page, the next Tab goes on from there."""
    endless = ScriptedResponse(
        text="on and on " * 40, delay=0.05, fault=ServerFault(hang="middle")
    )
    dashboard.says(*change(dashboard, "focus.txt"), endless)
    await say(page, "write it")
    await _press(page.get_by_role("button", name="Allow once"))
    await expect(box(page)).to_be_focused()
    await rests(page, 1)
    await say(page, "and talk")
    await expect(page.locator(".message.live")).to_contain_text("on and on")
    await say(page, "a message that waits")
    await _press(page.get_by_role("button", name="Remove from the queue"))
    await expect(box(page)).to_be_focused()
    await _press(page.get_by_role("button", name="Stop"))
    await expect(page.get_by_text("Stopped.")).to_be_visible()
    await expect(box(page)).to_be_focused()
    changes = page.get_by_role("button", name="changes").first
    await _press(changes)
    await expect(page.get_by_role("dialog")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(changes).to_be_focused()
    await go(page, "/sessions")
    await _press(page.locator(".session-main").first)
    await expect(page.locator("#main")).to_be_focused()
    await _press(page.get_by_role("button", name="Delete"))
    await _press(page.get_by_role("dialog").get_by_role("button", name="Delete"))
    await expect(page).to_have_url(re.compile(r"#/sessions$"))
    await expect(page.locator("#main")).to_be_focused()


async def test_the_focus_never_goes_to_the_answers_of_another_question(
    page: Page,
) -> None:
    """Enter pressed twice by a hurried hand must not allow a second call."""
    await go(page, "/sessions")
    found = await page.evaluate(
        """async () => {
            const box = document.createElement("div");
            box.innerHTML = '<p><button id="answered">No</button></p><div class="asking"><button id="next">Yes</button></div>';
            document.querySelector("#main > *").append(box);
            const answered = document.getElementById("answered");
            answered.focus();
            answered.remove();
            const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
            for (let tries = 0; tries < 200 && document.activeElement === document.body; tries++) await frame();
            const found = document.activeElement;
            box.remove();
            return [found === document.body, found.id];
        }"""
    )
    assert found[0] is False
    assert found[1] != "next"


async def _press(control: Locator) -> None:
    await control.focus()
    await control.press("Enter")
