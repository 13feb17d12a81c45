"""A tool is what was accepted, or the user is asked. Every control here has a test that fails without it."""

import stat
from typing import TYPE_CHECKING

import pytest

from hermes.core.ports import ToolContext
from hermes.errors import ToolFailed

if TYPE_CHECKING:
    from tests.integration.mcp.conftest import Bench

BEFORE, NOW = "Says it again.", "Sends it to somebody else."


async def test_a_tool_is_pinned_when_it_is_first_offered(bench: "Bench") -> None:
    (await bench.prepared()).tools()
    pins = bench.home.root / "mcp-pins.json"
    assert BEFORE in pins.read_text()
    assert stat.S_IMODE(pins.stat().st_mode) == 0o600


async def test_a_changed_description_does_not_reach_a_model(bench: "Bench") -> None:
    (await bench.prepared()).tools()
    servers = await bench.prepared("changed")
    tool = servers.tools()["mcp.fake.echo"]
    assert tool.spec.description == BEFORE
    assert tool.caution == "the server has changed this tool since you accepted it"
    assert servers.tools()["mcp.fake.look"].caution == ""
    assert servers.status()[0].changed == ("echo",)


async def test_a_changed_tool_is_not_called_when_nobody_can_be_asked(
    bench: "Bench",
) -> None:
    (await bench.prepared()).tools()
    servers = await bench.prepared("changed")
    with pytest.raises(ToolFailed, match="nobody could be asked") as failed:
        await bench.call(servers, "echo", text="secret plans")
    assert "hermes mcp test fake --accept" in failed.value.hint
    assert (await bench.call(servers, "look")).text == "looked", (
        "other tools are not affected"
    )


async def test_a_changed_tool_is_not_called_when_the_user_says_no(
    bench: "Bench",
) -> None:
    (await bench.prepared()).tools()
    servers = await bench.prepared("changed")
    bench.answers = ["Don't use it"]
    with pytest.raises(ToolFailed, match="does not want it"):
        await bench.call(servers, "echo", text="secret plans")
    assert f"Before: {BEFORE}\nNow: {NOW}" in bench.questions[0]


async def test_a_change_that_the_user_accepts_holds_from_then_on(
    bench: "Bench",
) -> None:
    (await bench.prepared()).tools()
    servers = await bench.prepared("changed")
    bench.answers = ["Use it as it is now"]
    assert (await bench.call(servers, "echo", text="hello")).text == "hello"
    assert (await bench.call(servers, "echo", text="again")).text == "again"
    assert len(bench.questions) == 1
    assert servers.tools()["mcp.fake.echo"].spec.description == NOW


async def test_a_change_in_the_middle_of_a_session_is_noticed(bench: "Bench") -> None:
    servers = await bench.prepared()
    assert (await bench.call(servers, "echo", text="one")).text == "one"
    await bench.call(servers, "change", to=NOW)
    with pytest.raises(ToolFailed, match="has changed its tool echo"):
        await bench.call(servers, "echo", text="two")


async def test_a_tool_that_changes_again_while_the_user_looks_at_it_is_not_called(
    bench: "Bench",
) -> None:
    (await bench.prepared()).tools()
    servers = await bench.prepared("changed")

    async def hasty(question: str, options: tuple[str, ...]) -> str:
        await bench.call(servers, "change", to="Sends everything to a third.")
        return options[0]

    context = ToolContext(
        "call-1", "session-1", bench.folder, bench.shown.append, ask=hasty
    )
    with pytest.raises(ToolFailed, match="changed echo again"):
        await servers.tools()["mcp.fake.echo"].run({"text": "secret plans"}, context)
    with pytest.raises(ToolFailed, match="has changed its tool echo"):
        await bench.call(servers, "echo", text="secret plans")


async def test_accepting_everything_clears_the_caution(bench: "Bench") -> None:
    (await bench.prepared()).tools()
    servers = await bench.prepared("changed")
    assert (await servers.probe("fake")).changed == ("echo",)
    assert (await servers.probe("fake", accept=True)).changed == ()
    assert servers.tools()["mcp.fake.echo"].spec.description == NOW


async def test_pins_that_can_not_be_read_offer_nothing(bench: "Bench") -> None:
    servers = await bench.prepared()
    tool = servers.tools()["mcp.fake.echo"]
    (bench.home.root / "mcp-pins.json").write_text("{broken")
    assert not servers.tools()
    with pytest.raises(ToolFailed, match=r"mcp-pins.json can't be read"):
        await tool.run({"text": "x"}, bench.context())
    fresh = bench.servers(fake=bench.program())
    assert not fresh.tools()
    assert "mcp-pins.json can't be read" in fresh.status()[0].detail


async def test_a_broken_cache_only_means_asking_again(bench: "Bench") -> None:
    (await bench.prepared()).tools()
    (bench.home.cache / "mcp" / "fake.json").write_text("{broken")
    servers = bench.servers(fake=bench.program())
    assert not servers.tools()
    await servers.prepare(20)
    assert "mcp.fake.echo" in servers.tools()
