"""`hermes api` as a process, used through the official client of OpenAI."""

import asyncio
import base64
import re
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2
import msgspec
import pytest
import pytest_asyncio
from tests.fakes.first_use import OnFirstUse

from hermes.testing.installed import InstalledHermes
from hermes.testing.model_server import ModelServer
from hermes.testing.scripted_responses import ScriptedResponse, ServedCall, ServerFault

if TYPE_CHECKING:
    import openai
else:
    openai = OnFirstUse("openai")

pytestmark = pytest.mark.asyncio(loop_scope="module")
_PATIENCE = 30.0
_PIXEL = (
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c63f8ffff3f0005fe02fe"
    "a7356f9e0000000049454e44ae426082"
)


class Service:
    """A server that runs, a key for it, and a client."""

    def __init__(
        self,
        hermes: InstalledHermes,
        process: asyncio.subprocess.Process,
        url: str,
        key: str,
    ) -> None:
        self.hermes = hermes
        self.process = process
        self.url = url
        self.key = key
        self.client = openai.AsyncOpenAI(
            base_url=url, api_key=key, max_retries=0, timeout=_PATIENCE
        )

    def other(self, key: str) -> "openai.AsyncOpenAI":
        return openai.AsyncOpenAI(
            base_url=self.url, api_key=key, max_retries=0, timeout=_PATIENCE
        )


async def new_key(hermes: InstalledHermes, *more: str) -> str:
    made = await hermes.run("api", "key", "add", *(more or ("test",)))
    assert made.code == 0, made.err
    return made.out.splitlines()[0]


@asynccontextmanager
async def service(
    tmp_path: Path,
    *replies: ScriptedResponse | str,
    config: str = "",
    repeat: bool = False,
) -> AsyncIterator[tuple[Service, ModelServer]]:
    async with (
        ModelServer(*replies, repeat=repeat) as model,
        serving(tmp_path, model, config) as it,
    ):
        yield it, model


@asynccontextmanager
async def serving(
    folder: Path, model: ModelServer, config: str
) -> AsyncIterator[Service]:
    """The process. It ends without a word of complaint."""
    hermes = InstalledHermes(folder, model.url)
    hermes.home.mkdir(exist_ok=True)
    (hermes.home / "config.yaml").write_text(
        f"api:\n  folder: {hermes.work}\n{config.replace('URL', model.url)}"
    )
    key = await new_key(hermes)
    process = await hermes.start("api", "--port", "0")
    assert process.stdout is not None
    try:
        said = (await asyncio.wait_for(process.stdout.readline(), _PATIENCE)).decode()
        (url,) = re.findall(r"at (\S+/v1)\.", said)
        found = Service(hermes, process, url, key)
        yield found
        await found.client.close()
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        out, err = await asyncio.wait_for(process.communicate(), _PATIENCE)
    assert (process.returncode, err.decode()) == (0, ""), out


class Shared:
    """One server for the tests that need no other settings. Each says what the model answers, one after the other."""

    def __init__(
        self, it: Service, model: ModelServer, replies: list[ScriptedResponse]
    ) -> None:
        self._it = it
        self._model = model
        self._replies = replies

    @asynccontextmanager
    async def __call__(
        self, *replies: ScriptedResponse | str, repeat: int = 1
    ) -> AsyncIterator[tuple[Service, ModelServer]]:
        self._model.requests.clear()
        self._model.disconnected.clear()
        self._replies[:] = [
            ScriptedResponse(text=one) if isinstance(one, str) else one
            for one in replies
        ] * repeat
        yield self._it, self._model


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Shared]:
    replies: list[ScriptedResponse] = []
    folder = tmp_path_factory.mktemp("api")
    async with (
        ModelServer(respond=lambda _: replies.pop(0)) as model,
        serving(folder, model, "  by_user: true\n") as it,
    ):
        yield Shared(it, model, replies)


def said_to(model: ModelServer, number: int = -1) -> list[dict[str, Any]]:
    """The messages of a request to the model, without the system prompt."""
    return [
        one
        for one in msgspec.json.decode(model.posts[number].body)["messages"]
        if one["role"] != "system"
    ]


