"""Terminals on the page: sizes, wide letters, floods, reloads and broken lines, phones, and those who may not."""

import asyncio
import inspect
import sys
import zlib
from collections.abc import AsyncIterator
from functools import reduce

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page
from tests.e2e.dashboard.conftest import PATIENCE, Board, Complaints, again, visiting
from tests.e2e.dashboard.test_access import found_by_axe

# Counts what comes over the line of a terminal, and lets a test break it.
SPY = """
window.spy = { bytes: 0, crc: -1, sockets: [] };
const table = Int32Array.from({ length: 256 }, (_, n) => {
  for (let k = 0; k < 8; k++) n = n & 1 ? (n >>> 1) ^ 0xedb88320 : n >>> 1;
  return n;
});
window.WebSocket = class extends WebSocket {
  constructor(address, ...rest) {
    super(address, ...rest);
    if (!String(address).includes("/api/pty")) return;
    spy.sockets.push(this);
    this.addEventListener("message", ({ data }) => {
      if (typeof data === "string") return;
      const bytes = new Uint8Array(data);
      let crc = spy.crc;
      for (let at = 0; at < bytes.length; at++) crc = (crc >>> 8) ^ table[(crc ^ bytes[at]) & 255];
      spy.crc = crc;
      spy.bytes += bytes.length;
    });
  }
};
"""
ROWS = "[...document.querySelectorAll('.xterm-rows > div')].map((row) => row.textContent.trimEnd()).join('\\n').trimEnd()"

# How many colours a picture has.
_COLOURS = """async (bytes) => {
    const picture = await createImageBitmap(new Blob([new Uint8Array(bytes)]));
    const canvas = new OffscreenCanvas(picture.width, picture.height).getContext("2d");
    canvas.drawImage(picture, 0, 0);
    const { data } = canvas.getImageData(0, 0, picture.width, picture.height);
    return new Set(new Uint32Array(data.buffer)).size;
}"""


