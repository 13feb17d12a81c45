"""Approvals in a chat: buttons, who may press them, the first answer counts everywhere, silence is loud."""

import re
from pathlib import Path

import msgspec
from tests.fakes.telegram_server import Shown, TelegramServer
from tests.integration.gateway.harness import Harness, opened

from hermes.app import build
from hermes.app.agent import Agent
from hermes.events.bus import Bus
from hermes.schema.events import (
    ApprovalAnswered,
    ApprovalRequested,
    QuestionAsked,
    ToolStarted,
    TurnStarted,
)
from hermes.schema.messages import AssistantMessage, ToolCall
from hermes.settings import Home, Secrets, Settings
from hermes.surfaces.gateway.questions import number_of
from hermes.testing import FakeIds
from hermes.testing.model_server import ModelServer
from hermes.testing.scripted_responses import ScriptedResponse, ServedCall


def asks(folder: Path, name: str = "elsewhere.txt") -> ScriptedResponse:
    """A call that needs a person's word: a file outside the session's folder."""
    arguments = msgspec.json.encode(
        {"path": str(folder / name), "content": "written"}
    ).decode()
    return ScriptedResponse(
        calls=(ServedCall(id=f"call-{name}", name="write_file", arguments=arguments),)
    )


def answers(harness: Harness) -> list[ApprovalAnswered]:
    rows = harness.app.store.log.every_event(harness.session)
    return [row.event for row in rows if isinstance(row.event, ApprovalAnswered)]


async def test_a_button_allows_a_call_and_the_message_says_who_did(
    tmp_path: Path,
) -> None:
    async with (
        TelegramServer() as telegram,
        ModelServer(asks(tmp_path), "written down") as model,
    ):
        async with opened(tmp_path, model, telegram) as harness:
            telegram.say("write it")
            question = await telegram.sees("Approval needed")
            assert not (tmp_path / "elsewhere.txt").exists()
            telegram.press(question, "Allow")
            await telegram.sees("written down")
            await telegram.until(
                lambda server: (
                    "Allowed · telegram (Person1)" in question.text and server.notes
                )
            )
            assert question.buttons == []
            assert telegram.notes == ["Done."]
            assert [(one.answer, one.by) for one in answers(harness)] == [
                ("once", "telegram (Person1)")
            ]
        assert (tmp_path / "elsewhere.txt").read_text() == "written"


async def test_a_denied_call_does_not_run(tmp_path: Path) -> None:
    async with (
        TelegramServer() as telegram,
        ModelServer(asks(tmp_path), "as you wish") as model,
    ):
        async with opened(tmp_path, model, telegram):
            telegram.say("write it")
            telegram.press(await telegram.sees("Approval needed"), "Deny")
            await telegram.sees("as you wish")
        assert not (tmp_path / "elsewhere.txt").exists()


async def test_a_denial_takes_its_reason_to_the_model_and_everybody_sees_it(
    tmp_path: Path,
) -> None:
    async with (
        TelegramServer() as telegram,
        ModelServer(asks(tmp_path), "as you wish") as model,
    ):
        async with opened(tmp_path, model, telegram):
            telegram.say("write it")
            question = await telegram.sees("Approval needed")
            assert "A lasting answer covers exactly this call" in question.text
            telegram.say("/deny port 8080 is taken")
            await telegram.sees("as you wish")
            await telegram.until(lambda _: "port 8080 is taken" in question.text)
        assert b"the user said no: port 8080 is taken" in model.posts[1].body


async def test_always_makes_the_rule_that_the_message_names(tmp_path: Path) -> None:
    def writes(name: str) -> ScriptedResponse:
        arguments = f'{{"path": "{name}", "content": "x"}}'
        call = ServedCall(id=name, name="write_file", arguments=arguments)
        return ScriptedResponse(calls=(call,))

    async with (
        TelegramServer() as telegram,
        ModelServer(
            writes("a.txt"), "first done", writes("b.txt"), "second done"
        ) as model,
        opened(tmp_path, model, telegram) as harness,
    ):
        telegram.say("write it")
        question = await telegram.sees("Approval needed")
        labels = [button["text"] for row in question.buttons for button in row]
        assert labels == [
            "Allow",
            "Deny",
            "Allow, and don't ask again this session",
            "Always allow this kind",
        ]
        assert "rule for every session: Hermes does this without" in question.text
        assert "asking: changes to files in " in question.text
        telegram.press(question, "Always allow this kind")
        await telegram.sees("first done")
        (answer,) = answers(harness)
        assert answer.rule.startswith("changes to files in ")
        telegram.say("/new")
        await telegram.sees("Started session")
        telegram.say("write another")
        await telegram.sees("second done")  # nobody was asked


