"""`Dashboard`: the parts of a running dashboard that its routes use."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from hermes.app import App
from hermes.app.agent import Agent
from hermes.app.boards.dispatcher import Dispatcher
from hermes.app.dead_turns import DeadTurns
from hermes.app.log_follower import LogFollower
from hermes.app.schedules.scheduler import ScheduleLoop
from hermes.app.speech import SpeechQueue
from hermes.core.answers import approval_hash
from hermes.schema.event_base import payload_of
from hermes.schema.events import ApprovalRequested
from hermes.settings import Secrets
from hermes.settings.load import current_folder, load, load_secrets
from hermes.surfaces.dashboard.access_control import DashboardAccess
from hermes.surfaces.dashboard.feed_frames import DashboardFeed
from hermes.surfaces.dashboard.ingest import Ingest
from hermes.surfaces.dashboard.publisher_cursors import PublisherCursors
from hermes.surfaces.dashboard.push import PushNotices, WebPush
from hermes.surfaces.dashboard.terminals import Terminals
from hermes.tools.files.walk import Halt, Walk

_MAX_WALKED_FILES = 20_000


class Dashboard:
    """Make it inside the event loop that serves it. `url` is its address on this machine."""

    def __init__(
        self, app: App, secrets: Secrets, access: DashboardAccess, *, url: str
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self.app = app
        self.access = access
        self.url = url
        self.folder = current_folder()
        self.started = app.clock.now()
        self.agent = Agent(app, secrets, surface="dashboard")
        self.jobs = ScheduleLoop(app, secrets)
        """Runs jobs that somebody starts by hand; other processes run what is due."""
        self.cards = Dispatcher(app, secrets)
        """Runs cards of boards, unless another process does."""
        self.feed = DashboardFeed(app.bus)
        self.follower = LogFollower(app, self.feed)
        self.dead_turns = DeadTurns(
            lambda: self.feed.sessions, lambda: self.agent.service
        )
        self.ingest = Ingest(app, self.feed, PublisherCursors(app.home))
        self.terminals = Terminals(app.settings.dashboard)
        self.speech = SpeechQueue()
        self.push_notices = PushNotices(app.bus, WebPush(app.home, access.keys.is_good))

    def tell_loop(self, work: Callable[..., None], *arguments: Any) -> None:
        """Calls a function in the event loop, from a thread."""
        self._loop.call_soon_threadsafe(work, *arguments)

    async def waiting(self, session: str) -> list[dict[str, Any]]:
        """The open questions of a session."""
        pending = await self.agent.service.pending(session)
        return [
            {
                "session_id": session,
                "kind": "approval"
                if isinstance(one, ApprovalRequested)
                else "question",
            }
            | payload_of(one)
            | (
                {"shown": approval_hash(one)}
                if isinstance(one, ApprovalRequested)
                else {}
            )
            for one in pending
        ]

    async def all_waiting(self) -> list[dict[str, Any]]:
        """The open questions of every running session, in any process."""
        if not self.app.has_log:
            return []
        sessions = dict.fromkeys(
            [*self.feed.sessions_with_questions, *await asyncio.to_thread(self.running)]
        )
        return [one for session in sessions for one in await self.waiting(session)]

    def running(self) -> list[str]:
        """The sessions that are working, in any process."""
        return (
            [lease.session for lease in self.app.store.leases.held()]
            if self.app.has_log
            else []
        )

    def names(self, folder: Path, prefix: str, limit: int) -> list[str]:
        """Files and folders whose path contains a text; those that begin with it come first."""
        found: list[tuple[bool, int, str]] = []
        wanted = prefix.lower()
        for number, entry in enumerate(Walk(folder, Halt()).entries()):
            name = f"{entry.relative}/" if entry.is_folder else entry.relative
            if wanted in name.lower():
                found.append((not name.lower().startswith(wanted), len(name), name))
            if number >= _MAX_WALKED_FILES:
                break
        return [name for _, _, name in sorted(found)[:limit]]

    async def use_changed_model(self) -> None:
        """Uses the model, keys and MCP servers that were just saved, from the next turn on. Turns that run keep theirs."""
        saved = await asyncio.to_thread(load, home=self.app.home)
        secrets = await asyncio.to_thread(load_secrets, home=self.app.home)
        self.app.settings = msgspec.structs.replace(
            self.app.settings,
            model=saved.model,
            custom_providers=saved.custom_providers,
            mcp_servers=saved.mcp_servers,
        )
        self.jobs.use(secrets)
        self.cards.use(secrets)
        await self.agent.renew(secrets)

    async def close(self) -> None:
        """Ends terminals, feeds, jobs and turns; the sessions are kept."""
        self.feed.stop()
        await self.push_notices.close()
        await self.terminals.close()
        await self.jobs.close()
        await self.cards.close()
        await self.agent.close()
