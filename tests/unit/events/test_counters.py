import sys
import threading
from collections.abc import Iterator

import pytest

from hermes.events.subscription import Counter, Outcomes


@pytest.fixture(autouse=True)
def _eager_switching() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def test_a_tally_counts_every_step_of_every_thread() -> None:
    tally = Counter()

    def count() -> None:
        for _ in range(20_000):
            tally.add()

    threads = [threading.Thread(target=count) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert tally.value == 160_000


def test_pending_is_what_was_scheduled_and_is_not_finished() -> None:
    outcomes = Outcomes()
    for _ in range(3):
        outcomes.scheduled.add()
    outcomes.finished.add()
    assert outcomes.pending == 2
