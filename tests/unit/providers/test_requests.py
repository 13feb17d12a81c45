"""The requests that are built: stable to the byte, with everything a provider wants back."""

import base64
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from tests.unit.providers.streams import CODECS, FORMATS, endpoint, read

from hermes.providers.endpoint import ModelEndpoint, Options
from hermes.providers.image_encoding import Pictures, RequestImage
from hermes.providers.provider_table import GENERIC, family
from hermes.providers.request_prefix import build_body
from hermes.schema.messages import (
    AssistantMessage,
    Image,
    Message,
    ToolCall,
    ToolFinished,
    UserMessage,
)
from hermes.schema.model import ModelRequest
from hermes.schema.tool_spec import ToolSpec
from hermes.testing.formats import Format, render
from hermes.testing.scripted_responses import ScriptedResponse, ServedCall

TOOLS = (
    ToolSpec(
        name="read_file",
        description="Read.",
        parameters={"type": "object", "properties": {"path": {}}},
    ),
)
PICTURE = Image(source="/pictures/cat.png", media_type="image/png")
LOADED: Pictures = {
    PICTURE.source: RequestImage("image/png", data=base64.b64encode(b"cat").decode())
}


def build(
    wire: Format,
    *messages: Message,
    at: ModelEndpoint | None = None,
    system: tuple[str, ...] = ("stable", "project", "now"),
) -> bytes:
    request = ModelRequest(
        system=system, messages=messages, tools=TOOLS, cache_key="session-1"
    )
    return build_body(CODECS[wire], at or endpoint(), request, LOADED)[0]


def sent(
    wire: Format, *messages: Message, at: ModelEndpoint | None = None
) -> dict[str, Any]:
    return msgspec.json.decode(build(wire, *messages, at=at))


def answered(
    wire: Format, reply: ScriptedResponse, number: int, **origin: str
) -> AssistantMessage:
    message = read(wire, b"".join(render(wire, reply, "gpt-5", number)))[1]
    return msgspec.structs.replace(
        message,
        provider=origin.get("provider", "fake"),
        model=origin.get("model", "gpt-5"),
    )


def conversation(wire: Format) -> list[Message]:
    messages: list[Message] = [UserMessage(text="look", images=(PICTURE,))]
    for number in range(1, 6):
        calls = tuple(
            ServedCall("read_file", f'{{"path":  "{n}"}}') for n in range(number)
        )
        reply = answered(
            wire,
            ScriptedResponse(text=f"step {number}", reasoning="thinking", calls=calls),
            number,
        )
        messages.append(reply)
        messages += [
            ToolFinished(call_id=call.id, name=call.name, text="ok")
            for call in reply.tool_calls
        ]
    messages += [
        answered(wire, ScriptedResponse(text="done"), 9),
        UserMessage(text="thanks"),
    ]
    return messages


def requests_of(messages: list[Message]) -> list[list[Message]]:
    """What is sent at each call of the model: everything before each of its replies, and the whole."""
    ends = [
        at
        for at, message in enumerate(messages)
        if isinstance(message, AssistantMessage)
    ]
    return [messages[:end] for end in ends] + [messages]


@pytest.mark.parametrize("wire", FORMATS)
def test_each_request_begins_with_the_bytes_of_the_one_before(wire: Format) -> None:
    bodies = [
        unmarked(build(wire, *messages)) for messages in requests_of(conversation(wire))
    ]
    for before, after in pairwise(bodies):
        assert after.startswith(before.removesuffix(b"]}"))
    assert bodies == [
        unmarked(build(wire, *messages)) for messages in requests_of(conversation(wire))
    ]


def unmarked(body: bytes) -> bytes:
    """Anthropic's marker moves, and is no part of what is cached."""
    return body.replace(b',"cache_control":{"type":"ephemeral"}', b"")


def marked(body: dict[str, Any]) -> list[tuple[str, int]]:
    """Where the markers are: in the system's blocks, and in messages, whose last block they must be in."""
    places = [
        ("system", at)
        for at, block in enumerate(body["system"])
        if "cache_control" in block
    ]
    for at, message in enumerate(body["messages"]):
        inside = ["cache_control" in block for block in message["content"]]
        assert not any(inside[:-1])
        if inside[-1]:
            places.append(("message", at))
    return places


def test_a_marker_is_where_the_end_of_the_request_before_was_so_that_the_cache_hits() -> (
    None
):
    earlier_end = -1
    for messages in requests_of(conversation("anthropic")):
        body = sent("anthropic", *messages)
        places = marked(body)
        last = len(body["messages"]) - 1
        assert places[0] == (
            "system",
            1,
        )  # the last part before the one that may differ
        assert ("message", last) in places
        assert earlier_end < 0 or ("message", earlier_end) in places
        assert len(places) <= 4
        earlier_end = last


