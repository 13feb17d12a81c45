import functools

from hermes.events import Bus, Envelope


def callback(event: Envelope) -> None: ...


class Callable:
    def __call__(self, event: Envelope) -> None: ...

    def method(self, event: Envelope) -> None: ...


def test_a_subscription_names_its_callback() -> None:
    bus = Bus()
    for named in (
        callback,
        functools.partial(functools.partial(callback)),
        Callable(),
        Callable().method,
        print,
    ):
        bus.subscribe("a", named)
    names = [one.callback.rsplit(".", 1)[-1] for one in bus.stats().subscriptions]
    assert names == ["callback", "callback", "Callable", "method", "print"]


def test_a_handle_shows_what_it_is() -> None:
    shown = repr(Bus().subscribe("a.*", callback, owner="plugin.x"))
    assert all(part in shown for part in ("a.*", "callback", "plugin.x"))
