"""Plugins written for the original agent run as they are: manifest, globals, React, components, routes and slots."""

import re
from pathlib import Path

import msgspec
from playwright.async_api import Page, expect
from tests.e2e.dashboard.chatting import rests, say
from tests.e2e.dashboard.conftest import Board, Complaints
from tests.e2e.dashboard.test_access import found_by_axe
from tests.e2e.dashboard.walking import go

from hermes.plugins import PluginRegistry
from hermes.settings import Home
from hermes.testing.scripted_responses import ScriptedResponse, ServedCall

_MANIFEST = {
    "name": "meter",
    "label": "Meter",
    "description": "Counts things.",
    "icon": "Activity",
    "version": "1.2.0",
    "tab": {"path": "/meter", "position": "after:skills"},
    "slots": ["sessions:top"],
    "entry": "dist/index.js",
    "css": "dist/style.css",
    "api": "plugin_api.py",
}
_SCRIPT = """
(function () {
  "use strict";
  const SDK = window.__HERMES_PLUGIN_SDK__;
  const { React, components: C, hooks, utils } = SDK;
  const h = React.createElement;

  function Meter() {
    const [count, setCount] = hooks.useState(null);
    const [unit, setUnit] = hooks.useState("calls");
    const [socket, setSocket] = hooks.useState("closed");
    const [asking, setAsking] = hooks.useState(false);
    const { showToast } = hooks.useToast();
    hooks.useEffect(() => {
      SDK.fetchJSON("/api/plugins/meter/count").then((got) => setCount(got.count));
      SDK.buildWsUrl("/api/plugins/meter/live", { from: "page" }).then((url) => {
        const line = new WebSocket(url);
        line.onmessage = (event) => setSocket(event.data);
      });
    }, []);
    const add = () => SDK.fetchJSON("/api/plugins/meter/count", { method: "POST" })
      .then((got) => { setCount(got.count); showToast("Added one", "success"); });
    const lost = () => SDK.api.noSuchThing().catch((error) => showToast(error.message, "error"));
    return h("section", { className: utils.cn("flex flex-col gap-3", false) },
      h(C.Card, null,
        h(C.CardHeader, null, h(C.CardTitle, null, "Meter")),
        h(C.CardContent, null,
          h("p", { className: "text-sm text-muted-foreground", id: "told" },
            count === null ? "Loading" : count + " " + unit + ", line " + socket),
          h(C.Label, { htmlFor: "unit" }, "Unit"),
          h(C.Select, { id: "unit", value: unit, onValueChange: setUnit },
            h(C.SelectOption, { value: "calls" }, "Calls"),
            h(C.SelectOption, { value: "turns" }, "Turns")),
          h(C.Tabs, { defaultValue: "a" },
            h(C.TabsList, { "aria-label": "Periods" },
              h(C.TabsTrigger, { value: "a" }, "Day"), h(C.TabsTrigger, { value: "b" }, "Week"))),
          h("div", { className: "flex gap-2" },
            h(C.Button, { onClick: add }, "Add one"),
            h(C.Button, { variant: "outline", onClick: () => setAsking(true) }, "Reset"),
            h(C.Button, { variant: "ghost", onClick: lost }, "Ask"),
            h(C.Badge, { variant: "secondary" }, "beta")))),
      h(C.ConfirmDialog, { open: asking, title: "Reset the meter?", onCancel: () => setAsking(false),
        onConfirm: () => { setAsking(false); setCount(0); } }));
  }

  function Banner() { return h(C.Card, null, h(C.CardContent, null, "Counted by Meter")); }

  window.__HERMES_PLUGINS__.register("meter", Meter);
  window.__HERMES_PLUGINS__.registerSlot("meter", "sessions:top", Banner);
})();
"""
_ASK_API = """async () => {
  const { api } = window.__HERMES_PLUGIN_SDK__;
  const job = await api.createCronJob({ prompt: "look", schedule: "every day at 9", name: "look" });
  const paused = await api.pauseCronJob(job.id);
  const jobs = await api.getCronJobs();
  await api.deleteCronJob(job.id);
  const config = await api.getConfig();
  await api.saveConfig({ ...config, learning: { ...config.learning, mode: "off" } });
  const { sessions, total } = await api.getSessions(5, 0);
  await api.setTheme("dark");
  const reads = [api.getStatus(), api.getSkills(), api.getToolsets(), api.getAnalytics(7), api.getModelsAnalytics(7),
    api.getModelInfo(), api.getModelOptions(), api.getMcpServers(), api.getMessagingPlatforms(), api.getPairing(),
    api.getPlugins(), api.getProfiles(), api.getMemory(), api.getSchema(), api.searchSessions("x"), api.getAuthMe()];
  const shapes = (await Promise.all(reads)).map((one) => typeof one);
  return {
    job: [job.name, job.enabled, job.schedule_display.length > 0], paused: paused.enabled, jobs: jobs.length,
    left: (await api.getCronJobs()).length, mode: (await api.getConfig()).learning.mode, sessions, total,
    theme: document.documentElement.dataset.theme, reads: shapes.every((one) => one === "object"),
    file: api.exportSessionUrl("a b"),
  };
}"""
_FROM_API: dict[str, object] = {
    "job": ["look", True, True],
    "paused": False,
    "jobs": 1,
    "left": 0,
    "mode": "off",
    "sessions": [],
    "total": 0,
    "theme": "dark",
    "reads": True,
    "file": "/api/sessions/a%20b/export",
}
_API = """
from fastapi import APIRouter, WebSocket

router = APIRouter()
state = {"count": 2}


@router.get("/count")
async def count():
    return state


@router.post("/count")
async def add():
    state["count"] += 1
    return state


@router.websocket("/live")
async def live(socket: WebSocket):
    await socket.accept()
    await socket.send_text("open from " + socket.query_params["from"] + " " + str("ticket" in socket.query_params))
    await socket.close()
"""