async def test_an_answer_whole_and_in_pieces_with_its_usage(shared: Shared) -> None:
    async with shared(
        ScriptedResponse(text="Good morning.", cached_tokens=5),
        ScriptedResponse(text="A stream of words.", chunk=9, delay=0.05),
    ) as (it, model):
        whole = await it.client.chat.completions.create(
            model="hermes", messages=[{"role": "user", "content": "hi"}]
        )
        assert whole.choices[0].message.content == "Good morning."
        assert (whole.choices[0].finish_reason, whole.object) == (
            "stop",
            "chat.completion",
        )
        assert whole.usage is not None
        assert (whole.usage.prompt_tokens, whole.usage.completion_tokens) == (20, 8)
        assert whole.usage.prompt_tokens_details is not None
        assert whole.usage.prompt_tokens_details.cached_tokens == 5
        stream = await it.client.chat.completions.create(
            model="hermes",
            messages=[{"role": "user", "content": "again"}],
            stream=True,
            stream_options={"include_usage": True},
        )
        chunks = [chunk async for chunk in stream]
        pieces = [
            chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices
        ]
        assert "".join(pieces) == "A stream of words."
        assert len([piece for piece in pieces if piece]) > 1
        assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][
            -1
        ] == "stop"
        assert all(
            chunk.usage is None and "usage" in chunk.model_fields_set
            for chunk in chunks[:-1]
        )
        assert chunks[-1].usage is not None
        assert chunks[-1].usage.total_tokens == 28
        assert said_to(model)[-1]["content"] == "again"


async def test_a_conversation_told_whole_goes_on_in_the_session_that_answered(
    shared: Shared,
) -> None:
    async with shared("One.", "Two.", "Three.") as (it, model):
        messages: list[Any] = [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "first"},
        ]
        sessions = []
        for words in ("second", ""):
            raw = await it.client.chat.completions.with_raw_response.create(
                model="hermes", messages=messages
            )
            sessions.append(raw.headers["x-hermes-session"])
            messages += [
                {"role": "assistant", "content": raw.parse().choices[0].message.content}
            ]
            messages += [{"role": "user", "content": words}] if words else []
        assert sessions[0] == sessions[1]
        asked = said_to(model)
        assert "Be brief." in asked[0]["content"]
        assert [one["content"] for one in asked[1:]] == ["One.", "second"]
        messages[-1] = {"role": "assistant", "content": "something it never said"}
        messages += [{"role": "user", "content": "third"}]
        raw = await it.client.chat.completions.with_raw_response.create(
            model="hermes", messages=messages
        )
        assert (
            raw.headers["x-hermes-session"] not in sessions
        )  # another conversation, written down anew
        told = [one["content"] for one in said_to(model)]
        assert told[1:-1] == ["One.", "second", "something it never said"]
        assert "third" in told[-1]


async def test_other_wishes_of_the_application_are_told_when_they_come(
    shared: Shared,
) -> None:
    async with shared("One.", "Two.", "Three.") as (it, model):
        messages: list[Any] = [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "first"},
        ]
        for wish in ("Be brief.", "Be brief.", "Now write at length."):
            messages[0] = {"role": "system", "content": wish}
            answer = await it.client.chat.completions.create(
                model="hermes", messages=messages
            )
            messages += [
                {"role": "assistant", "content": answer.choices[0].message.content}
            ]
            messages += [{"role": "user", "content": "go on"}]
        told = [one["content"] for one in said_to(model)]
        assert ["Be brief." in text for text in told] == [
            True,
            False,
            False,
            False,
            False,
        ]
        assert "Now write at length." in told[-1]


async def test_an_answer_that_ran_out_of_room_says_so(shared: Shared) -> None:
    async with shared(ScriptedResponse(text="It goes.", finish="length"), repeat=3) as (
        it,
        _,
    ):
        chat = await it.client.chat.completions.create(
            model="hermes", messages=[{"role": "user", "content": "hi"}]
        )
        assert (chat.choices[0].finish_reason, chat.choices[0].message.content) == (
            "length",
            "It goes.",
        )
        response = await it.client.responses.create(model="hermes", input="hi")
        assert (response.status, response.output_text) == ("incomplete", "It goes.")
        assert response.incomplete_details is not None
        assert response.incomplete_details.reason == "max_output_tokens"
        assert (await it.client.responses.retrieve(response.id)).status == "incomplete"
        streamed = await it.client.responses.create(
            model="hermes", input="hi", stream=True
        )
        assert [event.type async for event in streamed][-1] == "response.incomplete"


