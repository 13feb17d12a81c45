"""A home with a job that has a past: one of each outcome."""

import time
from pathlib import Path

from hermes.app import build
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
