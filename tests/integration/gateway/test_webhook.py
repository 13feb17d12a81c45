"""The signed webhook: what it takes and what it refuses, over real HTTP."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import msgspec
from tests.integration.gateway.harness import KEY, PATIENCE, until

from hermes.app import build
from hermes.events.bus import Bus
from hermes.settings import Home, Secrets, Settings
from hermes.settings.gateway import GatewaySettings, GatewayWebhookSettings
from hermes.surfaces.gateway.adapters.webhook import sign
from hermes.surfaces.gateway.gateway import Gateway
from hermes.testing.model_server import ModelServer, Recorded
from hermes.testing.scripted_responses import ScriptedResponse, ServedCall, ServerFault

SECRET = "a-secret-of-a-test-that-is-long"  # noqa: S105


class Caller:
    """A program that talks to Hermes."""

    def __init__(self, gateway: Gateway, url: str) -> None:
        self.gateway = gateway
        self._url = url

    async def ask(
        self,
        body: dict[str, object],
        *,
        secret: str = SECRET,
        late: float = 0.0,
        forged: bool = False,
    ) -> httpx2.Response:
        content = msgspec.json.encode(body)
        timestamp = str(int(time.time() - late))
        signature = sign(secret, timestamp, content)
        headers = {"x-hermes-timestamp": timestamp, "x-hermes-signature": signature}
        content = content + b" " if forged else content
        async with httpx2.AsyncClient(timeout=PATIENCE, trust_env=False) as client:
            return await client.post(
                f"{self._url}/webhook", content=content, headers=headers
            )


@asynccontextmanager
async def opened(
    folder: Path, model: ModelServer, **webhook: object
) -> AsyncIterator[Caller]:
    settings = GatewaySettings(
        platforms=("webhook",),
        allow=("webhook:webhook",),
        folder=str(folder / "work"),
        port=0,
        webhook=msgspec.convert(webhook, GatewayWebhookSettings),
    )
    secrets = Secrets(
        {
            "GATEWAY_WEBHOOK_SECRET": SECRET,
            "OPENAI_API_KEY": KEY,
            "OPENAI_BASE_URL": model.url,
        },
        {},
    )
    with build(Settings(gateway=settings), Home(folder / "home"), bus=Bus()) as app:
        gateway = Gateway(app, secrets)
        await gateway.start()
        try:
            await until(
                lambda: (
                    gateway.status.parts
                    and gateway.status.parts[0].state == "connected"
                )
            )
            await until(lambda: gateway.status.url)
            yield Caller(gateway, gateway.status.url)
        finally:
            await asyncio.wait_for(gateway.stop(), PATIENCE)


async def test_a_signed_request_is_answered_and_the_conversation_goes_on(
    tmp_path: Path,
) -> None:
    async with ModelServer("one", "two") as model, opened(tmp_path, model) as caller:
        first = await caller.ask({"text": "hi", "chat": "deploys"})
        assert (first.status_code, first.json()) == (
            200,
            {"chat": "deploys", "reply": "one"},
        )
        second = await caller.ask({"text": "and?", "chat": "deploys"})
        assert second.json()["reply"] == "two"
        contents = [
            one["content"]
            for one in msgspec.json.decode(model.posts[1].body)["messages"][1:]
        ]
        assert contents == ["hi", "one", "and?"]


async def test_whoever_asks_for_another_try_gets_its_answer(tmp_path: Path) -> None:
    async with (
        ModelServer("one", "another one") as model,
        opened(tmp_path, model) as caller,
    ):
        assert (await caller.ask({"text": "hi"})).json()["reply"] == "one"
        again = await caller.ask({"text": "/retry"})
        assert (again.status_code, again.json()["reply"]) == (200, "another one")


async def test_a_command_without_an_answer_of_its_own_says_that_it_is_done(
    tmp_path: Path,
) -> None:
    async with (
        ModelServer(
            ScriptedResponse(text="slow", fault=ServerFault(hang="middle"))
        ) as model,
        opened(tmp_path, model) as caller,
    ):
        running = asyncio.ensure_future(caller.ask({"text": "hi"}))
        await until(lambda: model.posts)
        assert (await caller.ask({"text": "/stop"})).json()["reply"] == "Done."
        assert "Stopped" in (await running).json()["reply"]


async def test_what_is_not_signed_rightly_or_too_late_is_refused_and_nothing_runs(
    tmp_path: Path,
) -> None:
    async with ModelServer() as model, opened(tmp_path, model) as caller:
        for answer in (
            await caller.ask({"text": "hi"}, secret=SECRET[::-1]),
            await caller.ask({"text": "hi"}, forged=True),
            await caller.ask({"text": "hi"}, late=1000),
            await caller.ask({"text": "hi"}, late=-1000),
        ):
            assert answer.status_code == 401
        stranger = await caller.ask({"text": "hi", "person": "somebody"})
        assert stranger.status_code == 403
        nonsense = await caller.ask({"words": "hi"})
        assert nonsense.status_code == 400


async def test_a_request_that_comes_again_is_not_acted_on_again(tmp_path: Path) -> None:
    async with ModelServer("once") as model, opened(tmp_path, model) as caller:
        assert (await caller.ask({"text": "hi", "id": "7"})).status_code == 200
        assert (await caller.ask({"text": "hi", "id": "7"})).status_code == 409
        assert len(model.posts) == 1


async def test_nobody_is_asked_so_what_needs_a_word_is_denied(tmp_path: Path) -> None:
    arguments = msgspec.json.encode(
        {"path": str(tmp_path / "elsewhere.txt"), "content": "x"}
    ).decode()
    script = (
        ScriptedResponse(calls=(ServedCall(name="write_file", arguments=arguments),)),
        "I was not allowed to",
    )
    async with ModelServer(*script) as model, opened(tmp_path, model) as caller:
        answer = await caller.ask({"text": "write it"})
        assert "I was not allowed to" in answer.json()["reply"]
    assert not (tmp_path / "elsewhere.txt").exists()


async def test_a_reply_nobody_waits_for_is_posted_back_signed_until_it_is_taken(
    tmp_path: Path,
) -> None:
    seen: list[Recorded] = []

    def take(request: Recorded) -> ScriptedResponse:
        seen.append(request)
        return ScriptedResponse(text="ok")

    async with ModelServer("later") as model, ModelServer(respond=take) as back:
        async with opened(
            tmp_path, model, callback_url=f"{back.url}/chat/completions"
        ) as caller:
            accepted = await caller.ask({"text": "hi", "wait": False})
            assert accepted.status_code == 202
            await until(lambda: back.requests)
        request = back.requests[0]
        assert b"later" in request.body
        wanted = sign(SECRET, request.headers["x-hermes-timestamp"], request.body)
        assert request.headers["x-hermes-signature"] == wanted


async def test_each_request_gets_its_own_reply_though_others_talk_in_the_same_chat(
    tmp_path: Path,
) -> None:
    def respond(request: Recorded) -> ScriptedResponse:
        said = msgspec.json.decode(request.body)["messages"][-1]["content"]
        return ScriptedResponse(text=f"answer to {said}")

    async with ModelServer(respond=respond) as model, opened(tmp_path, model) as caller:
        assert (await caller.ask({"text": "first", "wait": False})).status_code == 202
        asked = [
            asyncio.create_task(caller.ask({"text": text}))
            for text in ("second", "third")
        ]
        asked.append(asyncio.create_task(caller.ask({"text": "/usage"})))
        replies = [(await one).json()["reply"] for one in asked]
        assert set(replies[:2]) <= {"answer to second", "answer to third"}
        assert replies[2].startswith("This session:")
