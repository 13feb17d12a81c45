"""The errors of a language server in changed files reach the model. The server is a real one."""

import json
import sys
from pathlib import Path

import pytest

from hermes.testing.installed import InstalledHermes
from hermes.testing.model_server import ModelServer
from hermes.testing.scripted_responses import ScriptedResponse, ServedCall

RUFF = Path(sys.executable).with_name("ruff")
pytestmark = pytest.mark.skipif(not RUFF.exists(), reason="ruff is not installed")


def write(content: str) -> ScriptedResponse:
    arguments = json.dumps({"path": "bad.py", "content": content})
    return ScriptedResponse(calls=(ServedCall("write_file", arguments),))


async def test_errors_of_changed_files_reach_the_model_once(tmp_path: Path) -> None:
    replies = (
        write("def f(:\n    pass\n"),
        ScriptedResponse(text="Done."),
        write("def f():\n    pass\n"),
        ScriptedResponse(text="Repaired."),
    )
    async with ModelServer(*replies) as server:
        hermes = InstalledHermes(tmp_path, server.url)
        server_line = f"{RUFF} server"
        environ = {"HERMES_LSP_PYTHON": server_line}
        done = await hermes.run("--approvals", "full", "-z", "write it", **environ)
        assert "Repaired." in done.out
        assert len(server.posts) == 4
        told = server.posts[2].body
        assert b"Language servers report errors" in told
        assert b"bad.py:1:7: Expected a parameter" in told


async def test_a_language_can_be_turned_off(tmp_path: Path) -> None:
    replies = (write("def f(:\n"), ScriptedResponse(text="Done."))
    async with ModelServer(*replies) as server:
        hermes = InstalledHermes(tmp_path, server.url)
        environ = {"HERMES_LSP_PYTHON": "off"}
        done = await hermes.run("--approvals", "full", "-z", "write it", **environ)
        assert "Done." in done.out
        assert len(server.posts) == 2
