"""A small model behind a server of one's own uses the line protocol, from the question to the changed file."""

import json
from pathlib import Path
from typing import Any, Literal

import pytest
from tests.fakes.self_hosted_server import SelfHostedServer, running_server

from hermes.testing.installed import InstalledHermes

SMALL = "qwen2.5-coder:1.5b"


def small_model(request: dict[str, Any]) -> str:
    """What a small model says that knows the line protocol and no tool calls."""
    system, last = (request["messages"][at]["content"] for at in (0, -1))
    if "Sort requests" in system:
        return "work" if "shopping" in last else "talk"
    if "exactly one action" not in system:
        return "It is 4." if "2 + 2" in last else "Hello from the server."
    if "blue bicycle" in last:
        return "say Call Ana about the blue bicycle."
    if last.startswith("result:\nbread"):
        return "append shopping.txt:\nbutter"
    return "say I added butter to shopping.txt."


@pytest.mark.parametrize("kind", ["ollama", "lmstudio", "llamacpp"])
async def test_a_small_model_changes_a_file_through_its_server(
    tmp_path: Path, kind: Literal["ollama", "lmstudio", "llamacpp"]
) -> None:
    served = SelfHostedServer(kind, small_model, parameters=1_500_000_000)
    served.model = SMALL
    with running_server(served) as server:
        hermes = InstalledHermes(tmp_path)
        (hermes.work / "shopping.txt").write_text("bread\ncheese\n")
        environ = {
            "HERMES_MODEL_PROVIDER": kind,
            "HERMES_MODEL_BASE_URL": server.url,
            "HERMES_MODEL_DEFAULT": SMALL,
        }
        asked = ("add butter to shopping.txt", "--approvals", "auto-edit")
        done = await hermes.run(*asked, **environ)
        assert (done.code, done.err) == (0, "")
        assert "added butter" in done.out
        changed = (hermes.work / "shopping.txt").read_text()
        assert changed == "bread\ncheese\nbutter\n"
        tried = len(server.chats)
        talk = await hermes.run("say hello to my friend", **environ)
        assert talk.out == "Hello from the server.\n"
        later = server.chats[tried:]
        assert not any("bicycle" in json.dumps(chat) for chat in later)  # remembered
        assert all("tools" not in chat for chat in later)
        assert all(("grammar" in chat) <= (kind == "llamacpp") for chat in later)
