"""What choosing a model costs before it is called."""

import subprocess
import sys

_PROGRAM = """
import sys
from hermes.providers.build import build_model
from hermes.settings import Secrets, Settings
for variables in ({"OPENAI_BASE_URL": "http://[::1]:1/v1"}, {"ANTHROPIC_API_KEY": "k"}, {"OPENAI_API_KEY": "k"}, {}):
    build_model(Settings(), Secrets({}, variables))
heavy = ("httpx2", "httpcore2", "anyio", "h11", "ssl", "dataclasses", "importlib.resources", "email", "hermes.testing")
print(*(name for name in heavy if name in sys.modules))
"""


def test_no_http_client_is_loaded_before_the_first_call() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert set(done.stdout.split()) <= {"ssl"}  # asyncio itself looks for it