async def test_a_client_that_left_before_its_turn_came_has_said_nothing(
    shared: Shared,
) -> None:
    async with shared(ScriptedResponse(text="A slow answer.", delay=0.2), "After.") as (
        it,
        model,
    ):
        first = await it.client.responses.create(
            model="hermes", input="a", conversation="queue", stream=True
        )
        await anext(aiter(first))
        waiting = asyncio.ensure_future(
            it.client.responses.create(model="hermes", input="b", conversation="queue")
        )
        async with asyncio.timeout(_PATIENCE):
            while not model.posts:  # noqa: ASYNC110 - what another process does
                await asyncio.sleep(0.05)
        waiting.cancel()
        await asyncio.wait({waiting})
        async for _ in first:
            pass
        answer = await it.client.responses.create(
            model="hermes", input="c", conversation="queue"
        )
        assert answer.output_text == "After."
        assert [one["content"] for one in said_to(model)] == [
            "a",
            "A slow answer.",
            "c",
        ]


async def test_who_comes_back_while_the_turn_still_runs_gets_an_answer_of_its_own(
    shared: Shared,
) -> None:
    async with shared(
        ScriptedResponse(text="A slow answer that takes its time.", delay=0.1), "After."
    ) as (it, model):
        stream = await it.client.responses.create(
            model="hermes", input="go", stream=True, conversation="back"
        )
        async for event in stream:
            if event.type == "response.output_text.delta":
                break
        await stream.close()
        answer = await it.client.responses.create(
            model="hermes", input="and?", conversation="back"
        )
        assert answer.output_text == "After."
        assert said_to(model)[1]["content"] == "A slow answer that takes its time."


async def test_named_conversations_are_sessions_that_the_terminal_knows(
    shared: Shared,
) -> None:
    async with shared("One.", "Two.", "Three.", "Four.") as (it, model):
        ask = it.client.chat.completions.with_raw_response.create
        first = await ask(
            model="hermes",
            messages=[{"role": "user", "content": "a"}],
            extra_headers={"X-Hermes-Session": "mine"},
        )
        second = await ask(
            model="hermes",
            messages=[{"role": "user", "content": "b"}],
            metadata={"session": "mine"},
        )
        third = await ask(
            model="hermes", messages=[{"role": "user", "content": "c"}], user="mine"
        )
        session = first.headers["x-hermes-session"]
        assert {one.headers["x-hermes-session"] for one in (second, third)} == {session}
        assert [one["content"] for one in said_to(model)] == [
            "a",
            "One.",
            "b",
            "Two.",
            "c",
        ]
        shown = await it.hermes.run("sessions", "show", session)
        assert "Three." in shown.out
        stranger = it.other(await new_key(it.hermes, "stranger"))
        other = await stranger.chat.completions.with_raw_response.create(
            model="hermes", messages=[{"role": "user", "content": "d"}], user=session
        )
        assert (
            other.headers["x-hermes-session"] != session
        )  # the id of another key's session is just a name
        assert len(said_to(model)) == 1
        await stranger.close()


async def test_two_requests_at_once_to_one_conversation_are_answered_one_after_the_other(
    shared: Shared,
) -> None:
    async with shared(ScriptedResponse(text="One.", delay=0.05), "Two.") as (it, model):
        ask = it.client.responses.create
        answers = await asyncio.gather(
            *(ask(model="hermes", input=word, conversation="c") for word in ("a", "b"))
        )
        assert sorted(answer.output_text for answer in answers) == ["One.", "Two."]
        assert len({answer.id for answer in answers}) == 2
        assert [one["role"] for one in said_to(model)] == ["user", "assistant", "user"]