async def test_another_mode_answers_a_request_that_it_does_not_ask_about(
    tmp_path: Path,
) -> None:
    inside = ScriptedResponse(
        calls=(
            ServedCall(
                id="c", name="write_file", arguments='{"path": "a.txt", "content": "x"}'
            ),
        )
    )
    async with (
        TelegramServer() as telegram,
        ModelServer(inside, "written down") as model,
        opened(tmp_path, model, telegram),
    ):
        telegram.say("write it")
        await telegram.sees("Approval needed")
        telegram.say("/approvals auto-edit")
        await telegram.sees("written down")


async def test_a_users_request_goes_to_the_owner_and_the_user_can_not_press(
    tmp_path: Path,
) -> None:
    async with (
        TelegramServer() as telegram,
        ModelServer("hi owner", asks(tmp_path), "done for two") as model,
        opened(tmp_path, model, telegram, allow=("telegram:2",)) as harness,
    ):
        telegram.say("hello")
        await telegram.sees("hi owner")
        telegram.say("write it", sender=2)
        theirs = await telegram.sees("I asked an owner.", chat=2)
        question = await telegram.sees("Approval needed", chat=1)
        assert theirs.buttons == []
        telegram.press(question, "Allow", sender=2)  # a press can be made up
        await telegram.until(
            lambda server: server.notes == ["Only an owner can answer this."]
        )
        assert not (tmp_path / "elsewhere.txt").exists()
        telegram.press(question, "Allow", sender=1)
        await telegram.sees("done for two", chat=2)
        await telegram.until(
            lambda _: "Allowed" in theirs.text and "Allowed" in question.text
        )
        assert harness.gateway.senders["telegram"].counters.strangers == 0


async def test_the_first_answer_counts_between_telegram_and_another_process(
    tmp_path: Path,
) -> None:
    async with (
        TelegramServer() as telegram,
        ModelServer(asks(tmp_path), "denied then") as model,
    ):
        async with opened(tmp_path, model, telegram) as harness:
            telegram.say("write it")
            question = await telegram.sees("Approval needed")
            with build(
                Settings(), Home(tmp_path / "home"), bus=Bus()
            ) as app:  # as a terminal or dashboard does
                elsewhere = Agent(app, Secrets({}, {}))
                (asked,) = await elsewhere.service.pending(harness.session)
                assert await elsewhere.service.answer(
                    harness.session, asked.call_id, "deny", by="dashboard"
                )
            await telegram.sees("denied then")
            await telegram.until(
                lambda _: "Denied · dashboard" in question.text and not question.buttons
            )
            telegram.press(
                msgspec.structs.replace(
                    question,
                    buttons=[[{"text": "Allow", "callback_data": "ask:1:once"}]],
                ),
                "Allow",
            )
            await telegram.until(lambda server: bool(server.notes))
            assert "Done." not in telegram.notes
            assert [one.answer for one in answers(harness)] == ["deny"]
        assert not (tmp_path / "elsewhere.txt").exists()


