"""Plugins in a dashboard: nothing runs before it is enabled, a change asks again, and disabling leaves nothing."""

import asyncio
import re
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.integration.dashboard.harness import PATIENCE, Harness, opened
from websockets.exceptions import ConnectionClosed

from hermes.events import default_bus
from hermes.plugins import PluginRegistry
from hermes.settings import Home

_GUIDE = Path(__file__).parents[3] / "docs" / "guide" / "plugins.md"

_BUSY = """
import asyncio
from pathlib import Path
from fastapi import APIRouter, WebSocket
from hermes_events import subscribe, publish
from . import words

router = APIRouter()
seen = []
subscribe("probe.*", seen.append)

async def later(event):
    await asyncio.sleep(0)
    seen.append({"async": event["number"]})

subscribe("probe.*", later)

@router.get("/seen")
async def get_seen():
    return {"seen": [dict(one) for one in seen], "word": words.WORD}

@router.post("/start")
async def start():
    async def forever():
        try:
            await asyncio.Event().wait()
        finally:
            publish("busy.ended", {})
    app.task = asyncio.create_task(forever())
    subscribe("other.*", seen.append)
    return {}

class app:
    task = None

@router.websocket("/socket")
async def socket(one: WebSocket):
    await one.accept()
    await one.send_text("hello")
    await asyncio.Event().wait()

@router.get("/open")
async def open_to_all():
    from fastapi.responses import JSONResponse
    return JSONResponse({}, headers={"Access-Control-Allow-Origin": "*", "Content-Security-Policy": "default-src *"})
"""


def _plugin(home: Home, name: str, code: str, **manifest: Any) -> Path:
    folder = home.plugins / name / "dashboard"
    folder.mkdir(parents=True)
    said = {
        "name": name,
        "label": name.title(),
        "version": "1",
        "api": "plugin_api.py",
        **manifest,
    }
    (folder / "manifest.json").write_bytes(msgspec.json.encode(said))
    (folder / "plugin_api.py").write_text(code)
    return folder


async def _listed(harness: Harness, name: str) -> dict[str, Any]:
    rows = (await harness.call("GET", "/api/plugins", scope="observe"))["plugins"]
    return next(row for row in rows if row["name"] == name)


async def _enable(harness: Harness, name: str) -> dict[str, Any]:
    row = await _listed(harness, name)
    await harness.call(
        "PUT", f"/api/plugins/{name}", {"enabled": True, "hash": row["hash"]}
    )
    return await _listed(harness, name)


