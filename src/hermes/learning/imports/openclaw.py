"""Reads a home of OpenClaw (`~/.openclaw`, formerly `~/.clawdbot` and `~/.moltbot`): its agents and their data.

A home has a configuration (`openclaw.json`), a folder `agents/<id>` with the sessions of each agent, a workspace per
agent with `SOUL.md`, `MEMORY.md`, `USER.md`, `AGENTS.md` and skills, and jobs in `state/openclaw.sqlite` or, in older
versions, in `cron/jobs.json`.
"""

import contextlib
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from hermes.learning.change import LearningError
from hermes.learning.imports.conversation import ImportedConversation
from hermes.learning.imports.json_fields import Object, Objects, text
from hermes.learning.imports.pi import conversation_of
from hermes.learning.imports.sqlite_copy import columns, copied_database
from hermes.learning.imports.zstd import decompressed
from hermes.primitives.untyped import list_in, object_in, object_of, objects_in
from hermes.settings.json5_read import parse_json5
from hermes.text.translation import translator

t = translator(__name__)

AGENT = "openclaw"
CONFIG_NAMES = ("openclaw.json", "clawdbot.json", "moltbot.json")
DEFAULT_AGENT = "main"
_COLD_TABLE = "session_transcript_cold_archives"
_MAX_TEXT_BYTES = 2_000_000
_MAX_AGENTS = 200
_MAX_ENTRY_BYTES = 16_000_000
_MAX_SESSION_BYTES = 256_000_000
"""The maximum decompressed bytes: of one entry, and of all entries of a session."""
_STATE = Path("state") / "openclaw.sqlite"
_AGENT_DATABASE = Path("agent") / "openclaw-agent.sqlite"
_JOB_COLUMNS = (
    "job_id", "name", "agent_id", "enabled", "schedule_kind", "schedule_expr", "schedule_tz", "every_ms", "at",
    "payload_kind", "payload_message", "delivery_mode", "delivery_channel", "delivery_to", "job_json",
)  # fmt: skip


class OpenClawAgent(msgspec.Struct, frozen=True):
    """One agent of a home, with the folder that it works in."""

    id: str
    workspace: Path
    is_default: bool = False

    def file(self, name: str) -> str:
        """Returns a text of the workspace; empty if there is none, or if it is too large or not a file."""
        return read_small(self.workspace / name)


def is_openclaw_home(source: Path) -> bool:
    """Returns whether a folder is a home of OpenClaw."""
    return source.is_dir() and (
        any((source / name).is_file() for name in CONFIG_NAMES)
        or (source / _STATE).is_file()
        or (
            (source / "agents").is_dir() and any((source / "agents").glob("*/sessions"))
        )
    )


def read_small(path: Path) -> str:
    """Returns a text file's content; empty if there is none, or if it is too large or not a file."""
    with contextlib.suppress(OSError):
        if path.is_file() and path.stat().st_size <= _MAX_TEXT_BYTES:
            return path.read_text("utf-8", "replace").replace("\r\n", "\n")
    return ""


def read_json5(path: Path) -> Object:
    """Returns an object of a file; empty if there is none. Raises LearningError if the file is not valid."""
    content = read_small(path)
    try:
        return parse_json5(content) if content.strip() else {}
    except ValueError as error:
        raise LearningError(
            t.later(
                "{path} can't be read ({error}).", path=path, error=str(error)[:100]
            ),
            hint=t.later("It was skipped."),
        ) from error


def read_config(home: Path) -> Object:
    """Returns the configuration. Raises LearningError if it is not valid."""
    for name in CONFIG_NAMES:
        if found := read_json5(home / name):
            return found
    return {}


def agents(home: Path, config: Object) -> list[OpenClawAgent]:
    """Returns all agents: those of the configuration, and those that only have a folder. The default comes first."""
    section = object_in(config, "agents")
    listed = {
        name: entry
        for entry in objects_in(section, "list")
        if (name := _agent_id(entry.get("id")))
    }
    folders = [
        path.name
        for path in sorted(home.glob("agents/*"))
        if path.is_dir() and path.name == _agent_id(path.name)
    ]
    chosen = [name for name, entry in listed.items() if entry.get("default") is True]
    default = next(iter([*chosen, *listed]), DEFAULT_AGENT)
    given = object_in(section, "defaults").get("workspace") or object_in(
        config, "agent"
    ).get("workspace")
    found: list[OpenClawAgent] = []
    for name in list(dict.fromkeys([default, *listed, *folders]))[:_MAX_AGENTS]:
        is_default = name == default
        own = text(listed.get(name, {}).get("workspace"))
        usual = "workspace" if is_default else f"workspace-{name}"
        place = own or (text(given) if is_default else "")
        found.append(OpenClawAgent(name, _folder(home, place, usual), is_default))
    return found


def _agent_id(value: object) -> str:
    name = text(value).strip()
    return name if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", name) else ""


def _folder(home: Path, place: str, usual: str) -> Path:
    """Returns a workspace: the configured folder or, if it does not exist (as in a copy), the same name in the home."""
    if not place:
        return home / usual
    path = home.parent / place[2:] if place.startswith("~/") else home / place
    return path if path.is_dir() else home / path.name


def session_files(home: Path) -> tuple[Path, ...]:
    """Returns the files with the sessions of all agents: databases first, which newer versions have."""
    databases = sorted(home.glob(f"agents/*/{_AGENT_DATABASE}"))
    files = sorted(home.glob("agents/*/sessions/*.jsonl"))
    return tuple(path for path in (*databases, *files) if path.is_file())


