"""Which calls run together."""

from pathlib import PurePath

from hypothesis import given
from hypothesis import strategies as st

from hermes.core.calls import segments
from hermes.core.ports import Effect, PlannedCall


def _groups(*calls: tuple[Effect, str]) -> list[list[int]]:
    planned = [
        PlannedCall(index, effect, (PurePath(path),) if path else ())
        for index, (effect, path) in enumerate(calls)
    ]
    return [[call.index for call in group] for group in segments(planned)]


def test_reads_run_together() -> None:
    assert _groups(("read", ""), ("read", ""), ("read", "")) == [[0, 1, 2]]


def test_changes_to_different_files_run_together() -> None:
    assert _groups(("files", "/a/x"), ("files", "/a/y")) == [[0, 1]]


def test_changes_to_the_same_file_or_its_folder_wait() -> None:
    assert _groups(("files", "/a/x"), ("files", "/a/x"), ("files", "/a")) == [
        [0],
        [1],
        [2],
    ]


def test_a_change_without_a_known_file_waits() -> None:
    assert _groups(("files", ""), ("files", "/a/x")) == [[0], [1]]


def test_anything_else_is_a_barrier() -> None:
    assert _groups(("read", ""), ("other", ""), ("other", ""), ("read", "")) == [
        [0],
        [1],
        [2],
        [3],
    ]


_CALLS = st.lists(
    st.tuples(
        st.sampled_from(["read", "files", "other"]),
        st.sampled_from(["", "/a", "/a/b", "/c"]),
    )
)


@given(_CALLS)
def test_the_order_is_kept_and_no_call_is_lost(calls: list[tuple[Effect, str]]) -> None:
    assert [index for group in _groups(*calls) for index in group] == list(
        range(len(calls))
    )