def _write(home: Path) -> None:
    # The folder has another name than the plugin, as that agent allows.
    folder = home / "plugins" / "meter-plugin" / "dashboard"
    (folder / "dist").mkdir(parents=True)
    (folder / "manifest.json").write_bytes(msgspec.json.encode(_MANIFEST))
    (folder / "dist" / "index.js").write_text(_SCRIPT)
    (folder / "dist" / "style.css").write_text("#told { font-weight: 600 }\n")
    (folder / "plugin_api.py").write_text(_API)


async def test_a_plugin_for_the_original_agent_runs_unmodified(
    page: Page, dashboard: Board, complaints: Complaints
) -> None:
    _write(dashboard.hermes.home)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    await go(page, "/plugins")
    row = page.locator('[data-plugin-row="meter"]')
    await expect(row).to_have_attribute("data-state", "off")
    assert not any("react" in url for url in asked)
    assert await page.evaluate("'__HERMES_PLUGINS__' in window") is False
    await row.get_by_role("button", name="Review and enable").click()
    await page.get_by_role("button", name="Enable exactly this").click()
    await expect(row).to_have_attribute("data-state", "enabled")

    rail = page.get_by_role("navigation", name="Views", exact=True)
    names = await rail.locator(".place-name").all_inner_texts()
    assert names[names.index("Learning") + 1] == "Meter"
    await rail.get_by_role("link", name="Meter").click()
    told = page.locator("#told")
    await expect(told).to_have_text("2 calls, line open from page False")
    await expect(told).to_have_css("font-weight", "600")
    await page.get_by_role("button", name="Add one").click()
    await expect(told).to_contain_text("3 calls")
    await expect(page.locator(".toasts")).to_contain_text("Added one")
    await page.get_by_label("Unit").select_option("Turns")
    await expect(told).to_contain_text("3 turns")
    await page.get_by_role("tab", name="Week").click()
    await expect(page.get_by_role("tab", name="Week")).to_have_attribute(
        "aria-selected", "true"
    )
    await page.get_by_role("button", name="Reset").click()
    dialog = page.get_by_role("dialog", name="Reset the meter?")
    await dialog.get_by_role("button", name="Confirm").click()
    await expect(told).to_contain_text("0 turns")
    await page.get_by_role("button", name="Ask").click()
    await expect(page.locator(".toasts")).to_contain_text("no SDK.api.noSuchThing")
    assert await page.evaluate(_ASK_API) == _FROM_API
    for theme in ("light", "dark", "contrast"):
        await page.evaluate(
            "name => document.documentElement.dataset.theme = name", theme
        )
        assert await found_by_axe(page) == []
    files = await page.request.get(
        f"{dashboard.url}/dashboard-plugins/meter/dist/style.css"
    )
    assert files.ok

    await go(page, "/sessions")
    await expect(page.get_by_text("Counted by Meter")).to_be_visible()
    await go(page, "/live")
    await expect(page.get_by_text("Counted by Meter")).to_have_count(0)
    await go(page, "/plugins")
    await row.get_by_role("button", name="Disable").click()
    await expect(row).to_have_attribute("data-state", "off")
    await expect(rail.get_by_role("link", name=re.compile("Meter"))).to_have_count(0)
    await go(page, "/sessions")
    await expect(
        page.get_by_role("heading", name="Sessions", exact=True)
    ).to_be_visible()
    await expect(page.get_by_text("Counted by Meter")).to_have_count(0)


_GUARD = """
def judge(tool_name, args, **_):
    if tool_name == "read_file" and args["path"].startswith("secret"):
        return {"action": "block", "message": "secrets stay closed"}


def register(ctx):
    ctx.register_hook("pre_tool_call", judge)
    ctx.register_command("shout", handler=str.upper, description="Says it loud.")
"""


async def test_a_veto_is_read_by_user_and_model_and_a_command_answers(
    page: Page, dashboard: Board
) -> None:
    home = dashboard.hermes.home
    folder = home / "plugins" / "guard"
    folder.mkdir(parents=True)
    (folder / "plugin.yaml").write_text("name: guard\nversion: 1.0\n")
    (folder / "__init__.py").write_text(_GUARD)
    PluginRegistry(Home(home)).enable("guard")
    (dashboard.hermes.work / "secret.txt").write_text("hush")
    call = ServedCall("read_file", '{"path": "secret.txt"}')
    dashboard.says(ScriptedResponse(calls=(call,)), "I may not read it.")
    await say(page, "read it")
    await rests(page, 1)
    why = "plugin guard: secrets stay closed"
    assert why in str(dashboard.asked()[-1])
    await page.locator(".tool-head").first.click()
    await expect(page.get_by_text(why).first).to_be_visible()
    await say(page, "/shout hello there")
    dialog = page.get_by_role("dialog", name="/shout")
    await expect(dialog).to_contain_text("HELLO THERE")
    await dialog.get_by_role("button", name="OK").click()
