"""Kills processes that run cards at random moments, and checks what they leave: no card lost, none run twice at once, every
run ended.

The processes are `hermes kanban run` and `hermes gateway run`: one of them runs the cards, the other takes over. Now and
then a program that a worker has started is killed instead. Cards take long enough that most kills hit a running one.
"""

import asyncio
import contextlib
import itertools
import os
import random
import signal
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from hermes.app import build
from hermes.app.boards.board_service import Boards
from hermes.app.boards.card_draft import CardDraft
from hermes.app.boards.dispatcher import TICK_INTERVAL_S
from hermes.children.own_python import hermes_command
from hermes.events import Bus
from hermes.schema.boards import Board, Card, CardRun
from hermes.settings import Home, Settings
from hermes.store import open_store
from hermes.store.boards import BoardReader, BoardTransaction
from hermes.testing.model_server import ModelServer, Recorded
from hermes.testing.scripted_responses import ScriptedResponse, ServedCall

_STEP_S = 0.3
_STEPS = 4
_PROGRAM_TIMEOUT_S = 5.0  # for a worker to start a program
_COMPLETE = ScriptedResponse(
    calls=(ServedCall("kanban_complete", '{"summary": "done"}'),), delay=_STEP_S
)
_COMMAND = ScriptedResponse(
    calls=(ServedCall("terminal", '{"command": "sleep 0.4"}'),), delay=_STEP_S
)
_BYE = ScriptedResponse(text="Bye, and thanks for all the cards.", delay=0.1)
_CONFIG = """
boards:
  max_running: {at_once}
  retries: 100
  folder: {folder}
gateway:
  platforms: [api]
  port: 0
"""
_COMMANDS = (("kanban", "run"), ("gateway", "run"))
"""What runs cards."""


class KillReport(msgspec.Struct, frozen=True, kw_only=True):
    """What was left after the kills."""

    kills: int
    hits: int
    """Kills that hit a process, or a program, with a running card."""
    by_kind: dict[str, int]
    """How many kills hit which kind of process."""
    cards: int
    done: int
    lost: tuple[str, ...]
    """Cards that are not done, and what they are."""
    overlapping: tuple[str, ...]
    """Cards of which two runs were under way at once."""
    unended: int
    outcomes: dict[str, int]
    unblocked: int
    """Cards that were hit as often as the limit allows, were blocked with that reason, and then let on."""


def _respond(request: Recorded) -> ScriptedResponse:
    if b"The card is closed" in request.body:
        return _BYE
    done = request.body.count(b'"role":"tool"')
    return _COMPLETE if done >= _STEPS else _COMMAND


class KilledDispatchers:
    """A home whose processes are killed and started again."""

    def __init__(self, home: Path, server: ModelServer, seed: int) -> None:
        self._home = home
        self._random = random.Random(seed)
        self._processes: dict[tuple[str, str], asyncio.subprocess.Process] = {}
        self.killed: Counter[str] = Counter()
        self.hits = 0
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("HERMES_")},
            "HERMES_HOME": str(home),
            "OPENAI_BASE_URL": server.url,
            "OPENAI_API_KEY": "sk-test",
            "GATEWAY_API_KEY": "sk-gateway-0000000000000000",
        }  # fmt: skip

    async def start(self, *commands: tuple[str, str]) -> None:
        """Starts processes that can run cards."""
        for command in commands:
            self._processes[command] = await _start(command, self._environment)

    async def kill(self, boards: Boards) -> None:
        """Kills the process that runs cards, now and then the one that stands by or a program of a worker."""
        async with asyncio.timeout(60):
            while not self._working(boards):  # noqa: ASYNC110 - other processes work
                await asyncio.sleep(0.02)
        await asyncio.sleep(self._random.uniform(0.0, 2 * _STEPS * _STEP_S))
        working = self._working(boards)
        draw = self._random.random()
        if draw < 0.15 and working and await self._kill_program(working[0]):
            return
        chosen = list(self._processes) if draw > 0.85 else working
        command = self._random.choice(chosen or list(self._processes))
        self.hits += command in working
        self.killed[command[0]] += 1
        victim = self._processes.pop(command)
        with contextlib.suppress(ProcessLookupError):
            victim.send_signal(signal.SIGKILL)
        await victim.wait()
        await self.start(command)

    def _working(self, boards: Boards) -> list[tuple[str, str]]:
        """The processes that run a card whose session is begun."""
        runs = boards.read(lambda reader: reader.open_runs())
        owners = {run.owner for run in runs if run.session}
        return [
            command
            for command, process in self._processes.items()
            if any(f":{process.pid}:" in owner for owner in owners)
        ]

    async def _kill_program(self, command: tuple[str, str]) -> bool:
        """Kills a program that a worker has started. Returns whether there was one."""
        found: list[int] = []
        pid = self._processes[command].pid
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_PROGRAM_TIMEOUT_S):
                while not (found := await asyncio.to_thread(_descendants, pid)):  # noqa: ASYNC110
                    await asyncio.sleep(0.02)
        if not found:
            return False
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._random.choice(found), signal.SIGKILL)
        self.killed["program"] += 1
        self.hits += 1
        return True

    async def stop(self) -> None:
        """Ends all processes."""
        for one in self._processes.values():
            with contextlib.suppress(ProcessLookupError):
                one.kill()
            await one.wait()


