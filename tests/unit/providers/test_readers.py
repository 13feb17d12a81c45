"""Reading streams of the three formats: what must come out, and that nothing does before the proper end."""

import pytest
from tests.unit.providers.streams import CODECS, FORMATS, endpoint, read

from hermes.providers.adapter import ErrorFrame, StreamBroken
from hermes.providers.sse import BrokenEvents
from hermes.schema.messages import ToolCall
from hermes.schema.model import ReasoningPiece, TextDelta, ToolCallStarted
from hermes.testing.formats import Format, error_frame, render, render_whole
from hermes.testing.scripted_responses import ScriptedResponse, ServedCall

REPLY = ScriptedResponse(
    text="Größe: 你好 🌍 done.",
    reasoning="Let me think about it.",
    calls=(
        ServedCall("read_file", '{"path": "a é\\n.txt"}'),
        ServedCall("list_files", "{}"),
    ),
    input_tokens=100,
    output_tokens=30,
    cached_tokens=60,
    reasoning_tokens=12,
    chunk=5,
)

pytestmark = pytest.mark.parametrize("wire", FORMATS)


def body(wire: Format, reply: ScriptedResponse) -> bytes:
    return b"".join(render(wire, reply, "gpt-5", 1))


def test_text_thinking_calls_and_usage_come_out_whole(wire: Format) -> None:
    events, message = read(wire, body(wire, REPLY))
    assert (
        message.text
        == REPLY.text
        == "".join(e.text for e in events if isinstance(e, TextDelta))
    )
    assert (
        message.reasoning
        == REPLY.reasoning
        == "".join(e.text for e in events if isinstance(e, ReasoningPiece))
    )
    assert [(call.name, call.arguments) for call in message.tool_calls] == [
        (call.name, call.arguments) for call in REPLY.calls
    ]
    started = [event for event in events if isinstance(event, ToolCallStarted)]
    assert [(event.id, event.name) for event in started] == [
        (call.id, call.name) for call in message.tool_calls
    ]
    assert message.finish == "tool_calls"
    usage = message.usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens) == (
        100,
        30,
        60,
    )
    assert usage.reasoning_tokens == 12


LEFT_IN_TEXT = [
    ("<think>hm 🌍</think>\n\nYes.", "hm 🌍", "Yes."),
    (
        "Yes.\n<REASONING_SCRATCHPAD>hm</REASONING_SCRATCHPAD>\nNo.",
        "hm",
        "Yes.\nNo.",
    ),
    ("Use <think>hm</think> it.", "hm", "Use  it."),
    ("`<think>` is a tag, 1 <2.", "", "`<think>` is a tag, 1 <2."),
    ("hm\n</think>\nYes.", "hm", "Yes."),
]


@pytest.mark.parametrize(("text", "thought", "said"), LEFT_IN_TEXT)
def test_thinking_in_the_text_is_found_however_the_text_is_cut(
    wire: Format, text: str, thought: str, said: str
) -> None:
    calls = (ServedCall("list_files", "{}"),)
    for size in range(1, len(text) + 1):
        reply = ScriptedResponse(text=text, calls=calls, chunk=size)
        events, message = read(wire, body(wire, reply))
        assert (message.reasoning, message.text) == (thought, said)
        if not text.startswith("hm"):  # known only at the end
            shown = "".join(e.text for e in events if isinstance(e, TextDelta))
            assert shown == said


@pytest.mark.parametrize(("text", "thought", "said"), LEFT_IN_TEXT)
def test_thinking_in_the_text_is_found_in_a_reply_that_is_not_streamed(
    wire: Format, text: str, thought: str, said: str
) -> None:
    whole = render_whole(wire, ScriptedResponse(text=text), "gpt-5", 1)
    reader = CODECS[wire].reader(endpoint())
    reader.whole(whole)
    message = reader.message()
    assert (message.reasoning, message.text) == (thought, said)


def test_a_stream_cut_at_any_byte_is_never_an_answer(wire: Format) -> None:
    whole = body(wire, REPLY)
    ends = {
        "chat": b'"finish_reason":"tool_calls"}]}\n\n',
        "responses": b"\n\n",
        "anthropic": b"\n\n",
    }
    end = whole.rindex(ends[wire]) + len(ends[wire])
    # the blank line that ends the last event is the end of the message; what follows it is only politeness
    for cut in range(end):
        with pytest.raises(StreamBroken):
            read(wire, whole[:cut])
    assert read(wire, whole[:end])[1].finish == "tool_calls"


def test_a_single_flipped_byte_never_gives_a_different_call(wire: Format) -> None:
    whole = body(wire, REPLY)
    right = tuple((call.name, call.arguments) for call in REPLY.calls)
    for place in range(len(whole)):
        broken = whole[:place] + b"\x00" + whole[place + 1 :]
        try:
            message = read(wire, broken)[1]
        except (StreamBroken, ErrorFrame, BrokenEvents):
            continue
        assert (
            tuple((call.name, call.arguments) for call in message.tool_calls) == right
        )


@pytest.mark.parametrize(
    ("finish", "reason"), [("length", "length"), ("refused", "refused")]
)
@pytest.mark.parametrize("calls", [(), (ServedCall("f", '{"a": 1'),)])
def test_a_reply_that_ran_out_or_was_refused_says_so(
    wire: Format, finish: str, reason: str, calls: tuple[ServedCall, ...]
) -> None:
    reply = ScriptedResponse(
        text="half a", calls=calls, finish="length" if finish == "length" else "refused"
    )
    message = read(wire, body(wire, reply))[1]
    assert message.finish == reason
    assert message.text == "half a"
    assert [call.arguments for call in message.tool_calls] == [
        call.arguments for call in calls
    ]


def test_an_empty_reply_is_an_empty_message(wire: Format) -> None:
    message = read(wire, body(wire, ScriptedResponse()))[1]
    assert (message.text, message.tool_calls, message.finish) == ("", (), "stop")


def test_thinking_alone_is_a_message_without_text(wire: Format) -> None:
    message = read(wire, body(wire, ScriptedResponse(reasoning="only thoughts")))[1]
    assert (message.text, message.reasoning, message.finish) == (
        "",
        "only thoughts",
        "stop",
    )


def test_sixty_calls_in_one_reply_come_out_in_order(wire: Format) -> None:
    calls = tuple(ServedCall("tool", f'{{"n":{n}}}') for n in range(60))
    message = read(wire, body(wire, ScriptedResponse(calls=calls)))[1]
    assert [call.arguments for call in message.tool_calls] == [
        call.arguments for call in calls
    ]
    assert len({call.id for call in message.tool_calls}) == 60


def test_arguments_that_are_not_json_are_passed_on_as_they_are(wire: Format) -> None:
    call = read(
        wire,
        body(wire, ScriptedResponse(calls=(ServedCall("f", '{"path": oops', "id-1"),))),
    )[1].tool_calls[0]
    assert call == ToolCall(id="id-1", name="f", arguments='{"path": oops')


def test_an_error_inside_the_stream_is_raised(wire: Format) -> None:
    events = render(wire, REPLY, "gpt-5", 1)
    with pytest.raises(ErrorFrame) as caught:
        read(wire, b"".join(events[:5]) + error_frame(wire, "the cluster burned down"))
    assert b"the cluster burned down" in caught.value.body


def test_an_event_that_is_not_json_is_malformed(wire: Format) -> None:
    with pytest.raises(StreamBroken):
        read(wire, b"data: {not json\n\n")


def test_no_events_at_all_are_no_answer(wire: Format) -> None:
    with pytest.raises(StreamBroken):
        read(wire, b"")
