"""A home with a past: sessions of several days, calls, approvals, a compaction, a failure, a child; things learned.

The rows are written through the app as a running Hermes writes them, only under a clock that tests set.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, TypeAlias

from hermes.app import App, build
from hermes.core.answers import approval_hash
from hermes.learning.change import (
    MemoryChange,
    MemoryEdit,
    Provenance,
    SkillChange,
    SkillFileChange,
)
from hermes.learning.learning_service import LearningService, open_learning
from hermes.schema.event_base import Event
from hermes.schema.events import (
    ApprovalAnswered,
    ApprovalRequested,
    ModelRetried,
    SessionCompacted,
    SessionCreated,
    SessionTitled,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from hermes.schema.messages import (
    AssistantMessage,
    ToolCall,
    ToolFinished,
    Usage,
    UserMessage,
)
from hermes.settings import Home, Settings
from hermes.settings.load import environment
from hermes.store.log_row import Row
from hermes.testing import FakeClock

Answer: TypeAlias = Literal["once", "session", "always", "deny"]
DAY = 86_400.0

SKILL = """---
name: release-notes
description: Write the notes of a release from its commits.
---
Read the commits since the last tag, group them, and write one line for each.
"""


class Past:
    """Writes what happened, row by row. `clock` is the time of the next row."""

    def __init__(self, app: App, clock: FakeClock) -> None:
        self.app = app
        self.clock = clock
        self._turns = 0

    def session(
        self, title: str, *, surface: str = "tui", cwd: str = "/work", parent: str = ""
    ) -> str:
        kind = "child" if parent else "root"
        created = SessionCreated(
            surface=surface, cwd=cwd, kind=kind, parent=parent, root=parent
        )
        session = self.app.begin(created).session
        self.app.record(session, SessionTitled(title=title, by="hermes"))
        return session

    def turn(
        self, session: str, said: str, *steps: Event, end: TurnEnded | None = None
    ) -> None:
        """What a person said, what came of it, each row some seconds after the one before."""
        self._turns += 1
        turn = f"t{self._turns}"
        (row,) = self._write(session, UserMessage(text=said))
        self._write(session, TurnStarted(inputs=(row.seq,)), turn=turn)
        for step in steps:
            self._write(session, step, turn=turn)
        self._write(session, end or TurnEnded(reason="done"), turn=turn)

    def _write(self, session: str, event: Event, turn: str = "") -> tuple[Row, ...]:
        self.clock.advance(3.0)
        return self.app.record(session, event, turn=turn)


@contextmanager
def past_of(home: Path, now: float) -> Iterator[Past]:
    """Opens a home to write into; nobody else may have it open for long."""
    clock = FakeClock(now)
    with build(Settings(), Home(home), clock=clock) as app:
        yield Past(app, clock)


def call(
    call_id: str, name: str, result: str = "", *, ok: bool = True, **arguments: object
) -> tuple[Event, ...]:
    """A tool call from its start to its end."""
    text = json.dumps(arguments)
    return (
        ToolStarted(call_id=call_id, name=name, arguments=text),
        ToolFinished(call_id=call_id, name=name, text=result, ok=ok),
    )


def reply(
    text: str = "",
    *calls: tuple[str, str, str],
    cost: float = 0.01,
    model: str = "fake-1",
) -> AssistantMessage:
    """What the model said, and the calls it asked for: (id, name, arguments)."""
    asked = tuple(
        ToolCall(id=call_id, name=name, arguments=arguments)
        for call_id, name, arguments in calls
    )
    usage = Usage(
        input_tokens=2_400, output_tokens=310, cache_read_tokens=1_900, cost_usd=cost
    )
    finish = "tool_calls" if asked else "stop"
    return AssistantMessage(
        text=text,
        tool_calls=asked,
        finish=finish,
        provider="openai",
        model=model,
        usage=usage,
    )


def approval(call_id: str, command: str, answer: Answer) -> tuple[Event, ...]:
    """A question and a person's answer."""
    arguments = json.dumps({"command": command})
    request = ApprovalRequested(
        call_id=call_id,
        name="terminal",
        arguments=arguments,
        summary=command,
        reason="it needs the network",
        reach="network",
        shape=f"program {command.split(maxsplit=1)[0]}",
    )
    shown = approval_hash(request)
    return request, ApprovalAnswered(
        call_id=call_id, answer=answer, by="dashboard", shown=shown
    )


