"""Codex in a chat app: what is never allowed is not asked about there either, whatever tools the chat has."""

import os
from pathlib import Path

import msgspec
import pytest
from tests.fakes.codex_program import config_for, installed_codex
from tests.fakes.telegram_server import TelegramServer
from tests.integration.gateway.harness import opened

from hermes.schema.events import ApprovalAnswered
from hermes.schema.messages import ToolFinished
from hermes.settings.models import ModelSettings
from hermes.settings.sections import CodexSettings
from hermes.testing.fetched import NotFetched
from hermes.testing.model_server import ModelServer
from hermes.testing.scripted_responses import ScriptedResponse, ServedCall

_NEVER = "mkfs.ext4 /dev/there-is-no-such-disk"


@pytest.fixture
def program() -> Path:
    try:
        return installed_codex()
    except NotFetched as why:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(why))


async def test_what_is_never_allowed_is_declined_without_a_question(
    tmp_path: Path, program: Path
) -> None:
    call = {"cmd": _NEVER, "sandbox_permissions": "require_escalated"}
    asked = ServedCall(
        "exec_command",
        msgspec.json.encode({**call, "justification": "May I?"}).decode(),
        "call_1",
    )
    model = ModelSettings(openai_runtime="codex_app_server")
    home = tmp_path / "codex"
    home.mkdir()
    codex = CodexSettings(binary=str(program), home=str(home))
    async with (
        TelegramServer() as telegram,
        ModelServer(ScriptedResponse(calls=(asked,)), "It was declined.") as server,
    ):
        (home / "config.toml").write_text(config_for(server.url))
        async with opened(
            tmp_path, server, telegram, model=model, codex=codex
        ) as harness:
            telegram.say("go")
            await telegram.sees("It was declined.")
            rows = [
                row.event for row in harness.app.store.log.every_event(harness.session)
            ]
    (answered,) = [row for row in rows if isinstance(row, ApprovalAnswered)]
    (result,) = [row for row in rows if isinstance(row, ToolFinished)]
    assert (answered.answer, answered.by) == ("deny", "policy")
    assert "forbidden by policy" in result.text
