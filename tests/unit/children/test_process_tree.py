"""Marks name their session."""

from hermes.children.process_tree import new_mark


def test_marks_of_a_session_are_alike_and_different() -> None:
    marks = {new_mark("one") for _ in range(50)}
    assert len(marks) > 45
    assert len({mark >> 24 for mark in marks}) == 1
    assert {mark >> 24 for mark in marks} != {new_mark("two") >> 24}


def test_a_mark_fits_a_resource_limit() -> None:
    assert 1 << 60 <= new_mark("x") < 1 << 63
