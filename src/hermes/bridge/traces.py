"""Traces for OpenTelemetry: one trace per turn, with a span for each model call and tool call.

Attributes follow the conventions for generative AI. Message text is left out unless the user asks for it. Everything,
including loading the libraries, happens in a separate thread.
"""

import logging
import re
import socket
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from hermes.bridge import EventSource
from hermes.bridge.event_thread import EventThread
from hermes.events.envelope import is_foreign
from hermes.primitives.recent import RecentDict
from hermes.settings.redaction import mask
from hermes.settings.sections import TraceSettings
from hermes.text.install_words import install_hint
from hermes.text.translation import translator

t = translator(__name__)


if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span, Tracer

log = logging.getLogger("hermes.traces")

_TOPICS = (
    "session.created", "agent.turn.*", "agent.message.user", "agent.message.assistant", "agent.tool.started",
    "agent.tool.finished", "agent.model.retried", "agent.approval.*",
)  # fmt: skip
_PROBE_TIMEOUT_S = 0.5  # for checking whether the collector answers
_MAX_TRACED_SESSIONS = 1000  # tracked at once
_USAGE = {
    "input_tokens": "gen_ai.usage.input_tokens",
    "output_tokens": "gen_ai.usage.output_tokens",
    "cache_read_tokens": "gen_ai.usage.cache_read.input_tokens",
    "cache_write_tokens": "gen_ai.usage.cache_creation.input_tokens",
    "reasoning_tokens": "gen_ai.usage.reasoning.output_tokens",
    "cost_usd": "hermes.cost_usd",
}
_FINE = frozenset(("done", "interrupted"))


class TraceStats(msgspec.Struct):
    """Counts the events that go into traces."""

    endpoint: str
    spans: int = 0
    dropped: int = 0
    problem: str = ""


class _Turn:
    """A running turn."""

    def __init__(self, span: "Span", since: float) -> None:
        self.span = span
        self.since = since  # when the model was called, or is about to be
        self.tools: dict[str, Span] = {}


class TraceExport:
    """Exports the turns of this process. `secret` returns the value of a secret that a header names."""

    def __init__(
        self,
        bus: EventSource,
        settings: TraceSettings,
        secret: Callable[[str], str | None],
        version: str,
    ) -> None:
        self._settings = settings
        self._secret = secret
        self._version = version
        self._stats = TraceStats(mask(settings.endpoint))
        self._thread = EventThread(
            bus,
            _TOPICS,
            self._run,
            name="hermes-traces",
            accepts=lambda event: not is_foreign(event),
        )

    @property
    def stats(self) -> TraceStats:
        """The counts so far."""
        self._stats.dropped = self._thread.dropped
        return self._stats

    def stop(self, grace: float = 5.0) -> None:
        """Stops. Sends queued spans if there is time."""
        self._thread.stop(grace)

    def _run(self, events: Iterator[Mapping[str, Any]]) -> None:
        try:
            provider = self._provider()
        except ImportError as error:
            self._stats.problem = t.logged("{name} is not installed", name=error.name)
            log.error("no traces: %s. %s", self._stats.problem, install_hint("otel"))  # noqa: TRY400
            return
        spans = _Spans(
            provider.get_tracer("hermes", self._version),
            contents=self._settings.contents,
        )
        for event in events:
            try:
                spans.add(event)
            except Exception:  # one bad event must not stop the others
                log.exception("no span was created for %s", event.get("type"))
            self._stats.spans = spans.count
        if answers(
            self._settings.endpoint
        ):  # otherwise the libraries keep retrying and delay the end of a command
            provider.shutdown()
        else:
            log.warning(
                "the last spans are lost: no answer from %s",
                mask(self._settings.endpoint),
            )

    def _provider(self) -> "TracerProvider":
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import (
            OTLPSpanExporter,
        )
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        redirect_library_logs()
        headers, missing = sent_headers(self._settings.headers, self._secret)
        for name in missing:
            self._stats.problem = t.logged("{name} is not set", name=name)
            log.error(
                "spans are sent without %s: it is not set; store it with: hermes config set %s",
                *(name,) * 2,
            )
        names = {
            "service.name": self._settings.service_name,
            "service.version": self._version,
        }
        provider = TracerProvider(
            resource=Resource.create(names), shutdown_on_exit=False
        )
        exporter = OTLPSpanExporter(
            endpoint=self._settings.endpoint, headers=headers, timeout=10
        )
        provider.add_span_processor(
            BatchSpanProcessor(exporter, schedule_delay_millis=1000)
        )
        return provider


