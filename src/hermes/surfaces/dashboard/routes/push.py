"""Notifications for browsers without an open page: subscribing, and what a notification says."""

import asyncio
from typing import Annotated

import msgspec
from msgspec import Meta

from hermes.app.session_documents import title_of
from hermes.surfaces.dashboard.dashboard import Dashboard
from hermes.surfaces.web.endpoint import Acknowledged, Endpoint, EndpointCall
from hermes.surfaces.web.errors import Refusal
from hermes.text.translation import to_translate, translator

t = translator(__name__)


_NOT_AVAILABLE = to_translate("Web push needs the library cryptography.")


class PushKey(msgspec.Struct, frozen=True):
    """Whether this dashboard can push, and the key that a browser subscribes with."""

    available: bool
    key: str = ""


class PushEndpoint(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    endpoint: Annotated[str, Meta(max_length=2000)]


class Notice(msgspec.Struct, frozen=True):
    """What happened last, for a notification."""

    title: str = ""
    body: str = ""
    session_id: str = ""
    waiting: int = 0


class PushRoutes:
    """Handlers over one dashboard."""

    def __init__(self, dashboard: Dashboard) -> None:
        self._board = dashboard
        self._notices = dashboard.push_notices
        self._push = dashboard.push_notices.push

    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint("GET", "/api/push", "observe", self.key, answer=PushKey),
            Endpoint("POST", "/api/push", "chat", self.subscribe, body=PushEndpoint),
            Endpoint("POST", "/api/push/leave", "chat", self.leave, body=PushEndpoint),
            Endpoint("GET", "/api/notice", "observe", self.notice, answer=Notice),
        ]

    def key(self) -> PushKey:
        """The key for a subscription."""
        if not self._push.is_available:
            return PushKey(available=False)
        return PushKey(available=True, key=self._push.public_key())

    def subscribe(self, call: EndpointCall) -> Acknowledged:
        """Pushes to this browser from now on."""
        if not self._push.is_available:
            raise Refusal(501, t.marked(_NOT_AVAILABLE), t("Install the extra `push`."))
        self._push.subscribe(call.body.endpoint, call.caller.held)
        return Acknowledged()

    def leave(self, call: EndpointCall) -> Acknowledged:
        """Stops pushing to this browser."""
        if self._push.is_available:
            self._push.unsubscribe(call.body.endpoint)
        return Acknowledged()

    async def notice(self) -> Notice:
        """What a notification says: the question that waits, or the turn that ended last."""
        waiting = await self._board.all_waiting()
        if waiting:
            first = waiting[0]
            session = str(first["session_id"])
            body = str(first.get("summary") or first.get("text") or "")
            title = await asyncio.to_thread(self._title, session)
            return Notice(
                t("Waiting for you: {title}", title=title),
                body[:300],
                session,
                len(waiting),
            )
        if not (finished := self._notices.finished):
            return Notice()
        title = await asyncio.to_thread(self._title, finished)
        return Notice(f"Finished: {title}", "", finished)

    def _title(self, session: str) -> str:
        return title_of(self._board.app.store.sessions.find(session))
