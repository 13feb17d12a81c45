"""What a person sees when the model service misbehaves: words on stderr, an exit code, and nothing run by accident."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hermes.testing.installed import FinishedRun, InstalledHermes
from hermes.testing.model_server import ModelServer
from hermes.testing.scripted_responses import ScriptedResponse, ServedCall, ServerFault

MARK = ServedCall(name="terminal", arguments='{"command": "echo ran >> marks.txt"}')
QUICK = {"HERMES_MODEL_MAX_ATTEMPTS": "2", "HERMES_MODEL_MAX_RETRY_WAIT": "2"}


async def ask(folder: Path, server: ModelServer, **environ: str) -> FinishedRun:
    hermes = InstalledHermes(folder, server.url)
    return await hermes.run("-z", "do it", "--approvals", "full", **QUICK, **environ)


def marks(folder: Path) -> int:
    file = folder / "work" / "marks.txt"
    return len(file.read_text().split()) if file.exists() else 0


# One of each kind; every fault is in tests/integration/test_provider_conformance.py.
@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (ServerFault(status=401, message="bad key"), "bad key"),
        (ServerFault(status=500, message="it broke"), "it broke"),
        (ServerFault(html=True), "HTML"),
        (ServerFault(cut_after=300), ""),
    ],
    ids=lambda value: (
        str(value.status or "stream") if isinstance(value, ServerFault) else ""
    ),
)
async def test_a_service_that_fails_for_good_ends_with_1_and_its_own_words(
    tmp_path: Path, fault: ServerFault, words: str
) -> None:
    async with ModelServer(
        ScriptedResponse(text="a long enough answer to be cut", fault=fault),
        repeat=True,
    ) as server:
        done = await ask(tmp_path, server)
    assert (done.code, done.out) == (1, "")
    assert words in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    "fault",
    [
        ServerFault(status=429, retry_after="1"),
        ServerFault(cut_after=250),
        ServerFault(malformed=True),
    ],
    ids=lambda fault: str(fault.status or "stream"),
)
async def test_a_service_that_fails_once_is_asked_again_and_partial_words_are_not_glued(
    tmp_path: Path, fault: ServerFault
) -> None:
    async with ModelServer(
        ScriptedResponse(text="half an answer, and more", fault=fault),
        "the whole answer",
    ) as server:
        done = await ask(tmp_path, server)
    assert (done.code, done.out) == (0, "the whole answer\n"), done.err


async def test_a_service_that_never_begins_to_answer_is_given_up(
    tmp_path: Path,
) -> None:
    async with ModelServer(
        ScriptedResponse(text="x", fault=ServerFault(hang="head")), repeat=True
    ) as server:
        done = await ask(tmp_path, server, HERMES_MODEL_FIRST_BYTE_TIMEOUT="0.5")
    assert done.code == 1
    assert "0.5" in done.err or "did not" in done.err or "no answer" in done.err.lower()


async def test_a_call_whose_stream_was_cut_is_never_run(tmp_path: Path) -> None:
    cut = ScriptedResponse(calls=(MARK,), fault=ServerFault(cut_after=600))
    async with ModelServer(cut, "nothing was run") as server:
        done = await ask(tmp_path, server)
    assert (done.code, done.out, marks(tmp_path)) == (0, "nothing was run\n", 0)


@pytest.mark.parametrize(
    ("call", "finish"),
    [
        (
            ServedCall(
                name="terminal", arguments='{"command": "echo ran >> marks.txt"'
            ),
            "stop",
        ),
        (
            ServedCall(
                name="terminal", arguments='{"comand": "echo ran >> marks.txt"}'
            ),
            "stop",
        ),
        (
            ServedCall(name="shell", arguments='{"command": "echo ran >> marks.txt"}'),
            "stop",
        ),
        (MARK, "length"),
    ],
    ids=["broken JSON", "wrong name", "no such tool", "cut off by the limit"],
)
async def test_a_call_that_is_not_right_is_never_run_and_the_model_is_told(
    tmp_path: Path, call: ServedCall, finish: str
) -> None:
    bad = ScriptedResponse(
        calls=(call,), finish="length" if finish == "length" else "stop"
    )
    async with ModelServer(bad, "I see") as server:
        done = await ask(tmp_path, server)
        told = server.posts[-1].body.decode()
    assert (done.code, done.out, marks(tmp_path)) == (0, "I see\n", 0)
    assert "Not run" in told


async def test_sixty_calls_in_one_reply_all_run_once(tmp_path: Path) -> None:
    calls = tuple(
        ServedCall(name="terminal", arguments=f'{{"command": "echo {n} >> marks.txt"}}')
        for n in range(60)
    )
    async with ModelServer(ScriptedResponse(calls=calls), "sixty") as server:
        done = await ask(tmp_path, server)
    assert (done.code, done.out) == (0, "sixty\n")
    assert (tmp_path / "work" / "marks.txt").read_text().split() == [
        str(n) for n in range(60)
    ]


async def test_the_same_call_forever_is_stopped_within_ten(tmp_path: Path) -> None:
    async with ModelServer(ScriptedResponse(calls=(MARK,)), repeat=True) as server:
        done = await ask(tmp_path, server)
    assert done.code == 1
    assert "same call" in done.err
    assert marks(tmp_path) < 10


@pytest.mark.parametrize(
    "reply",
    [ScriptedResponse(), ScriptedResponse(reasoning="only thinking")],
    ids=["empty", "thinking"],
)
async def test_an_empty_answer_is_a_failure_not_a_success(
    tmp_path: Path, reply: ScriptedResponse
) -> None:
    async with ModelServer(reply, repeat=True) as server:
        done = await ask(tmp_path, server)
    assert (done.code, done.out) == (1, "")
    assert "3 times" in done.err


async def test_an_answer_cut_off_by_the_limit_is_continued(tmp_path: Path) -> None:
    async with ModelServer(
        ScriptedResponse(text="one two", finish="length"), "three."
    ) as server:
        done = await ask(tmp_path, server)
    assert done.code == 0
    assert "three." in done.out


@pytest.fixture
def own_mounts() -> list[str]:
    """A command that runs another with file systems of its own."""
    command = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-rm"]
    if subprocess.run([*command, "true"], check=False, capture_output=True).returncode:
        assert not os.environ.get("CI"), "unshare is missing"
        pytest.skip("this machine does not let us mount a small file system")
    return command


async def test_a_disk_that_fills_up_in_the_middle_of_a_turn_is_loud(
    tmp_path: Path, own_mounts: list[str]
) -> None:
    """On a real file system of 2 MB that the first tool fills."""
    command = "head -c 9000000 /dev/zero > ../home/fill; true"
    fill = ServedCall(
        name="terminal", arguments=f'{{"command": "{command}", "reach": "machine"}}'
    )
    hermes_home = tmp_path / "home"
    hermes_home.mkdir(mode=0o700)
    replies = [
        ScriptedResponse(calls=(fill,)),
        *[ScriptedResponse(text="x" * 200_000)] * 3,
    ]
    async with ModelServer(*replies, repeat=True) as server:
        hermes = InstalledHermes(tmp_path, server.url)
        script = 'mount -t tmpfs -o size=2m,mode=700 tmpfs "$1" && shift && exec "$@"'
        command = str(Path(sys.executable).with_name("hermes"))
        argv = [
            *own_mounts,
            "sh",
            "-c",
            script,
            "sh",
            str(hermes_home),
            command,
            "-z",
            "fill",
            "--approvals",
            "full",
        ]
        process = await asyncio.create_subprocess_exec(
            *argv,
            env=hermes.environ(),
            cwd=hermes.work,
            stdin=subprocess.DEVNULL,
            stdout=-1,
            stderr=-1,
        )
        out, err = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == 1, (out, err)
    assert b"not saved" in err.lower()
