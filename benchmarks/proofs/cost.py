"""What an answer costs: the bytes of the first request for "hi", and the requests and tokens of small programming tasks.

The model is scripted: it writes the solution, runs the exercise's test and answers. So these are the costs of Hermes itself,
without those of a model's detours. The test decides whether a task is solved.
"""

import asyncio
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec

from benchmarks.proofs.figures import Figure, share
from benchmarks.proofs.peers import run_peers
from hermes.testing.installed import InstalledHermes
from hermes.testing.model_server import ModelServer
from hermes.testing.scripted_responses import ScriptedResponse, ServedCall

FIRST_REQUEST_BAR_BYTES = 12_000
_BYTES_PER_TOKEN = 4  # about, for English and JSON


class Exercise(msgspec.Struct, frozen=True):
    """A small programming task: a solution, and a statement that fails unless it is right."""

    name: str
    solution: str
    test: str


EXERCISES = (
    Exercise(
        "leap",
        "def leap(y):\n    return y % 4 == 0 and (y % 100 != 0 or y % 400 == 0)\n",
        "assert [leap(y) for y in (1900, 2000, 2023, 2024)] == [False, True, False, True]",
    ),
    Exercise(
        "raindrops",
        "def raindrops(n):\n    sounds = ((3, 'Pling'), (5, 'Plang'), (7, 'Plong'))\n"
        "    return ''.join(s for d, s in sounds if n % d == 0) or str(n)\n",
        "assert [raindrops(n) for n in (1, 15, 28)] == ['1', 'PlingPlang', 'Plong']",
    ),
    Exercise(
        "roman",
        "def roman(n):\n    out = ''\n    for value, sign in ((10, 'X'), (9, 'IX'), (5, 'V'), (4, 'IV'), (1, 'I')):\n"
        "        out += sign * (n // value)\n        n %= value\n    return out\n",
        "assert [roman(n) for n in (4, 9, 27)] == ['IV', 'IX', 'XXVII']",
    ),
)


class TaskCost(msgspec.Struct, frozen=True):
    """What one task took."""

    is_solved: bool
    requests: int
    request_bytes: int


def run_cost() -> list[Figure]:
    """Measures with the installed program."""
    first = asyncio.run(_first_request_bytes())
    costs = [_task(one) for one in EXERCISES]
    solved = [one for one in costs if one.is_solved]
    requests = sum(one.requests for one in costs) / max(1, len(solved))
    sent = sum(one.request_bytes for one in costs) / max(1, len(solved))
    return [
        Figure(
            name=f'Bytes of the first request for "hi" (bar {FIRST_REQUEST_BAR_BYTES:,})',
            value=f"{first:,}",
            cases=1,
            met=first <= FIRST_REQUEST_BAR_BYTES,
        ),
        Figure(
            name="Small programming tasks solved with a scripted model",
            value=share(len(solved), len(costs)),
            cases=len(costs),
            met=len(solved) == len(costs),
        ),
        Figure(
            name="Requests per solved task (write, test, answer)",
            value=f"{requests:.1f}",
            cases=len(costs),
        ),
        Figure(
            name=f"Tokens sent per solved task, at {_BYTES_PER_TOKEN} bytes each",
            value=f"{sent / _BYTES_PER_TOKEN:,.0f}",
            cases=len(costs),
        ),
        *run_peers(),
    ]


async def _first_request_bytes() -> int:
    with tempfile.TemporaryDirectory(prefix="hermes-proofs-") as folder:
        async with ModelServer("Hello!", repeat=True) as server:
            done = await InstalledHermes(Path(folder), server.url).run("-z", "hi")
            if done.code:
                raise RuntimeError(f"hermes failed: {done.err[-400:]}")
            return len(_bodies(server)[0])


def _bodies(server: ModelServer) -> list[bytes]:
    """What was sent to the model, without requests that only list the models."""
    return [one.body for one in server.requests if one.method == "POST"]


def _task(exercise: Exercise) -> TaskCost:
    """Lets Hermes solve one task in a folder of its own, then runs the test again."""
    name = f"{exercise.name}.py"
    test = f"from {exercise.name} import *\n{exercise.test}\nprint('passed')\n"
    with tempfile.TemporaryDirectory(
        prefix="hermes-proofs-", dir=Path.home()
    ) as folder:
        work = Path(folder) / "work"
        work.mkdir()
        (work / f"test_{name}").write_text(test)
        bodies = asyncio.run(_solve(Path(folder), name, exercise.solution))
        check = [sys.executable, f"test_{name}"]
        passed = subprocess.run(
            check, cwd=work, check=False, capture_output=True, timeout=60
        )
    was_told = b"passed" in bodies[-1]  # the model read that the test passes
    is_solved = was_told and passed.returncode == 0
    return TaskCost(is_solved, len(bodies), sum(map(len, bodies)))


async def _solve(folder: Path, name: str, solution: str) -> list[bytes]:
    """Returns what was sent to the model."""
    written = msgspec.json.encode({"path": name, "content": solution})
    command = msgspec.json.encode({"command": f"python3 test_{name}"})
    replies = (
        ScriptedResponse(calls=(ServedCall("write_file", written.decode()),)),
        ScriptedResponse(calls=(ServedCall("terminal", command.decode()),)),
        ScriptedResponse(text="It is done, and the test agrees."),
    )
    async with ModelServer(*replies) as server:
        hermes = InstalledHermes(folder, server.url)
        prompt = f"Write {name} so that test_{name} is satisfied."
        done = await hermes.run("-z", prompt, "--approvals", "auto-edit")
        if done.code:
            raise RuntimeError(f"hermes failed: {done.err[-400:]}")
        return _bodies(server)