def write_past(home: Path, now: float) -> dict[str, str]:
    """Four sessions; their ids by what they are."""
    with past_of(home, now - 6 * DAY) as past:
        old = past.session("Compare three date libraries", surface="cli")
        past.turn(
            old,
            "Compare the date libraries for us",
            reply("Pendulum has the **kindest** API.", cost=0.002),
        )
        past.clock.advance(3 * DAY)
        broken = past.session("Nightly report", surface="telegram", cwd="/srv/reports")
        past.turn(
            broken, "Make the nightly report",
            ModelRetried(reason="overloaded", detail="503 from the provider", attempt=2, delay=2.0, provider="openai"),
            end=TurnEnded(reason="failed", detail="The provider did not answer three times in a row."),
        )  # fmt: skip
        past.clock.advance(2 * DAY)
        main = past.session("Release 2.4", surface="dashboard", cwd="/work/kestrel")
        past.turn(
            main, "Prepare the release: run the tests, then write the changelog",
            reply("I look at the tests first.", ("c1", "terminal", '{"command": "pytest -q"}')),
            *call("c1", "terminal", "214 passed in 8.31s", command="pytest -q"),
            reply("All green. Now the tag.", ("c2", "terminal", '{"command": "git push --tags"}'), cost=0.03),
            *_asked("c2", "git push --tags", "once"),
            ToolFinished(call_id="c2", name="terminal", text="To github.com:kestrel\n * [new tag] v2.4 -> v2.4"),
            reply("The release **2.4** is tagged. The changelog has eleven lines.", cost=0.02),
        )  # fmt: skip
        past.turn(
            main, "Now tell the mailing list, and delete the old branch",
            SessionCompacted(summary="They released 2.4.", head=1, tail=4, before=48_000, after=9_000, model="fake-1"),
            reply("", ("c3", "terminal", '{"command": "git branch -D old"}'), model="fake-2", cost=0.05),
            *_asked("c3", "git branch -D old", "deny"),
            ToolFinished(call_id="c3", name="terminal", text="The user declined.", ok=False),
            end=TurnEnded(reason="interrupted", detail="Stopped by the user."),
        )  # fmt: skip
        child = past.session(
            "Read the changelog of kestrel", surface="delegate", parent=main
        )
        past.turn(
            child,
            "Summarise CHANGELOG.md",
            reply("Eleven changes, two of them breaking.", cost=0.004),
        )
        return {"old": old, "broken": broken, "main": main, "child": child}


def _asked(call_id: str, command: str, answer: Answer) -> tuple[Event, ...]:
    started = ToolStarted(
        call_id=call_id, name="terminal", arguments=json.dumps({"command": command})
    )
    return (started, *approval(call_id, command, answer))


def learning_of(home: Path) -> LearningService:
    """What a home has learned, to change it as Hermes would."""
    return open_learning(Home(home), Settings().learning, environment())


def teach(home: Path) -> None:
    """Some memory, one skill of the agent's own, and two proposals that wait."""
    Home(home).ensure()
    learning = learning_of(home)
    origin = Provenance("model", "s1", "t1")
    notes = ("The user prefers tabs over spaces.", "Kestrel is released on Thursdays.")
    for note in notes:
        learning.apply(MemoryChange((MemoryEdit("add", note),)), origin)
    learning.apply(
        SkillChange("release-notes", (SkillFileChange("SKILL.md", None, SKILL),)),
        origin,
    )
    better = SKILL.replace(
        "one line for each", "one line for each, breaking changes first"
    )
    change = SkillChange("release-notes", (SkillFileChange("SKILL.md", SKILL, better),))
    learning.propose(
        change, Provenance("review"), why="Breaking changes were asked about twice."
    )
    learning.propose(
        MemoryChange((MemoryEdit("add", "The mailing list is announce@kestrel.example."),)), Provenance("review"),
        why="It was looked up in two sessions.",
    )  # fmt: skip
