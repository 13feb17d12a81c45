"""Events of a session as updates of the protocol: text, thoughts, tool calls with diffs, the plan, the mode."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from acp import helpers
from acp.schema import (
    PlanEntry,
    PlanEntryStatus,
    SessionInfoUpdate,
    ToolCallLocation,
    ToolKind,
    UserMessageChunk,
)

from hermes.app import App
from hermes.core.arguments import BadArguments, parse_arguments
from hermes.primitives.untyped import object_of, objects_in
from hermes.schema.events import SessionRedone, SessionUndone, TurnStarted
from hermes.store.log_row import Row
from hermes.surfaces.terminal.call_words import call_words
from hermes.surfaces.terminal.notices import GOAL, goal_notice

Update: TypeAlias = Any
"""One of the protocol's `session/update` bodies."""
_KINDS: Mapping[str, ToolKind] = {
    "read_file": "read",
    "vision_analyze": "read",
    "list_files": "search",
    "search_files": "search",
    "session_search": "search",
    "write_file": "edit",
    "edit_file": "edit",
    "apply_patch": "edit",
    "terminal": "execute",
    "exec_command": "execute",
    "run_python": "execute",
    "web_fetch": "fetch",
    "web_search": "fetch",
    "present_plan": "switch_mode",
}
_PLAN_STATES: Mapping[str, PlanEntryStatus] = {
    "pending": "pending",
    "in_progress": "in_progress",
    "done": "completed",
}
_COMMANDS = frozenset(("terminal", "exec_command", "run_python"))
_MAX_OUTPUT_CHARACTERS = 20_000


class UpdateStream:
    """Turns the events of one session into updates, in order. Text that was streamed is not sent again."""

    def __init__(self, folder: Path, *, shows_terminals: bool = False) -> None:
        self._folder = folder
        self._shows_terminals = shows_terminals
        self._streamed = ""
        self._arguments: dict[str, tuple[str, str]] = {}
        self._output: dict[str, str] = {}

    def of(self, event: Mapping[str, Any]) -> Iterator[Update]:
        """The updates for an event; none for most events."""
        match event["type"]:
            case "agent.message.delta":
                self._streamed += event["text"]
                yield helpers.update_agent_message_text(event["text"])
            case "agent.reasoning.delta":
                yield helpers.update_agent_thought_text(event["text"])
            case "agent.message.assistant":
                yield from self._rest(str(event.get("text", "")))
            case "agent.model.retried":
                self._streamed = ""
            case "agent.tool.started":
                yield self._started(event)
            case "agent.tool.progress":
                yield from self._progress(event)
            case "agent.tool.finished":
                yield from self._finished(event)
            case "session.titled":
                yield SessionInfoUpdate(
                    session_update="session_info_update", title=event["title"]
                )
            case "session.mode_changed":
                yield helpers.update_current_mode(event["mode"])
            case (
                "agent.turn.checked"
                | "agent.picture.reduced"
                | "agent.picture.withheld"
                | "agent.login.expired"
            ):
                again = (
                    f" Sign in again: {event['command']}" if "command" in event else ""
                )
                words = f"\n\n[{event['detail']}{again}]\n\n"
                yield helpers.update_agent_message_text(words)
            case kind if kind.startswith(GOAL) and (notice := goal_notice(event)):
                yield helpers.update_agent_message_text(f"\n\n[{notice}]\n\n")
            case _:
                pass

    def past(self, event: Mapping[str, Any]) -> Iterator[Update]:
        """The updates for an event that was over before the editor came: also what the person said."""
        if event["type"] == "agent.message.user" and event.get("origin") != "hermes":
            yield _user_text(str(event["text"]))
        elif event["type"] == "agent.message.assistant" and event.get("reasoning"):
            yield helpers.update_agent_thought_text(str(event["reasoning"]))
            yield from self.of(event)
        else:
            yield from self.of(event)

    def call(self, event: Mapping[str, Any]) -> tuple[str, ToolKind]:
        """The title and the kind of a tool call."""
        words = call_words(str(event["name"]), str(event["arguments"]))
        return words.label, _KINDS.get(str(event["name"]), "other")

    def content(self, name: str, arguments: str) -> list[Any]:
        """The diffs that a call would make."""
        values = _parsed(arguments)
        path = values.get("path")
        if not isinstance(path, str):
            return []
        file = str(self._folder / path)
        if name == "edit_file":
            old, new = str(values.get("old_text", "")), str(values.get("new_text", ""))
            return [helpers.tool_diff_content(file, new, old)]
        if name == "write_file":
            return [helpers.tool_diff_content(file, str(values.get("content", "")))]
        return []

    def texts(self, text: str) -> list[Any]:
        """A text as the content of a call; nothing if it is empty."""
        return [_text(text)] if text else []

    def locations(self, arguments: str) -> list[ToolCallLocation]:
        """The files that a call names."""
        values = _parsed(arguments)
        path, line = values.get("path"), values.get("offset")
        if not isinstance(path, str):
            return []
        number = line if isinstance(line, int) and line > 0 else None
        return [ToolCallLocation(path=str(self._folder / path), line=number)]

    def _rest(self, text: str) -> Iterator[Update]:
        """What was not streamed of a message that is complete now."""
        streamed, self._streamed = self._streamed, ""
        if text.startswith(streamed) and text != streamed:
            yield helpers.update_agent_message_text(text.removeprefix(streamed))

    def _started(self, event: Mapping[str, Any]) -> Update:
        name, arguments = str(event["name"]), str(event["arguments"])
        self._arguments[event["call_id"]] = (name, arguments)
        title, kind = self.call(event)
        started = helpers.start_tool_call(
            event["call_id"],
            title,
            kind=kind,
            status="in_progress",
            content=self.content(name, arguments),
            locations=self.locations(arguments),
            raw_input=_parsed(arguments),
        )
        if self._is_terminal(name):
            shown = {"terminal_id": event["call_id"], "cwd": str(self._folder)}
            started.content = [helpers.tool_terminal_ref(event["call_id"])]
            started.field_meta = {"terminal_info": shown}
        return started

    def _is_terminal(self, name: str) -> bool:
        """Whether the editor shows a call as a terminal. The command runs here, in our sandbox."""
        return self._shows_terminals and name in _COMMANDS

    def _progress(self, event: Mapping[str, Any]) -> Iterator[Update]:
        call, text = str(event["call_id"]), str(event.get("text", ""))
        if self._is_terminal(self._arguments.get(call, ("", ""))[0]):
            self._output[call] = "shown"
            yield _terminal_output(call, text)
            return
        output = self._output.get(call, "") + text
        self._output[call] = output[-_MAX_OUTPUT_CHARACTERS:]
        yield helpers.update_tool_call(
            call, status="in_progress", content=[_text(self._output[call])]
        )

    def _finished(self, event: Mapping[str, Any]) -> Iterator[Update]:
        call = str(event["call_id"])
        name, arguments = self._arguments.pop(call, (str(event["name"]), ""))
        was_shown = self._output.pop(call, "")
        is_ok = event.get("ok", True)
        if self._is_terminal(name):
            if not was_shown:
                yield _terminal_output(call, str(event.get("text", "")))
            yield _terminal_exit(call, is_ok=is_ok)
            return
        diffs = self.content(name, arguments) if is_ok else []
        text = str(event.get("text", ""))[:_MAX_OUTPUT_CHARACTERS]
        yield helpers.update_tool_call(
            call,
            status="completed" if is_ok else "failed",
            content=diffs or [_text(text)],
        )
        if name == "todo" and is_ok:
            yield helpers.update_plan(_plan(arguments))