async def test_a_key_with_the_scope_goes_on_with_a_session_of_the_terminal(
    shared: Shared,
) -> None:
    async with shared("From the terminal.", "From the API.") as (it, model):
        asked = await it.hermes.run("-z", "hello", "--json")
        session = asked.events[0]["session_id"]
        client = it.other(
            await new_key(it.hermes, "wide", "--scope", "chat", "--scope", "sessions")
        )
        answer = await client.responses.create(
            model="hermes", input="and now?", conversation=session
        )
        assert answer.output_text == "From the API."
        assert [one["content"] for one in said_to(model)] == [
            "hello",
            "From the terminal.",
            "and now?",
        ]
        with pytest.raises(openai.PermissionDeniedError, match="models"):
            await client.models.list()
        await client.close()


async def test_responses_follow_one_another_and_branch(shared: Shared) -> None:
    async with shared("One.", "Two.", "Other two.", "Streamed words.") as (it, model):
        first = await it.client.responses.create(
            model="hermes", input="a", instructions="Be kind."
        )
        assert (first.status, first.output_text, first.instructions) == (
            "completed",
            "One.",
            "Be kind.",
        )
        assert first.usage is not None
        assert (
            first.usage.input_tokens,
            first.usage.output_tokens,
            first.usage.total_tokens,
        ) == (20, 8, 28)
        await it.client.responses.create(
            model="hermes", input="b", previous_response_id=first.id
        )
        assert [one["content"] for one in said_to(model)][1:] == ["One.", "b"]
        branch = await it.client.responses.create(
            model="hermes", input="c", previous_response_id=first.id
        )
        assert [one["content"] for one in said_to(model)][1:] == ["One.", "c"]
        kinds: list[str] = []
        text = ""
        async with it.client.responses.stream(
            model="hermes",
            input=[{"role": "user", "content": "d"}],
            previous_response_id=branch.id,
        ) as stream:
            async for event in stream:
                kinds.append(event.type)
                text += (
                    event.delta if event.type == "response.output_text.delta" else ""
                )
            final = await stream.get_final_response()
        assert (text, final.output_text) == ("Streamed words.", "Streamed words.")
        assert kinds[0] == "response.created"
        assert kinds[-1] == "response.completed"
        again = await it.client.responses.retrieve(first.id)
        assert (again.output_text, again.status) == ("One.", "completed")
        with pytest.raises(openai.NotFoundError):
            await it.client.responses.create(
                model="hermes", input="x", previous_response_id="resp_nothing_1"
            )
        stranger = it.other(await new_key(it.hermes, "stranger"))
        with pytest.raises(openai.NotFoundError):
            await stranger.responses.retrieve(first.id)
        with pytest.raises(openai.NotFoundError):
            await stranger.responses.create(
                model="hermes", input="x", previous_response_id=first.id
            )
        await stranger.close()


@pytest.mark.parametrize("show", [True, False])
async def test_tools_are_run_by_hermes_and_shown_if_wanted(
    tmp_path: Path, show: bool
) -> None:
    call = ServedCall("read_file", '{"path": "note.txt"}')
    config = f"  show_tools: {str(show).lower()}\n"
    async with service(
        tmp_path,
        ScriptedResponse(text="Let me look.", calls=(call,)),
        "It says 42.",
        config=config,
    ) as (
        it,
        model,
    ):
        (it.hermes.work / "note.txt").write_text("the answer is 42")
        answer = await it.client.chat.completions.create(
            model="hermes",
            messages=[{"role": "user", "content": "what does note.txt say?"}],
        )
        text = answer.choices[0].message.content or ""
        assert text.startswith("Let me look.")
        assert text.endswith("\n\nIt says 42.")
        assert ("`read_file`" in text) is show
        assert "the answer is 42" in model.posts[-1].body.decode()


async def test_what_needs_approval_is_not_done(shared: Shared) -> None:
    call = ServedCall("write_file", '{"path": "new.txt", "content": "x"}')
    async with shared(ScriptedResponse(calls=(call,)), "I may not.") as (it, _):
        answer = await it.client.responses.create(model="hermes", input="write it")
        assert answer.output_text == "I may not."
        assert not (it.hermes.work / "new.txt").exists()


