"""`hermes_events` as a plugin or a script meets it: in a process and a folder of its own."""

import subprocess
import sys
from pathlib import Path


def run(code: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_the_facade_works_from_a_foreign_folder(tmp_path: Path) -> None:
    code = """
from hermes_events import publish, subscribe, unsubscribe
handle = subscribe("plugin.*", lambda event: print(event["type"], event["src"], event["n"]))
publish("plugin.x", {"n": 1})
print(unsubscribe(handle), unsubscribe(handle))
publish("plugin.x", {"n": 2})
"""
    assert run(code, tmp_path).split() == ["plugin.x", "plugin", "1", "True", "False"]


def test_what_tests_of_plugins_use(tmp_path: Path) -> None:
    code = """
import hermes_events
handle = hermes_events.subscribe("plugin.*", print)
hermes_events.subscribe("**", print)
print(hermes_events._subscriber_count())
hermes_events._reset_for_tests()
hermes_events.publish("plugin.x")
print(hermes_events._subscriber_count(), hermes_events.unsubscribe(handle), hermes_events.unsubscribe(None))
"""
    assert run(code, tmp_path).split() == ["2", "0", "False", "False"]


def test_importing_the_facade_loads_neither_asyncio_nor_msgspec(tmp_path: Path) -> None:
    code = """
import sys
from hermes_events import publish, subscribe
subscribe("**", lambda event: None)
publish("a", {"n": 1, "items": [1]})
print(sorted({"asyncio", "msgspec"} & set(sys.modules)))
"""
    assert run(code, tmp_path).strip() == "[]"


def test_a_process_with_an_async_subscriber_and_no_loop_ends_cleanly(
    tmp_path: Path,
) -> None:
    code = """
import logging
logging.basicConfig()
from hermes_events import publish, stats, subscribe
async def callback(event): ...
subscribe("a", callback)
publish("a")
print(stats().dropped)
"""
    out = run(code, tmp_path)
    assert "1" in out.split()
    assert "dropped" in out
    assert "never awaited" not in out
