"""Publishes `tui.*` events, derived from the `agent.*` events of the chat's session."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from hermes.schema import tui
from hermes.schema.event_base import Event, payload_of
from hermes.surfaces.terminal.text import one_line
from hermes.surfaces.terminal.tool_line import label_of

Publish: TypeAlias = Callable[[str, Mapping[str, Any]], None]


class TuiEventRelay:
    """Translates the events of one session."""

    def __init__(self, publish: Publish, session: str) -> None:
        self._publish = publish
        self._session = session
        self._streams = False
        self._calls: dict[str, tuple[str, str, float]] = {}

    def on_event(self, event: Mapping[str, Any]) -> None:
        """Publishes the `tui.*` event for an event of the session."""
        if event.get("session_id") != self._session:
            return
        match event["type"]:
            case "agent.message.delta":  # first, because it is the most frequent
                self._begin()
                self._publish(
                    "tui.message.delta",
                    {"text": event["text"], "session_id": self._session},
                )
            case "agent.message.assistant":
                self._message(event)
            case "agent.reasoning.delta":
                self._tell(tui.TuiReasoningDelta(text=event["text"]))
            case "agent.turn.ended":
                self._streams = False
                self._calls.clear()
                if event["reason"] in {"failed", "crashed", "budget"}:
                    self._tell(
                        tui.TuiError(message=event.get("detail") or event["reason"])
                    )
            case kind if kind.startswith("agent.tool."):
                self._call(event)
            case _:
                pass

    def _begin(self) -> None:
        if not self._streams:
            self._streams = True
            self._tell(tui.TuiMessageStart())

    def _message(self, event: Mapping[str, Any]) -> None:
        if event.get("reasoning"):
            self._tell(tui.TuiReasoningAvailable(text=event["reasoning"]))
        if event.get("text"):
            self._begin()
            self._tell(tui.TuiMessageComplete(text=event["text"]))
        self._streams = False

    def _call(self, event: Mapping[str, Any]) -> None:
        call_id = event.get("call_id", "")
        match event["type"]:
            case "agent.tool.generating":
                self._tell(tui.TuiToolGenerating(name=event["name"]))
            case "agent.tool.started":
                preview = label_of(event["name"], event["arguments"])
                self._calls[call_id] = (event["name"], preview, event["ts"])
                self._tell(
                    tui.TuiToolStart(
                        name=event["name"], preview=preview, call_id=call_id
                    )
                )
            case "agent.tool.progress" if call_id in self._calls:
                last = one_line(event["text"].rstrip("\n").rpartition("\n")[2])
                self._tell(
                    tui.TuiToolProgress(
                        name=self._calls[call_id][0], preview=last, call_id=call_id
                    )
                )
            case "agent.tool.finished":
                name, preview, since = self._calls.pop(
                    call_id, (event["name"], event["name"], event["ts"])
                )
                ok, seconds = event.get("ok", True), max(0.0, event["ts"] - since)
                self._tell(
                    tui.TuiToolComplete(
                        name=name,
                        preview=preview,
                        call_id=call_id,
                        ok=ok,
                        seconds=seconds,
                    )
                )
            case _:
                pass

    def _tell(self, event: Event) -> None:
        self._publish(event.topic, payload_of(event) | {"session_id": self._session})