async def test_errors_have_openais_shape(shared: Shared) -> None:
    broken = ScriptedResponse(
        fault=ServerFault(status=401, message="no such key at the provider")
    )
    async with shared(broken, repeat=3) as (it, _):
        chat = it.client.chat.completions
        hello: Any = [{"role": "user", "content": "hi"}]
        with pytest.raises(openai.InternalServerError) as failed:
            await chat.create(model="hermes", messages=hello)
        assert (failed.value.status_code, failed.value.code) == (502, "turn_failed")
        stream = await chat.create(model="hermes", messages=hello, stream=True)
        with pytest.raises(openai.APIError):
            async for _ in stream:
                pass
        streamed = await it.client.responses.create(
            model="hermes", input="hi", stream=True
        )
        assert [event.type async for event in streamed][-1] == "response.failed"
        tool: Any = {
            "type": "function",
            "function": {"name": "not a name", "parameters": {}},
        }
        part: Any = [
            {"role": "user", "content": [{"type": "input_audio", "input_audio": {}}]}
        ]
        wrongs: tuple[tuple[dict[str, Any], int], ...] = (
            ({"messages": hello, "model": "gpt-9"}, 404),
            ({"messages": [], "model": "hermes"}, 400),
            ({"messages": [{"role": "user", "content": " "}], "model": "hermes"}, 400),
            ({"messages": [{"role": "user", "content": None}], "model": "hermes"}, 400),
            ({"messages": part, "model": "hermes"}, 400),
            ({"messages": hello, "model": "hermes", "n": 2}, 400),
            ({"messages": hello, "model": "hermes", "tools": [tool]}, 400),
            (
                {
                    "messages": [{"role": "assistant", "content": "me"}],
                    "model": "hermes",
                },
                400,
            ),
        )
        nested = (
            b'{"messages": [], "functions": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
        )
        async with httpx2.AsyncClient(
            trust_env=False, headers={"Authorization": f"Bearer {it.key}"}
        ) as client:
            deep = await client.post(f"{it.url}/chat/completions", content=nested)
        assert (deep.status_code, deep.json()["error"]["code"]) == (400, "invalid_json")
        create: Any = chat.create
        for wrong, code in wrongs:
            with pytest.raises(openai.APIStatusError) as refused:
                await create(**wrong)
            assert refused.value.status_code == code
            assert refused.value.type in {"invalid_request_error", "not_found_error"}
        models = [model.id async for model in it.client.models.list()]
        assert models[0] == "hermes"
        assert (await it.client.models.retrieve("hermes")).id == "hermes"


async def test_only_a_valid_key_opens_and_guessing_is_slowed_down(
    tmp_path: Path,
) -> None:
    async with service(tmp_path, "Yes.") as (it, model):
        wrong = it.other("sk-hermes-00000000-guess")
        codes = []
        for _ in range(7):
            with pytest.raises(openai.APIStatusError) as refused:
                await wrong.models.list()
            codes.append(refused.value.status_code)
        assert codes[0] == 401
        assert codes[-1] == 429
        assert (
            await it.client.responses.create(model="hermes", input="hi")
        ).output_text == "Yes."  # the right one is
        await wrong.close()
        removed = await it.hermes.run("api", "key", "remove", "test")
        assert removed.code == 0
        with pytest.raises(openai.APIStatusError):
            await it.client.models.list()
        assert (
            it.key.rpartition("-")[2]
            not in (it.hermes.home / "gateway" / "api_keys.json").read_text()
        )
        assert len(model.posts) == 1


async def test_pages_of_others_are_refused_even_with_a_key(shared: Shared) -> None:
    wrong = (
        {"Host": "evil.example"},
        {"Host": "127.0.0.1"},  # without its port
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
    )
    async with (
        shared("x") as (it, model),
        httpx2.AsyncClient(trust_env=False) as client,
    ):
        key = {"Authorization": f"Bearer {it.key}"}
        for headers in wrong:
            answer = await client.get(f"{it.url}/models", headers=key | headers)
            assert (answer.status_code, answer.json()["error"]["type"]) == (
                403,
                "permission_error",
            ), headers
            assert "access-control-allow-origin" not in answer.headers
        assert model.posts == []
        assert (
            await client.post(f"{it.url}/responses", headers=key, json={"input": "x"})
        ).status_code == 200


