"""What other agents on this machine send for "hi": each that is on PATH is run once, in a home of its own, with the same
scripted model. One that is not installed is left out; one that fails is named with the reason.
"""

import asyncio
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from benchmarks.proofs.figures import Figure
from hermes.testing.model_server import ModelServer

_TIMEOUT_S = 60.0
_MODEL = "fake-1"
_KEY = "sk-test-0000000000000000"


class PeerRun(msgspec.Struct, frozen=True):
    """How to ask a peer one question: its arguments, and variables."""

    arguments: tuple[str, ...]
    variables: Mapping[str, str]


def _codex(home: Path, url: str) -> PeerRun:
    folder = home / ".codex"
    folder.mkdir()
    (folder / "config.toml").write_text(
        f'model = "{_MODEL}"\nmodel_provider = "fake"\n'
        f'[model_providers.fake]\nname = "fake"\nbase_url = "{url}"\nwire_api = "responses"\nenv_key = "FAKE_KEY"\n'
    )
    arguments = ("exec", "--skip-git-repo-check", "hi")
    return PeerRun(arguments, {"CODEX_HOME": str(folder), "FAKE_KEY": _KEY})


def _pi(home: Path, url: str) -> PeerRun:
    folder = home / ".pi" / "agent"
    folder.mkdir(parents=True)
    model = {"id": _MODEL, "contextWindow": 200_000, "maxTokens": 8_000}
    provider = {
        "baseUrl": url,
        "api": "openai-completions",
        "apiKey": _KEY,
        "models": [model],
    }
    known = msgspec.json.encode({"providers": {"fake": provider}})
    (folder / "models.json").write_bytes(known)
    arguments = ("-p", "--offline", "--provider", "fake", "--model", _MODEL, "hi")
    return PeerRun(arguments, {"PI_OFFLINE": "1", "PI_SKIP_VERSION_CHECK": "1"})


def _opencode(home: Path, url: str) -> PeerRun:
    folder = home / ".config" / "opencode"
    folder.mkdir(parents=True)
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": url, "apiKey": _KEY},
        "models": {_MODEL: {}},
    }
    settings = {"autoupdate": False, "provider": {"fake": provider}}
    (folder / "opencode.json").write_bytes(msgspec.json.encode(settings))
    arguments = ("run", "--model", f"fake/{_MODEL}", "hi")
    return PeerRun(arguments, {"OPENCODE_DISABLE_AUTOUPDATE": "1"})


PEERS: dict[str, Callable[[Path, str], PeerRun]] = {
    "codex": _codex,
    "opencode": _opencode,
    "pi": _pi,
}


def run_peers() -> list[Figure]:
    """Measures every peer that is on PATH."""
    found = {name: program for name in PEERS if (program := shutil.which(name))}
    return [asyncio.run(_measured(name, program)) for name, program in found.items()]


async def _measured(name: str, program: str) -> Figure:
    with tempfile.TemporaryDirectory(prefix="hermes-proofs-") as folder:
        async with ModelServer("Hello!", repeat=True) as server:
            home = Path(folder)
            said = await _run(program, PEERS[name](home, server.url), home)
            sent = [len(one.body) for one in server.requests if one.method == "POST"]
    value = f"{max(sent):,}" if sent else f"not measured: {said}"
    return Figure(
        name=f'The same for {name}, which is installed here: the largest request for "hi"',
        value=value,
        cases=len(sent),
    )


async def _run(program: str, run: PeerRun, home: Path) -> str:
    """Runs a peer to its end. Returns the end of what it printed."""
    work = home / "work"
    work.mkdir()
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    process = await asyncio.create_subprocess_exec(
        program,
        *run.arguments,
        cwd=work,
        env={**kept, "HOME": str(home), **run.variables},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        out, _ = await asyncio.wait_for(process.communicate(), _TIMEOUT_S)
    except TimeoutError:
        process.kill()
        await process.communicate()
        return f"no end within {_TIMEOUT_S:.0f} s"
    return " ".join(out.decode(errors="replace").split())[-200:]
