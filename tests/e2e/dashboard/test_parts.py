"""The shared pieces of the page, as modules in the browser."""

from typing import Any

import pytest
from playwright.async_api import Page
from tests.e2e.dashboard.conftest import Board, Complaints


@pytest.fixture
def dashboard(shared: Board) -> Board:
    return shared


async def run(page: Page, module: str, body: str, *given: Any) -> Any:
    """Calls something of a module."""
    return await page.evaluate(
        f"async (given) => {{ const it = await import('/static/{module}'); return ({body})(it, ...given); }}",
        list(given),
    )


async def test_output_of_programs_becomes_text_and_classes(visit: Page) -> None:
    given = "\x1b[1;31mred\x1b[0m \x1b]0;title\x07plain\x1b[2K 10%\r 20%\r100%\nab\bc \x1b[38;5;9mno\x1b[m"
    runs = await run(
        visit, "app/parts/ansi.js", "(it, text) => it.readAnsi(text)", given
    )
    assert "".join(one["text"] for one in runs) == "100%\nac no"
    runs = await run(
        visit,
        "app/parts/ansi.js",
        "(it, text) => it.readAnsi(text)",
        "\x1b[1;31mred\x1b[0m plain",
    )
    assert [(one["text"], one["style"]) for one in runs] == [
        ("red", "a-bold a-red"),
        (" plain", ""),
    ]


async def test_diffs_are_read_line_by_line(visit: Page) -> None:
    diff = "--- a/x\n+++ b/x\n@@ -3,2 +3,3 @@\n same\n-old\n+new\n+--- not a file\n"
    rows = await run(
        visit, "app/parts/diff.js", "(it, text) => it.readDiff(text)", diff
    )
    assert [(row["kind"], row["text"]) for row in rows] == [
        ("file", "--- a/x"),
        ("file", "+++ b/x"),
        ("hunk", "@@ -3,2 +3,3 @@"),
        ("same", "same"),
        ("del", "old"),
        ("add", "new"),
        ("add", "--- not a file"),
    ]
    assert [(row.get("was"), row.get("now")) for row in rows[3:]] == [
        (3, 3),
        (4, None),
        (None, 4),
        (None, 5),
    ]


async def test_what_only_looks_like_a_diff_is_shown_as_it_is(visit: Page) -> None:
    rows = await run(
        visit,
        "app/parts/diff.js",
        "(it, text) => it.readDiff(text)",
        "@@ -1 +1 @@ def f():\nrm -r x",
    )
    assert [row["text"] for row in rows] == ["@@ -1 +1 @@ def f():", "rm -r x"]
    diff = "\n@@ -1 +1 @@\n-true"
    cases = [
        ("terminal", f"Run in /w:{diff}", False),
        ("mcp_files_write", f"mcp_files_write\nreplaced, 1 line{diff}", False),
        ("write_file", f"write_file /w/a\nnew content, 1 line:{diff}", False),
        ("write_file", f"write_file /w/a\nreplaced, 1 line:{diff}", True),
        ("edit_file", f"edit_file /w/a{diff}", True),
        ("apply_patch", f"apply_patch{diff}", True),
    ]
    found = await run(
        visit,
        "views/chat/requests.js",
        "(it, cases) => cases.map(([name, summary]) => it.hasDiff(name, summary))",
        cases,
    )
    assert found == [has_diff for _, _, has_diff in cases]


async def test_only_harmless_addresses_are_links(visit: Page) -> None:
    hostile = [
        "javascript:x",
        " JavaScript:x",
        "java\nscript:x",
        "&#106;avascript:x",
        "data:text/html,x",
        "vbscript:x",
        "//x",
    ]
    fine = ["https://x.example/a", "http://x.example", "mailto:a@x.example"]
    links = await run(
        visit,
        "app/parts/markdown.js",
        "(it, all) => all.map(it.safeLink)",
        [*hostile, *fine],
    )
    assert links == ["" for _ in hostile] + fine


async def test_a_growing_text_gives_the_tokens_of_the_whole(visit: Page) -> None:
    text = "para\n\n" * 2000 + (
        "# A\n\npara *b*\n\n- one\n- two\n\n  still two\n\n```py\nx = 1\n\ny\n```\n\n"
        "| a | b |\n|---|---|\n| 1 | 2 |\n\n> q\n\nend"
    )
    same = await run(
        visit,
        "app/parts/markdown.js",
        """async (it, text) => {
            const { Lexer } = await import("/static/vendor/marked-18.2.0/marked.js");
            const { LongText } = await import("/static/app/parts/long_text.js");
            const growing = new it.Growing();
            let tokens = [];
            let long = new LongText("void");
            growing.grow(long);
            long = new LongText();
            for (const sign of text) {
                long = long.add(sign);
                tokens = growing.grow(long);
            }
            const shape = (list) => list.filter((one) => one.type !== "space").map((one) => [one.type, one.raw.trim()]);
            return [shape([...growing.settled, ...tokens]), shape(Lexer.lex(text))];
        }""",
        text,
    )
    assert same[0] == same[1]


