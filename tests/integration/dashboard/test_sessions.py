"""Sessions and chat over HTTP, with a scripted model behind them."""

import asyncio
import base64
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
from tests.integration.dashboard.harness import (
    PATIENCE,
    Harness,
    frames,
    is_type,
    opened,
)

from hermes.core.answers import approval_hash
from hermes.learning.change import MemoryChange, MemoryEdit, Provenance
from hermes.learning.learning_service import open_learning
from hermes.settings import Secrets
from hermes.testing.model_server import ModelServer
from hermes.testing.scripted_responses import ScriptedResponse, ServedCall

_PNG = b"\x89PNG\r\n\x1a\n" + bytes(40)


@asynccontextmanager
async def talking(
    folder: Path, *replies: ScriptedResponse | str
) -> AsyncIterator[Harness]:
    """A dashboard whose model says these things."""
    async with ModelServer(*replies) as model:
        secrets = Secrets(
            {},
            {
                "OPENAI_BASE_URL": model.url,
                "OPENAI_API_KEY": "sk-test-0000000000000000",
            },
        )
        async with opened(folder, secrets=secrets) as harness:
            yield harness


async def _begin(harness: Harness, folder: Path, **more: Any) -> str:
    begun = await harness.call(
        "POST", "/api/sessions", {"cwd": str(folder), **more}, scope="chat"
    )
    return str(begun["id"])


async def _ended(
    harness: Harness, session: str, after: int = 0
) -> list[dict[str, Any]]:
    async with harness.socket(
        f"/api/sessions/{session}/feed?after={after}", scope="observe"
    ) as socket:
        return await frames(socket, is_type("agent.turn.ended"))


async def test_a_conversation(tmp_path: Path) -> None:
    async with talking(tmp_path, "Hello there.", "And again.") as harness:
        session = await _begin(harness, tmp_path, text="hi")
        events = await _ended(harness, session)
        said = next(
            event for event in events if event["type"] == "agent.message.assistant"
        )
        assert said["text"] == "Hello there."
        cursor = await harness.call(
            "POST", f"/api/sessions/{session}/messages", {"text": "more"}, scope="chat"
        )
        assert cursor["seq"] > said["seq"]
        await _ended(harness, session, cursor["seq"])
        messages = (await harness.call("GET", f"/api/sessions/{session}/messages"))[
            "messages"
        ]
        assert [(one["role"], one["text"]) for one in messages] == [
            ("user", "hi"), ("assistant", "Hello there."), ("user", "more"), ("assistant", "And again."),
        ]  # fmt: skip
        listed = (await harness.call("GET", "/api/sessions"))["sessions"]
        assert [(one["id"], one["surface"], one["turns"]) for one in listed] == [
            (session, "dashboard", 2)
        ]
        assert (await harness.call("GET", "/api/usage"))["usage"][0]["calls"] == 2
        assert (await harness.call("GET", "/api/search?q=again"))["hits"][0][
            "session"
        ] == session


async def test_an_approval_is_answered_on_the_page_and_only_with_its_scope(
    tmp_path: Path,
) -> None:
    write = ServedCall(
        name="write_file",
        arguments=msgspec.json.encode({"path": "a.txt", "content": "x"}).decode(),
    )
    async with talking(tmp_path, ScriptedResponse(calls=(write,)), "Done.") as harness:
        session = await _begin(harness, tmp_path)
        async with harness.socket(
            f"/api/sessions/{session}/feed", scope="observe"
        ) as socket:
            await harness.call(
                "POST",
                f"/api/sessions/{session}/messages",
                {"text": "write it"},
                scope="chat",
            )
            asked = (await frames(socket, is_type("agent.approval.requested")))[-1]
            (waiting,) = (await harness.call("GET", "/api/approvals", scope="observe"))[
                "waiting"
            ]
            assert (waiting["session_id"], waiting["kind"], waiting["call_id"]) == (
                session,
                "approval",
                asked["call_id"],
            )
            path = f"/api/sessions/{session}/approvals/{asked['call_id']}"
            assert (
                await harness.ask("POST", path, {"answer": "once"}, scope="chat")
            ).status_code == 403
            assert not (tmp_path / "a.txt").exists()
            other = approval_hash(asked | {"summary": "read a file"})
            for unseen in (
                {"answer": "once"},
                {"answer": "once", "shown": ""},
                {"answer": "once", "shown": other},
            ):
                refused = await harness.ask("POST", path, unseen, scope="approve")
                assert refused.status_code == 409
                assert (
                    refused.json()["error"]
                    == "The request that is waiting is not the one that was shown."
                )
            question = path.replace("approvals", "questions")
            assert (
                await harness.ask("POST", question, {"text": "yes"}, scope="chat")
            ).status_code == 409
            assert not (tmp_path / "a.txt").exists()
            assert waiting["shown"] == approval_hash(asked)
            answer = {"answer": "once", "shown": waiting["shown"]}
            assert await harness.call("POST", path, answer, scope="approve") == {
                "counted": True
            }
            await frames(socket, is_type("agent.turn.ended"))
            assert (tmp_path / "a.txt").read_text() == "x"
            assert await harness.call(
                "POST", path, {"answer": "deny"}, scope="approve"
            ) == {"counted": False}
        assert (await harness.call("GET", "/api/approvals"))["waiting"] == []
        assert (
            "+x" in (await harness.call("GET", f"/api/sessions/{session}/diff"))["diff"]
        )
        undone = await harness.call(
            "POST", f"/api/sessions/{session}/undo", {}, scope="chat"
        )
        assert undone["text"] == "write it"
        assert not (tmp_path / "a.txt").exists()
        await harness.call("POST", f"/api/sessions/{session}/redo", {}, scope="chat")
        assert (tmp_path / "a.txt").read_text() == "x"