def agent_of(path: Path) -> str:
    """Returns the agent that a file of sessions belongs to."""
    return path.parent.parent.name


def read(path: Path) -> Iterator[ImportedConversation]:
    """Yields the conversations of a file."""
    if path.suffix == ".jsonl":
        lines = Objects(path)
        entries = list(lines)
        if found := conversation_of(entries, AGENT, path.stem, unread=lines.passed):
            yield found
        return
    with copied_database(path) as connection:
        query = "SELECT session_id FROM transcript_events GROUP BY session_id"
        names = connection.execute(query) if _has(connection) else ()
        for (name,) in list(names):
            entries, unread = _stored_entries(connection, str(name))
            if found := conversation_of(entries, AGENT, str(name), unread=unread):
                yield found
        cold = columns(connection, _COLD_TABLE, ("session_id",))
        if cold:
            raise LearningError(
                t.later(
                    "{count} session is in OpenClaw's cold storage.",
                    "{count} sessions are in OpenClaw's cold storage.",
                    count=len(cold),
                ),
                hint=t.later("Open them in OpenClaw, then import again."),
            )


def _has(connection: sqlite3.Connection) -> bool:
    query = "SELECT 1 FROM sqlite_master WHERE name = 'transcript_events'"
    return connection.execute(query).fetchone() is not None


def _stored_entries(
    connection: sqlite3.Connection, session: str
) -> tuple[list[Object], int]:
    """Returns the entries of a session, and how many can't be read. Newer versions compress large ones."""
    known = {
        row[1] for row in connection.execute("PRAGMA table_info(transcript_events)")
    }
    packed = "event_zstd, event_utf8_bytes" if "event_zstd" in known else "NULL, 0"
    query = f"SELECT event_json, {packed} FROM transcript_events WHERE session_id = ? ORDER BY seq"  # noqa: S608 - our own names
    entries: list[Object] = []
    left = _MAX_SESSION_BYTES
    for raw, frame, size in connection.execute(query, (session,)):
        content = raw
        if frame is not None:
            content = _unpacked(frame, size, min(left, _MAX_ENTRY_BYTES))
            left -= len(content)
        entries.append(_decoded(content))
    unread = sum(not one for one in entries)
    if unread:  # they only link entries that are in order anyway
        entries = [{k: v for k, v in one.items() if k != "parentId"} for one in entries]
    return entries, unread


def _unpacked(frame: object, size: object, most: int) -> bytes:
    """Decompresses an entry; returns an empty value if it can't be read or has more than `most` bytes."""
    if not isinstance(frame, bytes) or not isinstance(size, int):
        return b""
    if not 0 < size <= most or len(frame) > _MAX_ENTRY_BYTES:
        return b""
    return decompressed(frame, size) or b""


def _decoded(raw: object) -> Object:
    try:
        found = msgspec.json.decode(raw if isinstance(raw, bytes) else str(raw))
    except (msgspec.DecodeError, RecursionError):
        return {}
    return object_of(found)


def jobs(home: Path) -> list[Object]:
    """Returns the jobs in the form of `jobs.json`: those in the database, and others that only the older file has."""
    found: dict[str, Object] = {}
    if (home / _STATE).is_file():
        with copied_database(home / _STATE) as connection:
            for row in columns(connection, "cron_jobs", _JOB_COLUMNS):
                found[str(row["job_id"])] = _job(row)
    for name in ("jobs.json", "cron.json"):
        listed = list_in(read_json5(home / "cron" / name), "jobs")
        for number, job in enumerate(listed):
            if isinstance(job, dict):
                found.setdefault(text(job.get("id")) or f"{name} {number}", job)
    return list(found.values())


def _job(row: dict[str, Any]) -> Object:
    """Converts a row to a job. OpenClaw uses the columns; the JSON next to them supplies the rest."""
    whole = _decoded(row["job_json"])
    payload, schedule = object_in(whole, "payload"), object_in(whole, "schedule")
    columns_ = {
        "kind": row["schedule_kind"],
        "expr": row["schedule_expr"],
        "tz": row["schedule_tz"],
        "everyMs": row["every_ms"],
        "at": row["at"],
    }
    message = row["payload_message"] or payload.get("message") or payload.get("text")
    delivery = {
        "mode": row["delivery_mode"],
        "channel": row["delivery_channel"],
        "to": row["delivery_to"],
    }
    return {
        "id": row["job_id"],
        "name": row["name"] or whole.get("name"),
        "agentId": row["agent_id"] or whole.get("agentId"),
        "schedule": schedule | {k: v for k, v in columns_.items() if v is not None},
        "payload": payload
        | {"kind": row["payload_kind"] or payload.get("kind"), "message": message},
        "delivery": object_in(whole, "delivery")
        | {k: v for k, v in delivery.items() if v is not None},
    }


def paired_people(home: Path) -> list[tuple[str, str]]:
    """Returns the people whom OpenClaw lets in besides those in its configuration: platform and id of each."""
    if not (home / _STATE).is_file():
        return []
    with copied_database(home / _STATE) as connection:
        rows = columns(
            connection, "channel_pairing_allow_entries", ("channel_key", "entry")
        )
    return [(str(row["channel_key"]), str(row["entry"])) for row in rows]