def block(number: int, size: int) -> bytes:
    """So many bytes of text, in lines."""
    head = f"block {number:06d} \u00fc\u4f60\U0001f680\r\n".encode()
    line = b"." * 98 + b"\r\n"
    return (head + line * (size // 100))[: size - 2] + b"\r\n"


# Writes so many blocks once a key is pressed, and ends with another.
FLOOD = f"""
import os, sys, tty
{inspect.getsource(block)}
tty.setraw(0)
blocks, size = int(sys.argv[1]), int(sys.argv[2])
print("ready", end="", flush=True)
os.read(0, 1)
for number in range(blocks):
    left = memoryview(block(number, size))
    while left:
        left = left[os.write(1, left):]
os.write(1, b"last " + str(blocks).encode())
os.read(0, 1)
print("\\r\\nover\\r")
"""


async def _open_shell(page: Page) -> None:
    await page.add_init_script(SPY)
    await page.goto(page.url.partition("#")[0] + "#/terminal")
    await page.reload()
    await page.get_by_role("button", name="Open a shell").click()
    await page.wait_for_selector(".xterm-rows")
    await _run(page, "PS1='$ '; clear; echo re''ady")
    await _shows(page, "ready")


async def _focused(page: Page) -> None:
    """Waits until keys go to the terminal that is shown."""
    await page.wait_for_function(
        "() => document.activeElement?.classList.contains('xterm-helper-textarea')"
    )


async def _press(page: Page, key: str) -> None:
    await _focused(page)
    await page.keyboard.press(key)


async def _run(page: Page, command: str) -> None:
    await _focused(page)
    await page.keyboard.type(command + "\n")


async def _shows(page: Page, text: str) -> None:
    await page.wait_for_function(f"(text) => ({ROWS}).includes(text)", arg=text)


async def _drowned(page: Page, blocks: int, size: int) -> None:
    """Waits until the whole flood has been shown, and sees that no byte of it was wrong."""
    end = f"last {blocks}"
    crc = zlib.crc32(
        end.encode(),
        reduce(
            lambda crc, number: zlib.crc32(block(number, size), crc), range(blocks), 0
        ),
    )
    await page.wait_for_function(
        f"(end) => ({ROWS}).endsWith(end)", arg=end, timeout=4 * PATIENCE * 1000
    )
    assert await page.evaluate("[spy.bytes, (spy.crc ^ -1) >>> 0]") == [
        blocks * size + len(end),
        crc,
    ]


@pytest.fixture
def dashboard(shared: Board) -> Board:
    return shared


@pytest_asyncio.fixture(loop_scope="session")
async def page(visit: Page) -> AsyncIterator[Page]:
    """A page without terminals; those of a test end with it."""
    yield visit
    await visit.unroute_all()
    await visit.evaluate(
        "(async () => { const { terminals } = await (await fetch('/api/terminals')).json();"
        " for (const { id } of terminals) await fetch(`/api/terminals/${id}`, { method: 'DELETE' }); })()"
    )


@pytest_asyncio.fixture(loop_scope="session")
async def shell(page: Page, dashboard: Board) -> Page:
    """A page with a shell on it. `flood.py` lies in its folder."""
    (dashboard.hermes.work / "flood.py").write_text(FLOOD)
    await _open_shell(page)
    return page


async def _start_flood(page: Page, blocks: int, size: int) -> None:
    await _run(page, f"clear; {sys.executable} flood.py {blocks} {size}")
    await page.wait_for_function(f"() => ({ROWS}).endsWith('ready')")
    await page.evaluate("spy.bytes = 0, spy.crc = -1")
    await _press(page, "g")


async def test_the_size_follows_the_window_and_wide_letters_take_their_room(
    shell: Page, dashboard: Board
) -> None:
    for width, height in ((1280, 800), (900, 500)):
        await shell.set_viewport_size({"width": width, "height": height})
        await shell.wait_for_function(
            "(height) => document.querySelector('.xterm-screen').clientHeight < height",
            arg=height,
        )
        # The program learns of a new size a moment after the page has it, so it is asked until it has.
        async with asyncio.timeout(PATIENCE):
            asked, said, rows = 0, "", -1
            while f"size {rows} " not in said:
                asked += 1
                await _run(shell, f"clear; echo ask''ed {asked}, size $(stty size).")
                await _shows(shell, f"asked {asked}, size ")
                said, rows = await shell.evaluate(
                    f"[{ROWS}, document.querySelectorAll('.xterm-rows > div').length]"
                )
    code = (
        "import os, re, sys, tty\ntty.setraw(0)\n"
        "os.write(1, '\\r\\n你好👨\u200d👩\u200d👧é|\\x1b[6n'.encode())\nsaid = b''\n"
        "while not said.endswith(b'R'): said += os.read(0, 1)\n"
        "print('\\r\\ncolumn', re.findall(rb';(\\d+)R', said)[0].decode() + '.', end='\\r\\n')\n"
    )
    (dashboard.hermes.work / "where.py").write_text(code)
    await _run(shell, f"{sys.executable} where.py")
    await _shows(shell, "column 9.")
    await _shows(shell, "你好👨\u200d👩\u200d👧é|")


async def test_every_pixel_of_the_rows_is_seen(shell: Page) -> None:
    rows = await shell.evaluate("document.querySelectorAll('.xterm-rows > div').length")
    for size in (14, 11, 20):
        await shell.evaluate(
            "async (size) => (await import('/static/views/terminal/screen.js')).fontSize.set(size)",
            size,
        )
        await shell.wait_for_function(
            "(rows) => document.querySelectorAll('.xterm-rows > div').length !== rows",
            arg=rows if size != 14 else 0,
        )
        rows = await shell.evaluate(
            "document.querySelectorAll('.xterm-rows > div').length"
        )
        await _run(
            shell,
            f"clear; seq {rows}; echo ____''____; printf 'end o''f {size}'; read _",
        )
        await _shows(shell, f"end of {size}")
        hidden = await shell.evaluate(
            "[...document.querySelectorAll('.xterm-rows > div')].at(-1).getBoundingClientRect().bottom"
            " - document.querySelector('.terminal-place').getBoundingClientRect().bottom"
        )
        assert hidden <= 0
        row = shell.locator(".xterm-rows > div", has_text="________")
        assert await shell.evaluate(_COLOURS, list(await row.screenshot())) > 1
        await _press(shell, "Enter")


@pytest.mark.timeout(300)
async def test_twenty_megabytes_arrive_whole_and_the_page_stays_usable(
    shell: Page,
) -> None:
    await _start_flood(shell, 20, 1_000_000)
    await shell.wait_for_function("() => spy.bytes > 1e6")
    await shell.get_by_role("button", name="Options").click()
    await (
        shell.get_by_role("dialog", name="Terminal options")
        .get_by_role("button", name="Close")
        .click()
    )
    await _drowned(shell, 20, 1_000_000)
    await shell.locator(".xterm-helper-textarea").focus()
    await shell.keyboard.press("q")
    await _shows(shell, "over")


async def test_an_endless_flood_freezes_nothing_and_can_be_stopped(shell: Page) -> None:
    await _run(shell, "clear; yes endless")
    await shell.wait_for_function("() => spy.bytes > 3e6")
    await shell.get_by_role("link", name="Sessions").click()
    await shell.get_by_role("heading", name="Sessions").first.wait_for()
    await shell.get_by_role("link", name="Terminal").click()
    await _shows(shell, "endless")
    await _press(shell, "Control+c")
    await _run(shell, "clear; echo st''opped")
    await _shows(shell, "stopped")


async def test_a_line_that_breaks_again_and_again_loses_and_doubles_nothing(
    shell: Page,
) -> None:
    await _start_flood(shell, 20, 100_000)
    for step in range(1, 13):
        come = "(count) => spy.bytes >= count && spy.sockets.at(-1).readyState === WebSocket.OPEN"
        await shell.wait_for_function(come, arg=step * 150_000)
        await shell.evaluate("spy.sockets.at(-1).close()")
    await _drowned(shell, 20, 100_000)
    assert await shell.evaluate("spy.sockets.length") >= 12


async def test_a_reload_finds_everything_as_it_was(shell: Page) -> None:
    await _run(
        shell,
        "kept=treasure; clear; seq 1 200; printf '\\033]0;my title\\007\\033[6n'; cat -v",
    )
    await _shows(shell, "200")
    await _shows(shell, "R")  # the answer to the question where the cursor is
    await shell.wait_for_selector("role=tab[name='my title']")
    before = await shell.evaluate(ROWS)
    await shell.reload()
    await shell.wait_for_selector("role=tab[name='my title']")
    await _shows(shell, "200")
    await shell.wait_for_function(f"(before) => ({ROWS}) === before", arg=before)
    await _press(shell, "x")  # a second answer to the question would stand before it
    await shell.wait_for_function(f"(before) => ({ROWS}) === before + 'x'", arg=before)
    await _press(shell, "Control+c")
    await _run(shell, "clear; echo the $kept")
    await _shows(shell, "the treasure")


async def test_several_terminals_in_tabs_and_their_end(
    shell: Page, dashboard: Board
) -> None:
    await _run(shell, "clear; echo first")
    await _shows(shell, "first")
    await shell.locator(".terminal-head").get_by_role("button", name="Hermes").click()
    await _shows(shell, "/help for commands")
    tabs = shell.get_by_role("tab")
    assert await tabs.count() == 2
    assert await found_by_axe(shell) == []
    await shell.keyboard.press("Control+Shift+X")
    await shell.keyboard.press("ArrowLeft")
    await _shows(shell, "first")
    await shell.keyboard.press("Enter")
    await _press(shell, "Control+c")
    await _run(shell, "exit 3")
    await shell.get_by_text("The program has ended with exit code 3.").wait_for()
    await shell.get_by_role("button", name="Close").click()
    await _shows(shell, "/help for commands")
    assert await tabs.count() == 1
    await shell.get_by_role("button", name="End this terminal").click()
    await shell.get_by_role("button", name="End terminal").click()
    await shell.get_by_text("No terminal is open").wait_for()


async def test_a_phone_has_the_keys_it_lacks(
    browser: Browser, dashboard: Board, complaints: Complaints
) -> None:
    size = {"width": 360, "height": 740}
    async with again(
        browser, dashboard, complaints, viewport=size, has_touch=True
    ) as page:
        await _open_shell(page)
        await _run(page, "clear; sleep 1000; echo g''one on")
        await page.get_by_role("button", name="Ctrl", exact=True).tap()
        await page.keyboard.type("c")
        await page.get_by_role("button", name="Arrow up").tap()
        await _shows(page, "sleep 1000; echo g''one on")
        assert await page.evaluate("document.documentElement.scrollWidth") <= 360
        assert await found_by_axe(page) == []
        await page.get_by_role("button", name="End this terminal").tap()
        await page.get_by_role("button", name="End terminal").tap()
        await page.get_by_text("No terminal is open").wait_for()


async def test_two_pages_of_different_sizes_show_the_same_and_one_of_them_answers(
    shell: Page, browser: Browser, dashboard: Board, complaints: Complaints
) -> None:
    small = {"width": 700, "height": 420}
    count = "document.querySelectorAll('.xterm-rows > div').length"
    before = await shell.evaluate(count)
    async with again(browser, dashboard, complaints, viewport=small) as other:
        await other.goto(shell.url)
        await _shows(other, "ready")
        await shell.wait_for_function(f"(before) => {count} < before", arg=before)
        assert await shell.evaluate(count) == await other.evaluate(count)
        await _run(shell, "clear; printf '\\033[6n'; cat -v")
        await shell.wait_for_function(f"(before) => {count} === before", arg=before)
        for page in (shell, other):
            await _shows(page, "R")
            assert (await page.evaluate(ROWS)).count("R") == 1
        await shell.keyboard.press("Control+c")


async def test_where_there_are_no_terminals_that_is_said(page: Page) -> None:
    answer = '{"available": false, "reason": "This system has no pseudo-terminals.", "terminals": []}'
    await page.route(
        "**/api/terminals",
        lambda route: route.fulfill(body=answer, content_type="application/json"),
    )
    await page.goto(page.url.partition("#")[0] + "#/terminal")
    await page.get_by_role("alert").filter(has_text="no pseudo-terminals").wait_for()


async def test_the_theme_follows_the_page(shell: Page) -> None:
    colour = "getComputedStyle(document.querySelector('.xterm-rows')).color"
    light = await shell.evaluate(colour)
    await shell.emulate_media(color_scheme="dark")
    await shell.wait_for_function(f"(light) => {colour} !== light", arg=light)


async def test_who_may_not_use_terminals_is_told_why(
    browser: Browser, dashboard: Board, complaints: Complaints
) -> None:
    token = (
        await dashboard.hermes.run("dashboard", "--print-token", "--scope", "observe")
    ).out.strip()
    headers = {"Authorization": f"Bearer {token}"}
    async with visiting(
        browser, dashboard.url, complaints, extra_http_headers=headers
    ) as page:
        await page.goto(f"{dashboard.url}/#/terminal")
        await page.get_by_text(
            "This browser is not allowed to use terminals"
        ).wait_for()
        assert await page.get_by_role("link", name="Terminal").count() == 0
        complaints.expect("403")