async def test_a_turn_is_stopped(tmp_path: Path) -> None:
    async with talking(
        tmp_path, ScriptedResponse(text="word " * 200, delay=0.05)
    ) as harness:
        session = await _begin(harness, tmp_path)
        async with harness.socket(f"/api/sessions/{session}/feed") as socket:
            await harness.call(
                "POST", f"/api/sessions/{session}/messages", {"text": "talk"}
            )
            await frames(socket, is_type("agent.message.delta"))
            assert (
                await harness.ask("DELETE", f"/api/sessions/{session}")
            ).status_code == 409
            await harness.call(
                "POST", f"/api/sessions/{session}/interrupt", scope="chat"
            )
            ended = (await frames(socket, is_type("agent.turn.ended")))[-1]
        assert ended["reason"] == "interrupted"


async def test_a_session_is_renamed_branched_exported_and_deleted(
    tmp_path: Path,
) -> None:
    async with talking(tmp_path, "One.") as harness:
        session = await _begin(harness, tmp_path, text="count")
        await _ended(harness, session)
        renamed = await harness.call(
            "PATCH", f"/api/sessions/{session}", {"title": " Counting "}, scope="chat"
        )
        assert renamed["title"] == "Counting"
        branch = (
            await harness.call(
                "POST", f"/api/sessions/{session}/branch", {}, scope="chat"
            )
        )["id"]
        assert branch != session
        lines = (
            await harness.ask("GET", f"/api/sessions/{session}/export")
        ).text.splitlines()
        assert msgspec.json.decode(lines[0])["session_id"] == session
        page = await harness.call("GET", f"/api/sessions/{session}/events?limit=2")
        assert page["more"]
        assert [event["seq"] for event in page["events"]] == [1, 2]
        end = await harness.call(
            "GET", f"/api/sessions/{session}/events?after=-2&limit=2"
        )
        assert (end["more"], end["session"]["title"]) == (False, "Counting")
        assert [event["seq"] for event in end["events"]] == [
            end["head"] - 1,
            end["head"],
        ]
        whole = await harness.call("GET", f"/api/sessions/{session}/events?after=-5000")
        assert whole["events"][0]["seq"] == 1
        assert (
            await harness.ask("DELETE", f"/api/sessions/{session}", scope="chat")
        ).status_code == 403
        assert (await harness.call("DELETE", f"/api/sessions/{session}"))[
            "rows"
        ] == len(lines) - 1
        assert (await harness.ask("GET", f"/api/sessions/{session}")).status_code == 404
        assert [
            one["id"]
            for one in (await harness.call("GET", "/api/sessions"))["sessions"]
        ] == [branch]


async def test_a_picture_is_sent_along(tmp_path: Path) -> None:
    async with talking(tmp_path, "A dot.") as harness:
        session = await _begin(harness, tmp_path)
        picture = {"media_type": "image/png", "data": base64.b64encode(_PNG).decode()}
        said = {"text": "what is it?", "images": [picture]}
        await harness.call("POST", f"/api/sessions/{session}/messages", said)
        events = await _ended(harness, session)
        (image,) = next(
            event for event in events if event["type"] == "agent.message.user"
        )["images"]
        assert await asyncio.to_thread(Path(image["source"]).read_bytes) == _PNG
        bad = {"text": "x", "images": [{"media_type": "image/png", "data": "???"}]}
        assert (
            await harness.ask("POST", f"/api/sessions/{session}/messages", bad)
        ).status_code == 400


