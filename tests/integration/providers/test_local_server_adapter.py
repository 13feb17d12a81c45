"""A model behind a server of one's own: what the server says about it, and how the model is asked."""

from pathlib import Path
from typing import Any

import pytest
from tests.fakes.self_hosted_server import Reply, SelfHostedServer, running_server

from hermes.errors import ModelError
from hermes.providers.catalogue import UNKNOWN
from hermes.providers.chat_completions import ChatCompletions
from hermes.providers.embedded.adapter_choice import AdapterMemory
from hermes.providers.endpoint import ModelEndpoint
from hermes.providers.http_client import Http, HttpTimeouts
from hermes.providers.local_server_adapter import LocalServerAdapter
from hermes.providers.provider_table import family
from hermes.providers.server_facts import read_server_facts
from hermes.schema.messages import AssistantMessage, UserMessage
from hermes.schema.model import ModelRequest, ReplyFinished
from hermes.schema.tool_spec import ToolSpec

TOOL = ToolSpec(
    name="read_file",
    description="Reads a file.",
    parameters={"type": "object", "properties": {"path": {"type": "string"}}},
)
LONG = ToolSpec(name="long", description="x" * 20_000, parameters={"type": "object"})


def good(request: dict[str, Any]) -> Reply:
    """A model that uses tools as it should."""
    said = [one for one in request["messages"] if one["role"] != "system"]
    if said[-1]["role"] == "tool":
        return f"It says: {said[-1]['content']}"
    if "2 + 2" in said[-1]["content"]:
        return "4"
    if "notes.md" in said[-1]["content"] and request.get("tools"):
        return "read_file", {"path": "notes.md"}
    return "Hello."


def talker(request: dict[str, Any]) -> Reply:
    """A model that can't use tools."""
    return "I am happy to help."


def adapter(server: SelfHostedServer, memory: Path) -> LocalServerAdapter:
    quirks = family(server.kind) or family("generic")
    assert quirks is not None
    endpoint = ModelEndpoint(
        provider=server.kind,
        base_url=server.url,
        model=server.model,
        quirks=quirks,
        facts=UNKNOWN,
    )
    timeouts = HttpTimeouts(connect=5, first_byte=10, idle=10, total=20)
    return LocalServerAdapter(
        Http(), endpoint, ChatCompletions(), timeouts, AdapterMemory(memory)
    )


async def ask(
    model: LocalServerAdapter, text: str, *tools: ToolSpec
) -> AssistantMessage:
    request = ModelRequest(
        system=("You help.",), messages=(UserMessage(text=text),), tools=tools
    )
    async for event in model.stream(request):
        if isinstance(event, ReplyFinished):
            return event.message
    raise AssertionError("the stream did not end")


@pytest.mark.parametrize("kind", ["ollama", "lmstudio", "llamacpp"])
async def test_each_server_says_context_size_and_abilities(kind: Any) -> None:
    served = SelfHostedServer(kind, good, context_tokens=4096, has_tools=False)
    http = Http()
    with running_server(served) as server:
        for asked in (kind, ""):
            facts = await read_server_facts(http, server.url, server.model, kind=asked)
            assert facts is not None
            assert (facts.kind, facts.context_tokens) == (kind, 4096)
            assert facts.has_tools is False
            assert facts.parameters == 8_000_000_000
    await http.aclose()


async def test_something_else_at_the_address_is_no_such_server() -> None:
    http = Http()
    served = SelfHostedServer("ollama", good)
    with running_server(served) as server:
        unknown = await read_server_facts(http, server.url, "x", kind="lmstudio")
    assert unknown is None
    assert await read_server_facts(http, "http://127.0.0.1:9/v1", "x") is None
    await http.aclose()


@pytest.mark.parametrize(
    ("kind", "advice"),
    [
        ("ollama", "OLLAMA_CONTEXT_LENGTH=32768"),
        ("lmstudio", "lms load qwen3:8b --context-length 32768"),
        ("llamacpp", "llama-server -c 32768"),
    ],
)
async def test_a_context_that_is_too_small_is_said_and_nothing_is_sent(
    kind: Any, advice: str, tmp_path: Path
) -> None:
    served = SelfHostedServer(kind, good, context_tokens=4096)
    with running_server(served) as server:
        model = adapter(server, tmp_path)
        await ask(model, "hi", TOOL)
        chats = len(server.chats)
        with pytest.raises(ModelError) as error:
            await ask(model, "hi", TOOL, LONG)
        assert "a context of 4,096 tokens, and Hermes needs about 6," in error.value.message  # fmt: skip
        assert advice in error.value.hint
        assert not error.value.compress
        assert len(server.chats) == chats
        with pytest.raises(ModelError) as error:
            await ask(model, "word " * 4_000, TOOL)
        assert error.value.reason == "too_long"
        assert error.value.compress

        server.context_tokens = 32_768
        assert (await ask(model, "hi", TOOL, LONG)).text == "Hello."
        await model.close()


async def test_a_model_that_is_not_loaded_yet_is_loaded_to_learn_its_context(
    tmp_path: Path,
) -> None:
    served = SelfHostedServer("ollama", good, context_tokens=2048, is_loaded=False)
    with running_server(served) as server:
        model = adapter(server, tmp_path)
        with pytest.raises(ModelError, match="2,048 tokens"):
            await ask(model, "hi", LONG)
        assert "/api/generate" in server.paths
        await model.close()


async def test_the_way_of_using_tools_is_tested_once_and_remembered(
    tmp_path: Path,
) -> None:
    with running_server(SelfHostedServer("ollama", good)) as server:
        first = adapter(server, tmp_path)
        reply = await ask(first, "What is in notes.md?", TOOL)
        assert reply.tool_calls[0].name == "read_file"
        assert (reply.provider, reply.model) == ("ollama", "qwen3:8b")
        assert len(server.chats) == 4
        await first.close()
        second = adapter(server, tmp_path)
        await ask(second, "What is in notes.md?", TOOL)
        assert len(server.chats) == 5
        assert "tools" in server.chats[-1]
        await second.close()


async def test_a_request_without_tools_needs_no_test(tmp_path: Path) -> None:
    with running_server(SelfHostedServer("ollama", talker)) as server:
        model = adapter(server, tmp_path)
        assert (await ask(model, "hi")).text == "I am happy to help."
        assert len(server.chats) == 1
        await model.close()


async def test_a_model_that_fails_every_test_only_talks(tmp_path: Path) -> None:
    with running_server(SelfHostedServer("ollama", talker)) as server:
        model = adapter(server, tmp_path)
        reply = await ask(model, "What is in notes.md?", TOOL)
        assert reply.text == "I am happy to help."
        assert not reply.tool_calls
        assert "tools" not in server.chats[-1]
        name = f"{server.url}|qwen3:8b"
        record = AdapterMemory(tmp_path).get(name)
        assert record is not None
        assert record.adapter == "chat"
        assert "native: it did not call the tool" in record.reason
        await model.close()
