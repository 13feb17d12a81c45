"""What was approved is what runs: a link that leads to a different file by then stops the call."""

import asyncio
from pathlib import Path

import pytest
from tests.fakes.session_events import watch

from hermes.app import build
from hermes.app.agent import Agent
from hermes.app.undo import Rewind, shadows_of
from hermes.core.answers import approval_hash
from hermes.core.ports import ToolContext
from hermes.errors import ToolFailed
from hermes.events import Bus
from hermes.schema.events import SessionCreated
from hermes.schema.messages import ToolFinished
from hermes.settings import Home, Secrets, Settings
from hermes.testing.model_server import ModelServer
from hermes.testing.scripted_responses import ScriptedResponse, ServedCall
from hermes.tools import default_tools

WRITE = ScriptedResponse(
    calls=(ServedCall("write_file", '{"path": "notes.txt", "content": "new\\n"}'),)
)


@pytest.mark.parametrize("swapped", [True, False])
async def test_a_link_swapped_between_approval_and_run(
    tmp_path: Path, swapped: bool
) -> None:
    work, outside = tmp_path / "work", tmp_path / "outside.txt"
    work.mkdir()
    outside.write_text("precious\n")
    (work / "real.txt").write_text("old\n")
    (work / "notes.txt").symlink_to("real.txt")
    async with ModelServer(WRITE, "done") as server:
        with build(Settings(), Home(tmp_path / "home"), bus=Bus()) as app:
            agent = Agent(
                app,
                Secrets(
                    {}, {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "sk-test"}
                ),
            )
            session = app.begin(SessionCreated(surface="cli", cwd=str(work))).session

            async def allow() -> None:
                async for event in watch(app, session):
                    if event["type"] == "agent.approval.requested":
                        if swapped:
                            (work / "notes.txt").unlink()
                            (work / "notes.txt").symlink_to(outside)
                        await agent.service.answer(
                            session,
                            event["call_id"],
                            "once",
                            by="test",
                            shown=approval_hash(event),
                        )
                        return

            with agent.questions.attached("test"):
                answering = asyncio.ensure_future(allow())
                await agent.service.submit(session, "write it")
                async with asyncio.timeout(20):
                    await agent.service.idle(session)
                    await answering
            await agent.close()
            (result,) = [
                row.event
                for row in app.store.log.every_event(session)
                if isinstance(row.event, ToolFinished)
            ]
    assert outside.read_text() == "precious\n"
    assert result.ok is not swapped
    if swapped:
        assert "has changed since it was approved" in result.text
    else:
        assert (work / "real.txt").read_text() == "new\n"


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("read_file", {"path": "notes.txt"}),
        ("write_file", {"path": "notes.txt", "content": "x"}),
        ("edit_file", {"path": "notes.txt", "old_text": "precious", "new_text": "x"}),
        ("list_files", {"path": "folder"}),
    ],
)
async def test_a_tool_touches_only_what_was_judged(
    tmp_path: Path, name: str, arguments: dict[str, str]
) -> None:
    work = tmp_path / "work"
    (work / "folder").mkdir(parents=True)
    (work / "notes.txt").write_text("old\n")
    tool = default_tools(
        tmp_path / "out", environment={}, hermes_home=tmp_path / "home"
    )[name]
    judged = tool.paths(arguments, work)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("precious\n")
    (work / "notes.txt").unlink()
    (work / "notes.txt").symlink_to(outside / "file")
    (work / "folder").rmdir()
    (work / "folder").symlink_to(outside)
    context = ToolContext("c", "s", work, lambda text: None, targets=judged)
    with pytest.raises(ToolFailed, match="leads to a different file"):
        await tool.run(arguments, context)
    assert (outside / "file").read_text() == "precious\n"


async def test_after_an_undo_what_the_session_knew_of_files_counts_no_more(
    tmp_path: Path,
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.txt").write_text("one\n")
    edit = ServedCall(
        "edit_file", '{"path": "a.txt", "old_text": "one", "new_text": "two"}'
    )
    async with ModelServer(
        ScriptedResponse(calls=(edit,)),
        "done",
        ScriptedResponse(calls=(edit,)),
        "again",
    ) as server:
        with build(Settings(), Home(tmp_path / "home"), bus=Bus()) as app:
            secrets = Secrets(
                {}, {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "sk-test"}
            )
            agent = Agent(app, secrets, approvals="auto-edit")
            session = app.begin(SessionCreated(surface="cli", cwd=str(work))).session
            for _ in range(2):
                await agent.service.submit(session, "edit")
                await agent.service.idle(session)
                assert (work / "a.txt").read_text() == "two\n"
                await asyncio.to_thread(Rewind(app, shadows_of(app)).undo, session)
                agent.toolbox.forget_files(session)
                assert (work / "a.txt").read_text() == "one\n"
            await agent.close()
