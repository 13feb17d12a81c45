"""When the installed `hermes` offers the tools of a browser to a model."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.fakes.web_server import Page, web_server

from hermes.testing.installed import InstalledHermes
from hermes.testing.model_server import ModelServer
from hermes.testing.scripted_responses import ScriptedResponse, ServedCall
from hermes.tools.browser.executable import needs_no_sandbox

pytestmark = pytest.mark.usefixtures("chromium")
AS_ROOT = {"HERMES_BROWSER_AS_ROOT": "true"}  # the tests may be run by root
PAGE = Page("<title>Form</title><h1>Hello</h1><button>Press</button>")
LATER = {
    *("browser_snapshot", "browser_click", "browser_type", "browser_select"),
    *("browser_press", "browser_scroll", "browser_back", "browser_get_images"),
    *("browser_console", "browser_close", "browser_vision"),
}


def bodies(server: ModelServer) -> list[dict[str, Any]]:
    """The requests of turns, without those that look for a title."""
    every = [msgspec.json.decode(one.body) for one in server.posts]
    return [one for one in every if "tools" in one]


def browser_tools(body: dict[str, Any]) -> set[str]:
    names = [one["function"]["name"] for one in body["tools"]]
    assert len(names) == len(set(names))
    return {name for name in names if name.startswith("browser_")}


def opening(*urls: str) -> ScriptedResponse:
    given = [msgspec.json.encode({"url": url}).decode() for url in urls]
    calls = (ServedCall("browser_navigate", one) for one in given)
    return ScriptedResponse(calls=tuple(calls))


async def test_the_other_tools_join_when_a_page_is_open_and_stay_for_the_session(
    tmp_path: Path,
) -> None:
    async with web_server(lambda asked: PAGE) as web:
        replies = (opening(web.url), "It says hello.", "Still there.")
        async with ModelServer(*replies) as server:
            hermes = InstalledHermes(tmp_path, server.url)
            allowed = AS_ROOT | {"HERMES_WEB_ALLOW_HOSTS": f'["127.0.0.1:{web.port}"]'}
            first = await hermes.run("-z", "open it", **allowed)
            assert (first.code, first.out) == (0, "It says hello.\n"), first.err
            await hermes.run("--continue", "-z", "and now?", **allowed)
            asked = bodies(server)
            assert [browser_tools(one) for one in asked] == [
                {"browser_navigate"},
                {"browser_navigate"} | LATER,
                {"browser_navigate"} | LATER,
            ]
            before, after, resumed = (one["tools"] for one in asked)
            assert after[: len(before)] == before
            assert resumed == after
            assert 'button "Press"' in str(asked[1]["messages"][-1]["content"])


async def test_pages_that_may_not_be_opened_bring_no_tools(tmp_path: Path) -> None:
    addresses = (
        "http://127.0.0.1:1/",
        "http://localhost/",
        "http://169.254.169.254/latest/meta-data/",
        "file:///etc/passwd",
    )
    async with ModelServer(opening(*addresses), "I may not.") as server:
        await InstalledHermes(tmp_path, server.url).run("-z", "open them", **AS_ROOT)
        first, second = bodies(server)
        assert second["tools"] == first["tools"]
        results = [one for one in second["messages"] if one["role"] == "tool"]
        assert len(results) == len(addresses)
        assert not any("Page:" in one["content"] for one in results)


@pytest.mark.skipif(not needs_no_sandbox(), reason="only for root")
async def test_root_is_offered_no_browser_without_a_setting(tmp_path: Path) -> None:
    async with ModelServer("hi") as server:
        await InstalledHermes(tmp_path, server.url).run("-z", "hi")
        assert browser_tools(bodies(server)[0]) == set()


@pytest.mark.parametrize(
    ("settings", "offered"),
    [
        ({"HERMES_TOOLS_ENABLED": '["browser"]'}, {"browser_navigate"} | LATER),
        ({"HERMES_TOOLS_DISABLED": '["browser_*"]'}, set()),
    ],
)
async def test_the_settings_offer_all_tools_at_once_or_none(
    tmp_path: Path, settings: dict[str, str], offered: set[str]
) -> None:
    async with ModelServer("hi") as server:
        await InstalledHermes(tmp_path, server.url).run("-z", "hi", **settings)
        assert browser_tools(bodies(server)[0]) == offered
