"""Checks `state.db` for `hermes doctor`: its header, its size, and what opening it finds."""

import stat
from pathlib import Path

from hermes.commands.doctor_checks import Finding, Site
from hermes.commands.views import FAIL, OK, WARN
from hermes.errors import HermesError, os_reason
from hermes.settings.home import probe
from hermes.text.translation import translator

t = translator(__name__)

_MAX_FULLY_CHECKED_BYTES = (
    256 * 1024**2
)  # bytes of a database that are all read, within seconds
_BUSY_TIMEOUT_S = 2.0


def check_state_file(site: Site) -> list[Finding]:
    """Returns what is wrong with `state.db`, or its schema and size."""
    path = site.home.state
    info = probe(path)
    if isinstance(info, FileNotFoundError) and isinstance(
        probe(path, follow=False), OSError
    ):
        return [Finding("sessions", OK, t("no state.db yet"))]
    if isinstance(info, OSError) or not stat.S_ISREG(info.st_mode):
        reason = os_reason(info) if isinstance(info, OSError) else "not a file"
        return [
            Finding(
                "sessions",
                FAIL,
                t("state.db can't be read ({reason})", reason=reason),
                t("Look at {path}", path=path),
            )
        ]
    with path.open("rb") as file:
        header = file.read(100)
    fault, to_do = _state_fault(path, header, info.st_size)
    if not fault:
        fault, to_do = _inner_fault(path)
    if fault:
        return [Finding("sessions", FAIL, t("state.db {fault}", fault=fault), to_do)]
    mode = stat.S_IMODE(info.st_mode)
    if mode & 0o077:
        return [
            Finding(
                "sessions",
                WARN,
                t("state.db is open to others (mode {mode:04o})", mode=mode),
                t("Run: chmod 600 '{path}'", path=path),
            )
        ]
    size = f"{info.st_size / 1024**2:,.1f} MiB"
    if info.st_size > _MAX_FULLY_CHECKED_BYTES:
        size += t("; `hermes sessions check` reads all of it")
    return [
        Finding(
            "sessions",
            OK,
            t(
                "state.db, schema {number}, {size}",
                number=_number(header, 60),
                size=size,
            ),
        )
    ]


def _state_fault(path: Path, header: bytes, size: int) -> tuple[str, str]:
    """Why Hermes would refuse or rebuild this file, by its header alone, and what to do; nothing if it would not."""
    from hermes.store.state_file import (  # takes long to load
        APPLICATION_ID,
        MIGRATIONS,
    )

    away = t("Move it away: mv '{path}' '{path}.old'", path=path)
    if not header:
        return t("is empty"), away
    if not (header.startswith(b"SQLite format 3\x00") and len(header) == 100):
        return t("is not a database"), t(
            "Run: hermes sessions check, or move it away: mv '{path}' '{path}.old'",
            path=path,
        )
    if _number(header, 68) != APPLICATION_ID:
        return t("belongs to another program"), away
    if _number(header, 60) > len(MIGRATIONS):
        return (
            t(
                "was written by a newer Hermes (schema {number})",
                number=_number(header, 60),
            ),
            t("Update Hermes; the file is kept."),
        )
    page = int.from_bytes(header[16:18], "big")
    expected = _number(header, 28) * (65536 if page == 1 else page)
    if expected != size and isinstance(
        probe(path.with_name(path.name + "-wal")), OSError
    ):
        return (
            t(
                "has {size:,} bytes instead of {expected:,}",
                size=size,
                expected=expected,
            ),
            t("Run: hermes sessions check"),
        )
    return "", ""


def _inner_fault(path: Path) -> tuple[str, str]:
    """What opening the file finds wrong with it, and what to do; nothing if all is well."""
    from hermes.store.state_file import (  # takes long to load
        MIGRATIONS,
        DatabaseState,
        inspect,
    )

    try:
        found = inspect(
            path,
            version=len(MIGRATIONS),
            busy_timeout=_BUSY_TIMEOUT_S,
            read_only=True,
            check_all_bytes=_MAX_FULLY_CHECKED_BYTES,
        )
    except HermesError as error:
        return f"can't be opened: {error.message}", error.hint
    if found.state is DatabaseState.DAMAGED:
        return (
            f"is damaged: {found.detail}",
            t("Run: hermes sessions check. It keeps the file and rebuilds a new one."),
        )
    return "", ""


def _number(header: bytes, offset: int) -> int:
    return int.from_bytes(header[offset : offset + 4], "big")
