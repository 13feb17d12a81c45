"""Rows: what is encoded comes back, and what can't be is refused before anything is written."""

import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import inspect

from hermes.errors import StoreError
from hermes.schema.catalogue import CATALOGUE
from hermes.schema.event_base import Event
from hermes.schema.events import Gap
from hermes.schema.messages import UserMessage
from hermes.store.log_row import (
    MAX_EVENT_BYTES,
    DamagedRow,
    Row,
    checked,
    checked_messages,
    checksum,
    damaged,
    draft,
    earlier_checksum,
)


def values(kind: inspect.Type) -> st.SearchStrategy[Any]:  # noqa: PLR0911 - one for each kind
    """Any value of a type that the schema uses."""
    match kind:
        case inspect.Metadata():
            return values(kind.type)
        case inspect.UnionType():
            return st.one_of([values(each) for each in kind.types])
        case inspect.LiteralType():
            return st.sampled_from(kind.values)
        case inspect.VarTupleType() | inspect.ListType():
            return st.lists(values(kind.item_type), max_size=2).map(tuple)
        case inspect.DictType():
            return st.dictionaries(
                values(kind.key_type), values(kind.value_type), max_size=2
            )
        case inspect.StructType():
            return st.builds(
                kind.cls, **{field.name: values(field.type) for field in kind.fields}
            )
        case _:
            return PLAIN[type(kind)]


PLAIN: dict[type[inspect.Type], st.SearchStrategy[Any]] = {
    inspect.StrType: st.text(max_size=50),
    inspect.IntType: st.integers(-(2**40), 2**40),
    inspect.FloatType: st.floats(allow_nan=False, allow_infinity=False),
    inspect.BoolType: st.booleans(),
    inspect.NoneType: st.none(),
    inspect.AnyType: st.none()
    | st.text(max_size=50)
    | st.lists(st.booleans(), max_size=3),
}
DURABLE = sorted(
    (cls for cls in CATALOGUE.values() if cls.durable), key=lambda cls: cls.topic
)


@settings(deadline=None)
@given(event=st.one_of([values(inspect.type_info(cls)) for cls in DURABLE]))
def test_every_durable_event_comes_back_from_its_row(event: Event) -> None:
    entry = draft(event)
    row = Row(1, "s", 2, 3, 4.5, entry.type, entry.role, "turn", entry.data)
    assert row.event == event
    envelope = row.envelope()
    assert (envelope["type"], envelope["seq"], envelope["epoch"]) == (event.topic, 2, 3)
    assert (envelope["session_id"], envelope["turn_id"], envelope["ts"]) == (
        "s",
        "turn",
        4.5,
    )
    assert set(event.__struct_fields__) <= envelope.keys()  # also those at a default


def test_what_is_no_event_of_the_log_is_refused() -> None:
    with pytest.raises(StoreError, match="not an event of the log"):
        draft(Gap(dropped=1, pattern="**", policy="close"))


def test_an_enormous_event_is_refused_with_its_size() -> None:
    with pytest.raises(StoreError, match="limit is 33,554,432"):
        draft(UserMessage(text="x" * MAX_EVENT_BYTES))


def test_half_a_surrogate_pair_is_refused_in_our_words() -> None:
    with pytest.raises(StoreError, match="invalid character"):
        draft(UserMessage(text="broken \ud83d"))


def test_a_row_of_an_unknown_or_changed_type_is_kept_as_it_is() -> None:
    assert Row(1, "s", 1, 1, 0.0, "future.thing", None, "", '{"new":1}').event is None
    assert (
        Row(
            1, "s", 1, 1, 0.0, "agent.turn.ended", None, "", '{"reason":"unheard of"}'
        ).event
        is None
    )


def test_the_checksum_notices_a_change_of_any_field() -> None:
    row = Row(1, "s", 2, 3, 4.5, "t", "user", "turn", "{}")
    changed = [
        row._replace(session="x"), row._replace(seq=9), row._replace(epoch=9), row._replace(ts=9.0),
        row._replace(type="x"), row._replace(role="tool"), row._replace(turn="x"), row._replace(data="[]"),
    ]  # fmt: skip
    assert len({checksum(each) for each in (row, *changed)}) == 9
    assert checksum(row._replace(id=7)) == checksum(row)


@pytest.mark.parametrize("sum_of", [checksum, earlier_checksum])
def test_a_message_is_served_only_with_its_own_checksum(
    sum_of: Callable[[Row], int],
) -> None:
    row = Row(1, "s", 2, 3, 4.5, "t", "user", "turn", '{"text":"ü"}')
    good = ("t", "user", "turn", 2, 3, 4.5, sum_of(row), row.data.encode())
    assert list(checked_messages("s", [good, good])) == [("t", row.data.encode())] * 2
    changes: list[tuple[int, object]] = [
        (0, "x"), (1, "tool"), (2, "x"), (3, 9), (4, 9), (5, 9.0), (6, good[6] ^ 1), (7, b"{}"),
        (7, b"\xff"), (7, None), (3, "2"), (6, None), (5, None), (2, None),
    ]  # fmt: skip
    for place, value in changes:
        bad = (*good[:place], value, *good[place + 1 :])
        with pytest.raises(DamagedRow, match="does not match its checksum"):
            list(checked_messages("s", [good, bad]))
    with pytest.raises(DamagedRow, match="does not match its checksum"):
        list(checked_messages("other", [good]))


