"""The parts that send events out of a process: the event socket for `hermes events`, the bridge to a dashboard,
hooks, webhooks and traces. Each is imported only if it is used."""

import logging
import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from hermes.bridge.event_socket import EventSocket
from hermes.errors import HermesError
from hermes.settings import Secrets
from hermes.settings.load import event_target

if TYPE_CHECKING:
    from hermes.app.app import App
    from hermes.app.feed import Feed
    from hermes.app.hook_events import HookEvents
    from hermes.app.live_events import LiveEventReceiver, LiveEventSender
    from hermes.bridge.bridge import Bridge
    from hermes.bridge.metrics import MetricExport
    from hermes.bridge.nats_link import NatsLink
    from hermes.bridge.traces import TraceExport
    from hermes.bridge.webhooks import WebhookSender

log = logging.getLogger("hermes.app")


class Exporters:
    """All exporters of one process, from `open` to `close`. Neither of them raises."""

    def __init__(self, app: "App", secrets: Secrets, surface: str) -> None:
        self._app = app
        self._secrets = secrets
        self._lock = threading.Lock()
        self._closed = False
        self._window: EventSocket | None = None
        self._since = app.clock.now()
        self.surface = surface
        self.bridge: Bridge | None = None
        self._hooks: HookEvents | None = None
        self._webhooks: list[WebhookSender] = []
        self._unsigned: list[dict[str, str]] = []
        self._traces: TraceExport | None = None
        self._metrics: MetricExport | None = None
        self.link: NatsLink | None = None
        """The connection to NATS, if there is one."""
        self._live_sender: LiveEventSender | None = None
        self._live_receiver: LiveEventReceiver | None = None

    def open(self) -> None:
        """Starts the exporters that are configured or found in the home."""
        self._begin(
            self._open_link,
            self._open_window,
            self.start_bridge,
            self._start_hooks,
            self._start_webhooks,
            self._start_traces,
            self._start_metrics,
        )

    def _begin(self, *parts: Callable[[], None]) -> None:
        for begin in parts:
            try:
                begin()
            except (OSError, HermesError) as error:
                log.warning(
                    "%s: %s", begin.__name__.strip("_").replace("_", " "), error
                )

    def reload(self, secrets: Secrets) -> None:
        """Restarts hooks, webhooks and traces with the app's current settings. Takes a moment."""
        self._secrets = secrets
        for webhook in self._webhooks:
            webhook.stop()
        self._webhooks.clear()
        self._unsigned.clear()
        if self._traces is not None:
            self._traces.stop()
            self._traces = None
        again = self._start_hooks if self._hooks is None else self._hooks.reload
        if self._metrics is not None:
            self._metrics.stop()
            self._metrics = None
        parts = (self._start_webhooks, self._start_traces, self._start_metrics)
        self._begin(again, *parts)

    def close(self) -> None:
        """Stops the exporters. Hooks and webhooks get a moment to finish."""
        with self._lock:
            self._closed = True
        if self._hooks is not None:
            self._hooks.close()
        for webhook in self._webhooks:
            webhook.stop()
        if self._traces is not None:
            self._traces.stop()
        if self._metrics is not None:
            self._metrics.stop()
        if self.bridge is not None:
            self.bridge.stop()
        if self._window is not None:
            self._window.close()
        self._close_link()

    def _open_link(self) -> None:
        settings = self._app.settings.events
        if not settings.url or not self._app.settings.store.url:
            return
        from hermes.app.live_events import LiveEventSender
        from hermes.bridge.nats_link import open_link

        self.link = open_link(settings, self._secrets)
        self._app.store.use_wake_ups(self.link)
        self._live_sender = LiveEventSender(self._app, self.link)

    def receive_live_events(
        self, feed: "Feed", *, everything: bool, skip_own_home: bool = False
    ) -> None:
        """Publishes the transient events of other machines here. Called in the feed's event loop."""
        if self.link is None or self._live_receiver is not None:
            return
        from hermes.app.live_events import LiveEventReceiver

        self._live_receiver = LiveEventReceiver(
            self._app,
            feed,
            self.link,
            everything=everything,
            skip_own_home=skip_own_home,
        )

    def _close_link(self) -> None:
        if self._live_receiver is not None:
            self._live_receiver.stop()
        if self._live_sender is not None:
            self._live_sender.stop()
        if self.link is not None:
            self.link.close()

    def start_bridge(self) -> None:
        """Starts the bridge to a dashboard, if one is configured or runs. An earlier bridge is replaced."""
        named, home, settings = event_target(), self._app.home, self._app.settings
        if not named.url and not (home.root / "dashboard" / "running.json").exists():
            log.debug(
                "no dashboard is configured or running: events stay in this process"
            )
            return
        from hermes.bridge.bridge import Bridge
        from hermes.bridge.outbox import Outbox
        from hermes.bridge.websocket import finder, is_private, of_home

        find = finder(home, named, settings.dashboard.tls_cert)
        if not named.url and of_home(home) is None:
            return
        hide = bool(named.url) and not is_private(named.url)
        if hide:
            log.warning(
                "the connection to %s is not encrypted: private fields are left out",
                named.url,
            )
        place = home.root / "bridge" / ("named" if named.url else "home")
        with self._lock:
            if self._closed:
                return
            if self.bridge is not None:
                self.bridge.stop()
            home.ensure(home.root / "bridge", place)
            self.bridge = Bridge(
                self._app.bus,
                find,
                Outbox(place, hide=hide, shared_log=not named.url),
                channel=named.channel or self.surface,
            )

    @property
    def publisher(self) -> str:
        """The name of the bridge on the wire; empty without a bridge."""
        return self.bridge.publisher if self.bridge is not None else ""

    def describe(self) -> dict[str, Any]:
        """Describes this process, with its counters."""
        bus = getattr(self._app.bus, "stats", None)
        stats = bus()._asdict() if bus is not None else {}
        stats["subscriptions"] = [
            one._asdict() for one in stats.get("subscriptions", ())
        ]
        return {
            "pid": os.getpid(),
            "surface": self.surface,
            "since": self._since,
            "bus": stats,
            "problems": [one._asdict() for one in self._app.errors.problems()],
            "hooks": msgspec.to_builtins(self._hooks.stats())
            if self._hooks is not None
            else [],
            "webhooks": [
                *(msgspec.to_builtins(one.stats()) for one in self._webhooks),
                *self._unsigned,
            ],
            "traces": msgspec.to_builtins(self._traces.stats)
            if self._traces is not None
            else None,
            "bridge": msgspec.to_builtins(self.bridge.stats())
            if self.bridge is not None
            else None,
        }

    def _open_window(self) -> None:
        folder = self._app.home.root / "run"
        self._app.home.ensure(folder)
        self._window = EventSocket(
            folder,
            self._app.bus,
            self.describe,
            self._dashboard_came,
            errors=self._app.errors,
        )

    def _start_hooks(self) -> None:
        from hermes.app.hook_events import HookEvents

        self._hooks = HookEvents(self._app)

    def _start_webhooks(self) -> None:
        if not self._app.settings.webhooks:
            return
        from hashlib import sha256

        from hermes.bridge.webhooks import WebhookSender, key_of

        home = self._app.home
        for name, webhook in self._app.settings.webhooks.items():
            secret = self._secrets.get(webhook.secret)
            if not secret:
                log.error(
                    "the webhook %s is off: %s is not set; store it with: hermes config set %s",
                    *(name, webhook.secret, webhook.secret),
                )
                self._unsigned.append({"name": name, "state": "no secret"})
                continue
            place = (
                home.root
                / "webhooks"
                / sha256(f"{name} {webhook.url}".encode()).hexdigest()[:16]
            )
            home.ensure(home.root / "webhooks", place)
            self._webhooks.append(
                WebhookSender(self._app.bus, name, webhook, key_of(secret), place)
            )

    def _start_traces(self) -> None:
        settings = self._app.settings.traces
        if not settings.endpoint:
            return
        from hermes import __version__
        from hermes.bridge.traces import TraceExport

        self._traces = TraceExport(
            self._app.bus, settings, self._secrets.get, __version__
        )

    def _start_metrics(self) -> None:
        settings = self._app.settings.traces
        if not settings.metrics_endpoint:
            return
        from hermes import __version__
        from hermes.bridge.metrics import MetricExport

        def gauges() -> dict[str, float]:
            if self._app.has_log:
                return self._app.store.gauges()
            return {}

        self._metrics = MetricExport(
            self._app.bus, settings, self._secrets.get, __version__, gauges
        )

    def _dashboard_came(self) -> None:
        if self.bridge is None:
            self.start_bridge()
        else:
            self.bridge.reconnect_now()
