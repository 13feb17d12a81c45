"""What a server keeps of the callers' tools."""

import asyncio

from hermes.schema.messages import ToolCall
from hermes.surfaces.gateway.api_server.client_tools import ClientTools


async def _waits_for_calls(tools: ClientTools, session: str) -> None:
    following = asyncio.ensure_future(tools.next_calls(session))
    await asyncio.sleep(0)
    tools.expect(session, [])
    following.cancel()
    await asyncio.wait({following})
    tools.followed(session)


async def test_a_session_leaves_nothing_behind_when_its_turn_is_over() -> None:
    tools = ClientTools()
    for number in range(50):
        await _waits_for_calls(tools, f"api-k-{number}")
    kept = {name: len(value) for name, value in vars(tools).items()}
    assert not any(kept.values()), kept


async def test_a_call_that_waits_is_still_handed_over_to_whoever_comes_next() -> None:
    tools = ClientTools()
    waiting = asyncio.ensure_future(
        tools.result("s", ToolCall(id="1", name="look", arguments="{}"))
    )
    await asyncio.sleep(0)
    tools.followed("s")
    tools.expect("s", ["look"])
    async with asyncio.timeout(5):
        (call,) = await tools.next_calls("s")
    tools.resolve("s", {call.id: "seen"})
    assert await waiting == "seen"