@pytest.mark.parametrize("sum_of", [checksum, earlier_checksum])
@pytest.mark.parametrize("rows_before", [0, 1, 999])
def test_a_row_is_served_only_with_its_own_checksum(
    sum_of: Callable[[Row], int], rows_before: int
) -> None:
    row = Row(1, "s", 2, 3, 4.5, "t", "user", "turn", '{"text":"ü"}')
    framed = row._replace(id=2, seq=3)
    good = (*row, sum_of(row), None)
    by_frame = (*framed[:8], '"ü"', sum_of(framed), '{"text":\0}')
    before = [good] * rows_before
    assert checked([*before, good, by_frame]) == [row] * rows_before + [row, framed]
    changes: list[tuple[int, object]] = [
        (1, "x"), (2, 9), (3, 9), (4, 9.0), (5, "x"), (6, "tool"), (7, "x"), (8, "{}"), (9, sum_of(row) ^ 1),
        (10, "\0 "), (8, None), (8, b"{}"), (8, "\ud800"), (2, "2"), (9, None), (4, None), (7, None),
    ]  # fmt: skip
    for place, value in changes:
        bad = (*good[:place], value, *good[place + 1 :])
        with pytest.raises(DamagedRow, match="does not match its checksum"):
            checked([*before, bad, good])
    for part in (None, b"{}", 7):
        with pytest.raises(DamagedRow, match="does not match its checksum"):
            checked([*before, (*by_frame[:8], part, *by_frame[9:])])


def test_text_from_postgresql_is_checked_like_bytes() -> None:
    row = Row(1, "s", 2, 3, 4.5, "t", "user", "turn", '{"text":"ü"}')
    good = ("t", "user", "turn", 2, 3, 4.5, checksum(row), row.data)
    assert list(checked_messages("s", [good])) == [("t", row.data.encode())]
    with pytest.raises(DamagedRow, match="does not match its checksum"):
        list(checked_messages("s", [(*good[:7], "{}")]))


def test_rows_of_many_turns_are_checked_together() -> None:
    def calls(turns: int) -> int:
        rows = [
            Row(n, "s", n, 1, 4.5, "t", "user", f"turn {n % turns}", '{"text":"ü"}')
            for n in range(1000)
        ]
        stored = [(*row, checksum(row), None) for row in rows]
        return calls_of(lambda: checked(stored))

    assert calls(turns=1000) < 2 * calls(turns=1)


def calls_of(action: Callable[[], object]) -> int:
    """How many Python functions an action calls: what it takes, whatever the machine does beside it."""
    calls = 0

    def count(frame: object, kind: str, argument: object) -> None:
        nonlocal calls
        calls += kind == "call"

    sys.setprofile(count)
    try:
        action()
    finally:
        sys.setprofile(None)
    return calls


def as_bytes(row: Row, crc: int, frame: str | None = None) -> tuple[Any, ...]:
    """A row as the full check reads it: all text is bytes."""
    values = [each.encode() if isinstance(each, str) else each for each in row]
    values[6] = values[6] or b""
    return (*values, crc, None if frame is None else frame.encode())


def test_the_full_check_names_exactly_the_rows_that_changed() -> None:
    rows = [
        Row(n, "s", n, 1, 0.5, "t", None if n % 2 else "user", "", f'{{"a":{n}}}')
        for n in range(200)
    ]
    stored = [as_bytes(row, checksum(row)) for row in rows]
    assert list(damaged(stored)) == []
    stored[70] = as_bytes(rows[70]._replace(data='{"a":"other"}'), checksum(rows[70]))
    stored[71] = (*stored[71][:8], b"\xff no text", *stored[71][9:])
    stored[150] = (150, b"s", "no number", *stored[150][3:])
    assert [row.id for row in damaged(stored)] == [70, 71, 150]


def test_the_full_check_knows_frames_and_earlier_checksums() -> None:
    whole = Row(1, "s", 1, 1, 0.5, "t", None, "", '{"frame":"inner"}')
    framed = as_bytes(whole._replace(data='"inner"'), checksum(whole), '{"frame":\0}')
    earlier = whole._replace(id=2, seq=2)
    stored = [framed, as_bytes(earlier, earlier_checksum(earlier))]
    assert list(damaged(stored)) == []
    assert [row.id for row in damaged([(*framed[:-1], b'{"farme":\0}')])] == [1]