async def test_a_client_that_leaves_a_named_session_finds_the_answer_later(
    shared: Shared,
) -> None:
    slow = ScriptedResponse(text="A slow answer that takes its time.", delay=0.15)
    async with shared(slow, "After.") as (it, model):
        stream = await it.client.responses.create(
            model="hermes", input="go", stream=True, conversation="left"
        )
        response = ""
        async for event in stream:
            if event.type == "response.created":
                response = event.response.id
            if event.type == "response.output_text.delta":
                break
        await stream.close()
        async with asyncio.timeout(_PATIENCE):
            while (  # noqa: ASYNC110
                found := await it.client.responses.retrieve(response)
            ).status != "completed":
                await asyncio.sleep(0.1)
        assert found.output_text == "A slow answer that takes its time."
        await it.client.responses.create(
            model="hermes", input="and?", conversation="left"
        )
        assert said_to(model)[1]["content"] == "A slow answer that takes its time."


async def test_a_turn_nobody_can_come_back_for_is_stopped_with_its_client(
    shared: Shared,
) -> None:
    async with shared(ScriptedResponse(text="x" * 400, delay=0.1), "Well.") as (
        it,
        model,
    ):
        raw = await it.client.chat.completions.with_raw_response.create(
            model="hermes", messages=[{"role": "user", "content": "go"}], stream=True
        )
        session = raw.headers["x-hermes-session"]
        stream = raw.parse()
        async for chunk in stream:
            if chunk.choices[0].delta.content:
                break
        await stream.close()
        await asyncio.wait_for(model.disconnected.wait(), _PATIENCE)

        async with asyncio.timeout(_PATIENCE):
            while (  # noqa: ASYNC110
                "interrupted"
                not in (await it.hermes.run("sessions", "show", session, "--json")).out
            ):
                await asyncio.sleep(0.1)
        await it.client.responses.create(model="hermes", input="still there?")


async def test_a_gateway_serves_it_too_and_its_status_says_where(
    tmp_path: Path,
) -> None:
    async with ModelServer("From the gateway.") as model:
        hermes = InstalledHermes(tmp_path, model.url)
        hermes.home.mkdir()
        (hermes.home / "config.yaml").write_text(
            f"api:\n  port: 0\n  folder: {hermes.work}\n"
        )
        made = await hermes.run("gateway", "key", "add", "laptop")
        process = await hermes.start("gateway", "run")
        try:
            url = ""
            async with asyncio.timeout(_PATIENCE):
                while not url:
                    status = (await hermes.run("gateway", "status", "--json")).out
                    found = re.findall(r'"identity": "(http[^"]+)"', status)
                    url = found[0] if found else ""
            async with openai.AsyncOpenAI(
                base_url=url, api_key=made.out.splitlines()[0], max_retries=0
            ) as client:
                answer = await client.responses.create(
                    model="hermes", input="who are you?"
                )
            assert answer.output_text == "From the gateway."
        finally:
            process.send_signal(signal.SIGTERM)
            _, err = await asyncio.wait_for(process.communicate(), _PATIENCE)
        assert (process.returncode, err.decode()) == (0, "")


def _with_pixel() -> Any:
    pixel = base64.b64encode(bytes.fromhex(_PIXEL)).decode()
    image = {
        "type": "image_url",
        "image_url": {"url": f"data:image/png;base64,{pixel}"},
    }
    return {"role": "user", "content": [{"type": "text", "text": "what is it?"}, image]}


async def test_a_picture_that_the_model_does_not_get_is_said_in_the_answer(
    shared: Shared,
) -> None:
    async with shared("I can't see it.") as (it, _):
        answer = await it.client.chat.completions.create(
            model="hermes", messages=[_with_pixel()]
        )
        content = str(answer.choices[0].message.content)
        assert content.startswith("[A picture was not sent to")
        assert content.endswith("]\n\nI can't see it.")


