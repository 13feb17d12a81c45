"""The browser tools with a real Chromium and real servers on loopback."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import pytest
import pytest_asyncio
from tests.fakes.web_server import Asked, Handler, Page, Raw, WebServer, web_server
from tests.integration.test_tools_images import png

from hermes.app.picture_tools import NoPictureLooker
from hermes.core.ports import ToolContext
from hermes.errors import ToolFailed
from hermes.media.picture_folder import PictureFolder
from hermes.media.vision import BrowserVision
from hermes.schema.tool_spec import ToolResult
from hermes.settings import Secrets
from hermes.settings.load import environment
from hermes.settings.tools import BrowserSettings, WebSettings
from hermes.tools.browser.browser_tools import BrowserTools
from hermes.tools.browser.executable import find_browser
from hermes.tools.policy.rule_file import host_rule
from hermes.tools.process.long_output import OutputFolder

FORM = """<title>Form</title><h1>Hello</h1><p id=out>nothing yet</p>
<form action=/sent method=get><label>Name <input name=name></label>
<label>Colour <select name=colour><option value=r>Red<option value=b>Blue</select></label></form>
<button onclick="document.getElementById('out').textContent = 'it was clicked'">Press</button>
<a href="/second">Second page</a>"""

OWN_PASSWORD = "correct-horse"  # noqa: S105 - made up
pytestmark = [
    pytest.mark.usefixtures("chromium"),
    pytest.mark.asyncio(loop_scope="module"),
]


async def _every_name_is_loopback(host: str, port: int) -> Sequence[str]:
    return ("127.0.0.1",)


class Driving:
    """The tools, called as a session would."""

    def __init__(
        self, folder: Path, allowed: Sequence[str], settings: BrowserSettings
    ) -> None:
        self._home = folder
        web = WebSettings(allow_hosts=tuple(allowed))
        self.owner = BrowserTools(
            settings,
            web,
            OutputFolder(folder / "outputs"),
            environment(),
            _every_name_is_loopback,
            secrets=Secrets({"MAIL_PASSWORD": OWN_PASSWORD}, {}),
            rule=host_rule(folder),
        )
        seeing = BrowserVision(
            self.owner, PictureFolder(folder / "pictures"), NoPictureLooker()
        )
        tools = (*self.owner.tools, seeing.browser_vision)
        self._tools = {tool.spec.name: tool for tool in tools}
        self._context = ToolContext("c", "s", folder, lambda text: None)

    def rule(self, host: str, title: str) -> None:
        """Makes `policy.yaml` say nothing but this."""
        (self._home / "policy.yaml").write_text(f"{title}: [{{host: {host}}}]\n")

    async def __call__(
        self, name: str, arguments: Mapping[str, Any] | None = None
    ) -> ToolResult:
        return await self._tools[f"browser_{name}"].run(arguments or {}, self._context)


@asynccontextmanager
async def driven(
    handler: Handler, folder: Path, settings: BrowserSettings | None = None
) -> AsyncIterator[tuple[WebServer, Driving]]:
    async with web_server(handler) as server:
        drive = Driving(
            folder, (f"127.0.0.1:{server.port}",), settings or BrowserSettings()
        )
        try:
            yield server, drive
        finally:
            await drive.owner.close()


Serve: TypeAlias = Callable[[Handler], tuple[WebServer, Driving]]


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def serve(
    tmp_path_factory: pytest.TempPathFactory, chromium: Path
) -> AsyncIterator[Serve]:
    """Gives a server with the pages of a test, and a browser that other tests have used before."""
    pages: list[Handler] = []

    def with_pages(new: Handler) -> tuple[WebServer, Driving]:
        pages.append(new)
        server.asked.clear()
        return server, drive

    def answer(asked: Asked) -> Page | Raw:
        return pages[-1](asked)

    folder = tmp_path_factory.mktemp("shared")
    async with driven(answer, folder) as (server, drive):
        yield with_pages


def ref_of(text: str, label: str) -> str:
    """The reference of the element whose line holds `label`."""
    line = next(line for line in text.splitlines() if label in line)
    return line.partition("[ref=")[2].partition("]")[0]


def form(asked: Asked) -> Page:
    pages = {"/": FORM, "/second": "<title>Two</title><p>the second page</p>"}
    return Page(
        pages.get(asked.target, f"<title>Sent</title><p>got {asked.target}</p>")
    )


async def test_a_page_is_opened_read_clicked_filled_and_left(serve: Serve) -> None:
    server, drive = serve(form)
    opened = await drive("navigate", {"url": server.url})
    assert opened.source == f"{server.url}/"
    assert "Page: Form" in opened.text
    assert 'heading "Hello"' in opened.text
    clicked = await drive("click", {"ref": ref_of(opened.text, 'button "Press"')})
    assert "it was clicked" in clicked.text
    chosen = await drive(
        "select",
        {"ref": ref_of(clicked.text, 'combobox "Colour"'), "option": "Blue"},
    )
    typed = {
        "ref": ref_of(chosen.text, 'textbox "Name"'),
        "text": "Ada",
        "submit": True,
    }
    sent = await drive("type", typed)
    assert "got /sent?name=Ada&colour=b" in sent.text
    assert "Page: Form" in (await drive("back")).text
    second = await drive(
        "click", {"ref": ref_of((await drive("snapshot")).text, "Second page")}
    )
    assert "the second page" in second.text
    # Chromium itself asks nobody about the forms of a page; a refused request would be told
    seen = (opened, clicked, chosen, sent, second)
    assert not any("googleapis" in one.text for one in seen)


async def test_whoever_decides_is_told_which_element_of_which_page(
    tmp_path: Path,
) -> None:
    async with driven(form, tmp_path) as (server, drive):
        click = drive.owner.browser_click
        assert click.describe({"ref": "e2"}) == ""
        opened = await drive("navigate", {"url": server.url})
        ref = ref_of(opened.text, 'button "Press"')
        for tool in (click, drive.owner.browser_type, drive.owner.browser_select):
            assert tool.describe({"ref": ref}) == f'button "Press" on {server.url}/'
        assert (
            click.describe({"ref": "e999"})
            == f"an element that was not shown on {server.url}/"
        )
        assert click.describe({}) == f"an element that was not shown on {server.url}/"


TURNS = """<title>Turns</title><button onclick="document.title='clicked'">Show more</button>
<script>window.turn = () => { document.querySelector('button').textContent = 'Delete everything' }</script>"""


async def test_an_element_that_became_another_one_is_not_clicked(serve: Serve) -> None:
    server, drive = serve(lambda asked: Page(TURNS))
    opened = await drive("navigate", {"url": server.url})
    async with drive.owner._session.page() as page:
        await page.evaluate("window.turn()")
    with pytest.raises(ToolFailed, match="has changed since the page"):
        await drive("click", {"ref": ref_of(opened.text, "Show more")})
    seen = await drive("snapshot")
    assert "Page: Turns" in seen.text
    assert (
        "Page: clicked"
        in (await drive("click", {"ref": ref_of(seen.text, "Delete everything")})).text
    )


async def test_a_screenshot_is_a_picture(serve: Serve) -> None:
    server, drive = serve(form)
    await drive("navigate", {"url": server.url})
    result = await drive("vision")
    image = result.images[0]
    assert image.media_type == "image/jpeg"
    assert (await asyncio.to_thread(Path(image.source).read_bytes)).startswith(
        b"\xff\xd8\xff"
    )


async def test_keys_pictures_and_the_console(serve: Serve) -> None:
    page = """<title>Keys</title><img src=/dot.png alt="a dot"><p id=out>waiting</p><script>
    console.log("hello from the page"); setTimeout(() => { throw new Error("it broke") }, 0);
    addEventListener("keydown", pressed => out.textContent = "pressed " + pressed.key)</script>"""

    def handler(asked: Asked) -> Page:
        if asked.target == "/dot.png":
            return Page(png(4, 3), headers={"Content-Type": "image/png"})
        return Page(page)

    server, drive = serve(handler)
    await drive("navigate", {"url": server.url})
    press = drive.owner.browser_press
    assert press.effect == "other"
    assert press.describe({"key": "Enter"}) == f"on {server.url}/"
    assert "pressed Escape" in (await drive("press", {"key": "Escape"})).text
    with pytest.raises(ToolFailed, match="Unknown key"):
        await drive("press", {"key": "Nonsense"})
    images = await drive("get_images")
    assert images.text == f"{server.url}/dot.png (4 x 3) a dot"
    assert images.source == f"{server.url}/"
    said = (await drive("console")).text
    assert "log: hello from the page" in said
    assert "exception: it broke" in said
    assert (await drive("console")).text == "(nothing)"


async def test_the_tools_are_there_only_if_a_browser_is(tmp_path: Path) -> None:
    assert find_browser("", environment())
    assert find_browser(str(tmp_path / "none"), environment()) == ""
    assert (
        find_browser("", {"PATH": str(tmp_path), "PLAYWRIGHT_BROWSERS_PATH": "/x"})
        == ""
    )


async def test_scrolling_shows_what_loads_only_then(serve: Serve) -> None:
    page = """<div style="height:3000px">top</div><p id=end>bottom</p>
    <script>addEventListener("scroll", () => document.getElementById("end").textContent = "scrolled")</script>"""
    server, drive = serve(lambda asked: Page(page))
    await drive("navigate", {"url": server.url})
    result = await drive("scroll")
    async with asyncio.timeout(20):
        while "scrolled" not in result.text:
            result = await drive("scroll")


async def test_what_the_gate_refuses_no_part_of_a_page_reaches(serve: Serve) -> None:
    """A picture, a script's request, a frame, a socket and a redirect all lead to a server that was not allowed."""
    async with web_server(lambda asked: Page("inner secret")) as inner:
        page = f"""<title>Trap</title><img src="{inner.url}/img"><iframe src="{inner.url}/frame"></iframe>
        <img src="/redirect"><script>
        fetch("{inner.url}/fetch", {{mode: "no-cors"}}).catch(() => document.title = "fetch failed");
        new WebSocket("ws://127.0.0.1:{inner.port}/socket");
        navigator.sendBeacon("{inner.url}/beacon", "x");</script>"""

        def handler(asked: Asked) -> Page:
            if asked.target == "/redirect":
                return Page(status=302, headers={"Location": f"{inner.url}/redirected"})
            return Page(page)

        server, drive = serve(handler)
        text = (await drive("navigate", {"url": server.url})).text
        async with asyncio.timeout(20):
            while "was not contacted" not in text or {"/redirect"} - {
                asked.target for asked in server.asked
            }:
                text += (await drive("snapshot")).text
        assert "inner secret" not in text
        assert inner.asked == []


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/",
        "http://localhost:8080/",
        "file:///etc/passwd",
        "chrome://version",
    ],
)
async def test_private_places_and_other_schemes_are_refused_before_a_browser_starts(
    tmp_path: Path, url: str
) -> None:
    drive = Driving(tmp_path, (), BrowserSettings(executable="/bin/false"))
    with pytest.raises(ToolFailed, match=r"was not contacted|can't be fetched"):
        await drive("navigate", {"url": url})


