"""A session of 2,000 turns and a home of 5,000 sessions: how soon they are there, also on a slow line."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from playwright.async_api import Browser, Page

from benchmarks.page.running_dashboard import PageHost
from hermes.app import App, build
from hermes.schema.events import SessionCreated, SessionTitled, TurnEnded, TurnStarted
from hermes.schema.messages import AssistantMessage, UserMessage
from hermes.settings import Home, Settings

TURNS = 2_000
SESSIONS = 5_000
SLOW_BYTES_PER_S = 200_000
PROXY_PORT = 39_117
VISITS = 5
WRITERS = 16
BARS = {
    "chat of 2,000 turns": (1000.0, "ms"),
    "timeline of 2,000 turns": (1000.0, "ms"),
    "chat of 2,000 turns, 200 KB/s": (3000.0, "ms"),
    "timeline of 2,000 turns, 200 KB/s": (3000.0, "ms"),
    "5,000 sessions listed": (300.0, "ms"),
    "5,000 sessions searched": (300.0, "ms"),
}
_LONG = "long session"
_NO_LIST = "body:not(:has(.session-main, .hit))"
_PATIENCE_S = 60.0


def write_past(home: Path) -> None:
    """Writes the sessions, many at a time, so that they share their commits."""
    config = home / "config.yaml"
    proxy = f'dashboard:\n  public_urls: ["http://127.0.0.1:{PROXY_PORT}"]\n'
    config.write_text(config.read_text() + proxy)
    with build(Settings(), Home(home)) as app, ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(partial(_short, app), range(SESSIONS)))
        _long(app)


def _short(app: App, number: int) -> None:
    session = app.begin(SessionCreated(surface="tui", cwd="/work")).session
    title = SessionTitled(title=f"Session {number} about topic{number % 50}", by="user")
    app.record(session, title, UserMessage(text=f"a question about needle{number}"))


def _long(app: App) -> None:
    session = app.begin(SessionCreated(surface="tui", cwd="/work")).session
    app.record(session, SessionTitled(title=_LONG, by="user"))
    seq = 2
    for number in range(TURNS):
        events = (
            UserMessage(text=f"question {number}: what about this part?"),
            TurnStarted(inputs=(seq + 1,)),
            AssistantMessage(text=f"Answer {number}, with **some** words and `code`."),
            TurnEnded(reason="done"),
        )
        app.record(session, *events, turn=f"t{number}")
        seq += len(events)


@asynccontextmanager
async def _slow_line(target: str) -> AsyncIterator[str]:
    """A proxy that passes on so many bytes a second to each browser."""
    address = urlsplit(target)

    async def copy(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, bytes_per_s: int
    ) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(8_192):
                writer.write(data)
                await writer.drain()
                if bytes_per_s:
                    await asyncio.sleep(len(data) / bytes_per_s)
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        back = await asyncio.open_connection(address.hostname, address.port)
        await asyncio.gather(
            copy(reader, back[1], 0), copy(back[0], writer, SLOW_BYTES_PER_S)
        )

    server = await asyncio.start_server(serve, "127.0.0.1", PROXY_PORT)
    async with server:
        yield f"http://127.0.0.1:{PROXY_PORT}/"


async def _timed(show: Callable[[], Coroutine[object, object, object]]) -> float:
    begun = time.monotonic()
    await asyncio.wait_for(show(), _PATIENCE_S)
    return 1000 * (time.monotonic() - begun)


async def opened_ms(page: Page, path: str, ready: str) -> float:
    """Milliseconds until a view that was just chosen shows something."""
    return await _timed(
        lambda: page.evaluate(
            """([path, ready]) => new Promise((done) => {
                location.hash = path;
                const look = () => document.querySelector(ready) ? done() : requestAnimationFrame(look);
                look();
            })""",
            [path, ready],
        )
    )


async def _long_session(
    browser: Browser, host: PageHost, url: str, session: str
) -> tuple[float, float]:
    """Chat and timeline of the long session, in a page that is open already."""
    chats: list[float] = []
    timelines: list[float] = []
    for _ in range(VISITS):
        context = await browser.new_context(storage_state=host.state)
        page = await context.new_page()
        await page.goto(f"{url}#/sessions")
        await page.wait_for_selector(".session-main")
        chats.append(
            await opened_ms(
                page, f"/chat/{session}", ".transcript .item:nth-of-type(20)"
            )
        )
        timelines.append(await opened_ms(page, f"/sessions/{session}", ".step-row"))
        await context.close()
    return sorted(chats)[VISITS // 2], sorted(timelines)[VISITS // 2]


async def measure_lists(browser: Browser, host: PageHost) -> dict[str, float]:
    """The figures; medians of several visits."""
    context = await browser.new_context(storage_state=host.state)
    page = await context.new_page()
    await page.goto(f"{host.url}#/settings")
    await page.wait_for_selector("h1")
    found = await page.request.get(f"{host.url}api/search?q=long")
    session = (await found.json())["sessions"][0]["id"]
    listed = sorted([await _list(page) for _ in range(VISITS)])[VISITS // 2]
    searched = sorted([await _search(page, number) for number in range(VISITS)])
    await context.close()
    chat, timeline = await _long_session(browser, host, host.url, session)
    async with _slow_line(host.url) as slow:
        slow_chat, slow_timeline = await _long_session(browser, host, slow, session)
    figures = (chat, timeline, slow_chat, slow_timeline, listed, searched[VISITS // 2])
    return dict(zip(BARS, figures, strict=True))


async def _list(page: Page) -> float:
    await opened_ms(page, "/settings", _NO_LIST)
    return await opened_ms(page, "/sessions", ".session-main")


async def _search(page: Page, number: int) -> float:
    await opened_ms(page, "/settings", _NO_LIST)
    words = f"needle{4_000 + number}"
    return await opened_ms(page, f"/sessions?q={words}", ".hit")
