"""What compatible servers do differently with chat completions streams."""

from typing import Any

import msgspec
import pytest
from tests.unit.providers.streams import read

from hermes.providers.adapter import ErrorFrame, StreamBroken
from hermes.providers.chat_completions_reader import ChatReader
from hermes.providers.sse import ServerEvent
from hermes.schema.messages import AssistantMessage


def chunks(
    *deltas: dict[str, Any],
    finish: str | None = "stop",
    tail: bytes = b"data: [DONE]\n\n",
) -> bytes:
    choices: list[dict[str, Any]] = [
        {"index": 0, "delta": delta, "finish_reason": None} for delta in deltas
    ]
    choices.append({"index": 0, "delta": {}, "finish_reason": finish})
    return (
        b"".join(
            b"data: " + msgspec.json.encode({"id": "c1", "choices": [one]}) + b"\n\n"
            for one in choices
        )
        + tail
    )


def message(*deltas: dict[str, Any], finish: str | None = "stop") -> AssistantMessage:
    return read("chat", chunks(*deltas, finish=finish))[1]


def call(
    index: int | None,
    id: str | None,  # noqa: A002
    name: str | None,
    arguments: str,  # noqa: A002, RUF100
) -> dict[str, Any]:
    return {
        "tool_calls": [
            {
                "index": index,
                "id": id,
                "function": {"name": name, "arguments": arguments},
            }
        ]
    }


def test_done_may_be_missing_after_a_finish_reason() -> None:
    assert read("chat", chunks({"content": "hi"}, tail=b""))[1].text == "hi"


def test_done_without_a_finish_reason_is_not_an_end() -> None:
    with pytest.raises(StreamBroken):
        read("chat", chunks({"content": "hi"}, finish=None))


def test_an_unknown_finish_reason_is_not_taken_for_a_good_one() -> None:
    with pytest.raises(StreamBroken, match="mystery"):
        message({"content": "hi"}, finish="mystery")


@pytest.mark.parametrize("finish", ["error", "insufficient_system_resource", "abort"])
def test_a_finish_reason_that_means_failure_is_one(finish: str) -> None:
    with pytest.raises(ErrorFrame):
        message({"content": "hi"}, finish=finish)


def test_calls_that_end_with_stop_are_still_calls() -> None:
    assert message(call(0, "a", "f", "{}")).finish == "tool_calls"


def test_calls_interleaved_by_index_are_put_together() -> None:
    deltas = (
        call(0, "a", "f", ""),
        call(1, "b", "g", ""),
        call(0, None, None, '{"x":'),
        call(1, None, None, "{}"),
    )
    done = message(*deltas, call(0, None, None, "1}"), finish="tool_calls")
    assert [(one.id, one.name, one.arguments) for one in done.tool_calls] == [
        ("a", "f", '{"x":1}'),
        ("b", "g", "{}"),
    ]


def test_parallel_calls_that_all_claim_index_zero_are_told_apart_by_id() -> None:
    done = message(call(0, "a", "f", "{}"), call(0, "b", "f", '{"n":2}'))
    assert [(one.id, one.arguments) for one in done.tool_calls] == [
        ("a", "{}"),
        ("b", '{"n":2}'),
    ]


def test_calls_without_index_are_told_apart_by_id() -> None:
    done = message(
        call(None, "a", "f", "{"),
        call(None, None, None, "}"),
        call(None, "b", "g", "{}"),
    )
    assert [(one.name, one.arguments) for one in done.tool_calls] == [
        ("f", "{}"),
        ("g", "{}"),
    ]


def test_a_call_without_id_gets_one() -> None:
    assert message(call(0, None, "f", "{}")).tool_calls[0].id == "c1-1"


def test_a_call_without_name_is_malformed() -> None:
    with pytest.raises(StreamBroken, match="name"):
        message(call(0, "a", None, "{}"))


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_thinking_is_found_under_either_name(field: str) -> None:
    assert message({field: "hm"}, {"content": "hi"}).reasoning == "hm"


def test_content_in_parts_is_told_apart_from_thinking() -> None:
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    done = message({"content": [thinking, {"type": "text", "text": "hi"}]})
    assert (done.reasoning, done.text) == ("hm", "hi")
    done = message({"content": [{"type": "text", "text": "<think>hm</think>hi"}]})
    assert (done.reasoning, done.text) == ("hm", "hi")


def test_a_refusal_is_one() -> None:
    done = message({"refusal": "I can't help with that."})
    assert (done.finish, done.text) == ("refused", "I can't help with that.")


def test_thinking_in_details_is_put_together_and_kept_for_the_next_turn() -> None:
    first = {"type": "reasoning.text", "index": 0, "text": "let me "}
    rest = {"type": "reasoning.text", "index": 0, "text": "see", "signature": "s1"}
    done = message(
        {"reasoning_details": [first]}, {"reasoning_details": [rest]}, {"content": "hi"}
    )
    items = msgspec.json.decode(done.opaque)["items"]
    assert items == [
        {"type": "reasoning.text", "index": 0, "text": "let me see", "signature": "s1"}
    ]


def test_a_signature_beside_a_call_is_kept_for_the_next_turn() -> None:
    extra = {"google": {"thought_signature": "abc"}}
    delta = {
        "tool_calls": [
            {
                "index": 0,
                "id": "a",
                "extra_content": extra,
                "function": {"name": "f", "arguments": "{}"},
            }
        ]
    }
    assert msgspec.json.decode(message(delta).opaque)["extras"] == {"a": extra}


@pytest.mark.parametrize(
    "frame",
    [
        b'{"error":{"message":"boom"}}',
        b'{"object":"error","message":"boom","code":400}',
        b'{"error":"boom"}',
    ],
)
def test_errors_of_every_shape_are_raised(frame: bytes) -> None:
    with pytest.raises(ErrorFrame):
        read("chat", b"data: " + frame + b"\n\n")


def test_other_choices_are_not_mixed_in() -> None:
    body = b'data: {"choices":[{"index":1,"delta":{"content":"other"}}]}\n\n' + chunks(
        {"content": "mine"}
    )
    assert read("chat", body)[1].text == "mine"


@pytest.mark.parametrize(
    ("text", "finish"),
    [
        ("This reply was cut off right in the middle of a", "length"),
        ("This reply was not cut off; it ends as it should.", "stop"),
        ("Forty-two", "stop"),
    ],
)
def test_a_server_that_says_stop_when_it_cut_the_reply_off_is_not_believed(
    text: str, finish: str
) -> None:
    reader = ChatReader(stops_when_cut=True)
    for line in chunks({"content": text}).split(b"\n\n")[:-1]:
        reader.feed(ServerEvent("", line.removeprefix(b"data: ")))
    assert reader.message().finish == finish