async def test_a_redirect_of_the_page_itself_is_refused(serve: Serve) -> None:
    async with web_server(lambda asked: Page("inner secret")) as inner:
        redirect = Page(status=302, headers={"Location": inner.url})
        server, drive = serve(lambda asked: redirect)
        result = await drive("navigate", {"url": server.url})
        assert "was not contacted" in result.text
        assert "inner secret" not in result.text
        assert inner.asked == []


_LEADS = """<title>Harmless</title><a href="{url}/clicked">Go on</a><script>
setTimeout(() => { if (location.search === "?script") location = "{url}/script" }, 50)</script>"""


@asynccontextmanager
async def leading(folder: Path, rule: str) -> AsyncIterator[tuple[WebServer, Driving]]:
    """A page that leads to a host for which `policy.yaml` has a rule: by a redirect, by a link, by a script."""

    def handler(asked: Asked) -> Page:
        inner = f"http://secret.example:{server.port}"
        if asked.headers["host"].startswith("secret.example"):
            return Page("<title>Inner</title>inner secret")
        if asked.target == "/redirect":
            return Page(status=302, headers={"Location": f"{inner}/redirected"})
        return Page(_LEADS.replace("{url}", inner))

    async with web_server(handler) as server:
        hosts = [f"{name}.example:{server.port}" for name in ("open", "secret")]
        drive = Driving(folder, hosts, BrowserSettings())
        drive.rule("secret.example", rule)
        try:
            yield server, drive
        finally:
            await drive.owner.close()