def _descendants(pid: int) -> list[int]:
    """The processes below a process."""
    found, waiting = list[int](), [pid]
    while waiting:
        with contextlib.suppress(OSError):
            parent = waiting.pop()
            for task in Path(f"/proc/{parent}/task").iterdir():
                children = [int(one) for one in (task / "children").read_text().split()]
                found += children
                waiting += children
    return found


async def _start(
    command: tuple[str, str], environment: Mapping[str, str]
) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *hermes_command(*command),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        env=dict(environment),
        cwd="/",
        start_new_session=True,
    )


@asynccontextmanager
async def killed_dispatchers(
    folder: Path, *, at_once: int, seed: int
) -> AsyncIterator[KilledDispatchers]:
    """A home with processes that are killed; they end with the context."""
    home = folder / "home"
    home.mkdir(mode=0o700, parents=True)
    config = _CONFIG.format(at_once=at_once, folder=folder / "scratch")
    (home / "config.yaml").write_text(config)
    async with ModelServer(respond=_respond) as server:
        made = KilledDispatchers(home, server, seed)
        try:
            yield made
        finally:
            await made.stop()


async def run_kills(
    folder: Path, *, kills: int, cards: int, seed: int = 18, timeout_s: float = 100.0
) -> KillReport:
    """Makes cards, kills what runs them, then lets the rest finish. New cards come while it lasts. `timeout_s` is for one
    card of the rest: a busy machine may need long for all of them."""
    async with killed_dispatchers(folder, at_once=5, seed=seed) as dispatchers:
        with build(Settings(), Home(folder / "home"), bus=Bus()) as app:
            boards = Boards(app)
            waves = max(1, cards // (kills + 1))  # so that there is work at each kill
            left = cards

            def make(number: int) -> None:
                for _ in range(number):
                    boards.create("", CardDraft(title="work"))

            make(waves)
            left -= waves
            await dispatchers.start(*_COMMANDS)
            for number in range(kills):
                await dispatchers.kill(boards)
                batch = left if number == kills - 1 else min(left, waves)
                make(batch)
                left -= batch
            unblocked = await _wait_for_the_rest(boards, timeout_s)
            report = boards.read(lambda reader: _report(reader, kills, dispatchers))
            return msgspec.structs.replace(report, unblocked=unblocked)


async def _wait_for_the_rest(boards: Boards, timeout_s: float) -> int:
    """Lets on what the kills have blocked, as a person would, and waits. Returns how many cards those were."""
    await asyncio.sleep(1.5 * TICK_INTERVAL_S)  # the last kill may block some
    blocked = boards.read(lambda reader: reader.cards(statuses=("blocked",)))
    for card in blocked:
        boards.unblock(card.id)
    while left := boards.read(_unfinished):
        async with asyncio.timeout(timeout_s):
            while boards.read(_unfinished) == left:  # noqa: ASYNC110 - other processes work
                await asyncio.sleep(0.1)
    return len(blocked)


def _unfinished(reader: BoardReader) -> int:
    return len(reader.cards(statuses=("ready", "running", "todo")))


def _report(
    reader: BoardReader, kills: int, dispatchers: KilledDispatchers
) -> KillReport:
    cards = reader.cards()
    runs = {card.id: reader.runs(card.id, 1_000)[::-1] for card in cards}
    return KillReport(
        kills=kills,
        hits=dispatchers.hits,
        by_kind=dict(dispatchers.killed),
        cards=len(cards),
        done=sum(card.status == "done" for card in cards),
        lost=tuple(f"{card.id}: {card.status} {card.block_reason}" for card in cards if card.status != "done"),
        overlapping=tuple(name for name, own in runs.items() if _overlap(own)),
        unended=len(reader.open_runs()),
        outcomes=dict(reader.outcomes(0.0)),
        unblocked=0,
    )  # fmt: skip


def _overlap(runs: list[CardRun]) -> bool:
    pairs = itertools.pairwise(runs)
    return any(not first.ended or first.ended > second.started for first, second in pairs)  # fmt: skip


def fill(path: Path, *, cards: int) -> None:
    """Makes a database with so many cards: most are ready, some wait for another."""
    with open_store(path) as store:

        def write(tx: BoardTransaction) -> None:
            tx.put_board(Board(slug="default", name="Default", created=1.0))
            for number in range(cards):
                waits = number % 10 == 9
                card = Card(
                    id=f"t_{number:010d}",
                    board="default",
                    title=f"card number {number}",
                    created=float(number),
                    priority=number % 7,
                    status="todo" if waits else "ready",
                )
                tx.insert(card)
                if waits:
                    tx.link(f"t_{number - 1:010d}", card.id)

        store.boards.change(write)
