"""What a server may send without being asked."""

from hermes.mcp.server_limits import NotificationFilter


class Watch:
    """A clock that is set by hand, and what was announced."""

    def __init__(self) -> None:
        self.now = 0.0
        self.changes = 0
        self.gate = NotificationFilter(self._changed, lambda: self.now)

    def _changed(self) -> None:
        self.changes += 1


def test_answers_always_pass() -> None:
    gate = Watch().gate
    assert all(gate.admits(None, wants_answer=True) for _ in range(1000))


def test_only_notifications_that_mean_something_pass() -> None:
    gate = Watch().gate
    assert gate.admits("notifications/progress", wants_answer=False)
    assert gate.admits("notifications/message", wants_answer=False)
    assert not gate.admits("notifications/roots/list_changed", wants_answer=False)
    assert not gate.admits("notifications/resources/updated", wants_answer=False)
    assert gate.dropped == 0


def test_a_changed_list_is_announced_and_goes_no_further() -> None:
    watch = Watch()
    assert not watch.gate.admits("notifications/tools/list_changed", wants_answer=False)
    assert watch.changes == 1


def test_a_flood_is_dropped_and_counted_until_time_has_passed() -> None:
    watch = Watch()
    passed = sum(
        watch.gate.admits("elicitation/create", wants_answer=True) for _ in range(1000)
    )
    assert passed + watch.gate.dropped == 1000
    assert passed < 100
    watch.now = 1.0
    assert watch.gate.admits("notifications/progress", wants_answer=False)