async def _go_on(drive: Driving, url: str, *, clicks: bool) -> None:
    """Opens a page and waits until it has led to the other host."""
    text = (await drive("navigate", {"url": url})).text
    if clicks:
        await drive("click", {"ref": ref_of(text, "Go on")})
    async with asyncio.timeout(20):
        while "inner secret" not in text:
            text = (await drive("snapshot")).text


@pytest.mark.parametrize("rule", ["forbid", "ask"])
async def test_a_page_can_not_lead_past_the_rules_about_hosts(
    tmp_path: Path, rule: str
) -> None:
    async with leading(tmp_path, rule) as (server, drive):
        url = f"http://open.example:{server.port}/"
        for way in ("redirect", "?script", "click"):
            path = "" if way == "click" else way
            with pytest.raises(ToolFailed, match=r"secret\.example.*policy\.yaml"):
                await _go_on(drive, f"{url}{path}", clicks=way == "click")
        hosts = {asked.headers["host"] for asked in server.asked}
    assert hosts == {f"open.example:{server.port}"}


async def test_a_host_to_ask_about_opens_when_the_call_names_it(tmp_path: Path) -> None:
    async with leading(tmp_path, "ask") as (server, drive):
        url = f"http://secret.example:{server.port}/"
        assert "inner secret" in (await drive("navigate", {"url": url})).text