async def test_pictures_come_along(tmp_path: Path) -> None:
    seeing = (
        "model: {provider: seeing, default: fake-1}\n"
        "custom_providers: {seeing: {base_url: URL, models: {fake-1: {images: true}}}}\n"
    )
    async with service(tmp_path, "A dot.", config=seeing) as (it, model):
        answer = await it.client.chat.completions.create(
            model="hermes", messages=[_with_pixel()]
        )
        assert answer.choices[0].message.content == "A dot."
        assert (
            base64.b64encode(bytes.fromhex(_PIXEL)).decode()
            in model.posts[-1].body.decode()
        )


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ("  host: 0.0.0.0\n", "without TLS"),
        (
            "  host: 0.0.0.0\n  behind_proxy: true\n",
            "the host name that it is reached by",
        ),
        ("  tls_cert: x.pem\n", "set together"),
    ],
)
async def test_it_does_not_listen_where_that_is_not_safe(
    tmp_path: Path, config: str, words: str
) -> None:
    hermes = InstalledHermes(tmp_path)
    hermes.home.mkdir()
    (hermes.home / "config.yaml").write_text(f"api:\n{config}")
    await new_key(hermes)
    done = await hermes.run("api", "--port", "0")
    assert (done.code, words in done.err) == (1, True), done.err


async def test_without_a_key_it_does_not_start(tmp_path: Path) -> None:
    done = await InstalledHermes(tmp_path).run("api", "--port", "0")
    assert (done.code, "has no key yet" in done.err) == (1, True), done.err


_WEATHER: Any = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather in a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        },
    },
}
_CALLS = ScriptedResponse(
    text="Let me look.",
    calls=(
        ServedCall(name="get_weather", arguments='{"city": "Rome"}'),
        ServedCall(name="get_weather", arguments='{"city": "Oslo"}'),
    ),
)


@pytest.mark.parametrize("stream", [False, True])
async def test_the_callers_own_tools_are_handed_back_and_their_results_taken(
    tmp_path: Path, stream: bool
) -> None:
    async with service(tmp_path, _CALLS, "Warm and cold.", "Yes.") as (api, model):
        said: list[Any] = [{"role": "user", "content": "Rome or Oslo?"}]
        if stream:
            async with api.client.chat.completions.stream(
                model="hermes", messages=said, tools=[_WEATHER]
            ) as events:
                first = await events.get_final_completion()
        else:
            first = await api.client.chat.completions.create(
                model="hermes", messages=said, tools=[_WEATHER]
            )
        choice = first.choices[0]
        assert choice.finish_reason == "tool_calls"
        assert choice.message.content == "Let me look."
        calls: list[Any] = list(choice.message.tool_calls or ())
        assert [one.function.arguments for one in calls] == [
            '{"city":"Rome"}',
            '{"city":"Oslo"}',
        ]
        said.append(
            {
                "role": "assistant",
                "content": "Let me look.",
                "tool_calls": [
                    {
                        "id": one.id,
                        "type": "function",
                        "function": {
                            "name": one.function.name,
                            "arguments": one.function.arguments,
                        },
                    }
                    for one in calls
                ],
            }
        )
        said += [
            {"role": "tool", "tool_call_id": one.id, "content": degrees}
            for one, degrees in zip(calls, ("25 degrees", "-3 degrees"), strict=True)
        ]
        second = await api.client.chat.completions.create(
            model="hermes", messages=said, tools=[_WEATHER]
        )
        assert second.choices[0].message.content == "Warm and cold."
        sent = msgspec.json.decode(model.posts[-1].body)["messages"]
        assert [one["content"] for one in sent if one["role"] == "tool"] == [
            "25 degrees",
            "-3 degrees",
        ]
        said += [
            {"role": "assistant", "content": "Warm and cold."},
            {"role": "user", "content": "Sure?"},
        ]
        third = await api.client.chat.completions.create(
            model="hermes", messages=said, tools=[_WEATHER]
        )
        assert third.choices[0].message.content == "Yes."
        listed = await api.hermes.run("sessions", "list", "--json")
        assert listed.out.count('"session_id"') == 1  # one conversation is one session


async def test_results_of_calls_that_nobody_waits_for_still_reach_the_model(
    tmp_path: Path,
) -> None:
    call = {
        "id": "call_old",
        "type": "function",
        "function": {"name": "get_weather", "arguments": "{}"},
    }
    said: list[Any] = [
        {"role": "user", "content": "Rome?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_old", "content": "25 degrees"},
    ]
    async with service(tmp_path, "Warm.") as (api, model):
        done = await api.client.chat.completions.create(
            model="hermes", messages=said, tools=[_WEATHER]
        )
        assert done.choices[0].message.content == "Warm."
        assert "25 degrees" in model.posts[-1].body.decode()


