"""How often a stream is read."""

from collections.abc import Callable

from hermes.providers.read_pacing import ReadPacing


class Wire:
    """A clock that stands still, its timers, and a transport that counts its pauses."""

    def __init__(self) -> None:
        self.now = 100.0
        self.pauses = 0
        self.is_paused = False
        self._resume: Callable[[], object] | None = None

    def time(self) -> float:
        return self.now

    def pause_reading(self) -> None:
        self.pauses += 1
        self.is_paused = True

    def resume_reading(self) -> None:
        self.is_paused = False

    def call_later(self, delay: float, callback: Callable[[], object], /) -> None:
        assert delay < 0.02
        self._resume = callback

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        if self._resume is not None:
            self._resume()
            self._resume = None


def reads(wire: Wire, pacing: ReadPacing, number: int, every: float, size: int) -> None:
    for _ in range(number):
        wire.pass_time(every)
        pacing.note_read(size)


def begun() -> tuple[Wire, ReadPacing]:
    wire = Wire()
    pacing = ReadPacing(wire, wire)
    pacing.restart()
    return wire, pacing


def test_a_fast_stream_is_read_less_often_after_a_moment() -> None:
    wire, pacing = begun()
    reads(wire, pacing, 40, 0.005, 250)
    assert wire.pauses == 0
    reads(wire, pacing, 40, 0.015, 250)
    assert wire.pauses >= 30
    wire.pass_time(0.015)
    assert not wire.is_paused


def test_a_stream_as_fast_as_a_screen_is_read_as_it_comes() -> None:
    wire, pacing = begun()
    reads(wire, pacing, 400, 0.015, 250)
    assert wire.pauses == 0


def test_a_window_that_ended_late_makes_no_stream_fast() -> None:
    wire, pacing = begun()
    reads(wire, pacing, 19, 0.013, 250)
    reads(wire, pacing, 1, 0.045, 250)
    reads(wire, pacing, 20, 0.015, 250)
    assert wire.pauses == 0


def test_a_large_body_is_read_as_it_comes() -> None:
    wire, pacing = begun()
    reads(wire, pacing, 400, 0.001, 65_536)
    assert wire.pauses == 0


def test_another_reply_on_the_connection_is_read_as_it_comes() -> None:
    wire, pacing = begun()
    reads(wire, pacing, 100, 0.005, 250)
    assert wire.pauses
    wire.pass_time(0.015)
    before = wire.pauses
    pacing.restart()
    reads(wire, pacing, 20, 0.001, 250)
    assert wire.pauses == before
