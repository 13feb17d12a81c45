"""A job as a person types it, on the command line or in the page: every field is text, and an omitted field is unchanged."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from hermes.errors import UsageError
from hermes.schedules.parse import seconds
from hermes.schema.schedules import CatchUp
from hermes.settings.load import typed_path
from hermes.text.translation import translator

t = translator(__name__)


_AS_TYPED = (
    "schedule",
    "prompt",
    "name",
    "zone",
    "deliver",
    "catch_up",
    "budget",
    "model",
    "times",
)
_TIMES = ("jitter", "timeout")


class JobForm(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The fields of a job. An omitted field stays as it is, or as the settings say."""

    schedule: (
        Annotated[
            str, Meta(description="When: in words, an interval or a cron expression.")
        ]
        | None
    ) = None
    prompt: (
        Annotated[str, Meta(description="What to do.", max_length=100_000)] | None
    ) = None
    name: Annotated[str, Meta(max_length=200)] | None = None
    zone: (
        Annotated[str, Meta(description="A time zone, such as Europe/Berlin.")] | None
    ) = None
    deliver: (
        Annotated[
            str,
            Meta(description="`none`, `file:PATH`, `session:ID`, or `telegram:123`."),
        ]
        | None
    ) = None
    catch_up: CatchUp | None = None
    jitter: (
        Annotated[
            str, Meta(description="Delay each start by up to this much, such as `5m`.")
        ]
        | None
    ) = None
    timeout: (
        Annotated[str, Meta(description="Stop a run after this time, such as `10m`.")]
        | None
    ) = None
    budget: (
        Annotated[
            str, Meta(description="The most one run may use: `$0.50` or `200k tokens`.")
        ]
        | None
    ) = None
    tools: (
        Annotated[str, Meta(description="The only toolsets it may use: `files,web`.")]
        | None
    ) = None
    model: str | None = None
    cwd: Annotated[str, Meta(description="The folder it works in.")] | None = None
    times: (
        Annotated[
            int, Meta(description="End the job after this many runs; 0 for no end.")
        ]
        | None
    ) = None


def parsed_fields(form: JobForm) -> dict[str, Any]:
    """The fields of a job that the form has, parsed. Raises UsageError or ScheduleError."""
    found: dict[str, Any] = {
        name: value for name in _AS_TYPED if (value := getattr(form, name)) is not None
    }
    for name in _TIMES:
        if (text := getattr(form, name)) is not None:
            found[name] = seconds(text)
    if form.tools is not None:
        found["toolsets"] = tuple(form.tools.replace(",", " ").split())
    if form.cwd is not None:
        folder = typed_path(form.cwd)
        if not folder.is_dir():
            raise UsageError(
                t.later("There is no folder {folder}.", folder=folder),
                hint=t.later("A job works in a folder that exists."),
            )
        found["cwd"] = str(folder)
    if form.times is not None and form.times < 0:
        raise UsageError(
            t.later("A job can't run less than once."),
            hint=t.later("Give a number of runs, or 0 for no end."),
        )
    if form.deliver is not None and form.deliver.startswith("file:"):
        found["deliver"] = f"file:{typed_path(form.deliver[5:])}"
    return found