async def test_a_long_reply_is_drawn_once_and_costs_little_memory(
    visit: Page,
) -> None:
    """Before, every piece made the whole text and all its blocks anew, and each block kept a copy of the text. Later,
    a group of blocks was drawn again when it was full."""
    await visit.evaluate(
        """async () => {
            const { html, render } = await import("/static/app/ui.js");
            const { fresh, reduce } = await import("/static/views/chat/transcript.js");
            const { Live } = await import("/static/views/chat/items.js");
            const place = document.body.appendChild(document.createElement("div"));
            let state = fresh("s");
            const drawn = new Set();
            for (let number = 0; number < 1500; number++) {
                const text = `Some *words* in a **paragraph**, ${number}, and ${"more of them ".repeat(5)}.\n\n`;
                state = reduce(state, [{ type: "agent.message.delta", session_id: "s", turn_id: "t", text }]);
                render(html`<${Live} live=${state.live} since=${0} />`, place);
                if (number < 100) for (const one of place.querySelectorAll("p:has(em)")) drawn.add(one);
            }
            const again = [...drawn].filter((one) => !one.isConnected).length; // the last blocks of each group
            if (again > 25) throw new Error(`${again} paragraphs were drawn again`);
            if (place.querySelectorAll("p em").length !== 1500) throw new Error("not all of it is shown");
        }"""
    )
    cdp = await visit.context.new_cdp_session(visit)
    await cdp.send("Performance.enable")
    found = {
        one["name"]: one["value"]
        for one in (await cdp.send("Performance.getMetrics"))["metrics"]
    }
    assert found["JSHeapUsedSize"] < 100_000_000


async def test_a_streamed_reply_keeps_only_what_is_shown(visit: Page) -> None:
    """Nodes that a component kept from an earlier drawing kept the tree of that drawing, for every piece."""
    cdp = await visit.context.new_cdp_session(visit)
    await cdp.send("Performance.enable")

    async def heap_bytes() -> float:
        await cdp.send("HeapProfiler.collectGarbage")
        found = await cdp.send("Performance.getMetrics")
        return {one["name"]: one["value"] for one in found["metrics"]}["JSHeapUsedSize"]

    async def growth(pieces: int, paragraphs: int) -> float:
        before = await heap_bytes()
        await visit.evaluate(
            """async ([pieces, paragraphs]) => {
                const { html, render } = await import("/static/app/ui.js");
                const { Markdown } = await import("/static/app/parts/markdown.js");
                const { LongText } = await import("/static/app/parts/long_text.js");
                const place = document.body.appendChild(document.createElement("div"));
                let text = new LongText();
                for (let number = 0; number < pieces; number++) {
                    text = text.add("Some *words* of a **paragraph**.\\n\\n".repeat(paragraphs));
                    render(html`<${Markdown} text=${text} open />`, place);
                }
                const shown = place.querySelectorAll("p em").length;
                if (shown !== pieces * paragraphs) throw new Error(`${shown} paragraphs are shown`);
            }""",
            [pieces, paragraphs],
        )
        return await heap_bytes() - before

    await growth(1, 1)
    at_once, streamed = await growth(1, 600), await growth(600, 1)
    assert streamed < 2 * at_once


async def test_a_streamed_reply_that_begins_again_shows_nothing_of_the_first(
    visit: Page,
) -> None:
    shown = await visit.evaluate(
        """async () => {
        const { html, render } = await import("/static/app/ui.js");
        const { Markdown } = await import("/static/app/parts/markdown.js");
        const { LongText } = await import("/static/app/parts/long_text.js");
        const place = document.body.appendChild(document.createElement("div"));
        for (const words of ["first", "second"])
            render(html`<${Markdown} text=${new LongText(`${words}\n\n`.repeat(100))} open />`, place);
        return [...new Set([...place.querySelectorAll("p")].map((one) => one.textContent))];
        }"""
    )
    assert shown == ["second"]