async def test_mistakes_are_answered_in_words(tmp_path: Path) -> None:
    async with opened(tmp_path) as harness:
        assert (await harness.ask("GET", "/api/sessions/none")).status_code == 404
        session = await _begin(harness, tmp_path)
        nothing: dict[str, str] = {}
        for method, path, body, status in (
            ("GET", f"/api/sessions/{session[:-2]}", None, 404),
            ("POST", f"/api/sessions/{session}/messages", nothing, 422),
            (
                "POST",
                f"/api/sessions/{session}/messages",
                {"text": "x", "more": 1},
                422,
            ),
            ("POST", f"/api/sessions/{session}/messages", {"text": " "}, 400),
            ("POST", f"/api/sessions/{session}/undo", {"turns": 0}, 422),
            ("POST", f"/api/sessions/{session}/undo", nothing, 400),
            ("GET", "/api/sessions?limit=x", None, 422),
            ("POST", "/api/sessions", {"cwd": str(tmp_path / "nowhere")}, 400),
            *(
                (method, path, more | {"cwd": cwd}, 400)
                for cwd in ("a\0b", "a" * 5_000, "~nobodyxx/a")
                for method, path, more in (
                    ("POST", "/api/sessions", nothing),
                    ("POST", "/api/terminals", nothing),
                    ("POST", "/api/policy/check", {"command": "ls"}),
                    (
                        "POST",
                        "/api/schedules",
                        {"schedule": "every weekday at 9", "prompt": "x"},
                    ),
                )
            ),
            (
                "POST",
                f"/api/sessions/{session}/messages",
                {"text": "x", "images": [{"media_type": "image/png", "data": "éé"}]},
                400,
            ),
            ("PUT", "/api/settings/no.such", {"value": "1"}, 400),
            ("PUT", "/api/settings/display.color", {"value": "purple"}, 400),
        ):
            answer = await harness.ask(method, path, body)
            assert answer.status_code == status, (path, answer.text)
            assert answer.json()["error"]
        huge = await harness.client.post(
            "/api/sessions",
            content=b" " * (17 * 2**20),
            headers=harness.bearer("admin"),
        )
        assert huge.status_code == 413


async def test_settings_are_shown_with_their_meaning_and_changed_in_the_file(
    harness: Harness,
) -> None:
    await harness.call("PUT", "/api/settings/display.color", {"value": "never"})
    shown = {
        one["key"]: one
        for one in (await harness.call("GET", "/api/settings", scope="observe"))[
            "settings"
        ]
    }
    color = shown["display.color"]
    assert (color["value"], color["default"], color["choices"]) == (
        "never",
        "auto",
        ["auto", "always", "never"],
    )
    assert color["description"]
    assert "color: never" in harness.app.home.config.read_text()
    await harness.call("DELETE", "/api/settings/display.color")
    assert "never" not in harness.app.home.config.read_text()


