"""The orb in a dashboard: it hears this process and others, says when it changes, and leaves nothing behind."""

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
from tests.integration.dashboard.harness import PATIENCE, Harness, frames

from hermes.events import default_bus


async def _enable(harness: Harness) -> None:
    rows = (await harness.call("GET", "/api/plugins", scope="observe"))["plugins"]
    (row,) = [row for row in rows if row["name"] == "orb"]
    assert (row["state"], row["bundled"], row["widget"]) == ("off", True, True)
    await harness.call(
        "PUT", "/api/plugins/orb", {"enabled": True, "hash": row["hash"]}
    )


def _is(state: str) -> Callable[[dict[str, Any]], bool]:
    return lambda event: event.get("state") == state


async def test_the_orb_follows_what_another_process_publishes(harness: Harness) -> None:
    await _enable(harness)
    assert (await harness.call("GET", "/api/plugins/orb/state", scope="observe"))[
        "state"
    ] == "idle"
    async with (
        harness.socket("/api/feed?pattern=orb.changed", scope="observe") as feed,
        harness.socket("/api/pub?channel=gateway", scope="publish") as pub,
    ):
        await frames(feed, lambda event: event["type"] == "feed.hello")

        async def publish(kind: str, **fields: Any) -> None:
            envelope = {"session_id": "far", "platform": "telegram", **fields}
            await pub.send(
                msgspec.json.encode(
                    {"_bus_relay": True, "topic": kind, "envelope": envelope}
                ).decode()
            )

        await publish("gateway.agent.start")
        assert (await frames(feed, _is("thinking")))[-1]["where"] == "telegram"
        await publish("gateway.agent.step", tool_names=["web_search"])
        assert (await frames(feed, _is("tool")))[-1]["tool"] == "web_search"
        await publish("gateway.agent.end", reason="done")
        await frames(feed, _is("idle"))


async def test_its_states_are_a_stream_too(harness: Harness) -> None:
    await _enable(harness)
    async with harness.client.stream(
        "GET", "/api/plugins/orb/states", headers=harness.bearer("observe")
    ) as answer:
        lines = (
            line.removeprefix("data: ") async for line in answer.aiter_lines() if line
        )
        async with asyncio.timeout(PATIENCE):
            assert msgspec.json.decode(await anext(lines))["state"] == "idle"
            await asyncio.to_thread(
                harness.app.bus.publish, "agent.turn.started", {"session_id": "near"}
            )
            assert msgspec.json.decode(await anext(lines)) == {
                "state": "thinking", "tool": "", "where": "", "session": "near", "busy": 1,
            }  # fmt: skip


async def test_nothing_of_it_is_left_when_it_is_off(harness: Harness) -> None:
    before = len(default_bus().stats().subscriptions)
    await _enable(harness)
    assert len(default_bus().stats().subscriptions) > before
    await harness.call("PUT", "/api/plugins/orb", {"enabled": False})
    assert len(default_bus().stats().subscriptions) == before
    assert (await harness.ask("GET", "/api/plugins/orb/state")).status_code == 404
