"""The agent's own jobs: offered only where they are of use, made only with a yes, and delivered where they were asked
for."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec

from hermes.app import build
from hermes.app.agent import Agent
from hermes.app.schedules.jobs import JobBook, JobDraft
from hermes.core.answers import approval_hash
from hermes.events import Bus
from hermes.schema.events import SessionCreated
from hermes.settings import Home, Secrets, Settings
from hermes.settings.gateway import ScheduleSettings
from hermes.settings.sections import StoreSettings
from hermes.testing.model_server import ModelServer, Recorded
from hermes.testing.scripted_responses import ScriptedResponse, ServedCall

ADD = '{"action": "add", "when": "every weekday at 9:00", "task": "tell the news"}'


def secrets(server: ModelServer) -> Secrets:
    return Secrets({}, {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "sk-test"})


def settings_over(store_url: str, **schedules: str) -> Settings:
    section = msgspec.convert(schedules, ScheduleSettings)
    return Settings(schedules=section, store=StoreSettings(url=store_url))


def offered(request: Recorded) -> set[str]:
    return {
        one["function"]["name"] for one in msgspec.json.decode(request.body)["tools"]
    }


async def test_the_tools_are_offered_only_where_they_are_of_use(
    tmp_path: Path, store_url: str
) -> None:
    async with ModelServer("ok", repeat=True) as server:
        with build(
            settings_over(store_url, timezone="UTC"),
            Home(tmp_path),
            bus=Bus(),
        ) as app:
            agent = Agent(app, secrets(server))
            seen: dict[str, bool] = {}
            for surface in ("cli", "telegram", "cron"):
                session = app.begin(
                    SessionCreated(surface=surface, cwd=str(tmp_path))
                ).session
                await agent.service.submit(session, "hello")
                await agent.service.idle(session)
                seen[surface] = "schedule" in offered(server.posts[-1])
            assert seen == {"cli": False, "telegram": True, "cron": False}
            JobBook(app).add(JobDraft(schedule="every hour", prompt="x"))
            session = app.begin(
                SessionCreated(surface="cli", cwd=str(tmp_path))
            ).session
            await agent.service.submit(session, "hello")
            await agent.service.idle(session)
            assert {"schedule", "schedules"} <= offered(server.posts[-1])
            await agent.close()


async def test_a_job_is_made_when_the_user_says_yes_to_what_it_means(
    tmp_path: Path, store_url: str
) -> None:
    call = ServedCall("schedule", ADD)
    settings = settings_over(
        store_url, tool="on", timezone="Europe/Berlin", budget="$0.20"
    )
    async with ModelServer(
        ScriptedResponse(calls=(call,)),
        "made",
        ScriptedResponse(calls=(call,)),
        "not made",
    ) as server:
        bus = Bus()
        with build(settings, Home(tmp_path), bus=bus) as app:
            agent = Agent(app, secrets(server))
            asked: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
            bus.subscribe(
                "agent.approval.requested", lambda event: asked.put_nowait(dict(event))
            )
            session = app.begin(
                SessionCreated(surface="cli", cwd=str(tmp_path))
            ).session
            with agent.questions.attached("test"):
                for answer in ("once", "deny"):
                    await agent.service.submit(session, "every weekday, please")
                    question = await asyncio.wait_for(asked.get(), 20)
                    assert (
                        "a job, every weekday at 9:00; the first run is on"
                        in question["summary"]
                    )
                    assert "09:00 (Europe/Berlin); at most $0.20" in question["summary"]
                    shown = approval_hash(question)
                    await agent.service.answer(
                        session, question["call_id"], answer, by="test", shown=shown
                    )  # type: ignore[arg-type]
                    await agent.service.idle(session)
            (job,) = app.store.schedules.jobs()
            assert (job.by, job.deliver, job.prompt) == (
                session,
                f"session:{session}",
                "tell the news",
            )
            assert "Created job" in server.posts[1].body.decode()
            await agent.close()


async def test_nobody_to_ask_means_no_job(tmp_path: Path, store_url: str) -> None:
    settings = settings_over(store_url, tool="on")
    async with ModelServer(
        ScriptedResponse(calls=(ServedCall("schedule", ADD),)), "well"
    ) as server:
        with build(settings, Home(tmp_path), bus=Bus()) as app:
            agent = Agent(app, secrets(server))
            session = app.begin(
                SessionCreated(surface="cli", cwd=str(tmp_path))
            ).session
            await agent.service.submit(session, "every weekday, please")
            await agent.service.idle(session)
            assert app.store.schedules.jobs() == []
            await agent.close()


async def test_jobs_are_listed_paused_resumed_and_removed_and_mistakes_are_explained(
    tmp_path: Path, store_url: str
) -> None:
    settings = settings_over(store_url, tool="on", timezone="UTC")
    with build(settings, Home(tmp_path), bus=Bus()) as app:
        job, _ = JobBook(app).add(
            JobDraft(schedule="every hour", prompt="look", name="looking")
        )
        calls = [
            ServedCall("schedule", f'{{"action": "{action}", "job": "{job.id}"}}')
            for action in ("pause", "resume", "remove")
        ]
        calls += [
            ServedCall(
                "schedule", '{"action": "add", "when": "now and then", "task": "x"}'
            )
        ]
        script = [
            ScriptedResponse(calls=(call,))
            for call in (ServedCall("schedules"), *calls)
        ]
        async with ModelServer(*script, "well") as server:
            agent = Agent(app, secrets(server), approvals="full")
            session = app.begin(
                SessionCreated(surface="cli", cwd=str(tmp_path))
            ).session
            await agent.service.submit(session, "tidy up")
            await agent.service.idle(session)
            await agent.close()
            results = [
                one["content"]
                for one in msgspec.json.decode(server.posts[-1].body)["messages"]
                if one["role"] == "tool"
            ]
        assert f"{job.id} looking: every hour; next: " in results[0]
        assert "is paused" in results[1]
        assert "runs again" in results[2]
        assert "is removed" in results[3]
        assert "can't be read" in results[4]
        assert app.store.schedules.jobs() == []
