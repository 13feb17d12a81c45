"""Destructive commands, really run by the terminal tool in its sandbox, against decoys outside the workspace.

All of it happens inside an outer bubblewrap root made for it: the machine's files are read-only there, and only a throwaway
folder can be written. Each command also runs without Hermes' sandbox inside that root, as a control: a command that
destroys nothing then proves nothing. The commands are those of the sandbox's tests and, if it is there, of the corpus beside
the project.
"""

import asyncio
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec
from tests.integration.sandbox.machine import Machine, fetch_bubblewrap, make_sandbox
from tests.integration.sandbox.test_oracles import DESTRUCTIVE, filled

from benchmarks.local.case_set import evenly_spaced
from benchmarks.proofs.figures import Figure
from hermes.schema.events import Reach
from hermes.tools.process.resource_limits import ResourceLimits

ROOT = Path(__file__).resolve().parents[2]
CORPUS = ROOT.parent / "shared" / "safety" / "dangerous_dev.json"
_TIMEOUT_S = 600.0
_COMMAND_TIMEOUT_S = 20


class CorpusItem(msgspec.Struct, frozen=True):
    """A dangerous command, with the form of it that was really tried; `@V@` is the folder it destroys."""

    id: str
    oracle: str | None = None
    oracle_result: str = ""


class Corpus(msgspec.Struct, frozen=True):
    """A file of dangerous commands."""

    items: list[CorpusItem]


class Destruction(msgspec.Struct, frozen=True):
    """What commands destroyed."""

    commands: int
    destroyed: list[str]
    """Those that changed something outside the workspace, or ended a process there."""
    control: int
    """How many of them do that without the sandbox."""


def commands() -> dict[str, str]:
    """Every destructive command, by name; `{out}` is the folder of the decoys."""
    found = dict(DESTRUCTIVE)
    if CORPUS.is_file():
        corpus = msgspec.json.decode(CORPUS.read_bytes(), type=Corpus)
        for one in corpus.items:
            if one.oracle and one.oracle_result == "confirmed":
                text = one.oracle.replace("{", "{{").replace("}", "}}")
                found[one.id] = text.replace("@V@", "{out}/home/projects")
    return found


def run_destruction(count: int) -> list[Figure]:
    """Runs that many commands, or all for 0, in an outer root. Raises if there is no bubblewrap: nothing is tried without."""
    program = fetch_bubblewrap()
    if program is None:
        raise RuntimeError("there is no bubblewrap to hold the destructive commands")
    cache = Path.home() / ".cache" / "hermes"
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="proofs-", dir=cache) as folder:
        outer = [
            *(str(program), "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"),
            *("--tmpfs", "/tmp", "--bind", folder, folder, "--chdir", str(ROOT)),  # noqa: S108 - the root's own
            *("--unshare-pid", "--unshare-net", "--unshare-ipc", "--die-with-parent"),
            *("--cap-add", "ALL", "--setenv", "PYTHONDONTWRITEBYTECODE", "1"),
        ]
        child = [sys.executable, "-m", "benchmarks.proofs.destruction"]
        done = subprocess.run(
            [*outer, *child, folder, str(count)],
            capture_output=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    if done.returncode:
        raise RuntimeError(f"the commands were not run: {done.stderr.decode()[-800:]}")
    return _figures(msgspec.json.decode(done.stdout, type=Destruction))


def _figures(found: Destruction) -> list[Figure]:
    for name in found.destroyed:
        print(f"  destroyed something: {name}", file=sys.stderr)
    return [
        Figure(
            name="Destructive commands that changed or ended something outside the workspace",
            value=str(len(found.destroyed)),
            cases=found.commands,
            met=not found.destroyed,
        ),
        Figure(
            name="Control: the same commands without the sandbox",
            value=str(found.control),
            cases=found.commands,
        ),
    ]


async def _run_all(folder: Path, count: int) -> Destruction:
    chosen = evenly_spaced(list(commands().items()), count)
    destroyed: list[str] = []
    control = 0
    for number, (name, command) in enumerate(chosen):
        if await _harms(folder / f"{number}-held", command, "workspace"):
            destroyed.append(name)
        control += await _harms(folder / f"{number}-free", command, "machine")
    return Destruction(len(chosen), destroyed, control)


async def _harms(folder: Path, command: str, reach: Reach) -> bool:
    """Whether a command did harm outside the workspace of a new throwaway machine in this folder."""
    limits = ResourceLimits(processes=200, temporary=8 * 1024**2, free=1024**2)
    machine = Machine(folder, make_sandbox("bubblewrap", fetch_bubblewrap()), limits)
    try:
        if reach == "workspace":
            await machine.prove()
        text = filled(command, machine)
        await machine.run(text, reach, timeout=_COMMAND_TIMEOUT_S)
        return (
            machine.fingerprint() != machine.before
            or machine.process.poll() is not None
            or bool(machine.listener.hear())
        )
    finally:
        await machine.close()


if __name__ == "__main__":
    result = asyncio.run(_run_all(Path(sys.argv[1]), int(sys.argv[2])))
    sys.stdout.buffer.write(msgspec.json.encode(result))
