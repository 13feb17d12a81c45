"""Lines and what they are."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.codex import wire
from hermes.codex.failures import CodexGone


def test_what_a_message_is_goes_by_its_keys_so_that_the_id_0_is_an_id() -> None:
    asked = wire.classify(
        b'{"id":0,"method":"item/fileChange/requestApproval","params":{"a":1}}'
    )
    assert isinstance(asked, wire.CodexRequest)
    assert (asked.id, asked.method, bytes(asked.params)) == (
        0,
        "item/fileChange/requestApproval",
        b'{"a":1}',
    )
    answered = wire.classify(b'{"id":0,"result":{}}')
    assert isinstance(answered, wire.CodexResponse)
    assert answered.id == 0


def test_ids_may_be_words() -> None:
    answered = wire.classify(b'{"id":"x","result":1}')
    assert isinstance(answered, wire.CodexResponse)
    assert answered.id == "x"


def test_a_notification_has_no_id() -> None:
    told = wire.classify(b'{"method":"turn/started","params":{},"emittedAtMs":1}')
    assert isinstance(told, wire.CodexNotification)


def test_an_error_answer_carries_its_words() -> None:
    answered = wire.classify(
        b'{"id":3,"error":{"code":-32600,"message":"thread not found"}}'
    )
    assert isinstance(answered, wire.CodexResponse)
    assert answered.error == wire.CodexErrorResponse(-32600, "thread not found")


def test_an_answer_without_a_result_is_null() -> None:
    answered = wire.classify(b'{"id":3}')
    assert isinstance(answered, wire.CodexResponse)
    assert bytes(answered.result) == b"null"


@pytest.mark.parametrize(
    "line",
    [
        b"nonsense",
        b"[]",
        b"{}",
        b'{"a":1}',
        b'{"id":null,"method":"x"}',
        b'{"id":1.5}',
        b"\xff\xfe",
        b'"',
    ],
)
def test_what_is_no_message_is_noise(line: bytes) -> None:
    assert isinstance(wire.classify(line), wire.MalformedLine)


@given(
    st.lists(
        st.binary(max_size=40).filter(lambda line: b"\n" not in line and line.strip())
    ),
    st.integers(1, 17),
)
def test_lines_come_out_as_they_went_in_however_they_are_cut(
    lines: list[bytes], size: int
) -> None:
    data = b"".join(line + b"\n" for line in lines)
    cutter = wire.LineSplitter()
    found = [
        line
        for at in range(0, len(data), size)
        for line in cutter.feed(data[at : at + size])
    ]
    assert found == lines


def test_a_line_of_a_megabyte_is_fine_and_one_past_the_limit_is_not() -> None:
    assert wire.LineSplitter().feed(b"x" * 1_100_000 + b"\n") == [b"x" * 1_100_000]
    cutter = wire.LineSplitter(limit=10)
    cutter.feed(b"x" * 10)
    with pytest.raises(CodexGone, match="more than"):
        cutter.feed(b"x")


def test_what_we_say_is_one_line_without_an_empty_params() -> None:
    assert (
        wire.request(1, "x", {"text": "a\nb"})
        == b'{"id":1,"method":"x","params":{"text":"a\\nb"}}\n'
    )
    assert wire.notification("initialized") == b'{"method":"initialized"}\n'
    assert (
        wire.answer(0, {"decision": "accept"})
        == b'{"id":0,"result":{"decision":"accept"}}\n'
    )
    assert msgspec.json.decode(wire.refusal("a", -1, "no")) == {
        "id": "a",
        "error": {"code": -1, "message": "no"},
    }
