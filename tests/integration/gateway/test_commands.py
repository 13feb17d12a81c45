"""Slash commands in a chat, and the same session in another process."""

import asyncio
import html
from pathlib import Path

import msgspec
from tests.fakes.identity_server import identity_server
from tests.fakes.telegram_server import TelegramServer
from tests.integration.gateway.harness import opened, until

from hermes.app import build
from hermes.app.agent import Agent
from hermes.app.boards.board_service import Boards
from hermes.app.boards.card_draft import CardDraft
from hermes.events.bus import Bus
from hermes.providers.sign_in.accounts import AccountStore
from hermes.schema.events import CompactionFailed, SessionCompacted, TurnStarted
from hermes.schema.goals import ChildEnded
from hermes.settings import Home, Secrets, Settings
from hermes.settings.edit import set_value
from hermes.settings.models import ModelSettings
from hermes.testing.model_server import ModelServer, Recorded
from hermes.testing.scripted_responses import ScriptedResponse, ServerFault


async def test_new_begins_another_session_and_status_names_it(tmp_path: Path) -> None:
    async with TelegramServer() as telegram, ModelServer("one", "two") as model:
        async with opened(tmp_path, model, telegram) as harness:
            telegram.say("hi")
            await telegram.sees("one")
            first = harness.session
            telegram.say("/new")
            await telegram.sees(". The previous one was saved.")
            second = harness.session
            telegram.say("/status")
            await telegram.sees(second)
            telegram.say("again")
            await telegram.sees("two")
        assert first != second
        assert [
            one["role"] for one in msgspec.json.decode(model.posts[1].body)["messages"]
        ] == ["system", "user"]


async def test_status_and_model_name_the_engine(tmp_path: Path) -> None:
    codex = ModelSettings(openai_runtime="codex_app_server")
    async with (
        TelegramServer() as telegram,
        ModelServer() as server,
        opened(tmp_path, server, telegram, model=codex),
    ):
        telegram.say("/status")
        await telegram.sees("Engine: codex")
        telegram.say("/model")
        await telegram.sees("codex with its own model answers.")


async def test_stop_ends_a_turn_that_hangs(tmp_path: Path) -> None:
    async with (
        TelegramServer() as telegram,
        ModelServer(
            ScriptedResponse(text="x", fault=ServerFault(hang="body"))
        ) as model,
        opened(tmp_path, model, telegram),
    ):
        telegram.say("hi")
        await model.hanging.wait()
        telegram.say("/stop")
        await telegram.sees("Stopped.")


async def test_that_a_conversation_was_shortened_by_itself_is_said(
    tmp_path: Path,
) -> None:
    async with (
        TelegramServer() as telegram,
        ModelServer(
            ScriptedResponse(text="x", fault=ServerFault(hang="body"))
        ) as model,
        opened(tmp_path, model, telegram) as harness,
    ):
        telegram.say("hi")
        await model.hanging.wait()
        row = SessionCompacted(
            summary="notes", head=0, tail=1, before=90_000, after=20_000
        )
        harness.app.record(
            harness.session, row, CompactionFailed(detail="nobody wrote a summary")
        )
        telegram.say("/stop")
        await telegram.sees(
            "its middle was summarized: about 90,000 tokens became 20,000."
        )
        await telegram.sees("could not be shortened: nobody wrote a summary.")
        await telegram.sees("Stopped.")


async def test_retry_undo_and_usage(tmp_path: Path) -> None:
    async with TelegramServer() as telegram, ModelServer("first", "second") as model:
        async with opened(tmp_path, model, telegram) as harness:
            telegram.say("hi")
            await telegram.sees("first")
            await until(
                lambda: harness.app.store.leases.holder(harness.session) is None
            )
            telegram.say("/retry")
            await telegram.sees("second")
            telegram.say("/usage")
            await telegram.sees("2 model calls")
            await until(
                lambda: harness.app.store.leases.holder(harness.session) is None
            )
            telegram.say("/undo")
            await telegram.sees("Undid the last turn.")
        assert telegram.texts().count("first") == 1


async def test_an_unknown_command_is_no_message(tmp_path: Path) -> None:
    async with (
        TelegramServer() as telegram,
        ModelServer() as model,
        opened(tmp_path, model, telegram),
    ):
        telegram.say("/nonsense at all")
        await telegram.sees("There is no command /nonsense")


async def test_what_is_said_in_a_terminal_shows_up_in_the_chat_and_is_answered_there(
    tmp_path: Path,
) -> None:
    async with (
        TelegramServer() as telegram,
        ModelServer("from the chat", "from the terminal") as model,
        opened(tmp_path, model, telegram) as harness,
    ):
        telegram.say("hi")
        await telegram.sees("from the chat")
        await until(lambda: harness.app.store.leases.holder(harness.session) is None)
        secrets = Secrets(
            {
                "OPENAI_API_KEY": "sk-test-0000000000000000",
                "OPENAI_BASE_URL": model.url,
            },
            {},
        )
        with build(Settings(), Home(tmp_path / "home"), bus=Bus()) as app:
            terminal = Agent(app, secrets)
            await terminal.service.submit(harness.session, "and from here?")
            await terminal.service.idle(harness.session)
            await terminal.close()
        await telegram.sees("from the terminal")
        assert telegram.texts() == [
            "from the chat",
            "💻\nand from here?",
            "from the terminal",
        ]