async def test_the_rest_is_there(harness: Harness, tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("x")
    session = await _begin(harness, tmp_path)
    assert (
        "notes.md"
        in (await harness.call("GET", f"/api/sessions/{session}/files?prefix=no"))[
            "files"
        ]
    )
    tools = (await harness.call("GET", "/api/tools"))["tools"]
    assert {"terminal", "read_file"} <= {
        tool["name"] for tool in tools if tool["offered"]
    }
    assert (await harness.call("GET", "/api/policy"))["rules"]["allow"] == []
    verdict = await harness.call(
        "POST", "/api/policy/check", {"command": "rm -rf /"}, scope="observe"
    )
    assert verdict["verdict"] == "forbid"
    assert (await harness.call("GET", "/api/mcp")) == {"servers": []}
    assert (await harness.call("GET", "/api/doctor"))["findings"]
    document = await harness.call("GET", "/api/openapi.json", scope="observe")
    assert document["paths"]["/api/sessions/{id}/messages"]["post"]["x-scope"] == "chat"
    for path, operations in document["paths"].items():
        for operation in operations.values():
            assert operation["summary"], path


async def test_what_was_learned_is_shown_decided_and_taken_back(
    harness: Harness,
) -> None:
    learning = open_learning(
        harness.app.home, harness.app.settings.learning, {"PATH": os.environ["PATH"]}
    )
    harness.app.home.ensure(harness.app.home.memories)
    kept, refused = [
        learning.propose(
            MemoryChange((MemoryEdit(file="user", action="add", text=text),)),
            Provenance(by="review"),
        )
        for text in ("Likes tea.", "Likes rain.")
    ]
    listed = (await harness.call("GET", "/api/proposals", scope="observe"))["proposals"]
    assert [one["id"] for one in listed] == [kept.id, refused.id]
    assert "+" in listed[0]["diff"]
    path = f"/api/proposals/{kept.id}"
    assert (
        await harness.ask("POST", path, {"decision": "approve"}, scope="chat")
    ).status_code == 403
    await harness.call("POST", path, {"decision": "approve"}, scope="approve")
    await harness.call(
        "POST", f"/api/proposals/{refused.id}", {"decision": "reject"}, scope="approve"
    )
    memory = {
        one["name"]: one["text"]
        for one in (await harness.call("GET", "/api/memory"))["files"]
    }
    assert "Likes tea." in memory["USER.md"]
    assert "rain" not in memory["USER.md"]
    newest = (await harness.call("GET", "/api/learning/history?under=memories"))[
        "entries"
    ][0]
    shown = await harness.call(
        "GET", f"/api/learning/history?under=memories&change={newest['hash']}"
    )
    assert "+" in shown["diff"]
    await harness.call(
        "POST",
        "/api/learning/revert",
        {"change": newest["hash"], "under": "memories"},
        scope="approve",
    )
    assert "tea" not in str(await harness.call("GET", "/api/memory"))
    skills = (await harness.call("GET", "/api/skills", scope="observe"))["skills"]
    name = skills[0]["name"]
    assert (await harness.call("GET", f"/api/skills/{name}"))["text"]
    after = (await harness.call("PATCH", f"/api/skills/{name}", {"enabled": False}))[
        "skills"
    ]
    assert [one["enabled"] for one in after if one["name"] == name] == [False]
    for method, path, body in (
        ("GET", "/api/skills/nobody", None),
        ("GET", f"/api/skills/{name}?file=nothing.md", None),
        ("PATCH", "/api/skills/nobody", {"enabled": False}),
    ):
        answer = await harness.ask(method, path, body)
        assert (answer.status_code, "no " in answer.text) == (404, True), answer.text


async def test_a_question_of_a_session_that_runs_elsewhere_is_answered_here(
    tmp_path: Path,
) -> None:
    """The terminal asks, in a process of its own; the page answers."""
    write = ServedCall(
        name="write_file",
        arguments=msgspec.json.encode({"path": "b.txt", "content": "y"}).decode(),
    )
    async with (
        ModelServer(ScriptedResponse(calls=(write,)), "Done.") as model,
        opened(tmp_path) as harness,
    ):
        code = (
            "import asyncio, sys\n"
            "from pathlib import Path\n"
            "from hermes.app import build\n"
            "from hermes.app.agent import Agent\n"
            "from hermes.settings import Home, Secrets, Settings\n"
            "async def main(home, session, url):\n"
            "    with build(Settings(), Home(Path(home))) as app:\n"
            "        agent = Agent(app, Secrets({}, {'OPENAI_BASE_URL': url, 'OPENAI_API_KEY': 'sk-test-00000000'}))\n"
            "        with agent.questions.attached('terminal'):\n"
            "            await agent.service.submit(session, 'write it')\n"
            "            await agent.service.idle(session)\n"
            "        await agent.close()\n"
            "asyncio.run(main(*sys.argv[1:]))\n"
        )
        session = await _begin(harness, tmp_path)
        async with harness.socket(
            f"/api/sessions/{session}/feed", scope="observe"
        ) as socket:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-c",
                code,
                str(harness.app.home.root),
                session,
                model.url,
            )
            asked = (await frames(socket, is_type("agent.approval.requested")))[-1]
            (waiting,) = (await harness.call("GET", "/api/approvals"))["waiting"]
            assert waiting["call_id"] == asked["call_id"]
            path = f"/api/sessions/{session}/approvals/{asked['call_id']}"
            answer = {"answer": "once", "shown": approval_hash(asked)}
            assert await harness.call("POST", path, answer, scope="approve") == {
                "counted": True
            }
            ended = (await frames(socket, is_type("agent.turn.ended")))[-1]
            assert ended["reason"] == "done"
        assert await asyncio.wait_for(process.wait(), PATIENCE) == 0
        assert (tmp_path / "b.txt").read_text() == "y"


async def test_a_session_is_given_to_another_model(tmp_path: Path) -> None:
    async with ModelServer(
        "One.", "Two.", "Three.", models=("fake-1", "other-1")
    ) as model:
        secrets = Secrets(
            {},
            {
                "OPENAI_BASE_URL": model.url,
                "OPENAI_API_KEY": "sk-test-0000000000000000",
            },
        )
        async with opened(tmp_path, secrets=secrets) as harness:
            first = await _begin(harness, tmp_path, text="a")
            await _ended(harness, first)
            second = await _begin(harness, tmp_path)
            said = {"text": "b", "model": "other-1"}
            cursor = await harness.call(
                "POST", f"/api/sessions/{second}/messages", said, scope="chat"
            )
            await _ended(harness, second, cursor["seq"])
            cursor = await harness.call(
                "POST", f"/api/sessions/{first}/messages", {"text": "c"}, scope="chat"
            )
            await _ended(harness, first, cursor["seq"])
            names = {
                choice["name"]
                for choice in (await harness.call("GET", "/api/models"))["choices"]
            }
        assert [msgspec.json.decode(post.body)["model"] for post in model.posts] == [
            "fake-1",
            "other-1",
            "fake-1",
        ]
        assert any(name.endswith(":other-1") for name in names)