async def test_a_button_does_not_allow_what_its_message_did_not_show(
    tmp_path: Path,
) -> None:
    """After a crash a call is asked about once more, and by then it may do something else."""
    async with (
        TelegramServer() as telegram,
        ModelServer(asks(tmp_path), "denied then") as model,
    ):
        async with opened(tmp_path, model, telegram) as harness:
            telegram.say("write it")
            question = await telegram.sees("Approval needed")
            (asked,) = await harness.gateway.agent.service.pending(harness.session)
            assert isinstance(asked, ApprovalRequested)
            changed = msgspec.structs.replace(asked, summary="overwrite another file")
            harness.app.record(harness.session, changed)
            second = await telegram.sees("overwrite another file")
            telegram.press(question, "Allow")
            await telegram.until(lambda server: bool(server.notes))
            assert telegram.notes[0].startswith(
                "The request that is waiting is not the one that was shown."
            )
            assert number_of(harness.session, asked) not in second.text
            assert answers(harness) == []
            telegram.press(question, "Deny")
            await telegram.sees("denied then")
        assert not (tmp_path / "elsewhere.txt").exists()


async def test_a_request_that_nobody_answers_expires_loudly(tmp_path: Path) -> None:
    async with (
        TelegramServer() as telegram,
        ModelServer(asks(tmp_path), "too late") as model,
        opened(tmp_path, model, telegram) as harness,
    ):
        harness.gateway.agent.questions.timeout_s = 0.3
        telegram.say("write it")
        await telegram.sees("Nobody answered in time")
        await telegram.sees("Expired: denied")
        await telegram.sees("too late")
        assert [one.by for one in answers(harness)] == ["expired"]


async def test_where_there_is_no_owner_a_request_is_denied_at_once(
    tmp_path: Path,
) -> None:
    async with (
        TelegramServer() as telegram,
        ModelServer(asks(tmp_path), "not allowed") as model,
    ):
        async with opened(tmp_path, model, telegram, owners=(), allow=("telegram:2",)):
            telegram.say("write it", sender=2)
            await telegram.sees("there is nobody to ask", chat=2)
            await telegram.sees("not allowed", chat=2)
        assert not (tmp_path / "elsewhere.txt").exists()


async def test_a_question_of_a_tool_is_answered_by_a_button_or_by_words(
    tmp_path: Path,
) -> None:
    def question(text: str, *options: str) -> ScriptedResponse:
        arguments = msgspec.json.encode(
            {"question": text, "options": list(options)}
        ).decode()
        return ScriptedResponse(
            calls=(ServedCall(name="ask_user", arguments=arguments),)
        )

    script = (question("Which colour?", "red", "blue"), question("Why?"), "I see")
    async with TelegramServer() as telegram, ModelServer(*script) as model:
        async with opened(tmp_path, model, telegram):
            telegram.say("paint it")
            telegram.press(await telegram.sees("Which colour?"), "blue")
            await telegram.sees("Why?")
            telegram.say("because")
            await telegram.sees("I see")
        assert b"blue" in model.posts[1].body
        assert b"because" in model.posts[2].body


async def test_words_answer_the_question_of_a_process_that_is_gone(
    tmp_path: Path,
) -> None:
    call = ToolCall(id="q", name="ask_user", arguments='{"question": "Why?"}')
    async with TelegramServer() as telegram, ModelServer("hi", "I see") as model:
        async with opened(tmp_path, model, telegram) as harness:
            telegram.say("hello")
            await telegram.sees("hi")
            await harness.gateway.agent.service.idle(harness.session)
            harness.app.record(
                harness.session,
                TurnStarted(),
                AssistantMessage(tool_calls=(call,)),
                ToolStarted(call_id="q", name="ask_user", arguments=call.arguments),
                QuestionAsked(call_id="q", text="Why?"),
                turn="dead",
            )
            telegram.say("because")
            await telegram.sees("I see")
        assert b"because" in model.posts[1].body
        assert model.posts[1].body.count(b'"role":"user"') == 1


async def test_words_can_answer_where_there_are_no_buttons(tmp_path: Path) -> None:
    async with (
        TelegramServer() as telegram,
        ModelServer(asks(tmp_path), "written down") as model,
    ):
        async with opened(tmp_path, model, telegram):
            telegram.say("write it")
            await telegram.sees("Approval needed")
            telegram.say("/approve")
            await telegram.sees("written down")
        assert (tmp_path / "elsewhere.txt").exists()


