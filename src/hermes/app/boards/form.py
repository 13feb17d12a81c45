"""Parses a card as a person types it: texts become times, workspaces, labels and amounts."""

from pathlib import Path
from typing import Any

from hermes.app.app import App
from hermes.app.schedules.jobs import JobBook
from hermes.errors import UsageError
from hermes.schedules.parse import seconds, understand
from hermes.schedules.recurrence import next_after
from hermes.schedules.time_zones import ScheduleError
from hermes.settings.load import typed_path
from hermes.text.translation import translator

t = translator(__name__)


_OFF = ("", "off", "none", "now")


def parsed_card_fields(app: App, given: dict[str, Any]) -> dict[str, Any]:
    """Returns the given fields of a card; those that are None stay unchanged."""
    fields = {name: value for name, value in given.items() if value is not None}
    try:
        if "time_limit" in fields:
            text = fields["time_limit"]
            fields["time_limit"] = 0.0 if text in _OFF else seconds(text)
        if "at" in fields:
            fields |= start_time(app, fields.pop("at"))
    except ScheduleError as error:
        raise UsageError(error.words, hint=error.hint_words) from error
    if "workspace" in fields:
        fields["workspace"] = typed_workspace(fields["workspace"])
    for name in ("labels", "skills", "parents"):
        if name in fields and isinstance(fields[name], str):
            fields[name] = words(fields[name])
    if "assignee" in fields:
        fields["assignee"] = fields["assignee"].strip().lower().removeprefix("@")
    return fields


def start_time(app: App, text: str) -> dict[str, Any]:
    """Returns when a card may start: the next time of a schedule. `off` removes it."""
    if text.strip().lower() in _OFF:
        return {"due": 0.0, "schedule": ""}
    now = app.clock.now()
    try:
        rule, zone = understand(text, now, JobBook(app).zone)
    except ScheduleError as error:
        raise UsageError(error.words, hint=error.hint_words) from error
    return {"due": next_after(rule, zone, now) or 0.0, "schedule": text.strip()}


def typed_workspace(text: str) -> str:
    """Returns a workspace with an absolute path: `scratch`, `dir:PATH`, `worktree:PATH`, or only a path."""
    kind, colon, path = text.strip().partition(":")
    if kind in ("", "scratch") and not path:
        return kind
    if kind in ("dir", "worktree"):
        return f"{kind}:{typed_path(path or str(Path()))}"
    if colon and not text.strip().startswith(("/", "~", ".")):
        raise UsageError(
            t.later("{text!r} is not a workspace.", text=text),
            hint=t.later("Use scratch, dir:PATH or worktree:PATH."),
        )
    return f"dir:{typed_path(text.strip())}"


def words(text: str) -> tuple[str, ...]:
    """Splits words at commas or spaces, without duplicates."""
    return tuple(dict.fromkeys(text.replace(",", " ").split()))
