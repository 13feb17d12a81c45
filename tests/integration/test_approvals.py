"""Answers to requests for approval, on an agent as it is put together: what they cover, what the model reads of them,
and what changing the mode does while one is open."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from hermes.app import App, build
from hermes.app.agent import Agent
from hermes.core.answers import approval_hash
from hermes.events import Bus
from hermes.schema.events import ApprovalAnswered, ApprovalRequested, SessionCreated
from hermes.settings import Home, Secrets, Settings
from hermes.settings.models import AuxiliarySettings
from hermes.surfaces.terminal.open_agent import SessionTarget, begin
from hermes.testing.model_server import ModelServer
from hermes.testing.scripted_responses import ScriptedResponse, ServedCall
from hermes.tools.policy import RuleFile

SETTINGS = Settings(auxiliary=AuxiliarySettings(title="off"))


def writes(*paths: str) -> ScriptedResponse:
    """A reply that writes files."""
    calls = [
        ServedCall(
            id=f"call-{path.strip('./')}",
            name="write_file",
            arguments=msgspec.json.encode({"path": path, "content": "x"}).decode(),
        )
        for path in paths
    ]
    return ScriptedResponse(calls=tuple(calls))


class Asked:
    """The requests of a bus, as they come."""

    def __init__(self, bus: Bus) -> None:
        self._queue: asyncio.Queue[Mapping[str, Any]] = asyncio.Queue()
        loop = asyncio.get_running_loop()
        bus.subscribe(
            "agent.approval.requested",
            lambda event: loop.call_soon_threadsafe(self._queue.put_nowait, event),
        )

    async def next(self) -> str:
        return (await asyncio.wait_for(self._queue.get(), 20))["call_id"]


class Bench:
    def __init__(self, app: App, bus: Bus, secrets: Secrets, project: Path) -> None:
        self.app = app
        self.agent = Agent(app, secrets)
        self.asked = Asked(bus)
        self.session = app.begin(
            SessionCreated(surface="test", cwd=str(project))
        ).session

    def answers(self) -> list[tuple[str, str]]:
        events = [row.event for row in self.app.store.log.every_event(self.session)]
        return [
            (one.answer, one.by) for one in events if isinstance(one, ApprovalAnswered)
        ]


def secrets(server: ModelServer) -> Secrets:
    return Secrets({}, {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "sk-test"})


@asynccontextmanager
async def bench(tmp_path: Path, server: ModelServer) -> AsyncIterator[Bench]:
    project, bus = tmp_path / "project", Bus()
    project.mkdir()
    with build(SETTINGS, Home(tmp_path / "home"), bus=bus) as app:
        one = Bench(app, bus, secrets(server), project)
        with one.agent.questions.attached("test"):
            yield one
            await one.agent.close()


async def test_this_session_covers_the_next_edit_of_the_folder_and_none_outside(
    tmp_path: Path,
) -> None:
    async with (
        ModelServer(
            writes("a.txt"), writes("b.txt"), writes("../out.txt"), "done"
        ) as server,
        bench(tmp_path, server) as one,
    ):
        service = one.agent.service
        await service.submit(one.session, "write")
        first = await one.asked.next()
        (request,) = await service.pending(one.session)
        assert isinstance(request, ApprovalRequested)
        assert await service.answer(
            one.session, first, "session", by="test", shown=approval_hash(request)
        )
        assert await one.asked.next() == "call-b.txt"  # asked and answered by itself
        assert await service.answer(
            one.session, await one.asked.next(), "deny", by="test"
        )
        await service.idle(one.session)
        assert one.answers() == [
            ("session", "test"),
            ("session", "remembered"),
            ("deny", "test"),
        ]
    assert (tmp_path / "project" / "b.txt").exists()
    assert not (tmp_path / "out.txt").exists()


async def test_what_was_allowed_until_the_user_quits_is_asked_about_after_a_resume(
    tmp_path: Path,
) -> None:
    async with (
        ModelServer(writes("a.txt"), "done", writes("b.txt"), "done") as server,
        bench(tmp_path, server) as one,
    ):
        service = one.agent.service
        await service.submit(one.session, "write")
        first = await one.asked.next()
        (request,) = await service.pending(one.session)
        assert isinstance(request, ApprovalRequested)
        shown = approval_hash(request)
        await service.answer(one.session, first, "session", by="test", shown=shown)
        await service.idle(one.session)
        info = await asyncio.to_thread(one.app.store.sessions.find, one.session)
        target = SessionTarget(info, tmp_path / "project")
        for _ in range(2):  # once for this process, and not again
            await asyncio.to_thread(begin, one.app, target, "cli")
        await service.submit(one.session, "write more")
        assert await one.asked.next() == "call-b.txt"
        await service.answer(one.session, "call-b.txt", "deny", by="test")
        await service.idle(one.session)
        assert one.answers() == [("session", "test"), ("deny", "test")]


async def test_the_reason_of_a_denial_reaches_the_model_with_it(tmp_path: Path) -> None:
    async with (
        ModelServer(writes("a.txt"), "as you say") as server,
        bench(tmp_path, server) as one,
    ):
        service = one.agent.service
        await service.submit(one.session, "write")
        call = await one.asked.next()
        assert await service.answer(
            one.session, call, "deny", by="test", reason="call it b.txt instead"
        )
        await service.idle(one.session)
        result = msgspec.json.decode(server.posts[1].body)["messages"][-1]
    assert (result["role"], result["content"]) == (
        "tool",
        "Not run: the user said no: call it b.txt instead",
    )


async def test_another_mode_counts_for_the_request_that_is_open_and_the_rest_of_the_turn(
    tmp_path: Path,
) -> None:
    async with (
        ModelServer(writes("a.txt", "../out.txt"), writes("b.txt"), "done") as server,
        bench(tmp_path, server) as one,
    ):
        service = one.agent.service
        await service.submit(one.session, "write")
        assert {await one.asked.next(), await one.asked.next()} == {
            "call-a.txt",
            "call-out.txt",
        }
        one.agent.use(approvals="auto-edit")
        assert await one.agent.settle_allowed(by="test") == 1
        assert await service.answer(one.session, "call-out.txt", "deny", by="test")
        await service.idle(one.session)
        assert one.answers() == [("once", "test"), ("deny", "test")]
    assert (tmp_path / "project" / "a.txt").exists()
    assert (tmp_path / "project" / "b.txt").exists()


async def test_a_session_of_many_gets_another_mode_in_the_middle_of_its_turn(
    tmp_path: Path,
) -> None:
    async with ModelServer(
        writes("a.txt"), writes("b.txt"), "done", writes("c.txt"), "done"
    ) as server:
        bus, project = Bus(), tmp_path / "project"
        project.mkdir()
        with build(SETTINGS, Home(tmp_path / "home"), bus=bus) as app:
            agent = Agent(app, secrets(server), surface="test")
            asked = Asked(bus)
            session, other = (
                app.begin(SessionCreated(surface="test", cwd=str(project))).session
                for _ in range(2)
            )
            await agent.service.submit(session, "write")
            await asked.next()
            await agent.set_mode(session, "auto-edit")
            await agent.service.idle(session)
            assert (project / "b.txt").exists()
            assert (agent.mode(session), agent.mode(other)) == (
                "auto-edit",
                "ask",
            )
            await agent.service.submit(other, "write")
            assert await asked.next() == "call-c.txt"  # asked there as before
            await agent.close()


async def test_nobody_is_asked_about_an_edit_that_can_not_succeed_or_changes_nothing(
    tmp_path: Path,
) -> None:
    calls = (
        ("edit_file", {"path": "a.txt", "old_text": "missing", "new_text": "y"}),
        ("write_file", {"path": "a.txt", "content": "same\n"}),
        ("apply_patch", {"patch": "*** Begin Patch\n*** Delete File: b.txt\n*** End Patch"}),
        ("apply_patch", {"patch": "*** Begin Patch\nDelete File b.txt\n*** End Patch"}),
    )  # fmt: skip
    replies: list[ScriptedResponse] = []
    for place, (name, given) in enumerate(calls):
        arguments = msgspec.json.encode(given).decode()
        call = ServedCall(id=f"c{place}", name=name, arguments=arguments)
        replies.append(ScriptedResponse(calls=(call,)))
    async with (
        ModelServer(*replies, "done") as server,
        bench(tmp_path, server) as one,
    ):
        (tmp_path / "project" / "a.txt").write_text("same\n")
        await one.agent.service.submit(one.session, "edit")
        await one.agent.service.idle(one.session)
        assert one.answers() == []
        bodies = [post.body for post in server.posts[1:]]
        assert b"The text to replace was not found" in bodies[0]
        assert b"already has exactly this content" in bodies[1]
        assert b"b.txt does not exist" in bodies[2]
        assert b"The patch can't be read" in bodies[3]


async def test_a_rule_for_a_kind_holds_in_every_session_and_can_be_taken_back(
    tmp_path: Path,
) -> None:
    async with (
        ModelServer(writes("a.txt"), writes("b.txt"), "done", writes("c.txt"), "x") as server,
        bench(tmp_path, server) as one,
    ):  # fmt: skip
        service = one.agent.service
        await service.submit(one.session, "write")
        first = await one.asked.next()
        (request,) = await service.pending(one.session)
        assert isinstance(request, ApprovalRequested)
        assert await service.answer(
            one.session,
            first,
            "always",
            by="test",
            shown=approval_hash(request),
            rule=request.scope,
        )
        await service.idle(one.session)
        assert one.answers() == [("always", "test")], "the second was not asked about"
        rules = RuleFile(tmp_path / "home")
        assert rules.current().remembered == (request.scope,)
        rules.forget((request.scope,))
        assert await service.permissions(one.session) == {request.scope}
        await service.revoke(one.session, [request.scope], by="test")
        await service.submit(one.session, "write more")
        assert await one.asked.next() == "call-c.txt"
        assert await service.answer(one.session, "call-c.txt", "deny", by="test")
        await service.idle(one.session)


async def test_how_often_such_a_call_was_allowed_is_told(tmp_path: Path) -> None:
    async with (
        ModelServer(writes("a.txt"), writes("b.txt"), "done") as server,
        bench(tmp_path, server) as one,
    ):
        service = one.agent.service
        await service.submit(one.session, "write")
        for similar in (0, 1):
            call = await one.asked.next()
            (request,) = await service.pending(one.session)
            assert isinstance(request, ApprovalRequested)
            assert request.similar == similar
            shown = approval_hash(request)
            await service.answer(one.session, call, "once", by="test", shown=shown)
        await service.idle(one.session)
