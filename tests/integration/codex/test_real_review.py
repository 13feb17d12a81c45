"""Reviews for somebody who has a codex login and no key: they run on that login, with the tools of learning alone."""

from pathlib import Path
from typing import Any

import msgspec

from hermes.app import build
from hermes.app.agent import Agent
from hermes.events import Bus
from hermes.schema.events import AuxiliaryCalled, SessionCreated
from hermes.schema.learning import LearningReviewed
from hermes.settings import Home, Secrets, Settings
from hermes.settings.models import ModelSettings
from hermes.settings.sections import CodexSettings, LearningSettings
from hermes.testing.model_server import ModelServer
from hermes.testing.scripted_responses import ScriptedResponse, ServedCall


def remembers(real: Any, text: str) -> ScriptedResponse:
    arguments = msgspec.json.encode(
        {"edits": [{"action": "add", "text": text, "file": "user"}]}
    ).decode()
    return ScriptedResponse(
        calls=(
            ServedCall(
                "memory",
                arguments,
                "m1",
                "mcp__hermes" if real.is_newest else "mcp__hermes__",
            ),
        )
    )


OTHER = '\n[mcp_servers.other]\ncommand = "/bin/false"\nrequired = true\nenabled = {enabled}\n'


async def test_a_review_runs_on_the_codex_login_and_can_only_learn(
    real: Any, tmp_path: Path
) -> None:
    settings = Settings(
        model=ModelSettings(openai_runtime="codex_app_server"),
        codex=CodexSettings(binary=str(real.program), home=str(real.home)),
        learning=LearningSettings(mode="auto"),
    )
    async with ModelServer(
        "Tea it is.", remembers(real, "Likes tea."), "done"
    ) as server:
        real.configure(server.url)
        with build(settings, Home(tmp_path / "home"), bus=Bus()) as app:
            agent = Agent(app, Secrets({}, {}))
            session = app.begin(
                SessionCreated(surface="cli", cwd=str(real.cwd))
            ).session
            await agent.service.submit(session, "I like tea.")
            await agent.service.idle(session)
            (real.home / "config.toml").write_text(
                (real.home / "config.toml").read_text() + OTHER.format(enabled="true")
            )
            reviewed = await agent.learner.review(session)
            called = [
                row.event
                for row in app.store.log.every_event(session)
                if isinstance(row.event, AuxiliaryCalled)
            ]
            learned = agent.learner.learning.memory.snapshot()
            await agent.close()
        review = msgspec.json.decode(server.posts[1].body)
    assert isinstance(reviewed, LearningReviewed)
    assert (reviewed.failure, len(reviewed.changes)) == ("", 1)
    assert "Likes tea." in learned
    (mine,) = [one for one in called if one.task == "review"]
    assert (mine.provider, mine.model, mine.failure) == ("codex", "gpt-5.5", "")
    assert mine.usage is not None
    assert mine.usage.input_tokens == 40
    offered = msgspec.json.encode(review["tools"])
    assert b"exec_command" not in offered
    assert b'"shell' not in offered
    said = msgspec.json.encode(review["input"])
    assert said.count(b"I like tea.") == 1
    assert b"Tea it is." in said


async def test_somebody_with_a_key_or_a_model_named_for_it_is_reviewed_by_that(
    tmp_path: Path,
) -> None:
    codex = ModelSettings(openai_runtime="codex_app_server")
    with build(Settings(model=codex), Home(tmp_path / "home"), bus=Bus()) as app:
        session = app.begin(SessionCreated(surface="cli", cwd=str(tmp_path))).session
        assert (
            Agent(app, Secrets({}, {"OPENAI_API_KEY": "sk-test"}))
            .engine(session)
            .review(session, {})
            is None
        )
