from collections import OrderedDict

from hypothesis import given
from hypothesis import strategies as st

from hermes.primitives.recent import RecentDict

_KEYS = st.integers(0, 8)
_STEPS = st.lists(
    st.tuples(st.sampled_from(("set", "make", "pop", "default", "update")), _KEYS)
)


@given(st.integers(1, 5), _STEPS)
def test_it_holds_what_a_plain_model_holds(
    max_entries: int, steps: list[tuple[str, int]]
) -> None:
    evicted: list[tuple[int, int]] = []
    entries = RecentDict[int, int](
        max_entries, lambda key, value: evicted.append((key, value))
    )
    model, gone = OrderedDict[int, int](), list[tuple[int, int]]()
    for number, (step, key) in enumerate(steps):
        match step:
            case "set":
                entries[key] = number
                model[key] = number
                model.move_to_end(key)
            case "make":
                made = entries.get_or_make(key, lambda: number)  # noqa: B023 - called at once
                assert made == model.setdefault(key, number)
                model.move_to_end(key)
            case "pop":
                assert entries.pop(key, None) == model.pop(key, None)
            case "default":
                assert entries.setdefault(key, number) == model.setdefault(key, number)
            case _:
                entries.update({key: number})
                model[key] = number
                model.move_to_end(key)
        if len(model) > max_entries:
            gone.append(model.popitem(last=False))
        assert list(entries.items()) == list(model.items())
        assert evicted == gone
        assert (key in entries) is (key in model)


def test_a_reader_does_not_make_an_entry_newer_unless_it_says_so() -> None:
    entries = RecentDict[str, int](2)
    entries["a"] = 1
    entries["b"] = 2
    assert entries.get("a") == 1
    entries["c"] = 3
    assert list(entries) == ["b", "c"]
    assert entries.get_or_make("b", int) == 2
    entries["d"] = 4
    assert list(entries) == ["b", "d"]
