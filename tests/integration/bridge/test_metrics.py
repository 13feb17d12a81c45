"""Metrics at a loopback OTLP receiver."""

import gzip
from pathlib import Path

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from tests.integration.bridge.receiver import Receiver, receiving

from hermes.app import build
from hermes.events import Bus
from hermes.events.envelope import relay
from hermes.schema.events import SessionCreated, TurnEnded, TurnStarted
from hermes.schema.messages import UserMessage
from hermes.settings import Home, Secrets, Settings
from hermes.settings.sections import TraceSettings


def _values(receiver: Receiver) -> dict[str, float]:
    """The last value of each metric; of a histogram, its count."""
    found: dict[str, float] = {}
    for request in receiver.requests:
        body = request.body
        body = gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body
        message = ExportMetricsServiceRequest.FromString(body)
        for part in message.resource_metrics:
            for scope in part.scope_metrics:
                for one in scope.metrics:
                    kind = one.WhichOneof("data")
                    for point in getattr(one, str(kind)).data_points:
                        if kind == "histogram":
                            found[one.name] = point.count
                        else:
                            found[one.name] = point.as_int or point.as_double
    return found


def test_turns_queues_renewals_and_lag_are_exported(tmp_path: Path) -> None:
    with receiving() as receiver:
        traces = TraceSettings(
            metrics_endpoint=receiver.url, headers={"x-key": "${OTEL_KEY}"}
        )
        settings = Settings(traces=traces)
        with build(settings, Home(tmp_path), bus=Bus()) as app:
            session = app.begin(SessionCreated()).session
            lease = app.store.leases.acquire(session)
            app.go_live(Secrets({"OTEL_KEY": "sesame"}, {}))
            for _ in range(2):
                app.store.leases.renew(lease)
                app.record(session, TurnStarted(inputs=()), turn="t", lease=lease)
                app.record(session, TurnEnded(reason="done"), turn="t", lease=lease)
            app.store.chats.accept("telegram", "1", "{}", "telegram/1").result()
            offered = UserMessage(text="for a worker")
            app.store.log.submit(session, offered, offer=True).result()
            late = app.envelope(app.record(session, UserMessage(text="hi"))[0])
            relay(app.bus.publish, late["type"], late)
        values = _values(receiver)
        assert values["hermes.turns"] == 2
        assert values["hermes.lease.renewals"] == 2
        assert values["hermes.sessions.running"] == 1
        assert values["hermes.queue.chat_messages"] == 1
        assert values["hermes.queue.work"] == 1
        assert values["hermes.row.lag"] == 1
        assert receiver.requests[0].headers["x-key"] == "sesame"