async def test_a_feed_passes_each_row_once_and_in_order(visit: Page) -> None:
    seen = await run(
        visit,
        "app/feed.js",
        """(it) => {
            const feed = new it.SessionFeed("s", { onEvents: () => {} });
            feed.close();
            const row = (epoch, seq, session_id = "s") => ({ type: "x", session_id, epoch, seq });
            const got = [
                ...feed.keepNew([row(1, 1), row(1, 2), row(1, 2), row(1, 1), row(9, 1, "child")]),
                ...feed.keepNew([row(1, 2), row(1, 3), { type: "agent.message.delta", session_id: "s" }]),
                ...feed.keepNew([{ type: "feed.epoch_changed", epoch: 2, was: 1 }, row(2, 1)]),
            ];
            return [got.map((event) => `${event.epoch ?? "-"}.${event.seq ?? "-"}`), feed.cursor];
        }""",
    )
    assert seen == [
        ["1.1", "1.2", "9.1", "1.3", "-.-", "2.-", "2.1"],
        {"epoch": 2, "seq": 1},
    ]


async def test_nothing_hides_in_what_a_person_decides_upon(visit: Page) -> None:
    given = "rm \u202ecod.exe\u202c \u200b-rf\x1b[8m ok ❤️ 👨‍👩‍👧 שלום\n\tend"
    shown = await run(
        visit, "app/parts/reveal.js", "(it, text) => it.revealHidden(text)", given
    )
    assert (
        shown
        == "rm ⟦U+202E⟧cod.exe⟦U+202C⟧ ⟦U+200B⟧-rf⟦U+001B⟧[8m ok ❤️ 👨‍👩‍👧 שלום\n\tend"
    )
    inside = await run(
        visit,
        "app/parts/reveal.js",
        "(it, text) => it.revealHiddenJson(text)",
        '{"a": ["\\u202ex"], "b": 1}',
    )
    assert inside == '{"a":["⟦U+202E⟧x"],"b":1}'
    assert (
        await run(
            visit,
            "app/parts/reveal.js",
            "(it, text) => it.revealHiddenJson(text)",
            "{\u202e",
        )
        == "{⟦U+202E⟧"
    )


async def test_a_feed_connects_anew_after_the_machine_slept(visit: Page) -> None:
    """Timers stand still while a machine sleeps, so the clock jumps; nobody says that a connection is gone."""
    body = """async (it) => {
        const opened = [];
        const Socket = WebSocket;
        window.WebSocket = class extends Socket { constructor(...given) { super(...given); opened.push(this); } };
        const hello = (count) => new Promise((done) => {
            const look = setInterval(() => opened.length >= count && (clearInterval(look), done()), 5);
        });
        const feed = new it.BusFeed("nothing.*", { onEvents: () => {} });
        await hello(1);
        const now = Date.now;
        Date.now = () => now() + 3_600_000;
        await hello(2);
        Date.now = now;
        feed.close();
        window.WebSocket = Socket;
        return opened.length;
    }"""
    assert await run(visit, "app/feed.js", body) >= 2


async def test_a_view_reloads_after_a_failure_and_never_once_it_is_gone(
    visit: Page, complaints: Complaints
) -> None:
    body = """async (it) => {
        const { h, render, Store, useEffect } = await import("/static/app/ui.js");
        const news = new Store([]);
        const place = document.createElement("div");
        const [later, waiting] = [window.setTimeout, []];
        window.setTimeout = (work, ms, ...more) => work.name === "load" ? -waiting.push(work) : later(work, ms, ...more);
        let settle, ready, gone;
        const reload = () => new Promise((...both) => { settle = both; });
        function View({ only }) {
            it.useLiveReload(news, (event) => event.of === only, reload);
            useEffect(() => { ready(); return () => gone?.(); }, [only]);
        }
        const shown = (only) => new Promise((done) => { ready = done; render(h(View, { only }), place); });
        const loads = (of) => { news.set([{ of }]); const load = waiting.pop(); load?.(); return Boolean(load); };
        const ended = async (number) => { settle[number](new Error("it failed")); for (let i = 9; i; i--) await null; };
        await shown("a");
        const seen = [loads("a")];
        await ended(1);
        seen.push(loads("a"));
        await ended(0);
        await shown("b");
        seen.push(loads("b"), loads("b"));
        await new Promise((done) => { gone = done; render(null, place); });
        await ended(0);
        window.setTimeout = later;
        return [...seen, waiting.length];
    }"""
    # Shown, after a failure, after another drawing; not while it loads, nor afterwards.
    wanted = [True, True, True, False, 0]
    assert await run(visit, "views/live_reload.js", body) == wanted
    complaints.expect("it failed")