async def test_the_gateway_says_what_it_does(tmp_path: Path) -> None:
    seen: list[str] = []
    async with TelegramServer() as telegram, ModelServer("hello") as model:
        async with opened(tmp_path, model, telegram) as harness:
            harness.app.bus.subscribe(
                "gateway.**", lambda event: seen.append(event["type"])
            )
            telegram.say("hi")
            await telegram.sees("hello")
            telegram.say("/status")
            await telegram.sees("Session:")
            await until(lambda: "gateway.command.status" in seen)
            telegram.say("/new")
            await telegram.sees("Started session")
            await until(lambda: seen.count("gateway.session.start") == 2)
        assert [
            kind.removeprefix("gateway.") for kind in seen if not kind.endswith("end")
        ] == [
            "session.start",
            "agent.start",
            "agent.step",
            "command.status",
            "command.new",
            "session.start",
            "session.reset",
        ]


async def test_a_session_can_be_taken_over_from_elsewhere(tmp_path: Path) -> None:
    async with TelegramServer() as telegram, ModelServer("one", "two") as model:
        async with opened(tmp_path, model, telegram) as harness:
            telegram.say("hi")
            await telegram.sees("one")
            first = harness.session
            telegram.say("/new")
            await telegram.sees("Started session")
            telegram.say(f"/resume {first}")
            await telegram.sees("This chat continues")
            telegram.say("still there?")
            await telegram.sees("two")
        assert b'"one"' in model.posts[1].body or b"one" in model.posts[1].body
        assert (
            msgspec.json.decode(model.posts[1].body)["messages"][-1]["content"]
            == "still there?"
        )


async def test_a_turn_whose_process_died_elsewhere_is_ended_and_the_chat_is_told(
    tmp_path: Path,
) -> None:
    async with (
        TelegramServer() as telegram,
        ModelServer("one") as model,
        opened(tmp_path, model, telegram) as harness,
    ):
        telegram.say("hi")
        await telegram.sees("one")
        await until(lambda: harness.gateway.is_idle)
        harness.app.record(
            harness.session, TurnStarted(), turn="of a terminal that was killed"
        )
        await telegram.sees("Hermes was restarted during this turn.")
        assert not harness.app.store.log.has_open_turn(harness.session)


async def test_commands_of_the_table_work_in_a_chat_app(tmp_path: Path) -> None:
    async with (
        TelegramServer() as telegram,
        ModelServer("first") as model,
        opened(tmp_path, model, telegram) as harness,
    ):
        telegram.say("hi")
        await telegram.sees("first")
        await until(lambda: harness.app.store.leases.holder(harness.session) is None)
        for line, shown in (
            ("/sessions", "just now"),
            ("/search hi", "just now"),
            ("/jobs", "There are no jobs yet"),
            ("/context", "tokens"),
            ("/diff", "No files were changed."),
            ("/title A talk", "Title: A talk"),
            ("/approvals", "Approvals: ask"),
            ("/undo many", "Usage: /undo N"),
            ("/help", "/approve N WORD"),
            ("/kanban create fix it --triage", "(fix it) was created"),
            ("/kanban", "needs a decision"),
        ):
            telegram.say(line)
            await telegram.sees(shown)
        boards = Boards(harness.app)
        (card,) = boards.read(lambda reader: reader.cards())
        boards.archive(card.id)  # the chat that made it hears of it
        await telegram.sees("“fix it” was archived before it was done")


async def test_a_review_is_asked_for_in_a_chat_and_its_findings_are_sent(
    tmp_path: Path,
) -> None:
    async with (
        TelegramServer() as telegram,
        ModelServer("hello", "src/a.py:3: high: it divides by zero") as model,
        opened(tmp_path, model, telegram),
    ):
        telegram.say("hi")
        await telegram.sees("hello")
        telegram.say("/review")
        await telegram.sees("A fresh reviewer is looking at the changes.")
        found = await telegram.sees("src/a.py:3: high: it divides by zero")
        assert "/review fix" in found.text


async def test_a_chat_hears_of_a_child_agent_that_outlives_its_turn(
    tmp_path: Path,
) -> None:
    async with (
        TelegramServer() as telegram,
        ModelServer("It counts now.") as model,
        opened(tmp_path, model, telegram) as harness,
    ):
        telegram.say("how many pears?")
        await telegram.sees("It counts now.")
        await harness.gateway.agent.service.idle(harness.session)
        ended = ChildEnded(child="c-aa11bb", kind="delegate", reason="done", text="3 pears")  # fmt: skip
        await asyncio.to_thread(harness.app.record, harness.session, ended)
        found = await telegram.sees("3 pears")
        assert "Child agent aa11bb done" in found.text


