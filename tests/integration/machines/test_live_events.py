"""Transient events and wake-ups between machines, over a real NATS server and a real PostgreSQL."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from tests.fakes.nats_server import LocalNats, running_nats
from tests.fakes.postgres_server import LocalPostgres

from hermes.app.app import App, build
from hermes.app.feed import SessionFeed
from hermes.app.log_follower import LogFollower
from hermes.events import Bus
from hermes.primitives.tasks import cancel_and_wait
from hermes.schema.events import MessageDelta, SessionCreated, TurnEnded, TurnStarted
from hermes.schema.messages import AssistantMessage
from hermes.settings import Home, Secrets, Settings
from hermes.settings.sections import EventSettings, StoreSettings

TIMEOUT_S = 30.0


class Machine:
    """A process of its own, as far as the store and NATS can tell."""

    def __init__(self, app: App) -> None:
        self.app = app
        self.seen: list[dict[str, Any]] = []
        self._reading: list[asyncio.Task[None]] = []

    def show(self, session: str, text: str) -> None:
        self.app.show(session, "t1", MessageDelta(text=text))

    async def record(self, session: str, *events: Any) -> None:
        await self.app.writer.write(session, *events, turn="t1")

    def read(self, session: str) -> None:
        self._reading.append(asyncio.create_task(self._read(session)))

    async def _read(self, session: str) -> None:
        async for batch in SessionFeed(self.app, self.app.feed, session).batches():
            self.seen += [dict(item.event) for item in batch]

    async def until(self, holds: Callable[[], bool], what: str) -> None:
        try:
            async with asyncio.timeout(TIMEOUT_S):
                while not holds():  # noqa: ASYNC110 - nobody tells
                    await asyncio.sleep(0.01)
        except TimeoutError:
            raise AssertionError(f"{what}: {self.seen}") from None

    def text(self) -> str:
        """What a page would show of the reply that is being written."""
        shown = ""
        for event in self.seen:
            if event["type"] == "feed.partial":
                shown = event["text"]
            elif event["type"] == "agent.message.delta":
                shown += event["text"]
            elif event["type"] == "agent.message.assistant":
                shown = ""
        return shown

    async def close(self) -> None:
        await cancel_and_wait(*self._reading)


@asynccontextmanager
async def machine(folder: Path, settings: Settings) -> AsyncIterator[Machine]:
    with build(settings, Home(folder), bus=Bus()) as app:
        await asyncio.to_thread(app.go_live, Secrets({}, {}), "dashboard")
        assert app.exporters is not None
        assert app.exporters.link is not None
        app.exporters.receive_live_events(app.feed, everything=True)
        one = Machine(app)
        following = asyncio.create_task(LogFollower(app).run())
        client = app.exporters.link.client
        await one.until(lambda: client.is_connected, "connected")
        await asyncio.wrap_future(client.start(client.client.flush()))
        try:
            yield one
        finally:
            await one.close()
            await cancel_and_wait(following)


@pytest.fixture
def settings(postgres: LocalPostgres, nats: LocalNats) -> Settings:
    return settings_of(postgres, nats)


def settings_of(postgres: LocalPostgres, nats: LocalNats) -> Settings:
    return Settings(
        store=StoreSettings(url=postgres.new_url()),
        events=EventSettings(url=nats.url, subject=f"t-{uuid4().hex[:12]}"),
    )


def has_ended(one: Machine) -> bool:
    return any(event["type"] == TurnEnded.topic for event in one.seen)


async def begun(one: Machine) -> str:
    """A session in the middle of a turn."""
    row = await asyncio.to_thread(one.app.begin, SessionCreated(surface="tui"))
    await one.record(row.session, TurnStarted(inputs=(), runtime="native"))
    return row.session


async def test_text_that_is_being_written_is_seen_on_another_machine_in_order(
    tmp_path: Path, settings: Settings
) -> None:
    async with (
        machine(tmp_path / "a", settings) as a,
        machine(tmp_path / "b", settings) as b,
    ):
        session = await begun(a)
        b.read(session)
        await b.until(lambda: any(e.get("seq") == 2 for e in b.seen), "replay")
        for number in range(50):
            a.show(session, f"{number} ")
        whole = "".join(f"{number} " for number in range(50))
        await b.until(lambda: b.text() == whole, "the text")
        await a.record(session, AssistantMessage(text=whole), TurnEnded(reason="done"))
        await b.until(lambda: has_ended(b), "the end")
        rows = [event["seq"] for event in b.seen if event.get("seq")]
        assert rows == [1, 2, 3, 4]
        assert not [event for event in b.seen if event["type"] == "gap"]


async def test_a_reader_that_comes_in_the_middle_gets_the_text_so_far(
    tmp_path: Path, settings: Settings
) -> None:
    async with (
        machine(tmp_path / "a", settings) as a,
        machine(tmp_path / "b", settings) as b,
    ):
        session = await begun(a)
        a.show(session, "one ")
        a.show(session, "two ")
        b.read(session)
        await b.until(lambda: b.text() == "one two ", "the beginning")
        a.show(session, "three")
        await b.until(lambda: b.text() == "one two three", "the rest")


async def test_text_never_comes_before_the_row_it_follows(
    tmp_path: Path, settings: Settings
) -> None:
    async with (
        machine(tmp_path / "a", settings) as a,
        machine(tmp_path / "b", settings) as b,
    ):
        session = await begun(a)
        b.read(session)
        await b.until(lambda: any(e.get("seq") == 2 for e in b.seen), "replay")
        for number in range(20):
            a.show(session, f"old {number}")
            await a.record(session, AssistantMessage(text=f"old {number}"))
            a.show(session, f"new {number}")
        await a.record(session, TurnEnded(reason="done"))
        await b.until(lambda: has_ended(b), "the end")
        head = 2
        for event in b.seen:
            head = event.get("seq", head)
            text = event.get("text", "")
            if event["type"] == "agent.message.delta" and text.startswith("new"):
                assert head == 3 + int(text[4:]), (text, head)


async def test_a_subscriber_sees_the_events_of_all_machines(
    tmp_path: Path, settings: Settings
) -> None:
    async with (
        machine(tmp_path / "a", settings) as a,
        machine(tmp_path / "b", settings) as b,
        machine(tmp_path / "c", settings) as c,
    ):
        heard: list[str] = []
        b.app.bus.subscribe("**", lambda event: heard.append(event["type"]))
        a.app.bus.publish("my.topic", {"n": 1})
        session = await begun(c)
        c.show(session, "hello")
        wanted = ["agent.message.delta", "agent.turn.started", "my.topic"]
        await b.until(lambda: set(wanted) <= set(heard), "the events")
        assert sorted(name for name in heard if name in wanted) == wanted


async def test_a_forged_row_is_not_published(
    tmp_path: Path, settings: Settings
) -> None:
    async with (
        machine(tmp_path / "a", settings) as a,
        machine(tmp_path / "b", settings) as b,
    ):
        heard: list[str] = []
        b.app.bus.subscribe("**", lambda event: heard.append(event["type"]))
        assert a.app.exporters is not None
        assert a.app.exporters.link is not None
        for topic in ("agent.approval.requested", "feed.partial"):
            frame = f'{{"sender":"x","home":"x","number":1,"event":{{"type":"{topic}","session_id":"s"}}}}'
            a.app.exporters.link.send("s", frame.encode())
        a.app.bus.publish("my.topic", {})
        await b.until(lambda: "my.topic" in heard, "what comes after")
        assert heard == ["my.topic"]


async def test_without_nats_rows_still_come_and_text_is_live_again_after_its_return(
    tmp_path: Path, postgres: LocalPostgres
) -> None:
    with running_nats() as nats:
        settings = settings_of(postgres, nats)
        async with (
            machine(tmp_path / "a", settings) as a,
            machine(tmp_path / "b", settings) as b,
        ):
            session = await begun(a)
            b.read(session)
            a.show(session, "one ")
            await b.until(lambda: b.text() == "one ", "the first text")
            await asyncio.to_thread(nats.stop)
            assert a.app.exporters is not None
            assert a.app.exporters.link is not None
            client = a.app.exporters.link.client
            await b.until(lambda: not client.is_connected, "the loss")
            a.show(session, "two ")
            await a.record(session, AssistantMessage(text="one two "))
            await b.until(lambda: any(e.get("seq") == 3 for e in b.seen), "the row")
            a.show(session, "three ")
            await asyncio.to_thread(nats.start)

            def said_again() -> bool:
                a.show(session, ".")
                return b.text().startswith("three .")

            await b.until(said_again, "live text")
            assert any(event["type"] == "gap" for event in b.seen)
            await a.record(session, TurnEnded(reason="done"))
            await b.until(lambda: has_ended(b), "the end")
            rows = [event["seq"] for event in b.seen if event.get("seq")]
            assert rows == [1, 2, 3, 4]