async def test_a_page_that_is_open_when_its_host_is_forbidden_shows_nothing_more(
    tmp_path: Path,
) -> None:
    async with leading(tmp_path, "network") as (server, drive):
        await drive("navigate", {"url": f"http://secret.example:{server.port}/"})
        drive.rule("secret.example", "forbid")
        for name in ("snapshot", "get_images", "console", "vision"):
            with pytest.raises(ToolFailed, match=r"policy\.yaml forbids its host"):
                await drive(name)


async def test_names_are_resolved_by_the_gate_alone(tmp_path: Path) -> None:
    asked: list[str] = []

    async def resolver(host: str, port: int) -> Sequence[str]:
        asked.append(host)
        return ("127.0.0.1",)

    async with web_server(
        lambda request: Page(f"<p>for {request.headers['host']}")
    ) as server:
        web = WebSettings(allow_hosts=(f"app.example:{server.port}",))
        owner = BrowserTools(
            BrowserSettings(),
            web,
            OutputFolder(tmp_path),
            environment(),
            resolver,
            secrets=Secrets({}, {}),
        )
        try:
            context = ToolContext("c", "s", tmp_path, lambda text: None)
            result = await owner.browser_navigate.run(
                {"url": f"http://app.example:{server.port}/"}, context
            )
        finally:
            await owner.close()
        assert f"for app.example:{server.port}" in result.text
        assert set(asked) == {"app.example"}


async def test_dialogs_and_downloads_are_refused_and_told(serve: Serve) -> None:
    def handler(asked: Asked) -> Page:
        if asked.target == "/file":
            return Page(
                "data", headers={"Content-Disposition": "attachment; filename=evil.sh"}
            )
        return Page(
            "<p>start</p><script>alert('look here')</script><a href=/file>Load</a>"
        )

    server, drive = serve(handler)
    opened = await drive("navigate", {"url": server.url})
    assert "dismissed: look here" in opened.text
    result = await drive("click", {"ref": ref_of(opened.text, 'link "Load"')})
    async with asyncio.timeout(20):
        while "A download was refused: evil.sh" not in result.text:
            result = await drive("snapshot")


async def test_a_step_without_a_page_or_with_a_wrong_ref_says_what_to_do(
    tmp_path: Path,
) -> None:
    async with driven(form, tmp_path, BrowserSettings(timeout=6)) as (server, drive):
        with pytest.raises(ToolFailed, match="No page is open") as problem:
            await drive("snapshot")
        assert "browser_navigate" in problem.value.hint
        opened = await drive("navigate", {"url": server.url})
        assert "Form" in opened.text
        with pytest.raises(ToolFailed, match="not an element reference"):
            await drive("click", {"ref": "button >> nth=0"})
        with pytest.raises(ToolFailed, match="could not do that"):
            await drive("click", {"ref": "e9999"})


