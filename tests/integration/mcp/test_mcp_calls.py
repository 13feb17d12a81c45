"""Tools of real server processes: what is offered, what comes back, and what the server gets to see."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from hermes.core.ports import Tool, ToolContext
from hermes.errors import ToolFailed
from hermes.settings.mcp import McpToolSettings

if TYPE_CHECKING:
    from tests.integration.mcp.conftest import Bench


async def test_tools_are_offered_under_the_name_of_their_server(bench: "Bench") -> None:
    servers = await bench.prepared()
    tools: Mapping[str, Tool] = servers.tools()
    assert tools["mcp.fake.echo"].spec.description == "Says it again."
    assert tools["mcp.fake.echo"].spec.parameters["properties"] == {
        "text": {"type": "string"}
    }
    assert list(tools) == sorted(tools)
    result = await bench.call(servers, "echo", text="hello")
    assert (result.text, result.ok, result.source) == ("hello", True, "MCP server fake")


async def test_a_server_can_not_shadow_a_built_in_tool_or_itself(
    bench: "Bench",
) -> None:
    servers = await bench.prepared("shadow")
    tools = servers.tools()
    assert all(name.startswith("mcp.fake.") for name in tools)
    assert "mcp.fake.terminal" in tools
    left_out = " ".join(servers.status()[0].left_out)
    assert "bad name!: its name has characters" in left_out
    assert "echo: two tools have that name" in left_out


async def test_with_a_cached_listing_nothing_is_loaded_and_nothing_started(
    bench: "Bench",
) -> None:
    await bench.prepared()
    code = (
        "import sys, asyncio; from pathlib import Path; from hermes.mcp import McpServers; from hermes.settings import *\n"
        "from hermes.settings.sections import McpServerSettings; import msgspec\n"
        "settings = {'fake': msgspec.json.decode(sys.argv[2], type=McpServerSettings)}\n"
        "servers = McpServers(settings, Home(Path(sys.argv[1])), Secrets({}, {}), {})\n"
        "asyncio.run(servers.prepare())\n"
        "assert 'mcp.fake.echo' in servers.tools() and servers.status()[0].state == 'idle'\n"
        "loaded = {'mcp', 'pydantic', 'httpx2', 'anyio', 'hermes.mcp.protocol'} & set(sys.modules)\n"
        "assert not loaded, loaded\n"
    )
    settings = msgspec.json.encode(bench.program()).decode()
    before = bench.noted().count("listed")
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", code, str(bench.home.root), settings],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert bench.noted().count("listed") == before


async def test_other_settings_ask_the_server_again(bench: "Bench") -> None:
    await bench.prepared()
    servers = bench.servers(fake=bench.program("shadow"))
    assert not servers.tools()
    await servers.prepare(20)
    assert "mcp.fake.terminal" in servers.tools()


async def test_a_slow_server_does_not_hold_up_the_others_and_joins_later(
    bench: "Bench", wait_until: Any
) -> None:
    servers = bench.servers(
        fake=bench.program(), slow=bench.program("late"), mute=bench.program("mute")
    )
    await wait_until_prepared(servers, "mcp.fake.echo")
    assert not [
        name for name in servers.tools() if name.startswith(("mcp.slow", "mcp.mute"))
    ]
    assert {one.name: one.state for one in servers.status()}["slow"] == "connecting"
    bench.go.touch()
    await wait_until(lambda: "mcp.slow.echo" in servers.tools())


async def test_a_server_that_was_too_late_once_is_not_waited_for(
    bench: "Bench", wait_until: Any
) -> None:
    first = bench.servers(slow=bench.program("late"))
    await first.prepare(0.01)
    await first.close()
    second = bench.servers(slow=bench.program("late"))
    async with asyncio.timeout(30):
        await second.prepare(3600)
    assert second.status()[0].state == "connecting"
    bench.go.touch()
    await wait_until(lambda: "mcp.slow.echo" in second.tools())


async def wait_until_prepared(servers: Any, name: str) -> None:
    async with asyncio.timeout(20):
        while name not in servers.tools():
            await servers.prepare(0.05)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("structured", '{\n "degrees": 21\n}'),
        (
            "link",
            "[resource file:///notes.txt: notes, text/plain]\n\n[resource file:///a.txt]\ninside",
        ),
        ("escapes", "red words"),
        ("sample", '{"code": -32600, "message": "Sampling not supported"}'),
    ],
)
async def test_what_comes_back_as_text(bench: "Bench", name: str, text: str) -> None:
    assert (await bench.call(await bench.prepared(), name)).text == text


async def test_a_picture_comes_back_as_a_picture(
    bench: "Bench", content_of: Any
) -> None:
    (image,) = (await bench.call(await bench.prepared(), "picture")).images
    assert image.media_type == "image/png"
    assert content_of(image.source).startswith(b"\x89PNG")


async def test_sound_is_kept_in_a_file(bench: "Bench", content_of: Any) -> None:
    text = (await bench.call(await bench.prepared(), "blob")).text
    assert text.startswith("[audio/wav, 4 bytes; it is in ")
    assert content_of(text.removesuffix("]").rpartition(" ")[2]) == bytes(range(4))


async def test_a_long_result_has_a_hole_and_is_kept_whole(
    bench: "Bench", content_of: Any
) -> None:
    text = (await bench.call(await bench.prepared(), "long")).text
    assert len(text) < 31_000
    assert text.startswith("beginning xxx")
    assert text.endswith("xxx end")
    path = text.partition("all of it is in ")[2].partition("]")[0]
    assert len(content_of(path)) == 100_014


async def test_failures_of_a_tool_are_results_in_the_servers_words(
    bench: "Bench",
) -> None:
    servers = await bench.prepared()
    failed = await bench.call(servers, "fail")
    assert (failed.ok, failed.text, failed.source) == (
        False,
        "it did not work",
        "MCP server fake",
    )
    refused = await bench.call(servers, "refuse")
    assert not refused.ok
    assert refused.source == "MCP server fake"
    assert "I refuse" in refused.text


async def test_progress_is_shown(bench: "Bench") -> None:
    await bench.call(await bench.prepared(), "progress")
    assert bench.shown == ["cutting (1/8)\n", "cutting (2/8)\n"]


async def test_signs_of_life_keep_a_slow_call_alive(bench: "Bench") -> None:
    servers = await bench.prepared(timeout=1.5)
    assert (await bench.call(servers, "slow")).text == "slow but sure"


async def test_a_server_sees_an_allowlist_its_own_variables_and_no_keys(
    bench: "Bench",
) -> None:
    bench.secrets["FAKE_TOKEN"] = "tok-1234567890"  # noqa: S105 - of nobody
    servers = await bench.prepared(
        env={"ACCESS": "${FAKE_TOKEN}", "MODE": "${MODE:-calm}"}
    )
    result = await bench.call(servers, "env")
    seen = json.loads(result.text)
    assert "OPENAI_API_KEY" not in seen
    assert seen["MODE"] == "calm"
    assert seen["PATH"] == bench.environment["PATH"]
    assert seen["ACCESS"] == "********", "a secret does not come back"


async def test_a_secret_that_is_not_set_is_named(bench: "Bench") -> None:
    servers = await bench.prepared(env={"ACCESS": "${FAKE_TOKEN}"})
    status = servers.status()[0]
    assert (status.state, status.detail) == ("failed", "FAKE_TOKEN is not set.")
    assert status.hint == "Store it with: hermes config set FAKE_TOKEN"
    assert not bench.noted()


async def test_only_chosen_tools_are_offered(bench: "Bench") -> None:
    servers = await bench.prepared(
        tools=McpToolSettings(include=("e*", "look"), exclude=("env",))
    )
    assert sorted(servers.tools()) == [
        "mcp.fake.echo",
        "mcp.fake.escapes",
        "mcp.fake.look",
    ]


async def test_a_server_is_believed_only_when_it_is_trusted(bench: "Bench") -> None:
    wary = await bench.prepared()
    assert wary.tools()["mcp.fake.look"].effect == "other"
    trusting = await bench.prepared(trusted=True)
    assert trusting.tools()["mcp.fake.look"].effect == "read"
    assert trusting.tools()["mcp.fake.echo"].effect == "other"


async def test_a_server_that_is_off_is_not_started(bench: "Bench") -> None:
    servers = await bench.prepared(enabled=False)
    assert not servers.tools()
    assert servers.status()[0].state == "off"
    assert not bench.noted()


async def test_calls_run_at_the_same_time(bench: "Bench") -> None:
    servers = await bench.prepared()
    results = await asyncio.gather(
        *(bench.call(servers, "echo", text=str(number)) for number in range(20))
    )
    assert [result.text for result in results] == [str(number) for number in range(20)]
    assert len([line for line in bench.noted() if line.startswith("started")]) == 1


async def test_an_idle_server_is_left_and_found_again(
    bench: "Bench", wait_until: Any, running: Any
) -> None:
    servers = await bench.prepared(idle_timeout=0.2)
    pid = servers.status()[0].pid
    await wait_until(lambda: servers.status()[0].state == "idle" and not running(pid))
    assert (await bench.call(servers, "echo", text="again")).text == "again"


async def test_a_new_protocol_is_spoken_when_the_old_one_is_not_understood(
    bench: "Bench",
) -> None:
    servers = await bench.prepared("modern")
    assert "MCP 2026-07-28" in servers.status()[0].detail
    bench.answers = ["4", "no", "dinner", ""]
    answers, state = json.loads((await bench.call(servers, "echo")).text)
    assert answers["table"] == {
        "action": "accept",
        "content": {"seats": 4, "outside": False, "meal": "dinner"},
    }
    assert state == "kept"


async def test_a_form_is_asked_field_by_field(bench: "Bench") -> None:
    servers = await bench.prepared()
    bench.answers = ["nine", "12", "4", "yes", "Dinner", "by the window"]
    given = json.loads((await bench.call(servers, "form")).text)
    content = {"seats": 4, "outside": True, "meal": "dinner", "note": "by the window"}
    assert given == {"action": "accept", "content": content}
    assert bench.questions[0] == "The MCP server fake asks: Which table?\nSeats"
    assert "whole number" in bench.questions[1]
    assert "in this range: 1 to 8" in bench.questions[2]
    assert bench.options[4] == ("lunch", "dinner", "Decline")


async def test_a_form_can_be_declined_and_is_when_nobody_is_there(
    bench: "Bench",
) -> None:
    servers = await bench.prepared()
    assert json.loads((await bench.call(servers, "form")).text) == {"action": "decline"}
    bench.answers = ["4", "decline"]
    assert json.loads((await bench.call(servers, "form")).text) == {"action": "decline"}


async def test_an_address_is_shown_before_it_is_opened(bench: "Bench") -> None:
    servers = await bench.prepared()
    bench.answers = ["Done"]
    assert (
        json.loads(
            (await bench.call(servers, "address", url="https://example.org/in")).text
        )["action"]
        == "accept"
    )
    assert "https://example.org/in" in bench.questions[0]
    assert (
        json.loads(
            (await bench.call(servers, "address", url="file:///etc/passwd")).text
        )["action"]
        == "decline"
    )
    assert len(bench.questions) == 1


async def test_waiting_for_the_user_does_not_use_up_the_time(bench: "Bench") -> None:
    servers = await bench.prepared(timeout=1.5)
    patience = asyncio.get_running_loop().time() + 2.0

    async def slow(question: str, options: tuple[str, ...]) -> str:
        while asyncio.get_running_loop().time() < patience:  # noqa: ASYNC110 - longer than the call's time
            await asyncio.sleep(0.01)
        return "Decline"

    context = ToolContext(
        "call-1", "session-1", bench.folder, bench.shown.append, ask=slow
    )
    result = await servers.tools()["mcp.fake.form"].run({}, context)
    assert json.loads(result.text) == {"action": "decline"}


async def test_two_questions_at_once_are_asked_one_after_the_other(
    bench: "Bench", wait_until: Any
) -> None:
    servers = await bench.prepared()
    open_ones: list[str] = []
    most = 0

    async def one_by_one(question: str, options: tuple[str, ...]) -> str:
        nonlocal most
        open_ones.append(question)
        most = max(most, len(open_ones))
        await wait_until(lambda: bench.noted().count("asked") == 2)
        for _ in range(300):  # what the server has sent is taken in by now
            await asyncio.sleep(0)
        open_ones.pop()
        return "Yes"

    context = ToolContext(
        "call-1", "session-1", bench.folder, bench.shown.append, ask=one_by_one
    )
    result = await servers.tools()["mcp.fake.pair"].run({}, context)
    assert [one["action"] for one in json.loads(result.text)] == ["accept", "accept"]
    assert most == 1


async def test_an_interrupted_call_is_cancelled_at_the_server(
    bench: "Bench", wait_until: Any
) -> None:
    servers = await bench.prepared()
    call = asyncio.ensure_future(bench.call(servers, "hang"))
    await wait_until(lambda: "hanging" in bench.noted())
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await wait_until(
        lambda: any(line.startswith("cancelled") for line in bench.noted())
    )
    assert (await bench.call(servers, "echo", text="still there")).text == "still there"


async def test_an_unknown_tool_of_a_server_is_not_called(bench: "Bench") -> None:
    servers = await bench.prepared()
    old = servers.tools()["mcp.fake.echo"]
    await servers.close()
    servers = await bench.prepared(tools=McpToolSettings(exclude=("echo",)))
    assert "mcp.fake.echo" not in servers.tools()
    with pytest.raises(ToolFailed, match="no longer offers"):
        await servers._servers["fake"].call("echo", {}, bench.context())
    assert old.spec.name == "mcp.fake.echo"