def _terminal_output(call: str, text: str) -> Update:
    data = text.replace("\r\n", "\n").replace("\n", "\r\n")
    update = helpers.update_tool_call(call, status="in_progress")
    update.field_meta = {"terminal_output": {"terminal_id": call, "data": data}}
    return update


def _terminal_exit(call: str, *, is_ok: bool) -> Update:
    update = helpers.update_tool_call(call, status="completed" if is_ok else "failed")
    ended = {"terminal_id": call, "exit_code": 0 if is_ok else 1, "signal": None}
    update.field_meta = {"terminal_exit": ended}
    return update


def _text(text: str) -> Any:
    return helpers.tool_content(helpers.text_block(text))


def _user_text(text: str) -> UserMessageChunk:
    from hermes.app.typed_part import typed_part

    return helpers.update_user_message_text(typed_part(text))


def _parsed(arguments: str) -> dict[str, Any]:
    try:
        values = parse_arguments(arguments)
    except (BadArguments, json.JSONDecodeError):
        return {}
    return object_of(values)


def _plan(arguments: str) -> list[PlanEntry]:
    return [
        helpers.plan_entry(
            str(item.get("text", "")),
            status=_PLAN_STATES.get(str(item.get("status")), "pending"),
        )
        for item in objects_in(_parsed(arguments), "items")
    ]


def past_updates(app: App, session: str) -> Iterator[Update]:
    """The updates that show a session's conversation. Reads the log."""
    rows = list(app.store.log.every_event(session))
    undone = _undone(rows)
    hidden = {
        seq
        for row in rows
        if row.turn in undone and isinstance(row.event, TurnStarted)
        for seq in row.event.inputs
    }
    stream = UpdateStream(app.store.sessions.origin(session).working_directory)
    for row in rows:
        if row.turn not in undone and row.seq not in hidden:
            yield from stream.past(app.envelope(row))


def _undone(rows: list[Row]) -> set[str]:
    """The turns that are undone now."""
    undone: dict[int, tuple[str, ...]] = {}
    for row in rows:
        if isinstance(row.event, SessionUndone):
            undone[row.seq] = row.event.turns
        elif isinstance(row.event, SessionRedone):
            undone.pop(row.event.undone, None)
    return {turn for turns in undone.values() for turn in turns}
