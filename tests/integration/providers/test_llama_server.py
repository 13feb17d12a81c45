"""The HTTP server of llama.cpp itself, with the smallest model, behind the adapter for servers of one's own."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.providers.local_models import need_nano

from hermes.errors import ModelError
from hermes.providers.catalogue import UNKNOWN
from hermes.providers.chat_completions import ChatCompletions
from hermes.providers.credentials import ApiKey
from hermes.providers.embedded import CATALOGUE, find
from hermes.providers.embedded.adapter_choice import AdapterMemory, AdapterRecord
from hermes.providers.embedded.completion import (
    ChatTurn,
    Completion,
    CompletionEnded,
    CompletionText,
)
from hermes.providers.embedded.server_engine import ServerEngine
from hermes.providers.endpoint import ModelEndpoint
from hermes.providers.http_client import Http, HttpTimeouts
from hermes.providers.local_server_adapter import LocalServerAdapter
from hermes.providers.provider_table import family
from hermes.providers.server_facts import read_server_facts
from hermes.schema.messages import UserMessage
from hermes.schema.model import ModelRequest, ReplyFinished
from hermes.schema.tool_spec import ToolSpec

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.xdist_group("local-model"),
]
CONTEXT_TOKENS = 1024
KEY = "test-key-of-this-server"
SERVER = """
import os, sys
os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
import xllamacpp
params = xllamacpp.CommonParams()
params.model.path, params.n_ctx, params.api_keys = sys.argv[1], int(sys.argv[2]), [sys.argv[3]]
params.n_parallel, params.port, params.hostnames = 1, 0, ["127.0.0.1"]
params.warmup, params.fit_params, params.ui, params.verbosity = False, False, False, 0
server = xllamacpp.Server(params)
print("at", server.listening_address, flush=True)
sys.stdin.read()
"""
LONG = ToolSpec(name="read_file", description="x" * 9_000, parameters={})


@pytest.fixture(scope="module")
def base_url() -> Iterator[str]:
    """The address of a real server with nano, which ends with the tests."""
    path = find(CATALOGUE["nano"], need_nano())
    command = [sys.executable, "-c", SERVER, str(path), str(CONTEXT_TOKENS), KEY]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True) as process:  # fmt: skip
        assert process.stdout is not None
        lines = (line for line in process.stdout if line.startswith("at "))
        yield next(lines).split()[1].rstrip("/") + "/v1"
        process.kill()


def server_adapter(base_url: str, memory: Path) -> LocalServerAdapter:
    quirks = family("llamacpp")
    assert quirks is not None
    endpoint = ModelEndpoint(
        provider="llamacpp", base_url=base_url, model="nano", quirks=quirks, facts=UNKNOWN,
    )  # fmt: skip
    timeouts = HttpTimeouts(connect=10, first_byte=120, idle=120, total=200)
    return LocalServerAdapter(
        Http(), endpoint, ChatCompletions(), timeouts, AdapterMemory(memory)
    )


async def test_the_real_server_says_its_context_and_the_models_size(
    base_url: str,
) -> None:
    http = Http()
    facts = await read_server_facts(
        http, base_url, "nano", headers={"authorization": f"Bearer {KEY}"}
    )
    await http.aclose()
    assert facts is not None
    assert (facts.kind, facts.context_tokens) == ("llamacpp", CONTEXT_TOKENS)
    assert facts.parameters == 134_515_008
    assert facts.has_tools is False


async def test_a_real_context_that_is_too_small_is_said(
    base_url: str, tmp_path: Path
) -> None:
    model = server_adapter(base_url, tmp_path)
    memory = AdapterMemory(tmp_path)
    memory.put(f"{base_url}|nano", AdapterRecord(adapter="native"))
    request = ModelRequest(
        system=("Hi.",), messages=(UserMessage(text="hi"),), tools=(LONG,)
    )
    with pytest.raises(ModelError, match=r"llama.cpp gives nano a context of 1,024"):
        async for _ in model.stream(request, credential=ApiKey(KEY)):
            pass
    await model.close()


async def test_a_grammar_binds_the_reply_of_the_real_server(base_url: str) -> None:
    model = server_adapter(base_url, Path("/nonexistent"))
    timeouts = model.deadlines
    engine = ServerEngine(
        lambda request, codec: model.prompt_stream(
            request, codec, ApiKey(KEY), timeouts
        ),
        obeys_grammar=True,
    )
    prompt = Completion(
        slot="work",
        turns=(ChatTurn("system", "Be short."), ChatTurn("user", "Read a file.")),
        grammar='root ::= "read " ("a" | "b") ".txt"',
        max_tokens=20,
    )
    async with asyncio.timeout(200):
        parts = [part async for part in engine.complete(prompt)]
    text = "".join(part.text for part in parts if isinstance(part, CompletionText))
    assert text in {"read a.txt", "read b.txt"}
    assert isinstance(parts[-1], CompletionEnded)
    assert parts[-1].finish == "stop"
    await model.close()


async def test_a_small_model_behind_the_real_server_answers(
    base_url: str, tmp_path: Path
) -> None:
    model = server_adapter(base_url, tmp_path)
    AdapterMemory(tmp_path).put(f"{base_url}|nano", AdapterRecord(adapter="chat"))
    request = ModelRequest(
        system=("Be short.",),
        messages=(UserMessage(text="Say hello."),),
        tools=(ToolSpec(name="read_file", description="Reads.", parameters={}),),
        max_output_tokens=24,
    )
    events = [event async for event in model.stream(request, credential=ApiKey(KEY))]
    last = events[-1]
    assert isinstance(last, ReplyFinished)
    assert last.message.text
    assert (last.message.provider, last.message.model) == ("llamacpp", "nano")
    await model.close()
