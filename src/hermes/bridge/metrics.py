"""Metrics for OpenTelemetry: turns, lease renewals, queue depths, and how late rows of other machines arrive.

Everything, including loading the libraries and reading the store, happens in separate threads.
"""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from hermes.bridge import EventSource
from hermes.bridge.event_thread import EventThread
from hermes.bridge.traces import answers, redirect_library_logs, sent_headers
from hermes.events.envelope import is_foreign
from hermes.settings.sections import TraceSettings
from hermes.text.install_words import install_hint

if TYPE_CHECKING:
    from opentelemetry.metrics import CallbackOptions, Observation
    from opentelemetry.sdk.metrics import MeterProvider

log = logging.getLogger("hermes.metrics")

_INTERVAL_S = 30.0
_TOPICS = ("agent.turn.ended", "agent.message.*", "store.unreachable")

Gauges = Callable[[], Mapping[str, float]]
"""Returns the gauges by name. Called before each export, in a thread."""
GAUGES = {
    "hermes.queue.chat_messages": "Messages of chats that wait to be handled.",
    "hermes.queue.due_jobs": "Planned runs of jobs that are due.",
    "hermes.queue.work": "Sessions that wait for a worker, or are being answered by one.",
    "hermes.sessions.running": "Sessions that are being run, on all machines.",
    "hermes.lease.renewals": "Leases that this process has renewed since it started.",
    "hermes.store.notice_lag": "Seconds that a notice of new rows takes to arrive.",
}


class MetricExport:
    """Exports the metrics of this process. `secret` returns the value of a secret that a header names."""

    def __init__(
        self,
        bus: EventSource,
        settings: TraceSettings,
        secret: Callable[[str], str | None],
        version: str,
        gauges: Gauges,
    ) -> None:
        self._settings = settings
        self._secret = secret
        self._version = version
        self._gauges = gauges
        self._read: Mapping[str, float] = {}
        self._thread = EventThread(bus, _TOPICS, self._run, name="hermes-metrics")

    def stop(self, grace: float = 5.0) -> None:
        """Stops. Sends the last values if there is time."""
        self._thread.stop(grace)

    def _run(self, events: Iterator[Mapping[str, Any]]) -> None:
        try:
            provider = self._provider()
        except ImportError as error:
            log.error(  # noqa: TRY400 - the words say it all
                "no metrics: %s is not installed. %s", error.name, install_hint("otel")
            )
            return
        meter = provider.get_meter("hermes", self._version)
        turns = meter.create_counter("hermes.turns", description="Turns that ended.")
        outages = meter.create_counter(
            "hermes.store.outages", description="Times the store was unreachable."
        )
        lag = meter.create_histogram(
            "hermes.row.lag", "s", "From a row written elsewhere to its readers here."
        )
        for name, text in GAUGES.items():
            meter.create_observable_gauge(name, [self._gauge(name)], description=text)
        for event in events:
            if event["type"] == "store.unreachable":
                outages.add(1)
            elif is_foreign(event):
                lag.record(max(0.0, time.time() - event["ts"]))
            elif event["type"] == "agent.turn.ended":
                turns.add(1, {"hermes.turn.reason": event["reason"]})
        if answers(self._settings.metrics_endpoint):
            provider.shutdown()
        else:
            log.warning("the last metrics are lost: the collector does not answer")
        if self._thread.dropped:
            log.warning("the metrics lack %d events", self._thread.dropped)

    def _gauge(self, name: str) -> "Callable[[CallbackOptions], Iterable[Observation]]":
        from opentelemetry.metrics import Observation

        is_first = name == next(iter(GAUGES))

        def observe(_: "CallbackOptions") -> "Iterable[Observation]":
            if is_first:  # all are read together, once per export
                self._read = self._safely_read()
            if name in self._read:
                yield Observation(self._read[name])

        return observe

    def _safely_read(self) -> Mapping[str, float]:
        try:
            return self._gauges()
        except Exception:  # a gauge that can't be read must not end the export
            log.debug("the gauges could not be read", exc_info=True)
            return {}

    def _provider(self) -> "MeterProvider":
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import (
            OTLPMetricExporter,
        )
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
        from opentelemetry.sdk.resources import Resource

        redirect_library_logs()
        headers, missing = sent_headers(self._settings.headers, self._secret)
        for name in missing:
            log.error("metrics are sent without %s: it is not set", name)
        names = {
            "service.name": self._settings.service_name,
            "service.version": self._version,
        }
        exporter = OTLPMetricExporter(
            endpoint=self._settings.metrics_endpoint, headers=headers, timeout=10
        )
        reader = PeriodicExportingMetricReader(exporter, _INTERVAL_S * 1000, 10_000)
        return MeterProvider(
            [reader], resource=Resource.create(names), shutdown_on_exit=False
        )