async def test_a_goal_is_pursued_in_a_chat_and_its_verdict_is_sent(
    tmp_path: Path,
) -> None:
    verdicts = ["continue", "done", "done"]

    def respond(request: Recorded) -> ScriptedResponse:
        if b"You judge whether" not in request.body:
            return ScriptedResponse(text=f"working, {len(verdicts)} to go")
        verdict = {"verdict": verdicts.pop(0), "reason": "because"}
        return ScriptedResponse(text=msgspec.json.encode(verdict).decode())

    async with (
        TelegramServer() as telegram,
        ModelServer(respond=respond) as model,
        opened(tmp_path, model, telegram) as harness,
    ):
        telegram.say("/goal write a poem")
        await telegram.sees("working, 2 to go")
        reached = await telegram.sees("Goal reached")
        assert reached.text.startswith("🎯")
        telegram.say("/goal wait moon.full")
        await telegram.sees("There is no event 'moon.full'.")
        telegram.say("/goal wait kanban.card.created for 1h")
        await telegram.sees("The goal waits for kanban.card.created")
        Boards(harness.app).create("", CardDraft(title="x", triage=True))
        await telegram.sees("The awaited event has happened")
        await telegram.sees("working, 1 to go")


async def test_an_owner_branches_sets_a_goal_and_switches_the_engine(
    tmp_path: Path,
) -> None:
    config = tmp_path / "home" / "config.yaml"
    async with (
        TelegramServer() as telegram,
        ModelServer("one") as model,
        opened(tmp_path, model, telegram, allow=("telegram:2",)) as harness,
    ):
        config.write_text(
            f"model:\n  openai_runtime: codex_app_server\ncodex:\n  home: {tmp_path}\n"
        )
        telegram.say("hi")
        await telegram.sees("one")
        first = harness.session
        await harness.gateway.agent.service.idle(first)
        telegram.say("/branch")
        await telegram.sees(f"a copy of {first}")
        assert harness.session != first
        telegram.say("/goal")
        await telegram.sees("goal")
        telegram.say("/codex_runtime")
        await telegram.sees("Engine of new sessions: codex")
        telegram.say("/codex-runtime off")
        done = await telegram.sees("Hermes now runs your turns itself.")
        assert "Send /restart to use the new settings here." in done.text
        assert "codex_app_server" not in config.read_text()
        telegram.say("/branch", sender=2)
        await telegram.sees("Only an owner can use /branch.", chat=2)
        telegram.say("/codex-runtime on", sender=2)
        await telegram.sees("Only an owner can use /codex-runtime.", chat=2)


async def test_an_owner_signs_in_from_a_chat_with_a_code_and_with_an_address(
    tmp_path: Path,
) -> None:
    config = tmp_path / "home" / "config.yaml"
    with identity_server() as provider:
        provider.polls = ["authorization_pending"]
        provider.interval_s = 0.1
        async with (
            TelegramServer() as telegram,
            ModelServer() as model,
            opened(tmp_path, model, telegram, allow=("telegram:2",)),
        ):
            for name in ("nous", "openrouter"):
                set_value(config, f"sign_ins.{name}.issuer", provider.url)
            telegram.say("/auth add nous", sender=2)
            await telegram.sees("Only an owner can use /auth.", chat=2)
            telegram.say("/auth add nous")
            shown = await telegram.sees("enter the code WDJB-MJHT")
            assert f"{provider.url}/device" in shown.text
            provider.polls = ["ok"]
            await telegram.sees("Signed in with Nous")
            assert "nous-1" in _accounts(tmp_path)
            provider.polls = ["authorization_pending", "access_denied"]
            telegram.say("/auth add nous")
            await telegram.sees("Signing in with Nous Portal was denied")
            provider.polls = ["authorization_pending", "expired_token"]
            telegram.say("/auth add nous")
            await telegram.sees("The code has expired before it was typed.")
            provider.polls = ["ok"]
            telegram.say("/auth add openrouter")
            asked = await telegram.sees("/auth paste ADDRESS")
            words = html.unescape(asked.text).split()
            (link,) = [one for one in words if "/auth?" in one]
            target = link.removeprefix(provider.url)
            back = provider.answer("GET", target, {}, b"")[2]["location"]
            telegram.say(f"/auth paste {back}")
            await telegram.sees("Signed in with OpenRouter")
            assert "openrouter-1" in _accounts(tmp_path)
            telegram.say("/auth list")
            listed = await telegram.sees("· signed in ·")
            assert "openrouter-1" in listed.text
            assert "ada@example.org" in listed.text
            everything = "".join(telegram.texts())
        for secret in (provider.access, provider.refresh_token, provider.key):
            assert secret not in everything


def _accounts(folder: Path) -> list[str]:
    store = AccountStore(folder / "home" / "auth.json")
    return [one.id for one in store.accounts()]