async def test_of_several_requests_only_the_one_that_is_named_is_answered(
    tmp_path: Path,
) -> None:
    paths = [tmp_path / name for name in ("first.txt", "second.txt")]
    both = ScriptedResponse(
        calls=tuple(call for path in paths for call in asks(tmp_path, path.name).calls)
    )
    async with TelegramServer() as telegram, ModelServer(both, "half of it") as model:
        async with opened(tmp_path, model, telegram, FakeIds()) as harness:
            telegram.say("write them")
            await telegram.until(lambda server: len(_requests(server)) == 2)
            questions = sorted(
                _requests(telegram), key=lambda one: "second.txt" in one.text
            )
            numbers = [_number(question) for question in questions]
            assert len(set(numbers)) == 2
            telegram.say("/approve")
            which = await telegram.sees("2 requests are waiting")
            assert all(f"/approve {number}" in which.text for number in numbers)
            telegram.say("/deny 7")
            await telegram.sees("Request 7 is not pending here")
            assert answers(harness) == []
            telegram.say(f"/approve {numbers[1]} session")
            await telegram.until(
                lambda _: "Allowed for this session" in questions[1].text
            )
            telegram.say("/no")
            await telegram.sees("half of it")
            assert [one.answer for one in answers(harness)] == ["session", "deny"]
        assert [path.exists() for path in paths] == [False, True]


async def test_two_sessions_whose_requests_are_shown_in_one_chat_are_told_apart(
    tmp_path: Path,
) -> None:
    script = ("hi owner", asks(tmp_path), asks(tmp_path), "done for two")
    async with (
        TelegramServer() as telegram,
        ModelServer(*script) as model,
        opened(tmp_path, model, telegram, FakeIds(), allow=("telegram:2",)),
    ):
        telegram.say("hello")
        await telegram.sees("hi owner")
        telegram.say("write it", sender=2)
        theirs = await telegram.sees("Approval needed", chat=1)
        telegram.say("write it")
        await telegram.until(lambda server: len(_requests(server)) == 2)
        telegram.say("/yes")
        await telegram.sees("2 requests are waiting")
        telegram.say(f"/yes #{_number(theirs)}")
        await telegram.sees("done for two", chat=2)


def _requests(server: TelegramServer) -> list[Shown]:
    return [
        one
        for one in server.messages
        if one.chat == "1" and "Approval needed" in one.text
    ]


def _number(question: Shown) -> str:
    found = re.search(r"Approval needed.*?#(\d+)", question.text)
    assert found is not None
    return found[1]


async def test_a_made_up_press_answers_nobody_elses_question(tmp_path: Path) -> None:
    arguments = msgspec.json.encode(
        {"question": "Which colour?", "options": ["red", "blue"]}
    ).decode()
    script = (
        ScriptedResponse(calls=(ServedCall(name="ask_user", arguments=arguments),)),
        "I see",
    )
    async with TelegramServer() as telegram, ModelServer(*script) as model:
        async with opened(tmp_path, model, telegram, allow=("telegram:2",)):
            telegram.say("paint it")
            question = await telegram.sees("Which colour?")
            elsewhere = msgspec.structs.replace(question, chat="2", id=999)
            telegram.press(elsewhere, "red", sender=2)
            await telegram.until(
                lambda server: (
                    server.notes
                    == ["Only an owner or the person who was asked can answer this."]
                )
            )
            telegram.press(question, "blue")
            await telegram.sees("I see")
        assert b"blue" in model.posts[1].body


async def test_where_users_may_approve_it_counts_only_in_the_chat_that_was_asked(
    tmp_path: Path,
) -> None:
    async with (
        TelegramServer() as telegram,
        ModelServer(asks(tmp_path), "denied then") as model,
    ):
        async with opened(
            tmp_path, model, telegram, allow=("telegram:2",), approvers="user"
        ):
            telegram.say("write it")
            question = await telegram.sees("Approval needed")
            telegram.press(
                msgspec.structs.replace(question, chat="2"), "Allow", sender=2
            )
            await telegram.until(
                lambda server: (
                    server.notes
                    == ["Only an owner or the person who was asked can answer this."]
                )
            )
            telegram.press(question, "Deny")
            await telegram.sees("denied then")
        assert not (tmp_path / "elsewhere.txt").exists()


