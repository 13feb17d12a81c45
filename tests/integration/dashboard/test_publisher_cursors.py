"""What has arrived is known after a restart, for as many publishers as there are places."""

from pathlib import Path

from hermes.settings import Home
from hermes.surfaces.dashboard.publisher_cursors import MAX_PUBLISHERS, PublisherCursors


def test_places_are_known_to_the_next_process(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    first = PublisherCursors(home)
    assert first.of("a") == (0, 0)
    for seq in range(1, 100):
        first.set("a", (5, seq))
    first.set("b", (6, 1))
    again = PublisherCursors(
        home
    )  # the first one was never closed, as if it was killed
    assert (again.of("a"), again.of("b"), again.of("c")) == ((5, 99), (6, 1), (0, 0))
    again.set("a", (7, 1))
    assert PublisherCursors(home).of("a") == (7, 1)
    assert (home.root / "dashboard" / "arrived").stat().st_mode & 0o777 == 0o600


def test_numbers_that_are_counted_one_by_one_are_known_too(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    arrivals = PublisherCursors(home)
    arrivals.set("other", (3, 7))
    count = arrivals.counter("a", (5, 10))
    assert arrivals.of("a") == (5, 10)
    arrivals.set("other", (3, 8))
    for seq in (11, 12):
        count(seq)
        for known in (arrivals, PublisherCursors(home)):
            assert (known.of("a"), known.of("other")) == ((5, seq), (3, 8))
    arrivals.set("a", (6, 1))
    assert PublisherCursors(home).of("a") == (6, 1)
    arrivals.close()


def test_the_one_that_was_silent_for_longest_gives_way(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    arrivals = PublisherCursors(home)
    for number in range(MAX_PUBLISHERS):
        arrivals.set(f"p{number}", (1, 1))
    arrivals.set("p0", (1, 2))
    arrivals.set("new", (1, 1))
    for known in (arrivals, PublisherCursors(home)):
        assert known.of("p1") == (0, 0)
        assert known.of("p0") == (1, 2)
        assert known.of("new") == (1, 1)
