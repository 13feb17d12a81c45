"""Each person has a memory of their own: what one tells, another's sessions never see."""

from pathlib import Path

import msgspec
from tests.fakes.telegram_server import TelegramServer
from tests.integration.gateway.harness import opened

from hermes.testing.model_server import ModelServer
from hermes.testing.scripted_responses import ScriptedResponse, ServedCall


def remembers(text: str) -> ScriptedResponse:
    edits = [{"file": "user", "action": "add", "text": text}]
    return ScriptedResponse(
        calls=(
            ServedCall(
                name="memory", arguments=msgspec.json.encode({"edits": edits}).decode()
            ),
        )
    )


async def test_what_a_user_tells_is_in_their_own_memory_and_the_owners_stays_apart(
    tmp_path: Path,
) -> None:
    (tmp_path / "home" / "memories").mkdir(parents=True)
    (tmp_path / "home" / "memories" / "USER.md").write_text(
        "The owner is called Olivia.\n"
    )
    script = (
        remembers("The user is called Ulla."),
        "noted",
        "hello again",
        "hello owner",
    )
    async with (
        TelegramServer() as telegram,
        ModelServer(*script) as model,
        opened(tmp_path, model, telegram, allow=("telegram:2",)),
    ):
        telegram.say("my name is Ulla", sender=2)
        await telegram.sees("noted", chat=2)
        telegram.say("/new", sender=2)
        await telegram.sees("Started session", chat=2)
        telegram.say("who am I?", sender=2)
        await telegram.sees("hello again", chat=2)
        telegram.say("who am I?", sender=1)
        await telegram.sees("hello owner")
        users, owners = model.posts[2].body, model.posts[3].body
    assert b"Ulla" in users
    assert b"Olivia" not in users
    assert b"Olivia" in owners
    assert b"Ulla" not in owners
    assert (
        tmp_path / "home" / "memories" / "USER.md"
    ).read_text() == "The owner is called Olivia.\n"


async def test_a_user_can_not_look_into_past_sessions_or_change_skills(
    tmp_path: Path,
) -> None:
    async with TelegramServer() as telegram, ModelServer("a", "b") as model:
        async with opened(tmp_path, model, telegram, allow=("telegram:2",)):
            telegram.say("hi", sender=1)
            await telegram.sees("a")
            telegram.say("hi", sender=2)
            await telegram.sees("b", chat=2)
        owners, users = (
            {
                tool["function"]["name"]
                for tool in msgspec.json.decode(post.body)["tools"]
            }
            for post in model.posts
        )
        assert owners - users >= {"session_search", "skill_manage"}
        assert {"memory", "skill_view"} <= users