class _Spans:
    """Turns events into spans."""

    def __init__(self, tracer: "Tracer", *, contents: bool) -> None:
        from opentelemetry import trace

        self._api = trace
        self._tracer = tracer
        self._contents = contents
        self._turns: RecentDict[str, _Turn] = RecentDict(
            _MAX_TRACED_SESSIONS, lambda _, turn: turn.span.end()
        )
        self._parents: dict[str, str] = {}
        self._said: dict[str, str] = {}
        self.count = 0

    def add(self, event: Mapping[str, Any]) -> None:
        session = str(event.get("session_id", ""))
        turn = self._turns.get(session)
        match event["type"]:
            case "session.created" if event.get("kind") == "child":
                self._parents[session] = event["parent"]
            case "agent.message.user" if self._contents:
                self._said[session] = event["text"]
            case "agent.turn.started":
                self._begin(session, event)
            case "agent.message.assistant" if turn:
                self._reply(turn, event)
            case "agent.tool.started" if turn:
                self._tool(turn, session, event)
            case "agent.tool.finished" if turn:
                self._tool_end(turn, event)
            case "agent.turn.ended" if turn:
                self._end(session, turn, event)
            case (
                "agent.turn.steered"
                | "agent.model.retried"
                | "agent.approval.requested"
                | "agent.approval.answered"
            ) if turn:
                names = (
                    "reason",
                    "attempt",
                    "delay",
                    "provider",
                    "model",
                    "name",
                    "answer",
                    "by",
                )
                turn.span.add_event(
                    event["type"],
                    {name: event[name] for name in names if name in event},
                    _ns(event),
                )
                if event["type"] == "agent.model.retried":
                    turn.since = event["ts"] + event.get("delay", 0.0)
            case _:
                pass

    def _begin(self, session: str, event: Mapping[str, Any]) -> None:
        attributes: dict[str, Any] = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": "hermes",
            "gen_ai.conversation.id": session,
            "hermes.turn.id": event.get("turn_id", ""),
        }
        said = self._said.pop(session, "")
        if said:
            attributes["gen_ai.input.messages"] = _messages("user", said)
        span = self._start(
            "invoke_agent hermes", event["ts"], attributes, self._parent_of(session)
        )
        self._turns[session] = _Turn(span, event["ts"])

    def _parent_of(self, session: str) -> "Span | None":
        """Returns the call for which a child session works."""
        turn = self._turns.get(self._parents.get(session, ""))
        if turn is None:
            return None
        return next(reversed(turn.tools.values()), turn.span)

    def _reply(self, turn: _Turn, event: Mapping[str, Any]) -> None:
        model = event.get("model", "")
        attributes: dict[str, Any] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": event.get("provider", ""),
            "gen_ai.request.model": model,
            "gen_ai.response.model": model,
            "gen_ai.response.finish_reasons": [event.get("finish", "stop")],
            "gen_ai.conversation.id": event["session_id"],
            **_usage(event),
        }
        if self._contents:
            attributes["gen_ai.output.messages"] = _messages(
                "assistant", event.get("text", "")
            )
        kind = self._api.SpanKind.CLIENT
        span = self._start(
            f"chat {model}".strip(),
            min(turn.since, event["ts"]),
            attributes,
            turn.span,
            kind,
        )
        span.end(_ns(event))
        turn.since = event["ts"]

    def _tool(self, turn: _Turn, session: str, event: Mapping[str, Any]) -> None:
        attributes: dict[str, Any] = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": event["name"],
            "gen_ai.tool.call.id": event["call_id"],
            "gen_ai.tool.type": "function",
            "gen_ai.conversation.id": session,
        }
        if self._contents:
            attributes["gen_ai.tool.call.arguments"] = event["arguments"]
        turn.tools[event["call_id"]] = self._start(
            f"execute_tool {event['name']}", event["ts"], attributes, turn.span
        )

    def _tool_end(self, turn: _Turn, event: Mapping[str, Any]) -> None:
        span = turn.tools.pop(event["call_id"], None)
        turn.since = event["ts"]
        if span is None:
            return
        if self._contents:
            span.set_attribute("gen_ai.tool.call.result", event.get("text", ""))
        if not event.get("ok", True):
            self._fail(span, "tool_failed")
        span.end(_ns(event))

    def _end(self, session: str, turn: _Turn, event: Mapping[str, Any]) -> None:
        del self._turns[session]
        self._parents.pop(session, None)
        for span in turn.tools.values():
            span.end(_ns(event))
        turn.span.set_attributes(
            {"hermes.turn.reason": event["reason"], **_usage(event)}
        )
        if event["reason"] not in _FINE:
            self._fail(turn.span, event["reason"])
        turn.span.end(_ns(event))

    def _fail(self, span: "Span", kind: str) -> None:
        span.set_attribute("error.type", kind)
        span.set_status(self._api.Status(self._api.StatusCode.ERROR))

    def _start(
        self,
        name: str,
        ts: float,
        attributes: dict[str, Any],
        parent: "Span | None",
        kind: Any = None,
    ) -> "Span":
        self.count += 1
        context = self._api.set_span_in_context(parent) if parent is not None else None
        return self._tracer.start_span(
            name,
            context=context,
            kind=kind or self._api.SpanKind.INTERNAL,
            attributes={
                key: value
                for key, value in attributes.items()
                if value not in ("", None)
            },
            start_time=int(ts * 1e9),
        )


