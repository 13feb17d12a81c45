"""The real engine with the smallest model: starting, generating within a grammar, stopping, dying, restoring."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
from tests.fakes.simple_tools import WORKSHOP_SPECS
from tests.integration.providers.local_models import need_base, need_nano

from hermes.errors import ModelError
from hermes.providers.embedded import (
    CATALOGUE,
    EmbeddedModel,
    build_custom_model,
    build_model,
    engine_wire,
    find,
)
from hermes.providers.embedded.completion import (
    CacheSlot,
    ChatTurn,
    Completion,
    CompletionEnded,
    CompletionText,
)
from hermes.providers.embedded.conversation import SeenFile
from hermes.providers.embedded.engine import LocalEngine
from hermes.providers.embedded.grammar import Allowed, build
from hermes.providers.embedded.line_protocol import VERBS, parse_line
from hermes.schema.messages import UserMessage
from hermes.schema.model import ModelRequest, ReplyFinished, TextDelta

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.xdist_group("local-model"),
]
PREFIX = (
    ChatTurn("system", "You count."),
    ChatTurn("user", "hi"),
    ChatTurn("assistant", "say hello"),
)
COUNT = "Count from 1 to 500, with one number per line."


def load(
    state: Path,
    *,
    idle_seconds: float = 60.0,
) -> engine_wire.Load:
    folder = need_nano()
    path = str(find(CATALOGUE["nano"], folder))
    return engine_wire.Load(
        path=path,
        state=f"{state}/nano.test",
        prefixes={"talk": PREFIX, "work": PREFIX},
        context=1024,
        idle_seconds=idle_seconds,
    )


@asynccontextmanager
async def running(
    command: engine_wire.Load, prepared: list[int] | None = None
) -> AsyncIterator[LocalEngine]:
    engine = LocalEngine(
        command,
        on_prepare=lambda done, _: (
            prepared.append(done) if prepared is not None else None
        ),
    )
    try:
        yield engine
    finally:
        await engine.close()


def prompt(
    text: str, *, slot: CacheSlot = "talk", grammar: str = "", tokens: int = 24
) -> Completion:
    return Completion(
        slot=slot,
        turns=(*PREFIX, ChatTurn("user", text)),
        prefix=PREFIX,
        grammar=grammar,
        max_tokens=tokens,
    )


async def text_of(
    engine: LocalEngine, text: str, *, grammar: str = "", tokens: int = 24
) -> str:
    reply = ""
    async for report in engine.complete(prompt(text, grammar=grammar, tokens=tokens)):
        reply += report.text if isinstance(report, CompletionText) else ""
    return reply


async def cached_tokens(engine: LocalEngine, asked: Completion) -> int:
    """How much of a prompt the engine had read before."""
    last = [report async for report in engine.complete(asked)][-1]
    assert isinstance(last, CompletionEnded)
    return last.cached_tokens


def states(folder: Path) -> list[Path]:
    return list(folder.glob("nano.test.talk-*.state"))


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[
            0
        ] not in {"Z", "X"}
    except FileNotFoundError:
        return False


def wait_until_gone(pid: int, seconds: float = 10.0) -> None:
    deadline = time.monotonic() + seconds
    while is_running(pid):
        assert time.monotonic() < deadline, "the child is still running"
        time.sleep(0.02)


async def test_the_prefix_is_computed_once_and_then_restored(tmp_path: Path) -> None:
    prepared: list[int] = []
    async with running(load(tmp_path), prepared) as engine:
        first = await text_of(engine, COUNT)
    assert prepared
    assert len(states(tmp_path)) == 1
    prepared.clear()
    async with running(load(tmp_path), prepared) as engine:
        second = await text_of(engine, COUNT)
        cached = await cached_tokens(engine, prompt(COUNT, tokens=1))
    assert not prepared
    assert second == first
    assert cached > 10


async def test_a_prefix_that_only_ends_differently_is_not_computed_from_its_beginning(
    tmp_path: Path,
) -> None:
    """As on the next day: the prompt for talk ends with the date."""
    rules = " ".join(f"Rule {number}: be brief." for number in range(50))
    reported: list[list[int]] = []
    for day in ("Monday", "Tuesday", "Tuesday"):
        turns = (ChatTurn("system", f"{rules}\nToday is {day}."),)
        dated = msgspec.structs.replace(load(tmp_path), prefixes={"talk": turns})
        reported.append([])
        async with running(dated, reported[-1]) as engine:
            await engine.warm()
        assert len(states(tmp_path)) == 1
    first, next_day, same_day = reported
    assert min(first) < max(first) // 2
    assert min(next_day) > max(next_day) * 0.9
    assert not same_day


async def test_slots_do_not_evict_one_another(tmp_path: Path) -> None:
    async with running(load(tmp_path)) as engine:
        await text_of(engine, COUNT, tokens=1)
        other = prompt("Say something else, please.", slot="work", tokens=1)
        await cached_tokens(engine, other)
        unrelated = Completion(
            slot="other", turns=(ChatTurn("user", "a title?"),), max_tokens=1
        )
        await cached_tokens(engine, unrelated)
        again = await cached_tokens(engine, prompt(COUNT, tokens=1))
        assert again > 20
        assert await cached_tokens(engine, other) > 20


async def test_a_damaged_state_is_computed_again(tmp_path: Path) -> None:
    async with running(load(tmp_path)) as engine:
        first = await text_of(engine, COUNT)
    (state,) = states(tmp_path)
    os.truncate(state, 1000)
    async with running(load(tmp_path)) as engine:
        assert await text_of(engine, COUNT) == first


async def test_the_real_engine_takes_our_grammar_and_obeys_it(tmp_path: Path) -> None:
    files = {
        "a b.py": SeenFile('x = "1"\n\tif a => b:\n'),
        'q"uote.md': SeenFile("é 漢字 \\n \x01"),
    }
    async with running(load(tmp_path)) as engine:
        for verbs in [*({verb} for verb in VERBS), set(VERBS)]:
            rules = build(Allowed(verbs=frozenset(verbs), files=files))
            line = await text_of(engine, COUNT, grammar=rules, tokens=40)
            word = line.partition(" ")[0]
            assert word in verbs
            if word == "replace" and " => " not in line:
                continue  # cut by the limit of tokens
            if word not in {"append", "write"} or ":\n" in line:
                action = parse_line(
                    line, {path: seen.text for path, seen in files.items()}
                )
                assert action.verb in verbs


async def seconds_to_stop(engine: LocalEngine, text: str, *, after: float) -> float:
    """Interrupts a generation and says how long that took."""
    stream = engine.complete(prompt(text, tokens=500))

    async def consume() -> None:
        async for _ in stream:
            pass

    task = asyncio.create_task(consume())
    await asyncio.sleep(after)
    started = time.monotonic()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await stream.aclose()
    return time.monotonic() - started


@pytest.mark.parametrize(
    "words", [10, 560], ids=["while it writes", "while it reads a long prompt"]
)
async def test_a_generation_stops_within_200_ms(tmp_path: Path, words: int) -> None:
    text = "Count to 500. " + "word " * words
    async with running(load(tmp_path)) as engine:
        times: list[float] = []
        while (
            len(times) < 3 and min(times, default=1.0) >= 0.2
        ):  # a busy machine may be late once
            await engine.warm()
            times.append(await seconds_to_stop(engine, text, after=0.1))
        assert min(times) < 0.2
        assert await text_of(engine, COUNT, tokens=4)


async def test_too_much_is_refused_and_the_engine_lives(tmp_path: Path) -> None:
    async with running(load(tmp_path)) as engine:
        with pytest.raises(ModelError) as error:
            await text_of(engine, "9 " * 4000)
        assert error.value.reason == "too_long"
        pid = engine.pid
        assert await text_of(engine, COUNT, tokens=4)
        assert engine.pid == pid


async def test_a_child_that_died_is_an_error_once_and_then_replaced(
    tmp_path: Path,
) -> None:
    async with running(load(tmp_path)) as engine:
        stream = engine.complete(prompt(COUNT, tokens=500))
        await anext(stream)
        assert engine.pid is not None
        os.kill(engine.pid, signal.SIGKILL)
        with pytest.raises(ModelError, match="killed by the system"):
            async for _ in stream:
                pass
        assert await text_of(engine, COUNT, tokens=4)


async def test_an_idle_child_goes_away_and_comes_back(tmp_path: Path) -> None:
    async with running(load(tmp_path, idle_seconds=0.3)) as engine:
        await engine.warm()
        pid = engine.pid
        assert pid is not None
        await asyncio.to_thread(wait_until_gone, pid)
        assert await text_of(engine, COUNT, tokens=4)
        assert engine.pid != pid


async def test_a_file_that_is_no_model_is_a_clear_error(tmp_path: Path) -> None:
    weights = find(CATALOGUE["nano"], need_nano())
    assert weights is not None
    broken = tmp_path / "broken.gguf"
    with weights.open("rb") as file:
        broken.write_bytes(file.read(4_000_000))  # the header is whole, the rest is not
    model = build_custom_model(broken, tmp_path)
    with pytest.raises(ModelError, match="can't be loaded"):
        await model.warm()
    await model.close()
    (tmp_path / "text.gguf").write_text("hello")
    with pytest.raises(ModelError, match="not a GGUF file"):
        build_custom_model(tmp_path / "text.gguf", tmp_path)


PARENT = """
import asyncio, sys
from pathlib import Path
from hermes.providers.embedded import engine_wire
from hermes.providers.embedded.completion import ChatTurn, Completion
from hermes.providers.embedded.engine import LocalEngine
async def main():
    engine = LocalEngine(engine_wire.Load(path=sys.argv[1], state=sys.argv[2], context=1024))
    turns = (ChatTurn("user", "Count from 1 to 500, with one number per line."),)
    async for _ in engine.complete(Completion(slot="other", turns=turns, max_tokens=900)):
        print(engine.pid, flush=True)
