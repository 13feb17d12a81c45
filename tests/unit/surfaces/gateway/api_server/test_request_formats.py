"""Requests of both formats, read into one."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from hermes.settings import Home
from hermes.surfaces.gateway.api_server.access_control import error_body
from hermes.surfaces.gateway.api_server.request_formats import (
    ApiRequest,
    ChatBody,
    ResponseBody,
    pictures_of,
)
from hermes.surfaces.web.errors import Refusal


def chat(header: str = "", **body: Any) -> ApiRequest:
    return msgspec.convert(
        {"messages": [{"role": "user", "content": "hi"}]} | body, ChatBody
    ).request(header)


def response(header: str = "", **body: Any) -> ApiRequest:
    return msgspec.convert({"input": "hi"} | body, ResponseBody).request(header)


def test_what_is_new_is_all_that_the_user_said_after_the_last_answer() -> None:
    asked = chat(
        messages=[
            {"role": "developer", "content": "be kind"},
            {"role": "user", "content": "one"},
            {"role": "assistant", "content": "two"},
            {"role": "user", "content": [{"type": "text", "text": "three"}]},
            {"role": "user", "content": "four"},
        ]
    )
    assert [one.text for one in asked.now] == ["three", "four"]
    assert [one.text for one in asked.before] == ["be kind", "one", "two"]
    assert asked.system == "be kind"


def test_a_conversation_is_named_by_the_header_else_metadata_else_the_user() -> None:
    assert chat("h", metadata={"session": "m"}, user="u").conversation == "h"
    assert chat(metadata={"session": "m"}, user="u").conversation == "m"
    assert (
        chat(user="u").conversation == ""
    )  # it says who asks, not in which conversation
    assert chat().conversation == ""
    told = [
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "two"},
        {"role": "user", "content": "three"},
    ]
    assert (
        chat(user="u", messages=told).conversation == ""
    )  # it tells the whole conversation
    assert chat("h", user="u", messages=told).conversation == "h"
    body = msgspec.convert({"messages": told[:1], "user": "u"}, ChatBody)
    assert body.request("", by_user=True).conversation == "u"
    assert response(conversation={"id": "c"}).conversation == "c"
    assert response("h", conversation="c").conversation == "h"
    assert response(user="u").conversation == ""  # there it only says who asks
    assert response(previous_response_id="resp_1").previous == "resp_1"


@pytest.mark.parametrize(
    "body",
    [
        {"tools": [{"type": "function"}]},
        {"functions": [{"name": "x"}]},
        {"response_format": {"type": "grammar"}},
        {"n": 3},
        {"messages": []},
        {"messages": [{"role": "system", "content": "alone"}]},
        {"messages": [{"role": "tool", "content": "x"}]},
        {"messages": [{"role": "user", "content": [{"type": "file"}]}]},
    ],
)
def test_what_would_mislead_a_client_is_refused(body: dict[str, Any]) -> None:
    with pytest.raises(Refusal) as refused:
        chat(**body)
    assert refused.value.status == 400
    assert error_body(refused.value)["error"]["type"] == "invalid_request_error"


def test_a_response_can_not_be_in_the_background_or_follow_two_things() -> None:
    bodies: tuple[dict[str, Any], ...] = (
        {"background": True},
        {"conversation": "c", "previous_response_id": "resp_1"},
    )
    for body in bodies:
        with pytest.raises(Refusal):
            response(**body)
    with pytest.raises(Refusal):
        response(
            input=[{"type": "function_call_output", "call_id": "1", "output": "x"}]
        )


def test_what_makes_no_difference_is_left_alone() -> None:
    asked = chat(
        temperature=0.2,
        max_tokens=5,
        tools=[],
        n=None,
        stream=None,
        store=True,
        unheard_of={"x": 1},
    )
    assert (asked.stream, asked.model) == (False, "hermes")


@pytest.mark.parametrize("data", ["é", "A", "A*=="])
def test_a_picture_that_is_no_base64_is_refused(data: str) -> None:
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}
    said = chat(messages=[{"role": "user", "content": [image]}]).now
    with pytest.raises(Refusal, match="base64"):
        pictures_of(said, Home(Path("/nowhere")))
