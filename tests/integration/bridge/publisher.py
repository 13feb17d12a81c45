"""A process that publishes through a bridge, as it is told on its standard input: one JSON command per line."""

import json
import os
import sys
import time
from pathlib import Path

import msgspec

from hermes.bridge.bridge import Bridge
from hermes.bridge.outbox import Outbox
from hermes.bridge.spool import MAX_RECORDS
from hermes.bridge.websocket import finder
from hermes.events import default_bus
from hermes.primitives.backoff import Backoff
from hermes.settings import Home
from hermes.settings.load import event_target


def main(root: Path) -> None:
    bus, home = default_bus(), Home(root)
    kept = Outbox(
        root / "bridge", most_kept=int(os.environ.get("MOST_KEPT", MAX_RECORDS))
    )
    bridge = Bridge(
        bus,
        finder(home, event_target()),
        kept,
        channel="test",
        backoff=Backoff(0.05, 0.2),
    )
    count = {"durable": 0, "transient": 0}
    for line in sys.stdin:
        command = json.loads(line)
        for _ in range(command.get("times", 1)):
            for kind, topic in (
                ("durable", "agent.tool.started"),
                ("transient", "agent.tool.progress"),
            ):
                for _ in range(command.get(kind, 0)):
                    count[kind] += 1
                    bus.publish(
                        topic,
                        {
                            "n": count[kind],
                            "who": os.getpid(),
                            "text": "x" * command.get("size", 0),
                        },
                    )
            time.sleep(command.get("pause", 0))
        if command.get("stop"):
            bridge.stop()
        sys.stdout.write(
            json.dumps(msgspec.to_builtins(bridge.stats()) | {"sent": count}) + "\n"
        )
        sys.stdout.flush()


main(Path(sys.argv[1]))
