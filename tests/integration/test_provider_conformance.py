"""The same behaviours for every wire format, over a real socket, against the fake model server."""

import asyncio
import gzip
import re
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hermes.errors import ModelError
from hermes.providers.build import Timing, build_model
from hermes.providers.http_client import Http
from hermes.providers.retry import Resilient
from hermes.providers.tool_names import wire_name
from hermes.schema.messages import AssistantMessage, Image, ToolFinished, UserMessage
from hermes.schema.model import (
    ModelEvent,
    ModelRequest,
    ReasoningPiece,
    ReplyFinished,
    Retrying,
    TextDelta,
    ToolCallStarted,
)
from hermes.schema.tool_spec import ToolSpec
from hermes.settings import Secrets, Settings
from hermes.settings.models import ModelSettings
from hermes.testing.formats import Format, render
from hermes.testing.model_server import ModelServer
from hermes.testing.scripted_responses import ScriptedResponse, ServedCall, ServerFault

KEY = "secret-key-that-nobody-may-see"
TOOLS = (
    ToolSpec(name="read_file", description="Read.", parameters={"type": "object"}),
)
REQUEST = ModelRequest(
    system=("You are Hermes.", "Today."),
    messages=(UserMessage(text="hi"),),
    tools=TOOLS,
)
REPLY = ScriptedResponse(
    text="Hello, wörld 🌍.",
    reasoning="They greet me.",
    calls=(
        ServedCall("read_file", '{"path": "a.txt"}'),
        ServedCall("read_file", '{"path": "b.txt"}'),
    ),
    input_tokens=50,
    output_tokens=20,
    cached_tokens=30,
    reasoning_tokens=5,
)


