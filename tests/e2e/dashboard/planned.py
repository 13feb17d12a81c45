"""A home with a job that has a past, one of each outcome; and with a board."""

import time
from pathlib import Path
from typing import Any

from hermes.app import build
from hermes.app.boards.board_service import Boards
from hermes.app.boards.card_draft import CardDraft
from hermes.app.schedules.jobs import JobBook, JobDraft
from hermes.schema.schedules import Instant, State
from hermes.settings import Home, Settings

_DAY = 86_400.0


def plan_job(home: Path) -> str:
    """Makes the job; returns its id. Its newest run failed, the one before was done."""
    with build(Settings(), Home(home)) as app:
        book, now = JobBook(app), time.time()
        draft = JobDraft(
            schedule="every day at 9",
            prompt="Summarize the inbox.",
            name="Inbox",
            zone="Europe/Berlin",
            budget="$0.50",
            deliver=f"telegram:{'1' * 60}",
        )
        job, _ = book.add(draft)
        ends: tuple[tuple[State, str, str, int], ...] = (
            ("failed", "stopped: it took longer than 10 minutes", "waiting", 1),
            ("done", "", "telegram:1", 1),
            (
                "missed",
                "nothing ran the schedules at that time; later ones are caught up on",
                "",
                140,
            ),
            ("skipped", "the previous run had not ended", "", 1),
        )
        for days, (state, reason, delivery, repeats) in enumerate(ends, 1):
            at, ran = now - days * _DAY, state in ("failed", "done")
            book.store.close(
                (
                    Instant(
                        job=job.id,
                        due=at,
                        starts=at,
                        cause="schedule",
                        state=state,
                        reason=reason,
                        repeats=repeats,
                        session="s1" if ran else "",
                        began=at if ran else 0.0,
                        ended=at + 70.0,
                        delivery=delivery,
                    ),
                )
            )
        return job.id


def fill_board(home: Path) -> str:
    """Makes cards that wait for different reasons; returns the id of one with a comment, a file and a child."""
    with build(Settings(), Home(home)) as app:
        boards = Boards(app)

        def make(title: str, **more: Any) -> str:
            return boards.create("default", CardDraft(title=title, **more)).id

        boards.board()
        first = make(
            "Fix the login",
            held=True,
            priority=5,
            labels=("auth", "w" * 60, "x"),
            body="See `login.py`.",
        )
        make("w" * 200, parents=(first,))
        make("A rough idea", triage=True)
        boards.block(make("Deploy", held=True), "the key is missing", by="user")
        boards.complete(make("Clean up", held=True), "Removed 3 GB.", by="user")
        boards.comment(first, "Mind the *clock*.", by="user")
        boards.attach(first, f"{'w' * 90}.txt", b"x", by="user")
        return first
