"""The chat in tmux, which keeps rows that are erased with the whole window in its scrollback."""

import asyncio
import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.testing.installed import InstalledHermes, executable
from hermes.testing.model_server import ModelServer
from hermes.testing.scripted_responses import ScriptedResponse, ServedCall

TMUX = shutil.which("tmux") or ""
pytestmark = pytest.mark.skipif(not TMUX, reason="tmux is not installed")
_WAIT_S = 60.0


class TmuxWindow:
    """One window of a tmux server of its own."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket

    def do(self, *words: str) -> str:
        argv = [TMUX, "-S", str(self._socket), "-f", "/dev/null", *words]
        run = subprocess.run(argv, capture_output=True, text=True, check=False)
        return run.stdout

    @property
    def shown(self) -> str:
        """The window and its scrollback."""
        return self.do("capture-pane", "-p", "-S", "-")

    async def until(self, text: str) -> None:
        async with asyncio.timeout(_WAIT_S):
            while text not in self.shown:  # noqa: ASYNC110 - tmux does not say
                await asyncio.sleep(0.1)


@pytest.fixture
def window(tmp_path: Path) -> Iterator[TmuxWindow]:
    window = TmuxWindow(tmp_path / "t")
    yield window
    window.do("kill-server")


async def test_a_smaller_window_leaves_no_stale_rows_of_a_running_call(
    tmp_path: Path, window: TmuxWindow
) -> None:
    command = "echo started with some words; sleep 60"
    calls = (ServedCall("terminal", json.dumps({"command": command})),)
    async with ModelServer(ScriptedResponse(calls=calls), "Done.") as server:
        hermes = InstalledHermes(tmp_path, server.url)
        given = hermes.environ({"TERM": "screen-256color"})
        environ = [f"{name}={value}" for name, value in given.items()]
        program = ["env", "-i", *environ, str(executable()), "--approvals", "full"]
        where = ["-x", "60", "-y", "20", "-c", str(hermes.work)]
        await asyncio.to_thread(window.do, "new-session", "-d", *where, *program)
        await window.until("Ctrl-D quits")
        window.do("send-keys", "go", "Enter")
        await window.until("│ started with")
        for columns, rows in ((60, 9), (60, 8), (60, 7), (60, 8), (60, 7)):
            window.do("resize-window", "-x", str(columns), "-y", str(rows))
            await asyncio.sleep(0.7)
        assert window.shown.count("Run echo started") == 1
        assert window.shown.count("│ started with") == 1