async def test_an_owner_answers_a_users_request_with_words_too(tmp_path: Path) -> None:
    async with (
        TelegramServer() as telegram,
        ModelServer("hi owner", asks(tmp_path), "done for two") as model,
    ):
        async with opened(tmp_path, model, telegram, allow=("telegram:2",)):
            telegram.say("hello")
            await telegram.sees("hi owner")
            telegram.say("write it", sender=2)
            await telegram.sees("Approval needed", chat=1)
            telegram.say("/approve", sender=2)
            await telegram.sees("Only an owner can answer this.", chat=2)
            telegram.say("/approve")
            await telegram.sees("done for two", chat=2)
        assert (tmp_path / "elsewhere.txt").exists()


async def test_an_owner_is_found_among_many_chats_and_one_without_a_chat_is_not_said_to_be_asked(
    tmp_path: Path,
) -> None:
    script = (asks(tmp_path), "hi owner", asks(tmp_path), "done for two")
    async with TelegramServer() as telegram, ModelServer(*script) as model:
        async with opened(tmp_path, model, telegram, allow=("telegram:*",)) as harness:
            telegram.say("write it", sender=2)
            await telegram.sees("No owner has a chat with me yet.", chat=2)
            telegram.say("hello")
            await telegram.sees("hi owner")
            chats = harness.app.store.chats
            owner = chats.find("telegram/1")
            assert owner is not None
            for number in range(100, 160):
                other = msgspec.structs.replace(
                    owner,
                    key=f"telegram/{number}",
                    session=f"s{number}",
                    person=f"{number}",
                )
                chats.bind(other).result()
            telegram.say("/stop", sender=2)
            await telegram.sees("Stopped", chat=2)
            telegram.say("write it", sender=2)
            telegram.press(await telegram.sees("Approval needed", chat=1), "Allow")
            await telegram.sees("done for two", chat=2)
        assert (tmp_path / "elsewhere.txt").exists()


def plans() -> ScriptedResponse:
    plan = {"title": "Write", "steps": ["write a.txt"], "files": ["a.txt"], "risks": ["none"], "check": "read it"}  # fmt: skip
    arguments = msgspec.json.encode(plan).decode()
    return ScriptedResponse(
        calls=(ServedCall(id="plan", name="present_plan", arguments=arguments),)
    )


async def test_a_plan_is_made_and_accepted_in_a_chat(tmp_path: Path) -> None:
    write = ServedCall(
        id="c", name="write_file", arguments='{"path": "a.txt", "content": "x"}'
    )
    async with (
        TelegramServer() as telegram,
        ModelServer(
            ScriptedResponse(calls=(write,)),
            plans(),
            ScriptedResponse(calls=(msgspec.structs.replace(write, id="d"),)),
            "written down",
        ) as model,
        opened(tmp_path, model, telegram),
    ):
        telegram.say("/approvals plan")
        await telegram.sees("Approvals: plan")
        telegram.say("write it")
        question = await telegram.sees("Plan: Write")
        assert "1. write a.txt" in question.text
        assert b"in plan mode nothing is changed" in model.posts[1].body
        telegram.press(question, "Start, and edit files in this folder without asking")
        await telegram.sees("written down")
        assert b"The user accepted this plan" in model.posts[2].body


async def test_only_an_owner_lets_a_plan_start_without_questions(
    tmp_path: Path,
) -> None:
    async with (
        TelegramServer() as telegram,
        ModelServer("hi owner", plans(), "ready") as model,
        opened(tmp_path, model, telegram, allow=("telegram:2",)),
    ):
        telegram.say("hello")
        await telegram.sees("hi owner")
        telegram.say("plan it", sender=2)
        question = await telegram.sees("Plan: Write", chat=2)
        telegram.press(question, "Start, and ask as little as possible", sender=2)
        await telegram.until(lambda server: bool(server.notes))
        assert telegram.notes == ["Only an owner can let Hermes work without asking."]
        telegram.press(question, "Start, and ask before each change", sender=2)
        await telegram.sees("ready", chat=2)