def test_signed_thinking_goes_back_before_its_calls_exactly_as_it_came() -> None:
    reply = answered(
        "anthropic",
        ScriptedResponse(
            reasoning="hm", calls=(ServedCall("read_file", '{"path": "x"}'),)
        ),
        1,
    )
    result = ToolFinished(call_id=reply.tool_calls[0].id, name="read_file", text="ok")
    blocks = sent("anthropic", UserMessage(text="go"), reply, result)["messages"][1][
        "content"
    ]
    assert blocks[0] == {"type": "thinking", "thinking": "hm", "signature": "c2lnbmVk"}
    assert blocks[1]["type"] == "tool_use"
    assert b'"input":{"path": "x"}' in build(
        "anthropic", UserMessage(text="go"), reply, result
    )


@pytest.mark.parametrize("wire", FORMATS)
def test_thinking_in_the_text_does_not_go_back_with_it(wire: Format) -> None:
    text = "<think>secret</think>Yes.\n<scratchpad>secret</scratchpad>"
    calls = (ServedCall("read_file", '{"path": "x"}'),)
    scripted = ScriptedResponse(text=text, reasoning="hm", calls=calls)
    reply = answered(wire, scripted, 1)
    assert reply.reasoning.count("secret") == 2
    request = build(wire, UserMessage(text="go"), reply, UserMessage(text="on"))
    assert b"Yes." in request
    assert b"secret" not in request
    assert b"think>" not in request


def test_encrypted_thinking_goes_back_without_its_id() -> None:
    reply = answered(
        "responses",
        ScriptedResponse(reasoning="hm", calls=(ServedCall("read_file"),)),
        1,
    )
    items = sent("responses", UserMessage(text="go"), reply)["input"]
    assert [item["type"] for item in items] == ["message", "reasoning", "function_call"]
    assert items[1]["encrypted_content"] == "c2lnbmVk"
    assert "id" not in items[1]


@pytest.mark.parametrize(
    ("wire", "origin"),
    [
        ("responses", {"provider": "somebody"}),
        ("responses", {"model": "gpt-4.1"}),
        (
            "anthropic",
            {"provider": "somebody"},
        ),  # its models take one another's thinking
    ],
)
def test_thinking_of_another_provider_or_model_is_left_out(
    wire: Format, origin: dict[str, str]
) -> None:
    reply = answered(wire, ScriptedResponse(text="hi", reasoning="hm"), 1, **origin)
    assert b"c2lnbmVk" not in build(
        wire, UserMessage(text="go"), reply, UserMessage(text="on")
    )
    assert b'"hi"' in build(wire, UserMessage(text="go"), reply, UserMessage(text="on"))


@pytest.mark.parametrize("wire", ["responses", "anthropic"])
def test_a_call_that_the_message_has_lost_does_not_come_back_with_the_thinking(
    wire: Format,
) -> None:
    reply = answered(
        wire,
        ScriptedResponse(text="hi", reasoning="hm", calls=(ServedCall("read_file"),)),
        1,
    )
    without = msgspec.structs.replace(reply, tool_calls=())
    assert b'"name":"read_file"' in build(wire, reply)
    assert b"c2lnbmVk" not in build(wire, without)
    assert b"tool_use" not in build(wire, without)


@pytest.mark.parametrize("wire", FORMATS)
def test_arguments_that_were_broken_are_sent_back_as_an_object(wire: Format) -> None:
    call = ToolCall(id="c1", name="read_file", arguments='{"path": oops')
    body = sent(
        wire,
        UserMessage(text="go"),
        AssistantMessage(tool_calls=(call,), finish="tool_calls"),
    )
    if wire == "anthropic":
        arguments = body["messages"][1]["content"][0]["input"]
    elif wire == "chat":
        arguments = msgspec.json.decode(
            body["messages"][-1]["tool_calls"][0]["function"]["arguments"]
        )
    else:
        arguments = msgspec.json.decode(body["input"][-1]["arguments"])
    assert arguments == {"invalid_json": '{"path": oops'}


def test_pictures_are_data_urls_or_base64_blocks() -> None:
    message = UserMessage(text="what is it?", images=(PICTURE,))
    assert (
        sent("chat", message)["messages"][1]["content"][1]["image_url"]["url"]
        == "data:image/png;base64,Y2F0"
    )
    assert (
        sent("responses", message)["input"][0]["content"][1]["image_url"]
        == "data:image/png;base64,Y2F0"
    )
    source = sent("anthropic", message)["messages"][0]["content"][0]["source"]
    assert source == {"type": "base64", "media_type": "image/png", "data": "Y2F0"}


