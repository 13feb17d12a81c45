"""The matcher, held against a naive reference."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hermes.events.trie import Trie

# Other work on the machine makes an example slow; that says nothing about the bus.
UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
SEGMENTS = st.sampled_from(["a", "b", "c", ""])
TOPICS = st.lists(SEGMENTS, min_size=1, max_size=6).map(".".join).filter(bool)
PATTERNS = (
    st.lists(st.sampled_from(["a", "b", "", "*", "**"]), min_size=1, max_size=6)
    .map(".".join)
    .filter(bool)
)


def matches(pattern: list[str], topic: list[str]) -> bool:
    """The meaning of patterns, as slow and as plain as it can be written."""
    if not pattern:
        return not topic
    first, rest = pattern[0], pattern[1:]
    if first == "**":
        return any(matches(rest, topic[skipped:]) for skipped in range(len(topic) + 1))
    return bool(topic) and first in ("*", topic[0]) and matches(rest, topic[1:])


@UNHURRIED
@given(
    patterns=st.lists(PATTERNS, max_size=12),
    topics=st.lists(TOPICS, min_size=1, max_size=8),
)
def test_a_topic_reaches_exactly_the_patterns_that_match_it(
    patterns: list[str], topics: list[str]
) -> None:
    trie: Trie[int] = Trie()
    for number, pattern in enumerate(patterns):
        trie.add(pattern, number)
    for topic in topics:
        expected = [
            n
            for n, pattern in enumerate(patterns)
            if matches(pattern.split("."), topic.split("."))
        ]
        assert sorted(trie.match(topic)) == expected


@UNHURRIED
@given(patterns=st.lists(PATTERNS, max_size=12), data=st.data())
def test_removing_values_leaves_the_others_and_in_the_end_nothing(
    patterns: list[str], data: st.DataObject
) -> None:
    trie: Trie[int] = Trie()
    for number, pattern in enumerate(patterns):
        trie.add(pattern, number)
    left = dict(enumerate(patterns))
    for number in data.draw(st.permutations(range(len(patterns)))):
        trie.remove(left.pop(number), number)
        topic = data.draw(TOPICS)
        expected = [
            n
            for n, pattern in left.items()
            if matches(pattern.split("."), topic.split("."))
        ]
        assert sorted(trie.match(topic)) == expected
    assert trie.is_empty()


def test_wildcards_work_anywhere_in_a_pattern() -> None:
    trie: Trie[str] = Trie()
    for pattern in ("a.**.z", "**.m.**", "*.b", "**", "a.**", "**.**"):
        trie.add(pattern, pattern)
    assert set(trie.match("a.z")) == {"a.**.z", "a.**", "**", "**.**"}
    assert set(trie.match("a.m.z")) == {"a.**.z", "**.m.**", "a.**", "**", "**.**"}
    assert set(trie.match("m")) == {"**.m.**", "**", "**.**"}
    assert set(trie.match("a.b")) == {"*.b", "a.**", "**", "**.**"}


def test_ten_thousand_segments_are_matched_without_recursion() -> None:
    trie: Trie[str] = Trie()
    long = ".".join(["a"] * 10_000)
    for pattern in (long, "**", "**.a", "a.**.a.**", f"{long}.b"):
        trie.add(pattern, pattern)
    assert set(trie.match(long)) == {long, "**", "**.a", "a.**.a.**"}
    trie.remove(long, long)
    trie.remove(f"{long}.b", f"{long}.b")
    assert set(trie.match(long)) == {"**", "**.a", "a.**.a.**"}


def test_removing_what_was_never_there_changes_nothing() -> None:
    trie: Trie[str] = Trie()
    trie.add("a.b", "kept")
    trie.remove("a.c", "kept")
    trie.remove("a.b", "other")
    assert trie.match("a.b") == ["kept"]
