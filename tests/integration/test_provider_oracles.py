"""The official SDKs read the fake server's streams as we do: so the fake is honest, and so are our readers."""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import msgspec
import pytest

from hermes.providers.build import build_model
from hermes.schema.messages import AssistantMessage, UserMessage
from hermes.schema.model import ModelRequest, ReplyFinished
from hermes.schema.tool_spec import ToolSpec
from hermes.settings import Secrets, Settings
from hermes.settings.models import ModelSettings
from hermes.testing.formats import Format
from hermes.testing.model_server import ModelServer
from hermes.testing.scripted_responses import ScriptedResponse, ServedCall

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic
    from openai import AsyncOpenAI

TOOLS = (
    ToolSpec(
        name="read_file",
        description="Read.",
        parameters={"type": "object", "properties": {}},
    ),
)
REPLIES = [
    ScriptedResponse(
        text="Hello, wörld 🌍.", input_tokens=50, output_tokens=9, cached_tokens=30
    ),
    ScriptedResponse(
        text="Reading.",
        calls=(
            ServedCall("read_file", '{"path": "a"}'),
            ServedCall("read_file", '{"path": "b"}'),
        ),
    ),
    ScriptedResponse(
        reasoning="Let me see.", text="Done.", reasoning_tokens=7, output_tokens=12
    ),
    ScriptedResponse(calls=(ServedCall("read_file", "{}"),)),
    ScriptedResponse(text="too lo", finish="length"),
    ScriptedResponse(text="no", finish="refused"),
]


async def ours(server: ModelServer, wire: Format) -> AssistantMessage:
    settings = Settings(
        model=msgspec.convert(
            {"base_url": server.url, "api": wire, "default": "gpt-5"}, ModelSettings
        )
    )
    model = build_model(settings, Secrets({}, {}))
    request = ModelRequest(
        system=("s",), messages=(UserMessage(text="hi"),), tools=TOOLS
    )
    try:
        events = [event async for event in model.stream(request)]
    finally:
        await model.close()
    assert isinstance(events[-1], ReplyFinished)
    return events[-1].message


@pytest.fixture
async def openai() -> AsyncIterator["AsyncOpenAI"]:
    from openai import AsyncOpenAI  # takes a second

    async with AsyncOpenAI(
        api_key="none", base_url="http://127.0.0.1:1", max_retries=0
    ) as client:
        yield client


@pytest.fixture
async def anthropic() -> AsyncIterator["AsyncAnthropic"]:
    from anthropic import AsyncAnthropic  # takes three seconds

    async with AsyncAnthropic(
        api_key="none", base_url="http://127.0.0.1:1", max_retries=0
    ) as client:
        yield client


@pytest.mark.parametrize("reply", REPLIES)
async def test_openais_sdk_reads_chat_completions_as_we_do(
    openai: "AsyncOpenAI", reply: ScriptedResponse
) -> None:
    async with ModelServer(reply, reply) as server:
        message = await ours(server, "chat")
        there = openai.with_options(base_url=server.url)
        text, calls, finish = "", dict[int, list[str]](), ""
        usage = (0, 0, 0)
        stream = await there.chat.completions.create(
            model="gpt-5", messages=[{"role": "user", "content": "hi"}], stream=True
        )
        async for chunk in stream:
            if chunk.usage and chunk.usage.prompt_tokens_details:
                cached = chunk.usage.prompt_tokens_details.cached_tokens or 0
                usage = (
                    chunk.usage.prompt_tokens,
                    chunk.usage.completion_tokens,
                    cached,
                )
            for choice in chunk.choices:
                text += choice.delta.content or ""
                finish = choice.finish_reason or finish
                for call in choice.delta.tool_calls or []:
                    assert call.function is not None
                    parts = calls.setdefault(call.index, ["", ""])
                    parts[0] += call.function.name or ""
                    parts[1] += call.function.arguments or ""
    assert text == message.text
    assert list(calls.values()) == [
        [call.name, call.arguments] for call in message.tool_calls
    ]
    assert finish == {"refused": "content_filter"}.get(message.finish, message.finish)
    found = message.usage
    assert found is not None
    assert usage == (found.input_tokens, found.output_tokens, found.cache_read_tokens)


@pytest.mark.parametrize("reply", REPLIES)
async def test_openais_sdk_reads_responses_as_we_do(
    openai: "AsyncOpenAI", reply: ScriptedResponse
) -> None:
    async with ModelServer(reply, reply) as server:
        message = await ours(server, "responses")
        there = openai.with_options(base_url=server.url)
        final = None
        async for event in await there.responses.create(
            model="gpt-5", input="hi", stream=True
        ):
            if event.type in {"response.completed", "response.incomplete"}:
                final = event.response
    assert final is not None
    assert final.usage is not None
    assert final.output_text == message.text
    calls = [
        (item.call_id, item.name, item.arguments)
        for item in final.output
        if item.type == "function_call"
    ]
    assert [(name, arguments) for _, name, arguments in calls] == [
        (c.name, c.arguments) for c in message.tool_calls
    ]
    thoughts = [
        part.text
        for item in final.output
        if item.type == "reasoning"
        for part in item.summary
    ]
    assert "".join(thoughts) == message.reasoning
    found = message.usage
    assert found is not None
    assert final.usage.input_tokens == found.input_tokens
    assert final.usage.output_tokens == found.output_tokens
    assert final.usage.input_tokens_details.cached_tokens == found.cache_read_tokens
    assert final.usage.output_tokens_details.reasoning_tokens == found.reasoning_tokens


@pytest.mark.parametrize("reply", REPLIES)
async def test_anthropics_sdk_reads_messages_as_we_do(
    anthropic: "AsyncAnthropic", reply: ScriptedResponse
) -> None:
    async with ModelServer(reply, reply) as server:
        message = await ours(server, "anthropic")
        there = anthropic.with_options(base_url=server.url.removesuffix("/v1"))
        asked = there.messages.stream(
            model="m", max_tokens=100, messages=[{"role": "user", "content": "hi"}]
        )
        async with asked as stream:
            final = await stream.get_final_message()
    assert (
        "".join(block.text for block in final.content if block.type == "text")
        == message.text
    )
    assert (
        "".join(block.thinking for block in final.content if block.type == "thinking")
        == message.reasoning
    )
    calls = [
        (block.name, block.input) for block in final.content if block.type == "tool_use"
    ]
    assert calls == [
        (call.name, msgspec.json.decode(call.arguments)) for call in message.tool_calls
    ]
    reasons = {
        "stop": "end_turn",
        "tool_calls": "tool_use",
        "length": "max_tokens",
        "refused": "refusal",
    }
    assert final.stop_reason == reasons[message.finish]
    found = message.usage
    assert found is not None
    read = final.usage.cache_read_input_tokens or 0
    written = final.usage.cache_creation_input_tokens or 0
    assert final.usage.input_tokens + read + written == found.input_tokens
    assert final.usage.output_tokens == found.output_tokens
