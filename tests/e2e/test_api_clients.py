"""`hermes api` with the requests that LangChain and Open WebUI send.

LangChain's were recorded from `create_agent` and `with_structured_output` (langchain 1.4.7, langchain-openai 1.7.3). It
writes arguments with other spaces than it got them, and null as the content beside calls. Open WebUI's are what its
`backend/open_webui/routers/openai.py` sends: models, a streamed answer with its usage, a title, a picture with the
parameters of its sliders, and a history with the calls of its own tools; each with headers about its user.
"""

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import msgspec
from tests.e2e.test_api_server import Service, service
from tests.integration.gateway.platforms import PNG

from hermes.testing.model_server import ModelServer
from hermes.testing.scripted_responses import ScriptedResponse, ServedCall

TIMEOUT_S = 30.0
WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather in a city.",
        "parameters": {
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
            "type": "object",
        },
    },
}
CITY = {
    "properties": {
        "name": {"title": "Name", "type": "string"},
        "country": {"title": "Country", "type": "string"},
    },
    "required": ["name", "country"],
    "title": "City",
    "type": "object",
    "additionalProperties": False,
}
PARIS = '{"name":"Paris","country":"France"}'
TITLE = (
    "### Task:\nGenerate a concise, 3-5 word title with an emoji summarizing the chat history.\n### Output:\n"
    'JSON format: { "title": "your concise title here" }\n### Chat History:\n<chat_history>\nUSER: Capital of France?\n'
    "ASSISTANT: Paris.\n</chat_history>"
)
WEBUI_HEADERS = {
    "X-OpenWebUI-User-Name": "Ann%C3%A9 Doe",
    "X-OpenWebUI-User-Id": "6e9c1f0a",
    "X-OpenWebUI-User-Email": "anne@example.org",
    "X-OpenWebUI-User-Role": "user",
    "X-OpenWebUI-Chat-Id": "c7a1",
}
WEBUI_PARAMETERS = {
    "temperature": 0.8,
    "top_p": 0.9,
    "seed": 7,
    "stop": ["<END>"],
    "frequency_penalty": 0.1,
    "max_tokens": 128,
    "logit_bias": {"50256": -100},
    "reasoning": {"effort": "low"},
}
"""What its sliders add; the effort is OpenRouter's object, which it makes of `reasoning_effort`."""


def called(name: str, *arguments: str) -> ScriptedResponse:
    return ScriptedResponse(
        calls=tuple(ServedCall(name=name, arguments=one) for one in arguments)
    )


@asynccontextmanager
async def client_of(
    folder: Path, *replies: ScriptedResponse | str
) -> AsyncIterator[tuple[httpx2.AsyncClient, Service, ModelServer]]:
    async with service(folder, *replies) as (api, model):
        headers = {"Authorization": f"Bearer {api.key}"}
        async with httpx2.AsyncClient(
            base_url=api.url, headers=headers, timeout=TIMEOUT_S
        ) as client:
            yield client, api, model


async def chat(client: httpx2.AsyncClient, **body: Any) -> dict[str, Any]:
    reply = await client.post("/chat/completions", json={"model": "hermes", **body})
    assert reply.status_code == 200, reply.text
    return reply.json()["choices"][0]


