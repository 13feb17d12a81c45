"""Commands for work beside the conversation: side questions, background tasks, reviews, agents and pins."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from hermes.app import App, build
from hermes.app.agent import Agent
from hermes.app.session_journal import read_history
from hermes.commands.command import Command
from hermes.commands.context import CommandContext
from hermes.commands.conversation import Conversation
from hermes.commands.pins import list_pins, pin_message, unpin_message
from hermes.commands.project import show_project, trust_project
from hermes.commands.side_work import (
    AgentOverview,
    begin_background,
    choose_agent,
    review_changes,
    show_agents,
    side_question,
    write_notes,
)
from hermes.commands.slash_commands import compress
from hermes.commands.views import Block, Line, MarkdownBlock, MarkdownResult
from hermes.errors import NotFound
from hermes.events import Bus
from hermes.schema.events import AuxiliaryCalled, SessionCompacted, SessionCreated
from hermes.schema.goals import ChildEnded
from hermes.schema.messages import UserMessage
from hermes.settings import Home, Secrets, Settings
from hermes.testing.model_server import ModelServer, Recorded
from hermes.testing.scripted_responses import ScriptedResponse


class CommandChat:
    """A chat in which commands are given. Implements what they need of `Conversation` and `Surface`."""

    name, via, approvals, has_audience, facts = "cli", "", "ask", False, ()

    def __init__(self, app: App, agent: Agent, session: str) -> None:
        self.app, self.agent, self.session = app, agent, session
        self.told: list[str] = []
        self.models: list[str] = []

    def tell(self, *blocks: Block) -> None:
        for one in blocks:
            if isinstance(one, Line):
                self.told.append(one.spans[0].text)
            elif isinstance(one, MarkdownBlock):
                self.told += one.text.splitlines()

    async def require_idle(self) -> None:
        await self.agent.service.idle(self.session)

    async def resume(self) -> None:
        await self.agent.service.resume(self.session)

    async def use_model(self, name: str, *, force: bool) -> str:
        self.models.append(name)
        return ""

    async def give(self, command: Command, words: str = "") -> Any:
        arguments = command.words(words, {"session": self.session})
        chat = cast("Conversation", self)
        surface = cast("Any", self)
        with CommandContext(surface, app=self.app, conversation=chat) as context:
            return await command.run(context, arguments)

    async def say(self, text: str) -> None:
        await self.agent.service.submit(self.session, text)
        await self.idle()

    async def idle(self) -> None:
        async with asyncio.timeout(60):
            await self.agent.service.all_idle()
            await self.agent.background.join()


@asynccontextmanager
async def chat_in(
    root: Path, respond: Callable[[Recorded], ScriptedResponse]
) -> AsyncIterator[tuple[CommandChat, ModelServer]]:
    folder = root / "project"
    folder.mkdir()
    async with ModelServer(respond=respond) as server:
        with build(Settings(), Home(root / "home"), bus=Bus()) as app:
            secrets = Secrets(
                {}, {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "sk-test"}
            )
            agent = Agent(app, secrets)
            session = app.begin(SessionCreated(surface="cli", cwd=str(folder))).session
            try:
                yield CommandChat(app, agent, session), server
            finally:
                await agent.close()


def echo(request: Recorded) -> ScriptedResponse:
    if request.method != "POST":
        return ScriptedResponse(text="")
    last = msgspec.json.decode(request.body)["messages"][-1]["content"]
    return ScriptedResponse(text=f"You said: {str(last)[-60:]}")


async def test_a_side_question_sees_the_conversation_and_leaves_no_trace(
    tmp_path: Path,
) -> None:
    async with chat_in(tmp_path, echo) as (chat, server):
        await chat.say("remember the word apple")
        before = read_history(chat.app.store, chat.session).messages
        answer = await chat.give(side_question, "which word?")
        assert isinstance(answer, MarkdownResult)
        assert "which word?" in answer.text
        assert "remember the word apple" in str(server.requests[-1].body)
        assert read_history(chat.app.store, chat.session).messages == before
        rows = [row.event for row in chat.app.store.log.every_event(chat.session)]
        tasks = [one.task for one in rows if isinstance(one, AuxiliaryCalled)]
        assert "btw" in tasks


async def test_a_background_task_is_a_child_that_tells_its_end(tmp_path: Path) -> None:
    async with chat_in(tmp_path, echo) as (chat, _):
        await chat.say("hello")
        await chat.give(begin_background, "count the files")
        await chat.idle()
        rows = [row.event for row in chat.app.store.log.every_event(chat.session)]
        (told,) = [one for one in rows if isinstance(one, ChildEnded)]
        assert (told.kind, told.reason) == ("background", "done")
        assert "count the files" in told.text
        overview = await chat.give(show_agents)
        assert isinstance(overview, AgentOverview)
        (child,) = overview.children
        assert (child.state, child.kind) == ("done", "background")
        await chat.give(show_agents, f"tell {child.id[-6:]} go on")
        await chat.idle()
        said = read_history(chat.app.store, child.id).messages
        assert any(isinstance(one, UserMessage) and one.text == "go on" for one in said)
        with pytest.raises(NotFound, match="There is no background task"):
            await chat.give(show_agents, "stop zzz")


async def test_a_review_is_done_by_a_fresh_reader_and_its_findings_can_be_repaired(
    tmp_path: Path,
) -> None:
    def respond(request: Recorded) -> ScriptedResponse:
        if b"You review changes" in request.body:
            return ScriptedResponse(text="a.py:3: high: divides by zero")
        return echo(request)

    async with chat_in(tmp_path, respond) as (chat, server):
        await chat.say("a secret of this conversation")
        await chat.give(review_changes, "main")
        await chat.idle()
        assert "a.py:3: high: divides by zero" in chat.told
        asked = next(
            one.body for one in server.requests if b"You review changes" in one.body
        )
        assert b"git diff main...HEAD" in asked
        assert b"a secret" not in asked
        names = [one["function"]["name"] for one in msgspec.json.decode(asked)["tools"]]
        assert "write_file" not in names
        await chat.give(review_changes, "fix")
        await chat.idle()
        last = read_history(chat.app.store, chat.session).messages[-2]
        assert "a.py:3: high" in last.text


async def test_an_agent_file_sets_the_prompt_and_the_model_of_a_session(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "home" / "agents"
    folder.mkdir(parents=True)
    text = "---\nmodel: openai:gpt-5\ntools: [read_file]\n---\nSpeak like a sailor."
    (folder / "sailor.md").write_text(text)
    async with chat_in(tmp_path, echo) as (chat, server):
        await chat.say("hello")
        await chat.give(choose_agent, "sailor")
        assert chat.models == ["openai:gpt-5"]
        await chat.say("again")
        assert b"Speak like a sailor." in server.requests[-1].body
        await chat.give(choose_agent, "off")
        await chat.say("once more")
        assert b"Speak like a sailor." not in server.requests[-1].body


async def test_notes_for_agents_are_written_by_a_turn(tmp_path: Path) -> None:
    async with chat_in(tmp_path, echo) as (chat, _):
        await chat.give(write_notes)
        await chat.idle()
        first = read_history(chat.app.store, chat.session).messages[0]
        assert "write AGENTS.md" in first.text


async def test_a_short_conversation_is_not_compressed_and_says_so(
    tmp_path: Path,
) -> None:
    async with chat_in(tmp_path, echo) as (chat, _):
        await chat.say("hello")
        found = await chat.give(compress)
        assert not found.going
        assert chat.told == []


async def test_a_pinned_message_survives_compaction_word_for_word(
    tmp_path: Path,
) -> None:
    async with chat_in(tmp_path, echo) as (chat, _):
        for number in range(8):
            await chat.say(f"message {number} " + "word " * 30)
        await chat.give(pin_message, "message 3")
        await chat.give(pin_message, "message 4")
        await chat.give(unpin_message, "2")
        pins = await chat.give(list_pins)
        assert [one.text[:9] for one in pins.pins] == ["message 3"]
        preview = await chat.give(compress, "--preview")
        assert preview.pinned == 1
        assert not any(
            "message 3" in text for who, text in preview.going if who == "you"
        )
        compacted = SessionCompacted(summary="## Goal\nx", head=1, tail=2)
        chat.app.record(chat.session, compacted)
        texts = [
            one.text for one in read_history(chat.app.store, chat.session).messages
        ]
        assert len(texts) == 5
        assert "message 3 " in texts[2]
        assert not any("message 4 " in text for text in texts)


async def test_the_files_of_a_project_are_shown_and_agreed_to(tmp_path: Path) -> None:
    async with chat_in(tmp_path, echo) as (chat, _):
        folder = tmp_path / "project" / ".hermes"
        (folder / "commands").mkdir(parents=True)
        (folder / "commands" / "fix.md").write_text("Fix $1.")
        (folder / "rules.yaml").write_text("verify: make test")
        shown = await chat.give(show_project)
        assert (shown.trusted, shown.files[0].trusted) == (False, False)
        await chat.give(trust_project)
        shown = await chat.give(show_project)
        assert (shown.trusted, shown.files[0].trusted) == (True, True)
        with pytest.raises(NotFound, match="nothing to agree to"):
            await chat.give(trust_project)