asyncio.run(main())
"""


@pytest.fixture
def parent(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    path = str(find(CATALOGUE["nano"], need_nano()))
    command = [sys.executable, "-c", PARENT, path, str(tmp_path / "nano.x")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


def test_the_child_dies_with_its_parent(parent: subprocess.Popen[str]) -> None:
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    assert is_running(child)
    parent.kill()
    wait_until_gone(child, 3.0)


async def ask(model: EmbeddedModel, text: str) -> ReplyFinished:
    messages = (UserMessage(text=text),)
    request = ModelRequest(
        system=("x" * 9000,),
        messages=messages,
        tools=WORKSHOP_SPECS,
        max_output_tokens=24,
    )
    streamed = ""
    async for event in model.stream(request):
        if isinstance(event, TextDelta):
            streamed += event.text
        if isinstance(event, ReplyFinished):
            assert event.message.text == streamed
            return event
    raise AssertionError("no end")


async def test_nano_talks(tmp_path: Path) -> None:
    model = build_model("nano", need_nano())
    try:
        message = (await ask(model, "Say hello to me.")).message
    finally:
        await model.close()
    assert message.text.strip()
    assert message.tool_calls == ()
    assert message.usage is not None
    assert message.usage.cost_usd == 0.0
    assert message.usage.output_tokens > 0


async def test_base_talks_about_what_only_looks_like_a_file() -> None:
    model = build_model("base", need_base())
    try:
        message = (await ask(model, "What is node.js?")).message
    finally:
        await model.close()
    assert message.tool_calls == ()
    assert "javascript" in message.text.lower()


async def test_base_chooses_a_tool() -> None:
    model = build_model("base", need_base())
    try:
        message = (await ask(model, "What does notes.txt contain?")).message
    finally:
        await model.close()
    (call,) = message.tool_calls
    assert (call.name, call.arguments) == ("read_file", '{"path":"notes.txt"}')


def test_importing_the_model_loads_nothing_heavy() -> None:
    code = "import sys, hermes.providers.embedded as e; print('xllamacpp' in sys.modules, e.DEFAULT)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", "base"]