async def test_nothing_of_a_plugin_runs_before_it_is_enabled(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    code = f"import pathlib; pathlib.Path({str(mark)!r}).touch()\nfrom fastapi import APIRouter\nrouter = APIRouter()\n"
    folder = _plugin(Home(tmp_path / "home"), "eager", code)
    async with opened(tmp_path) as harness:
        assert (await _listed(harness, "eager"))["state"] == "off"
        assert (await harness.ask("GET", "/api/plugins/eager/x")).status_code == 404
        assert (
            await harness.ask("GET", "/plugins/eager/manifest.json")
        ).status_code == 404
        assert not mark.exists()
        assert (
            await harness.ask(
                "PUT", "/api/plugins/eager", {"enabled": True}, scope="chat"
            )
        ).status_code == 403
        assert (
            await harness.ask("PUT", "/api/plugins/eager", {"enabled": True})
        ).status_code == 400
        assert (
            await harness.ask(
                "PUT", "/api/plugins/eager", {"enabled": True, "hash": "0" * 64}
            )
        ).status_code == 400
        assert not mark.exists()
        assert (await _enable(harness, "eager"))["state"] == "enabled"
        assert mark.exists()
        assert not (folder / "__pycache__").exists()


async def test_a_changed_plugin_asks_again(tmp_path: Path) -> None:
    folder = _plugin(Home(tmp_path / "home"), "busy", _BUSY)
    (folder / "words.py").write_text("WORD = 'old'\n")
    async with opened(tmp_path) as harness:
        await _enable(harness, "busy")
        assert (await harness.call("GET", "/api/plugins/busy/seen"))["word"] == "old"
        (folder / "words.py").write_text("WORD = 'new'\n")
        assert (await _listed(harness, "busy"))["state"] == "changed"
        assert (await harness.ask("GET", "/api/plugins/busy/seen")).status_code == 404
    async with opened(tmp_path) as harness:
        assert (await _listed(harness, "busy"))["state"] == "changed"
        assert (await harness.ask("GET", "/api/plugins/busy/seen")).status_code == 404
        await _enable(harness, "busy")
        assert (await harness.call("GET", "/api/plugins/busy/seen"))["word"] == "new"


async def test_a_plugin_runs_from_the_bytes_that_were_agreed_to_when_files_change_meanwhile(
    tmp_path: Path,
) -> None:
    out = tmp_path / "out"
    code = f"""
from pathlib import Path
for file in ("words.py", "deep/more.py"):
    (Path(__file__).parent / file).write_text("WORD = 'never agreed to'")
from fastapi import APIRouter
from .words import WORD as one
from .deep.more import WORD as other
Path({str(out)!r}).write_text(one + other)
router = APIRouter()
"""
    folder = _plugin(Home(tmp_path / "home"), "quick", code)
    (folder / "deep").mkdir()
    (folder / "words.py").write_text("WORD = 'as '")
    (folder / "deep" / "more.py").write_text("WORD = 'agreed'")
    async with opened(tmp_path) as harness:
        assert (await _enable(harness, "quick"))["state"] == "changed"
    assert out.read_text() == "as agreed"


async def test_disabling_ends_subscriptions_tasks_and_routes(tmp_path: Path) -> None:
    folder = _plugin(Home(tmp_path / "home"), "busy", _BUSY)
    (folder / "words.py").write_text("WORD = ''\n")
    ended = asyncio.Event()
    handle = default_bus().subscribe("busy.ended", lambda event: ended.set())
    before = len(default_bus().stats().subscriptions)
    async with opened(tmp_path) as harness:
        base = len(default_bus().stats().subscriptions)
        assert base >= before
        await _enable(harness, "busy")
        default_bus().publish("probe.one", {"number": 1})
        await harness.call("POST", "/api/plugins/busy/start")
        seen = (await harness.call("GET", "/api/plugins/busy/seen"))["seen"]
        assert [one.get("number", one.get("async")) for one in seen] == [1, 1]
        assert len(default_bus().stats().subscriptions) == base + 3
        async with harness.socket(
            "/api/plugins/busy/socket", scope="observe"
        ) as socket:
            assert await socket.recv() == "hello"
            await harness.call("PUT", "/api/plugins/busy", {"enabled": False})
            with pytest.raises(ConnectionClosed):
                await asyncio.wait_for(socket.recv(), PATIENCE)
        await asyncio.wait_for(ended.wait(), PATIENCE)
        assert len(default_bus().stats().subscriptions) == base
        assert (await harness.ask("GET", "/api/plugins/busy/seen")).status_code == 404
        assert not [
            name for name in sys.modules if name.startswith("hermes_plugin_busy")
        ]
    default_bus().unsubscribe(handle)


async def test_a_plugin_is_behind_the_same_gate_and_can_t_open_it(
    tmp_path: Path,
) -> None:
    folder = _plugin(
        Home(tmp_path / "home"), "busy", _BUSY, entry="page.js"
    )  # no such file yet
    async with opened(tmp_path) as harness:
        assert (await _listed(harness, "busy"))["state"] == "broken"
        (folder / "page.js").write_text("export default 1\n")
        (folder / "words.py").write_text("WORD = ''\n")
        await _enable(harness, "busy")
        assert (await harness.client.get("/api/plugins/busy/seen")).status_code == 401
        assert (
            await harness.ask("POST", "/api/plugins/busy/start", scope="chat")
        ).status_code == 403
        assert (await harness.client.get("/plugins/busy/page.js")).status_code == 401
        page = await harness.ask("GET", "/plugins/busy/page.js", scope="observe")
        assert (page.status_code, page.headers["content-type"].partition(";")[0]) == (
            200,
            "text/javascript",
        )
        for path in (
            "plugin_api.py",
            "../../config.yaml",
            "%2e%2e/plugin_api.py",
            "words.py",
        ):
            assert (
                await harness.ask("GET", f"/plugins/busy/{path}")
            ).status_code == 404
        answer = await harness.ask("GET", "/api/plugins/busy/open", scope="observe")
        assert "access-control-allow-origin" not in answer.headers
        assert "default-src *" not in answer.headers["content-security-policy"]


@pytest.mark.parametrize(
    "code",
    [
        "raise ValueError('broken on purpose')",
        "import no_such_module_here",
        "router = 7",
        "register = 7",
        "def register(): raise ValueError('broken on purpose')",
        "async def register(): raise SystemExit(3)",
        "def register(needed): pass",
        "def (",
        "import sys; sys.exit(3)",
    ],
)
async def test_a_plugin_that_fails_to_import_is_shown_and_harms_nothing(
    tmp_path: Path, code: str
) -> None:
    home = Home(tmp_path / "home")
    _plugin(
        home,
        "bad",
        f"from hermes_events import subscribe\nsubscribe('x', print)\n{code}"
        if "def (" not in code
        else code,
    )
    _plugin(
        home,
        "good",
        "from fastapi import APIRouter\nrouter = APIRouter()\nrouter.get('/x')(lambda: {'ok': 1})\n",
    )
    catalogue = PluginRegistry(home)
    for name in ("bad", "good"):
        catalogue.enable(name)
    async with opened(tmp_path) as harness:
        row = await _listed(harness, "bad")
        assert row["state"] == "failed"
        assert row["error"]
        assert await harness.call("GET", "/api/plugins/good/x") == {"ok": 1}
        owners = {one.owner for one in default_bus().stats().subscriptions}
        assert "plugin:bad" not in owners


_REGISTERED = """
from hermes_events import publish, subscribe

{kind}def register():
    subscribe("probe.*", lambda event: publish("quiet.seen", {{"number": event["number"]}}))
    publish("quiet.registered", {{}})
"""


@pytest.mark.parametrize("kind", ["", "async "])
async def test_a_plugin_registers_itself_and_needs_no_router(
    tmp_path: Path, kind: str
) -> None:
    _plugin(Home(tmp_path / "home"), "quiet", _REGISTERED.format(kind=kind))
    seen: list[tuple[str, int]] = []
    handle = default_bus().subscribe(
        "quiet.*", lambda event: seen.append((event["type"], event.get("number", 0)))
    )
    try:
        async with opened(tmp_path) as harness:
            assert (await _enable(harness, "quiet"))["state"] == "enabled"
            default_bus().publish("probe.x", {"number": 1})
            assert seen == [("quiet.registered", 0), ("quiet.seen", 1)]
            assert (await harness.ask("GET", "/api/plugins/quiet/x")).status_code == 404
            await harness.call("PUT", "/api/plugins/quiet", {"enabled": False})
            default_bus().publish("probe.x", {"number": 2})
            assert len(seen) == 2
    finally:
        default_bus().unsubscribe(handle)


_STUBBORN = """
import asyncio
from contextlib import asynccontextmanager
from pathlib import Path
from fastapi import APIRouter

async def hang():
    while not Path({free!r}).exists():
        try:
            await asyncio.sleep(0.01)
        except asyncio.CancelledError:
            pass

@asynccontextmanager
async def life(app):
    {start}
    yield
    {end}

router = APIRouter(lifespan=life)

@router.get("/x")
async def x():
    return {{"ok": 1}}

@router.get("/leave")
async def leave():
    raise SystemExit(3)
"""


@pytest.mark.parametrize(
    "parts",
    [
        {"start": "await hang()"},
        {"start": "raise SystemExit(3)"},
        {"start": "raise ValueError('no')"},
    ],
)
async def test_a_plugin_that_does_not_start_is_shown_and_the_page_goes_on(
    tmp_path: Path, parts: dict[str, str]
) -> None:
    free = tmp_path / "free"
    _plugin(
        Home(tmp_path / "home"),
        "slow",
        _STUBBORN.format(free=str(free), end="pass", **parts),
    )
    async with opened(tmp_path) as harness:
        harness.served.plugins.timeouts_s = (0.1, 0.1)
        row = await _enable(harness, "slow")
        assert row["state"] == "failed"
        assert row["error"]
        assert (await harness.ask("GET", "/api/plugins/slow/x")).status_code == 404
        free.touch()


@pytest.mark.parametrize(
    "parts",
    [
        {"start": "app.task = asyncio.create_task(hang())", "end": "pass"},
        {"start": "pass", "end": "await hang()"},
        {"start": "pass", "end": "raise SystemExit(3)"},
        {"start": "pass", "end": "raise ValueError('no')"},
    ],
)
async def test_a_plugin_that_does_not_end_keeps_nobody(
    tmp_path: Path, parts: dict[str, str]
) -> None:
    free = tmp_path / "free"
    _plugin(Home(tmp_path / "home"), "slow", _STUBBORN.format(free=str(free), **parts))
    async with opened(tmp_path) as harness:
        harness.served.plugins.timeouts_s = (PATIENCE, 0.1)
        await _enable(harness, "slow")
        assert await harness.call("GET", "/api/plugins/slow/x") == {"ok": 1}
        await harness.call("PUT", "/api/plugins/slow", {"enabled": False})
        assert (await harness.ask("GET", "/api/plugins/slow/x")).status_code == 404
        free.touch()


async def test_a_plugin_can_not_end_the_dashboard(tmp_path: Path) -> None:
    _plugin(
        Home(tmp_path / "home"),
        "slow",
        _STUBBORN.format(free="/", start="pass", end="pass"),
    )
    async with opened(tmp_path) as harness:
        await _enable(harness, "slow")
        assert (await harness.ask("GET", "/api/plugins/slow/leave")).status_code == 500
        assert await harness.call("GET", "/api/plugins/slow/x") == {"ok": 1}


async def test_the_plugin_of_the_guide_works(tmp_path: Path) -> None:
    """The code on the page is what is run here."""
    blocks = dict(
        re.findall(
            r"`(dashboard/[\w.]+)`:\n\n```\w+\n(.*?)```", _GUIDE.read_text(), re.DOTALL
        )
    )
    folder = tmp_path / "home" / "plugins" / "tally"
    for name, text in blocks.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    assert len(blocks["dashboard/plugin_api.py"].splitlines()) <= 18
    async with opened(tmp_path) as harness:
        assert (await _enable(harness, "tally"))["state"] == "enabled"
        for name in ("read_file", "read_file", "terminal"):
            harness.app.bus.publish("agent.tool.started", {"name": name})
        async with harness.socket("/api/pub?channel=gateway", scope="publish") as pub:
            frame = {
                "_bus_relay": True,
                "topic": "tui.tool.start",
                "envelope": {"name": "web_fetch"},
            }
            await pub.send(msgspec.json.encode(frame).decode())
            async with asyncio.timeout(PATIENCE):
                while "web_fetch" not in (
                    counts := await harness.call("GET", "/api/plugins/tally/counts")
                ):
                    pass
        assert counts == {"read_file": 2, "terminal": 1, "web_fetch": 1}
        assert (await harness.ask("GET", "/plugins/tally/tally.js")).status_code == 200