async def chunks(client: httpx2.AsyncClient, **body: Any) -> list[dict[str, Any]]:
    """The chunks of a streamed answer, which ends as the protocol says."""
    asked = {
        "model": "hermes",
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    reply = await client.post("/chat/completions", json=asked | body)
    assert reply.headers["content-type"].startswith("text/event-stream")
    lines = [
        line.removeprefix("data: ")
        for line in reply.text.splitlines()
        if line.startswith("data: ")
    ]
    assert lines.pop() == "[DONE]"
    return [msgspec.json.decode(line) for line in lines]


def text_of(found: list[dict[str, Any]]) -> str:
    return "".join(
        choice["delta"].get("content") or ""
        for one in found
        for choice in one["choices"]
    )


def recalled(call: dict[str, Any], arguments: str) -> dict[str, Any]:
    """A call as LangChain sends it back."""
    function = {"name": call["function"]["name"], "arguments": arguments}
    return {"type": "function", "id": call["id"], "function": function}


async def test_a_langchain_agent_calls_its_tool_and_stays_one_session(
    tmp_path: Path,
) -> None:
    replies = (
        called("get_weather", '{"city":"Paris"}'),
        "It is sunny.",
        PARIS,
        called("City", PARIS),
    )
    async with client_of(tmp_path, *replies) as (client, api, model):
        said: list[Any] = [
            {"content": "Be brief.", "role": "system"},
            {"content": "weather in Paris?", "role": "user"},
        ]
        first = await chat(client, stream=False, messages=said, tools=[WEATHER])
        assert first["finish_reason"] == "tool_calls"
        (call,) = first["message"]["tool_calls"]
        calls = [recalled(call, '{"city": "Paris"}')]
        said += [
            {"content": None, "role": "assistant", "tool_calls": calls},
            {"content": "Sunny in Paris", "role": "tool", "tool_call_id": call["id"]},
        ]
        second = await chat(client, stream=False, messages=said, tools=[WEATHER])
        assert second["message"]["content"] == "It is sunny."
        assert b"Sunny in Paris" in model.posts[-1].body
        listed = await api.hermes.run("sessions", "list", "--json")
        assert listed.out.count('"session_id"') == 1
        question = [{"content": "Where is Paris?", "role": "user"}]
        schema = {"schema": CITY, "name": "City", "strict": True}
        structured = await chat(
            client,
            stream=False,
            messages=question,
            response_format={"type": "json_schema", "json_schema": schema},
        )
        assert msgspec.json.decode(structured["message"]["content"])["name"] == "Paris"
        function = {"name": "City", "description": "", "parameters": CITY}
        forced = await chat(
            client,
            stream=False,
            messages=question,
            parallel_tool_calls=False,
            tool_choice={"type": "function", "function": {"name": "City"}},
            tools=[{"type": "function", "function": function}],
        )
        assert forced["message"]["tool_calls"][0]["function"]["name"] == "City"


async def test_open_webui_lists_streams_names_the_chat_and_goes_on_with_its_tools(
    tmp_path: Path,
) -> None:
    replies = (
        "Paris.",
        '{ "title": "French Capital" }',
        called("get_weather", '{"city":"Rome"}', '{"city":"Oslo"}'),
        "Both are sunny.",
        "A red dot.",
    )
    async with client_of(tmp_path, *replies) as (client, _, model):
        client.headers.update(WEBUI_HEADERS)
        models = (await client.get("/models")).json()
        assert models["object"] == "list"
        name = models["data"][0]["id"]
        said: list[Any] = [{"role": "user", "content": "Capital of France?"}]
        answer = await chunks(client, model=name, messages=said)
        assert text_of(answer) == "Paris."
        assert answer[-1]["choices"] == []
        assert answer[-1]["usage"]["total_tokens"] > 0
        title = await chat(
            client,
            model=name,
            stream=False,
            max_completion_tokens=1000,
            messages=[{"role": "user", "content": TITLE}],
        )
        assert msgspec.json.decode(title["message"]["content"])["title"]
        said += [
            {"role": "assistant", "content": "Paris."},
            {"role": "user", "content": "weather in Rome and Oslo?"},
        ]
        asked = await chunks(client, model=name, messages=said, tools=[WEATHER])
        calls = [
            call
            for one in asked
            for choice in one["choices"]
            for call in choice["delta"].get("tool_calls") or ()
        ]
        assert [call["index"] for call in calls] == [0, 1]
        said.append({"role": "assistant", "content": "", "tool_calls": calls})
        said += [
            {"role": "tool", "tool_call_id": call["id"], "content": f"sunny {number}"}
            for number, call in enumerate(calls)
        ]
        ended = await chunks(client, model=name, messages=said, tools=[WEATHER])
        assert text_of(ended) == "Both are sunny."
        body = model.posts[-1].body.decode()
        assert "sunny 0" in body
        assert "sunny 1" in body
        picture = base64.b64encode(PNG).decode()
        parts: list[Any] = [
            {"type": "text", "text": "What is this?"},
            {
                "type": "image_url",
                "image_url": {"url": f"data:image/png;base64,{picture}"},
                "cache_control": {"type": "ephemeral"},
            },
        ]
        seen = await chunks(
            client,
            model=name,
            messages=[{"role": "user", "content": parts}],
            **WEBUI_PARAMETERS,
        )
        assert text_of(seen).endswith("A red dot.")
        assert "fake-1" in text_of(seen)  # says why this model was not sent the picture