async def test_a_page_that_never_answers_is_given_up(tmp_path: Path) -> None:
    async def silent(writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    async with driven(lambda asked: silent, tmp_path, BrowserSettings(timeout=6)) as (
        server,
        drive,
    ):
        with pytest.raises(ToolFailed, match="Timeout"):
            await drive("navigate", {"url": server.url})


async def test_a_page_that_loops_for_ever_ends_with_the_browser(tmp_path: Path) -> None:
    page = Page(
        "<title>Loop</title><script>setTimeout(() => { while (true) {} }, 0)</script>"
    )
    async with driven(lambda asked: page, tmp_path, BrowserSettings(timeout=2)) as (
        server,
        drive,
    ):
        with pytest.raises(ToolFailed, match=r"did not answer|Timeout"):
            await drive("navigate", {"url": server.url})


async def test_a_browser_that_was_killed_is_started_again(tmp_path: Path) -> None:
    profile = tmp_path / "profile"
    async with driven(form, tmp_path, BrowserSettings(profile=str(profile))) as (
        server,
        drive,
    ):
        await drive("navigate", {"url": server.url})
        for process in users_of(profile):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        await gone(profile)
        with pytest.raises(ToolFailed):
            await drive("snapshot")
        assert "Page: Form" in (await drive("navigate", {"url": server.url})).text


async def test_a_window_that_a_page_opens_is_followed_until_it_closes(
    serve: Serve,
) -> None:
    def handler(asked: Asked) -> Page:
        if asked.target == "/popup":
            return Page(
                "<title>Popup</title><button onclick='window.close()'>Leave</button>"
            )
        return Page(
            "<title>First</title><button onclick='window.open(\"/popup\")'>More</button>"
        )

    server, drive = serve(handler)
    opened = await drive("navigate", {"url": server.url})
    result = await drive("click", {"ref": ref_of(opened.text, 'button "More"')})
    async with asyncio.timeout(20):
        while "Leave" not in result.text:
            result = await drive("snapshot")
        await drive("click", {"ref": ref_of(result.text, 'button "Leave"')})
        while "Page: First" not in result.text:
            result = await drive("snapshot")


async def test_a_key_in_an_address_is_not_sent(tmp_path: Path) -> None:
    async with driven(form, tmp_path) as (server, drive):
        with pytest.raises(ToolFailed, match="Nothing was sent"):
            await drive("navigate", {"url": f"{server.url}/?k=sk-{'a1B2' * 8}"})
        with pytest.raises(ToolFailed, match="Nothing was sent"):
            await drive("navigate", {"url": f"{server.url}/?k={OWN_PASSWORD}"})
        assert server.asked == []


async def test_no_browser_is_one_clear_line(tmp_path: Path) -> None:
    drive = Driving(
        tmp_path, ("127.0.0.1",), BrowserSettings(executable=str(tmp_path / "none"))
    )
    with pytest.raises(ToolFailed, match="which can't be run") as problem:
        await drive("navigate", {"url": "http://127.0.0.1/"})
    assert "install" in problem.value.hint


async def test_it_is_closed_when_it_is_not_used(tmp_path: Path) -> None:
    profile = tmp_path / "profile"
    async with driven(
        form, tmp_path, BrowserSettings(profile=str(profile), idle_timeout=0.2)
    ) as (server, drive):
        await drive("navigate", {"url": server.url})
        await gone(profile)
        with pytest.raises(ToolFailed, match="No page is open"):
            await drive("snapshot")
        assert "Form" in (await drive("navigate", {"url": server.url})).text


async def test_closing_leaves_no_process(tmp_path: Path) -> None:
    profile = tmp_path / "profile"
    async with driven(form, tmp_path, BrowserSettings(profile=str(profile))) as (
        server,
        drive,
    ):
        await drive("navigate", {"url": server.url})
        assert users_of(profile)
        await drive("close")
        await gone(profile)


async def test_nothing_is_left_when_hermes_is_killed(tmp_path: Path) -> None:
    profile = tmp_path / "profile"
    script = f"""
import asyncio, os
from pathlib import Path
from hermes.core.ports import ToolContext
from hermes.settings import Secrets
from hermes.settings.sections import BrowserSettings, WebSettings
from hermes.tools.browser.browser_tools import BrowserTools
from hermes.tools.process.long_output import OutputFolder
from tests.fakes.web_server import Page, web_server
async def main():
    async with web_server(lambda asked: Page("<p>hello")) as server:
        web = WebSettings(allow_hosts=("127.0.0.1",))
        folder = OutputFolder(Path({str(tmp_path)!r}))
        tools = BrowserTools(BrowserSettings(profile={str(profile)!r}), web, folder, os.environ, secrets=Secrets({{}}, {{}}))
        await tools.browser_navigate.run({{"url": server.url}}, ToolContext("c", "s", Path("/"), print))
        print("open", flush=True)
        await asyncio.Event().wait()
asyncio.run(main())
"""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, stdout=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(60):
            assert await process.stdout.readline() == b"open\n"
        assert users_of(profile)
    finally:
        process.send_signal(signal.SIGKILL)
        await process.wait()
    await gone(profile)


def users_of(profile: Path) -> list[int]:
    """The processes that were started with this profile."""
    found: list[int] = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal() and int(folder.name) != os.getpid():
            try:
                command = (folder / "cmdline").read_bytes()
            except OSError:
                continue
            if f"--user-data-dir={profile}".encode() in command.split(b"\0"):
                found.append(int(folder.name))
    return found


async def gone(profile: Path) -> None:
    """Waits until no process uses the profile."""
    async with asyncio.timeout(30):
        while await asyncio.to_thread(users_of, profile):  # noqa: ASYNC110 - a process has no event
            await asyncio.sleep(0.02)
