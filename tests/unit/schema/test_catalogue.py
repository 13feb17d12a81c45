"""The catalogue of events: complete, unambiguous, and able to describe itself."""

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import msgspec
import pytest

from hermes.schema import (
    boards,
    events,
    gateway,
    goals,
    learning,
    mcp,
    messages,
    schedules,
    tui,
)
from hermes.schema.catalogue import CATALOGUE, EventCatalogue, render_markdown
from hermes.schema.event_base import ENVELOPE_FIELDS, Event


def defined() -> list[type[Event]]:
    """Every event class of the schema, found where they are defined."""
    members = [
        value
        for module in (
            events,
            messages,
            learning,
            tui,
            gateway,
            goals,
            schedules,
            boards,
            mcp,
        )
        for value in vars(module).values()
    ]
    return [
        cls
        for cls in members
        if isinstance(cls, type)
        and issubclass(cls, Event)
        and cls.__name__[0] != "_"
        and cls.topic
    ]


def test_every_event_class_is_listed_under_a_topic_of_its_own() -> None:
    classes = set(defined())
    assert set(CATALOGUE.values()) == classes
    assert len({cls.topic for cls in classes}) == len(classes)
    assert all(CATALOGUE[cls.topic] is cls for cls in classes)


@pytest.fixture
def _often_switched() -> Iterator[None]:
    """Threads take turns after very few instructions."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("_often_switched")
def test_threads_that_load_at_once_skip_no_module() -> None:
    last = boards.KANBAN_EVENTS[-1]
    together = Barrier(4)

    def use(made: EventCatalogue) -> tuple[type[Event] | None, int]:
        together.wait()
        return made.get(last.topic), len(made)

    with ThreadPoolExecutor(4) as threads:
        for _ in range(100):
            found = set(threads.map(use, [EventCatalogue()] * 4))
            assert found == {(last, len(CATALOGUE))}


@pytest.mark.parametrize("cls", CATALOGUE.values(), ids=lambda cls: cls.topic)
def test_no_field_has_a_name_of_the_envelope(cls: type[Event]) -> None:
    names = {field.name for field in msgspec.structs.fields(cls)}
    assert not names & set(ENVELOPE_FIELDS)
    assert set(cls.sensitive) <= names


@pytest.mark.parametrize("cls", CATALOGUE.values(), ids=lambda cls: cls.topic)
def test_an_event_is_frozen_documented_and_durable_if_it_is_a_message(
    cls: type[Event],
) -> None:
    assert cls.__doc__
    assert cls.__struct_config__.frozen
    assert cls.durable or cls.role is None


def test_the_page_names_every_event_and_field() -> None:
    page = render_markdown()
    for topic, cls in CATALOGUE.items():
        assert f"## `{topic}`" in page
        for field in msgspec.structs.fields(cls):
            assert f"| `{field.name}` |" in page


def test_the_example_of_the_page_runs() -> None:
    code = render_markdown().split("```python\n")[1].split("```")[0]
    compile(code, "docs/events.md", "exec")
