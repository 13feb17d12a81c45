"""The settings, as types. A new setting is a field here; a new section is a Struct and a field of `Settings`.

Everything else follows from these types: validation, the environment variables, `hermes config` and the reference page.
A field's `Meta` holds its bounds and its one-line description; a section's docstring describes the section.
"""

from typing import Annotated, Literal

from msgspec import Meta, Struct


class Section(Struct, frozen=True, forbid_unknown_fields=True):
    """What every section is: frozen, and closed to keys that don't exist."""


class Sessions(Section, frozen=True):
    """What is kept of conversations."""

    write_json_snapshots: Annotated[
        bool, Meta(description="After each turn also write the session to `sessions/session_<id>.json`.")
    ] = False


class Store(Section, frozen=True):
    """The session log, `state.db`."""

    busy_timeout: Annotated[
        float, Meta(ge=0, le=3600, description="Seconds to wait while another process has the database locked.")
    ] = 30.0


class Events(Section, frozen=True):
    """The event bus."""

    max_depth: Annotated[
        int, Meta(ge=1, le=500, description="How deep subscribers may publish inside a callback before it is an error.")
    ] = 64


class Display(Section, frozen=True):
    """What the terminal shows."""

    color: Annotated[
        Literal["auto", "always", "never"],
        Meta(description="Colour in the terminal; `auto` follows the terminal and NO_COLOR."),
    ] = "auto"


class Logging(Section, frozen=True):
    """The log files in `logs/`."""

    level: Annotated[
        Literal["debug", "info", "warning", "error"], Meta(description="The least serious message that is logged.")
    ] = "info"


class Settings(Section, frozen=True):
    """All settings of one process."""

    sessions: Sessions = Sessions()
    store: Store = Store()
    events: Events = Events()
    display: Display = Display()
    logging: Logging = Logging()