def test_pictures_of_tool_results_are_shown_where_the_format_allows() -> None:
    result = ToolFinished(call_id="c1", name="look", text="a cat", images=(PICTURE,))
    chat = sent("chat", UserMessage(text="go"), result)["messages"]
    assert (chat[-2]["role"], chat[-2]["content"]) == ("tool", "a cat")
    assert (chat[-1]["role"], chat[-1]["content"][1]["type"]) == ("user", "image_url")
    output = sent("responses", result)["input"][0]["output"]
    assert [part["type"] for part in output] == ["input_text", "input_image"]
    content = sent("anthropic", result)["messages"][0]["content"][0]["content"]
    assert [part["type"] for part in content] == ["text", "image"]


@pytest.mark.parametrize("wire", FORMATS)
def test_a_model_that_reads_only_text_is_told_about_the_picture(wire: Format) -> None:
    body = build(
        wire, UserMessage(text="look", images=(PICTURE,)), at=endpoint("my-own-model")
    )
    assert b"this model reads only text" in body
    assert b"Y2F0" not in body


def test_thinking_is_echoed_by_family() -> None:
    mine = AssistantMessage(text="hi", reasoning="hm", provider="fake", model="m")
    bare = AssistantMessage(text="hi", provider="other", model="m")

    def echoed(name: str, message: AssistantMessage) -> object:
        quirks = family(name) or GENERIC
        wire = sent("chat", message, at=endpoint(quirks=quirks))["messages"][-1]
        return wire.get("reasoning_content", wire.get("reasoning"))

    assert echoed("openai", mine) is None
    assert echoed("deepseek", mine) == "hm"
    assert echoed("kimi", bare) == " "  # neither nothing nor an empty text is accepted
    assert echoed("zai", mine) == "hm"
    assert echoed("zai", bare) is None
    assert echoed("openrouter", mine) == "hm"


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("openai", "max_completion_tokens"),
        ("deepseek", "max_tokens"),
        ("mistral", "max_tokens"),
    ],
)
def test_the_limit_and_usage_are_asked_for_in_the_familys_way(
    name: str, field: str
) -> None:
    quirks = family(name) or GENERIC
    body = sent(
        "chat", at=endpoint(quirks=quirks, options=Options(max_output_tokens=99))
    )
    assert body[field] == 99
    assert ("stream_options" in body) is (name != "mistral")


def test_a_temperature_is_not_sent_to_a_model_that_rejects_it() -> None:
    warm = Options(temperature=0.5)
    assert "temperature" not in sent("chat", at=endpoint("gpt-5", options=warm))
    assert sent("chat", at=endpoint("gpt-4.1", options=warm))["temperature"] == 0.5
    assert "temperature" not in sent(
        "anthropic", at=endpoint("claude-sonnet-5-5", options=warm)
    )


def test_thinking_is_asked_for_as_the_claude_model_wants_it() -> None:
    effort = Options(reasoning_effort="high")
    new = sent("anthropic", at=endpoint("claude-opus-5-5", options=effort))
    assert (new["thinking"], new["output_config"]) == (
        {"type": "adaptive"},
        {"effort": "high"},
    )
    old = sent("anthropic", at=endpoint("claude-haiku-4-5", options=effort))
    assert old["thinking"] == {"type": "enabled", "budget_tokens": 16384}
    assert old["max_tokens"] > 16384


def test_responses_are_not_stored_and_encrypted_thinking_is_asked_of_models_that_think() -> (
    None
):
    body = sent("responses")
    assert (body["store"], body["include"]) == (False, ["reasoning.encrypted_content"])
    assert "include" not in sent("responses", at=endpoint("gpt-4.1"))


def test_openrouter_gets_cache_markers_for_claude_only() -> None:
    router = family("openrouter") or GENERIC
    claude = sent(
        "chat",
        UserMessage(text="hi"),
        at=endpoint("anthropic/claude-sonnet-4.6", router),
    )["messages"]
    assert ["cache_control" in part for part in claude[0]["content"]] == [
        False,
        True,
        False,
    ]
    assert "cache_control" in claude[1]["content"][0]
    other = sent("chat", UserMessage(text="hi"), at=endpoint("openai/gpt-5", router))[
        "messages"
    ]
    assert other[1]["content"] == "hi"


@pytest.mark.parametrize("wire", FORMATS)
def test_an_empty_reply_is_left_out(wire: Format) -> None:
    thought = answered(wire, ScriptedResponse(reasoning="hm"), 1)
    for empty in (AssistantMessage(text="", finish="stop"), thought):
        assert b"assistant" not in build(
            wire, UserMessage(text="a"), empty, UserMessage(text="b")
        )
        assert b"hm" not in build(
            wire, UserMessage(text="a"), empty, UserMessage(text="b")
        )