def _usage(event: Mapping[str, Any]) -> dict[str, Any]:
    usage = event.get("usage") or {}
    return {
        name: usage[field]
        for field, name in _USAGE.items()
        if usage.get(field) is not None
    }


def _messages(role: str, text: str) -> str:
    return msgspec.json.encode(
        [{"role": role, "parts": [{"type": "text", "content": text}]}]
    ).decode()


def _ns(event: Mapping[str, Any]) -> int:
    return int(event["ts"] * 1e9)


class _Forward(logging.Handler):
    """Sends the libraries' log messages to the log of Hermes instead of the terminal."""

    # pyrefly: ignore[missing-override-decorator]
    def emit(self, record: logging.LogRecord) -> None:
        log.log(min(record.levelno, logging.WARNING), "%s", record.getMessage())


def redirect_library_logs() -> None:
    """Keeps the messages of the libraries off the terminal."""
    logger = logging.getLogger("opentelemetry")
    if not any(isinstance(handler, _Forward) for handler in logger.handlers):
        logger.addHandler(_Forward())
        logger.propagate = False


def sent_headers(
    headers: Mapping[str, str], secret: Callable[[str], str | None]
) -> tuple[dict[str, str], list[str]]:
    """Returns the headers with their secrets filled in, and the names of unset secrets."""
    missing: list[str] = []

    def fill(found: re.Match[str]) -> str:
        value = secret(found[1])
        if not value:
            missing.append(found[1])
        return value or ""

    filled = {
        name: re.sub(r"\$\{(\w+)\}", fill, value) for name, value in headers.items()
    }
    return filled, missing


def answers(endpoint: str) -> bool:
    """Returns whether something listens at an address. If not, the libraries would retry and delay a command's end."""
    place = urlsplit(endpoint)
    try:
        port = place.port or (443 if place.scheme == "https" else 80)
        with socket.create_connection(
            (place.hostname or "", port), timeout=_PROBE_TIMEOUT_S
        ):
            return True
    except (OSError, ValueError):
        return False