class Waits:
    """Sleeps that take no time, and are remembered."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


@pytest.fixture
async def http() -> AsyncIterator[Http]:
    client = Http()
    yield client
    await client.aclose()


@pytest.fixture(params=["chat", "responses", "anthropic"])
def wire(request: pytest.FixtureRequest) -> Format:
    found: Format = request.param
    return found


class Caller:
    """A model at the fake server, called as core calls it."""

    def __init__(self, wire: Format, http: Http) -> None:
        self.wire: Format = wire
        self.waits = Waits()
        self._http = http

    def model(self, server: ModelServer, **chosen: object) -> Resilient:
        fields = {
            "base_url": server.url,
            "api": self.wire,
            "default": "gpt-5",
            **chosen,
        }
        settings = Settings(model=msgspec.convert(fields, ModelSettings))
        timing = Timing(sleep=self.waits.sleep, chance=lambda: 1.0)
        secrets = Secrets({}, {"OPENAI_API_KEY": KEY})
        return build_model(settings, secrets, http=self._http, timing=timing)

    async def call(self, server: ModelServer, **chosen: object) -> list[ModelEvent]:
        return [event async for event in self.model(server, **chosen).stream(REQUEST)]

    async def fails(self, server: ModelServer, **chosen: object) -> ModelError:
        """The error of a call that is not retried."""
        with pytest.raises(ModelError) as caught:
            await self.call(server, **{"max_attempts": 1, **chosen})
        assert KEY not in caught.value.message + caught.value.hint
        return caught.value


@pytest.fixture
def caller(wire: Format, http: Http) -> Caller:
    return Caller(wire, http)


def last(events: list[ModelEvent]) -> AssistantMessage:
    assert isinstance(events[-1], ReplyFinished)
    assert not any(isinstance(event, ReplyFinished) for event in events[:-1])
    return events[-1].message


async def test_a_reply_streams_and_ends_with_the_whole_message(caller: Caller) -> None:
    async with ModelServer(REPLY) as server:
        events = await caller.call(server)
    message = last(events)
    assert (
        message.text
        == REPLY.text
        == "".join(e.text for e in events if isinstance(e, TextDelta))
    )
    assert (
        message.reasoning
        == REPLY.reasoning
        == "".join(e.text for e in events if isinstance(e, ReasoningPiece))
    )
    assert [call.arguments for call in message.tool_calls] == [
        call.arguments for call in REPLY.calls
    ]
    assert sum(isinstance(event, ToolCallStarted) for event in events) == 2
    assert (message.finish, message.provider, message.model) == (
        "tool_calls",
        "openai-compatible",
        "gpt-5",
    )
    usage = message.usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens) == (
        50,
        20,
        30,
    )
    assert usage.cost_usd == pytest.approx((20 * 1.25 + 30 * 0.125 + 20 * 10) / 1e6)


@pytest.mark.parametrize("delivery", ["plain", "gzip", "deflate", "json"])
async def test_a_reply_counts_however_a_server_delivers_it(
    caller: Caller, delivery: str
) -> None:
    reply = msgspec.convert(
        {**msgspec.structs.asdict(REPLY), "delivery": delivery}, ScriptedResponse
    )
    async with ModelServer(reply, REPLY) as server:
        events, streamed = await caller.call(server), last(await caller.call(server))
        assert server.connections == 1
    message = last(events)
    assert (
        message.text
        == REPLY.text
        == "".join(e.text for e in events if isinstance(e, TextDelta))
    )
    assert (
        message.reasoning
        == REPLY.reasoning
        == "".join(e.text for e in events if isinstance(e, ReasoningPiece))
    )
    assert [(call.name, call.arguments) for call in message.tool_calls] == [
        (call.name, call.arguments) for call in streamed.tool_calls
    ]
    assert (message.finish, message.usage) == (streamed.finish, streamed.usage)


async def test_a_compressed_reply_that_is_cut_is_not_a_whole_one(
    caller: Caller,
) -> None:
    async def answer(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        await reader.readuntil(b"\r\n\r\n")
        body = gzip.compress(b"".join(render(caller.wire, REPLY, "gpt-5", 1)))[:-200]
        head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-encoding: gzip\r\n"
        writer.write(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server, ModelServer() as unused:
        address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        error = await caller.fails(unused, base_url=address)
    assert error.reason == "connection"


async def test_a_tool_whose_name_no_service_accepts_is_called_by_another_on_the_wire(
    caller: Caller,
) -> None:
    name = "mcp.files.read"
    spec = ToolSpec(
        name=name, description="reads", parameters={"type": "object", "properties": {}}
    )
    async with ModelServer(
        ScriptedResponse(calls=(ServedCall(wire_name(name), "{}"),)), "done"
    ) as server:
        model = caller.model(server)
        first = msgspec.structs.replace(REQUEST, tools=(spec,))
        events = [event async for event in model.stream(first)]
        message = last(events)
        assert [call.name for call in message.tool_calls] == [name]
        assert [
            event.name for event in events if isinstance(event, ToolCallStarted)
        ] == [name]
        result = ToolFinished(call_id=message.tool_calls[0].id, name=name, text="ok")
        second = msgspec.structs.replace(
            first, messages=(*first.messages, message, result)
        )
        last([event async for event in model.stream(second)])
    for request in server.posts:
        assert b"mcp.files" not in request.body
        assert b"mcp__files__read" in request.body


NAMES = st.one_of(
    st.text(min_size=1, max_size=100), st.text("a._", min_size=1, max_size=6)
)


@given(NAMES, NAMES)
@example("a.b", "a__b")
@example("a_.b", "a._b")
def test_names_on_the_wire_are_acceptable_and_tell_tools_apart(
    one: str, two: str
) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", wire_name(one))
    assert (wire_name(one) == wire_name(two)) == (one == two)


async def test_the_key_goes_where_the_format_wants_it(caller: Caller) -> None:
    async with ModelServer("hi") as server:
        await caller.call(server)
    headers = server.posts[0].headers
    assert KEY in (headers.get("authorization", "") + headers.get("x-api-key", ""))


async def test_a_conversation_with_results_and_pictures_is_accepted_and_grows_only_at_its_end(
    caller: Caller, tmp_path: Path
) -> None:
    picture = tmp_path / "cat.png"
    picture.write_bytes(b"\x89PNG not really")
    async with ModelServer(REPLY, "done") as server:
        model = caller.model(server)
        asked = UserMessage(
            text="look", images=(Image(source=str(picture), media_type="image/png"),)
        )
        first = msgspec.structs.replace(REQUEST, messages=(asked,))
        message = last([event async for event in model.stream(first)])
        results = tuple(
            ToolFinished(call_id=call.id, name=call.name, text="ok")
            for call in message.tool_calls
        )
        second = msgspec.structs.replace(REQUEST, messages=(asked, message, *results))
        assert last([event async for event in model.stream(second)]).text == "done"
    before, after = (request.body for request in server.posts)
    marker = b',"cache_control":{"type":"ephemeral"}'
    assert after.replace(marker, b"").startswith(
        before.replace(marker, b"").removesuffix(b"]}")
    )
    assert server.connections == 1  # kept and used again


async def test_closing_the_stream_closes_the_connection_at_once(caller: Caller) -> None:
    async with ModelServer(
        msgspec.structs.replace(REPLY, fault=ServerFault(hang="middle"))
    ) as server:
        events = caller.model(server).stream(REQUEST)
        await anext(events)
        await events.aclose()
        async with asyncio.timeout(20):
            await server.disconnected.wait()


async def test_cancelling_a_call_that_waits_closes_the_connection_at_once(
    caller: Caller,
) -> None:
    async with ModelServer(ScriptedResponse(fault=ServerFault(hang="head"))) as server:
        task = asyncio.create_task(caller.call(server))
        async with asyncio.timeout(20):
            await server.hanging.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await server.disconnected.wait()


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (401, "auth"),
        (402, "billing"),
        (403, "forbidden"),
        (404, "not_found"),
        (400, "bad_request"),
    ],
)
async def test_errors_that_can_not_pass_are_told_in_the_providers_words_and_not_retried(
    caller: Caller, status: int, reason: str
) -> None:
    async with ModelServer(
        ScriptedResponse(fault=ServerFault(status=status, message=f"no, because {KEY}"))
    ) as server:
        error = await caller.fails(server, max_attempts=4)
    assert (error.reason, error.status) == (reason, status)
    assert "no, because ********" in error.message
    assert len(server.posts) == 1


@pytest.mark.parametrize(
    ("status", "reason"), [(429, "rate_limited"), (500, "server"), (529, "overloaded")]
)
async def test_errors_that_may_pass_are_retried_and_recover(
    caller: Caller, status: int, reason: str
) -> None:
    async with ModelServer(
        ScriptedResponse(fault=ServerFault(status=status)), "fine"
    ) as server:
        events = await caller.call(server)
    (again,) = [event for event in events if isinstance(event, Retrying)]
    assert (again.reason, last(events).text) == (reason, "fine")
    assert caller.waits.slept == [0.5]


async def test_the_wait_in_retry_after_is_kept(caller: Caller) -> None:
    async with ModelServer(
        ScriptedResponse(fault=ServerFault(status=429, retry_after="11")), "fine"
    ) as server:
        await caller.call(server)
    assert caller.waits.slept == [11.0]


@pytest.mark.parametrize("status", [429, 500])
async def test_an_error_that_does_not_pass_ends_after_four_attempts(
    caller: Caller, status: int
) -> None:
    async with ModelServer(
        ScriptedResponse(fault=ServerFault(status=status)), repeat=True
    ) as server:
        with pytest.raises(ModelError, match="after 4 attempts"):
            await caller.call(server)
    assert len(server.posts) == 4
    assert sum(caller.waits.slept) < 60


@pytest.mark.parametrize(
    ("hang", "deadline", "words"),
    [
        ("head", "first_byte_timeout", r"no answer within 0\.1 s"),
        ("body", "first_byte_timeout", r"no answer within 0\.1 s"),
        ("middle", "idle_timeout", r"the answer stopped for 0\.1 s"),
        ("middle", "total_timeout", r"the answer took longer than 0\.1 s"),
    ],
)
async def test_each_deadline_says_which_one_it_was(
    caller: Caller, hang: str, deadline: str, words: str
) -> None:
    fault = msgspec.convert({"hang": hang}, ServerFault)
    async with ModelServer(msgspec.structs.replace(REPLY, fault=fault)) as server:
        with pytest.raises(ModelError, match=words) as caught:
            await caller.call(server, max_attempts=1, **{deadline: 0.1})
    assert caught.value.reason == "timeout"


async def test_a_connection_that_is_cut_is_never_an_answer_wherever_it_is_cut(
    caller: Caller,
) -> None:
    size = len(b"".join(render(caller.wire, REPLY, "gpt-5", 1)))
    cuts = [*range(0, size, max(1, size // 60)), size - 1, size - 2]
    faults = [
        msgspec.structs.replace(REPLY, fault=ServerFault(cut_after=cut)) for cut in cuts
    ]
    async with ModelServer(*faults) as server:
        model = caller.model(server, max_attempts=1)
        for cut in cuts:
            events: list[ModelEvent] = []
            with pytest.raises(ModelError) as caught:
                events.extend([event async for event in model.stream(REQUEST)])
            assert caught.value.reason in {"connection", "malformed"}, cut


async def test_a_cut_is_retried_and_what_was_streamed_is_void(caller: Caller) -> None:
    async with ModelServer(
        msgspec.structs.replace(REPLY, fault=ServerFault(cut_after=600)), REPLY
    ) as server:
        events = await caller.call(server)
    assert sum(isinstance(event, Retrying) for event in events) == 1
    assert last(events).text == REPLY.text


@pytest.mark.parametrize(
    ("fault", "reason", "words"),
    [
        (ServerFault(malformed=True), "malformed", "can't be read"),
        (ServerFault(html=True), "malformed", "an HTML page titled “Sign in”"),
        (ServerFault(empty=True), "malformed", "cut before its end"),
        (
            ServerFault(body="just text", content_type="text/plain"),
            "malformed",
            "just text",
        ),
        (
            ServerFault(body='{"choices":[]}', content_type="application/json"),
            "malformed",
            "expected a stream",
        ),
        (
            ServerFault(
                body='{"error":{"message":"no model"}}', content_type="application/json"
            ),
            "server",
            "no model",
        ),
        (ServerFault(body="garbage\n\n"), "malformed", "belongs to no event"),
    ],
)
async def test_what_is_not_a_reply_is_said_to_be_none(
    caller: Caller, fault: ServerFault, reason: str, words: str
) -> None:
    async with ModelServer(msgspec.structs.replace(REPLY, fault=fault)) as server:
        error = await caller.fails(server)
    assert error.reason == reason
    assert words in error.message


async def test_an_error_inside_a_stream_is_told_and_retried(caller: Caller) -> None:
    fault = ServerFault(error_frame=True, message="the cluster burned down")
    async with ModelServer(
        msgspec.structs.replace(REPLY, fault=fault), "fine"
    ) as server:
        events = await caller.call(server)
    (again,) = [event for event in events if isinstance(event, Retrying)]
    assert "the cluster burned down" in again.detail
    assert last(events).text == "fine"


async def test_a_conversation_that_is_too_long_asks_for_compression(
    caller: Caller,
) -> None:
    fault = ServerFault(
        status=400, message="prompt is too long: 210000 tokens > 200000 maximum"
    )
    async with ModelServer(ScriptedResponse(fault=fault)) as server:
        error = await caller.fails(server)
    assert (error.reason, error.compress) == ("too_long", True)


async def test_an_empty_reply_and_thinking_alone_are_messages(caller: Caller) -> None:
    async with ModelServer(
        ScriptedResponse(), ScriptedResponse(reasoning="hm")
    ) as server:
        assert last(await caller.call(server)).text == ""
        assert last(await caller.call(server)).reasoning == "hm"


async def test_nobody_listening_says_where_nobody_is(caller: Caller) -> None:
    async with ModelServer() as server:
        gone = server.url
        await server.close()
        error = await caller.fails(server, base_url=gone)
    assert error.reason == "connection"
    assert gone in error.hint


async def test_the_next_key_is_tried_when_one_is_refused(
    wire: Format, http: Http
) -> None:
    async with ModelServer(
        ScriptedResponse(fault=ServerFault(status=401)), "fine"
    ) as server:
        settings = Settings(
            model=msgspec.convert(
                {"base_url": server.url, "api": wire, "default": "m"}, ModelSettings
            )
        )
        secrets = Secrets({}, {"OPENAI_API_KEY": "first-key,second-key"})
        model = build_model(settings, secrets, http=http)
        assert last([event async for event in model.stream(REQUEST)]).text == "fine"
    used = [
        post.headers.get("authorization", "") + post.headers.get("x-api-key", "")
        for post in server.posts
    ]
    assert [key.removeprefix("Bearer ") for key in used] == ["first-key", "second-key"]


async def test_a_fallback_answers_when_the_first_can_not(caller: Caller) -> None:
    async with ModelServer(
        ScriptedResponse(fault=ServerFault(status=402)), "from the second"
    ) as server:
        events = await caller.call(server, fallback=["gpt-5-mini"])
    message = last(events)
    assert (message.text, message.model) == ("from the second", "gpt-5-mini")


async def test_where_no_model_is_named_the_servers_first_is_taken(
    caller: Caller,
) -> None:
    async with ModelServer("hi", models=("local-1", "local-2")) as server:
        message = last(await caller.call(server, default=""))
    assert message.model == "local-1"


async def test_a_server_without_models_asks_for_a_name(caller: Caller) -> None:
    async with ModelServer(models=()) as server:
        error = await caller.fails(server, default="")
    assert "name one in model.default" in error.message