async def test_plugins_read_all_sessions_and_names_that_every_object_has(
    visit: Page,
) -> None:
    body = """async ({ METHODS }) => {
        const every = Array.from({ length: 1203 }, (_, at) => ({ id: `s${at}`, updated: 5000 - at }));
        const settings = [["a.__proto__.b", 1], ["a.c", 2], ["a.toString.d", 3]].map(([key, value]) => ({ key, value }));
        const [before, saved] = [window.fetch, []];
        window.fetch = async (path, options) => {
            const { pathname, searchParams: asked } = new URL(path, location.href);
            if (!/^.api.(sessions|settings)/.test(pathname)) return before(path, options);
            if (options.method === "PUT") saved.push(pathname);
            const older = every.filter(({ updated }) => updated < Number(asked.get("before") ?? Infinity));
            const limit = Math.min(Number(asked.get("limit")), 500);
            const listed = { sessions: older.slice(0, limit), more: older.length > limit };
            return new Response(JSON.stringify({ ...listed, running: [], pinned: [], folders: [], settings }));
        };
        const ids = async (...given) => (await METHODS.getSessions(...given)).sessions.map((one) => one.id);
        const pages = [await ids(2, 499), await ids(2, 1000), await ids(9, 1201)];
        const config = await METHODS.getConfig();
        const shared = ["b" in {}, "d" in Object.prototype.toString];
        await METHODS.saveConfig(config);
        await METHODS.saveConfig({ a: {} });
        window.fetch = before;
        const themes = [await METHODS.setTheme("toString"), await METHODS.setTheme("dark")].map((one) => one.ok);
        return { pages, config: JSON.stringify(config), shared, saved, themes };
    }"""
    await visit.wait_for_load_state("networkidle")  # the page has its own answers
    assert await run(visit, "views/plugins/sdk_api.js", body) == {
        "pages": [["s499", "s500"], ["s1000", "s1001"], ["s1201", "s1202"]],
        "config": '{"a":{"__proto__":{"b":1},"c":2,"toString":{"d":3}}}',
        "shared": [False, False],
        "saved": [],
        "themes": [False, True],
    }


async def test_pieces_of_a_reply_are_drawn_with_rests_and_rows_at_once(
    visit: Page,
) -> None:
    await visit.clock.install()
    await visit.clock.pause_at(4_000_000_000_000)
    await run(
        visit,
        "views/chat/drawing_pace.js",
        "(it) => { window.drawn = 0; window.pace = new it.DrawingPace(() => window.drawn++); }",
    )

    async def drawn_after(calls: str, ms: int) -> int:
        await visit.evaluate(f"{calls}; undefined")
        await visit.clock.run_for(ms)
        return await visit.evaluate("window.drawn")

    assert await drawn_after("pace.soon(); pace.soon()", 17) == 1  # the first at once
    assert await drawn_after("pace.soon(); pace.soon()", 30) == 1  # then a rest
    assert await drawn_after("pace.soon()", 60) == 2
    assert await drawn_after("pace.soon()", 17) == 2
    assert await drawn_after("pace.atOnce()", 17) == 3  # a row does not wait for it
    assert await drawn_after("", 500) == 3
    assert await drawn_after("pace.soon(); pace.cancel()", 500) == 3
    key = "dispatchEvent(new KeyboardEvent('keydown', { key: 'x' }))"
    assert await drawn_after(f"pace.soon(); {key}", 15) == 3  # its own frame is first
    assert await drawn_after("pace.soon()", 30) == 4  # then is time before the next
    assert await drawn_after(f"pace.soon(); {key}", 120) == 4
    assert await drawn_after("", 120) == 5  # in a pause
    await visit.clock.run_for(600)
    assert await drawn_after("pace.soon()", 17) == 6  # nobody types any more
    for _ in range(60):
        await drawn_after(f"pace.soon(); {key}", 10)
    assert await visit.evaluate("window.drawn") > 6  # also if a key is held down


async def test_rows_are_drawn_in_a_hidden_page_however_fast_they_come(
    visit: Page,
) -> None:
    await visit.clock.install()
    await visit.clock.pause_at(4_000_000_000_000)
    await run(
        visit,
        "views/chat/drawing_pace.js",
        """(it) => {
            window.requestAnimationFrame = () => 1; // a hidden page has no frames
            window.drawn = 0;
            window.pace = new it.DrawingPace(() => window.drawn++);
            pace.soon();
        }""",
    )
    for _ in range(5):
        await visit.evaluate("pace.atOnce()")
        await visit.clock.run_for(100)
    assert await visit.evaluate("window.drawn") == 2
