"""What is lost: acknowledged rows of the log when writers are killed, spending caps when many ask at once, and cards when the
processes that run them are killed and started again. Uses the machinery of the tests, with other numbers.
"""

import asyncio
import sys
import tempfile
import time
from pathlib import Path

from tests.fakes.board_kills import run_kills
from tests.integration.test_store_durability import Killer, program

from benchmarks.proofs.figures import Figure
from hermes.app import App, build
from hermes.app.agent import Agent
from hermes.events import Bus
from hermes.schema.events import SessionCreated
from hermes.schema.messages import UserMessage
from hermes.settings import Home, Secrets, Settings
from hermes.settings.models import BudgetSettings
from hermes.store import open_store
from hermes.testing.model_server import ModelServer
from hermes.testing.scripted_responses import ScriptedResponse

CAP_TOKENS = 12_000
_CALL = ScriptedResponse(text="ok", input_tokens=3_000, output_tokens=10)
_RACERS = 4
_SESSIONS = ("a", "b", "c", "shared")
_IDLE_TIMEOUT_S = 60.0


def run_kills_of_writers(kills: int) -> list[Figure]:
    """Kills three writers of one log at random moments, each followed by a new one that opens the same log."""
    with tempfile.TemporaryDirectory(prefix="hermes-proofs-") as folder:
        path = Path(folder) / "state.db"
        with program("fork-writers", path) as process:
            killer = Killer(process, seed=int(time.time()), kills=kills)
            killer.run()
        lost, wrong, events = _examined(path, killer)
    return [
        Figure(
            name=f"Acknowledged messages lost ({len(killer.acknowledged):,} acknowledged)",
            value=str(lost),
            cases=killer.kills,
            met=lost == 0 and bool(killer.acknowledged),
        ),
        Figure(
            name=f"Events missing from their sequence or written twice after the restarts ({events:,} events)",
            value=str(wrong),
            cases=killer.kills,
            met=wrong == 0,
        ),
    ]


def _examined(path: Path, killer: Killer) -> tuple[int, int, int]:
    """Counts acknowledged rows that are not there, rows that are out of place or doubled, and all rows."""
    found: dict[tuple[str, int], str] = {}
    wrong = events = 0
    with open_store(path) as store:
        for session in _SESSIONS:
            rows = list(store.log.every_event(session))
            events += len(rows)
            wrong += sum(row.seq != place for place, row in enumerate(rows, 1))
            texts = {
                (session, row.seq): row.event.text
                for row in rows
                if isinstance(row.event, UserMessage)
            }
            wrong += len(texts) - len(set(texts.values()))
            found |= texts
        wrong += len(store.check().problems)
    lost = sum(found.get((one[0], one[1])) != one[2] for one in killer.acknowledged)
    return lost, wrong, events


def run_cap_races(races: int) -> list[Figure]:
    """Several apps of this process, with one home, ask at the same moment; a daily cap has no room for all their calls."""
    used = [asyncio.run(_race()) for _ in range(races)]
    passed = sum(tokens > CAP_TOKENS for tokens in used)
    return [
        Figure(
            name=f"Daily caps passed by {_RACERS} that ask at once (cap {CAP_TOKENS:,} tokens, most used {max(used):,})",
            value=str(passed),
            cases=races,
            met=passed == 0 and max(used) > 0,
        )
    ]


async def _race() -> int:
    """One race. Returns the tokens that were used."""
    settings = Settings(budget=BudgetSettings(per_day=f"{CAP_TOKENS} tokens"))
    with tempfile.TemporaryDirectory(prefix="hermes-proofs-") as folder:
        home = Home(Path(folder))
        async with ModelServer(_CALL, repeat=True) as server:
            apps = [build(settings, home, bus=Bus()) for _ in range(_RACERS)]
            try:
                for _ in range(2):  # those that stepped back ask again
                    await asyncio.gather(*(_ask(app, server, home) for app in apps))
                rows = apps[0].store.sessions.usage()
                return sum(row.input_tokens + row.output_tokens for row in rows)
            finally:
                for app in apps:
                    app.close()


async def _ask(app: App, server: ModelServer, home: Home) -> None:
    keys = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "sk-test"}
    agent = Agent(app, Secrets({}, keys))
    begun = app.begin(SessionCreated(surface="benchmark", cwd=str(home.state.parent)))
    try:
        await agent.service.submit(begun.session, "go")
        await asyncio.wait_for(agent.service.idle(begun.session), _IDLE_TIMEOUT_S)
    finally:
        await agent.service.close()
        await agent.model.close()


def run_restarts(kills: int) -> list[Figure]:
    """Kills what runs the cards of a board, and lets others take over."""
    with tempfile.TemporaryDirectory(prefix="hermes-proofs-") as folder:
        report = asyncio.run(
            run_kills(Path(folder), kills=kills, cards=kills * 2, timeout_s=600.0)
        )
    bad = len(report.lost) + len(report.overlapping) + report.unended
    for one in (*report.lost, *report.overlapping):
        print(f"  {one}", file=sys.stderr)
    return [
        Figure(
            name=f"Cards lost, run twice at once or left without an end ({report.cards} cards)",
            value=str(bad),
            cases=report.kills,
            met=bad == 0,
        )
    ]