async def test_an_answer_in_json_is_checked_and_asked_for_again(tmp_path: Path) -> None:
    schema: Any = {
        "type": "json_schema",
        "json_schema": {
            "name": "city",
            "schema": {
                "type": "object",
                "properties": {"people": {"type": "integer"}},
                "required": ["people"],
            },
        },
    }
    fenced = '```json\n{"people": 3}\n```'
    async with service(tmp_path, "About three.", fenced, "no", "still no") as (
        api,
        model,
    ):
        ask: Any = [{"role": "user", "content": "How many?"}]
        done = await api.client.chat.completions.create(
            model="hermes", messages=ask, response_format=schema
        )
        assert done.choices[0].message.content == '{"people": 3}'
        assert "it is not JSON" in model.posts[1].body.decode()
        with pytest.raises(openai.APIStatusError, match="not the JSON"):
            await api.client.chat.completions.create(
                model="hermes", messages=ask, response_format={"type": "json_object"}
            )


async def test_anthropics_client_talks_streams_and_uses_tools(tmp_path: Path) -> None:
    import anthropic

    async with service(tmp_path, "Hello.", _CALLS, "Warm and cold.") as (api, model):
        client = anthropic.AsyncAnthropic(
            base_url=api.url.removesuffix("/v1"),
            api_key=api.key,
            max_retries=0,
            timeout=_PATIENCE,
        )
        tool: Any = {
            "name": "get_weather",
            "description": "The weather in a city.",
            "input_schema": _WEATHER["function"]["parameters"],
        }
        hello = await client.messages.create(
            model="hermes",
            max_tokens=100,
            system="Be brief.",
            messages=[{"role": "user", "content": "Hi"}],
        )
        assert hello.content[0].to_dict()["text"] == "Hello."
        assert hello.stop_reason == "end_turn"
        assert "Be brief." in model.posts[0].body.decode()
        said: list[Any] = [{"role": "user", "content": "Rome or Oslo?"}]
        async with client.messages.stream(
            model="hermes", max_tokens=100, messages=said, tools=[tool]
        ) as stream:
            first = await stream.get_final_message()
        assert first.stop_reason == "tool_use"
        uses = [one for one in first.content if one.type == "tool_use"]
        assert [one.input for one in uses] == [{"city": "Rome"}, {"city": "Oslo"}]
        said.append(
            {"role": "assistant", "content": [one.to_dict() for one in first.content]}
        )
        said.append(
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": one.id, "content": "mild"}
                    for one in uses
                ],
            }
        )
        second = await client.messages.create(
            model="hermes", max_tokens=100, messages=said, tools=[tool]
        )
        assert second.content[0].to_dict()["text"] == "Warm and cold."
        counted = await client.messages.count_tokens(model="hermes", messages=said)
        assert counted.input_tokens > 10
        with pytest.raises(anthropic.AuthenticationError):
            await anthropic.AsyncAnthropic(
                base_url=api.url.removesuffix("/v1"), api_key="wrong", max_retries=0
            ).messages.create(model="hermes", max_tokens=1, messages=said)


async def test_a_response_hands_back_calls_as_items(tmp_path: Path) -> None:
    tool: Any = {"type": "function", **_WEATHER["function"]}
    async with service(tmp_path, _CALLS, "Warm and cold.") as (api, _):
        first = await api.client.responses.create(
            model="hermes", input="Rome or Oslo?", tools=[tool]
        )
        calls: list[Any] = [one for one in first.output if one.type == "function_call"]
        assert [one.name for one in calls] == ["get_weather", "get_weather"]
        results: Any = [
            {"type": "function_call_output", "call_id": one.call_id, "output": "mild"}
            for one in calls
        ]
        second = await api.client.responses.create(
            model="hermes",
            input=results,
            previous_response_id=first.id,
            tools=[tool],
        )
        assert second.output_text == "Warm and cold."
        ids = [one.id for one in (first, second, *first.output, *second.output)]
        assert len(set(ids)) == len(ids)  # clients tell messages apart by them
        again = await api.client.responses.retrieve(second.id)
        assert "Warm and cold." in again.output_text
