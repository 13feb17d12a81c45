"""Sessions: listing, reading, searching, renaming, exporting, deleting."""

import asyncio
import io
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta
from starlette.responses import Response, StreamingResponse

from hermes.app.engine import ApprovalMode
from hermes.app.session_documents import (
    MEDIA_TYPES,
    DocumentFormat,
    session_document,
)
from hermes.errors import HermesError, SessionNotFound, UsageError
from hermes.providers.catalogue import UNKNOWN, facts_of
from hermes.schema.event_base import payload_of
from hermes.schema.events import SessionCreated, SessionMarked, SessionTitled
from hermes.schema.messages import Message
from hermes.schema.shown_reasons import shown_event
from hermes.settings.load import typed_path
from hermes.store.log_row import Row
from hermes.store.search import MessageHit
from hermes.store.sessions import FiledAs, SessionInfo
from hermes.surfaces.dashboard.dashboard import Dashboard
from hermes.surfaces.web.endpoint import Acknowledged, Endpoint, EndpointCall
from hermes.text.translation import translator

t = translator(__name__)


_MAX_NEW_TITLE_CHARACTERS = 500
_MAX_PINNED = 200
_MAX_EXPORTED = 100


class ListQuery(msgspec.Struct, frozen=True):
    limit: Annotated[int, Meta(ge=1, le=500)] = 50
    before: float | None = None
    folder: str | None = None
    archived: bool = False


class SessionList(msgspec.Struct, frozen=True):
    sessions: list[SessionInfo]
    more: bool
    pinned: Annotated[
        list[SessionInfo], Meta(description="With the first page only.")
    ] = []
    folders: Annotated[
        list[str], Meta(description="All folders, with the first page only.")
    ] = []
    running: Annotated[
        list[str], Meta(description="Sessions that work right now.")
    ] = []


class ExportQuery(msgspec.Struct, frozen=True):
    format: DocumentFormat = "jsonl"


class ExportsQuery(msgspec.Struct, frozen=True):
    sessions: Annotated[str, Meta(description="Their ids, with commas between them.")]
    format: DocumentFormat = "md"


class Seen(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How many messages the session had when somebody looked at it."""

    messages: Annotated[int, Meta(ge=0)]


class NewSession(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    cwd: str = ""
    text: str = ""
    model: str = ""


class StartedSession(msgspec.Struct, frozen=True):
    """A session, and the cursor of the last row that the request wrote."""

    id: str
    epoch: int
    seq: int


class Detail(msgspec.Struct, frozen=True):
    session: SessionInfo
    running: Annotated[
        str, Meta(description="The process that runs it; empty if none does.")
    ]
    waiting: list[dict[str, Any]]
    model: Annotated[
        str, Meta(description="The model that would answer now; empty for none.")
    ] = ""
    window: Annotated[
        int, Meta(description="Tokens that fit into it; 0 when that is not known.")
    ] = 0
    approvals: Annotated[ApprovalMode, Meta(description="The approval mode.")] = "ask"


class Title(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    title: Annotated[str, Meta(max_length=_MAX_NEW_TITLE_CHARACTERS)]


class Rows(msgspec.Struct, frozen=True):
    rows: int


class PageQuery(msgspec.Struct, frozen=True):
    after: Annotated[int, Meta(ge=0)] = 0
    limit: Annotated[int, Meta(ge=1, le=5000)] = 500


class EventQuery(PageQuery, frozen=True):
    after: Annotated[
        int,
        Meta(description="Rows after this one; a negative number counts from the end."),
    ] = 0


class EventPage(msgspec.Struct, frozen=True):
    session: SessionInfo
    epoch: int
    head: int
    events: list[dict[str, Any]]
    more: bool


class Messages(msgspec.Struct, frozen=True):
    messages: list[Any]


class SearchQuery(msgspec.Struct, frozen=True):
    q: str = ""
    session: str = ""
    limit: Annotated[int, Meta(ge=1, le=200)] = 20


class Hits(msgspec.Struct, frozen=True):
    hits: list[MessageHit]
    sessions: Annotated[
        list[SessionInfo], Meta(description="Sessions whose titles have the words.")
    ] = []


class FileQuery(msgspec.Struct, frozen=True):
    prefix: str = ""
    limit: Annotated[int, Meta(ge=1, le=200)] = 30


class FileNames(msgspec.Struct, frozen=True):
    files: list[str]


class SessionRoutes:
    """Handlers over one dashboard."""

    def __init__(self, dashboard: Dashboard) -> None:
        self._board = dashboard
        self._app = dashboard.app

    def endpoints(self) -> list[Endpoint]:
        one = "/api/sessions/{id}"
        return [
            Endpoint(
                "GET",
                "/api/sessions",
                "observe",
                self.overview,
                ListQuery,
                answer=SessionList,
            ),
            Endpoint(
                "POST",
                "/api/sessions",
                "chat",
                self.begin,
                body=NewSession,
                answer=StartedSession,
            ),
            Endpoint("GET", one, "observe", self.show, answer=Detail),
            Endpoint("PATCH", one, "chat", self.rename, body=Title, answer=SessionInfo),
            Endpoint("DELETE", one, "admin", self.delete, answer=Rows),
            Endpoint(
                "GET",
                f"{one}/events",
                "observe",
                self.events,
                EventQuery,
                answer=EventPage,
            ),
            Endpoint(
                "GET",
                f"{one}/messages",
                "observe",
                self.messages,
                PageQuery,
                answer=Messages,
            ),
            Endpoint(
                "GET", f"{one}/children", "observe", self.children, answer=SessionList
            ),
            Endpoint(
                "GET",
                f"{one}/export",
                "observe",
                self.export,
                ExportQuery,
                answer=None,
            ),
            Endpoint(
                "GET",
                "/api/exports",
                "observe",
                self.export_several,
                ExportsQuery,
                answer=None,
            ),
            Endpoint("POST", f"{one}/seen", "chat", self.see, body=Seen),
            Endpoint(
                "GET",
                f"{one}/files",
                "observe",
                self.files,
                FileQuery,
                answer=FileNames,
            ),
            Endpoint(
                "GET", "/api/search", "observe", self.search, SearchQuery, answer=Hits
            ),
        ]

    def overview(self, call: EndpointCall) -> SessionList:
        """Sessions, the most recently used first."""
        query: ListQuery = call.query
        if not self._app.has_log:
            return SessionList([], more=False)
        store = self._app.store
        filed = FiledAs(query.folder, archived=query.archived)
        shown, more = store.sessions.page(
            limit=query.limit, updated_before=query.before, filed=filed
        )
        if query.before is not None:
            return SessionList(shown, more)
        pinned = store.sessions.recent(limit=_MAX_PINNED, filed=FiledAs(pinned=True))
        folders = store.marks.folders()
        return SessionList(shown, more, pinned, folders, self._board.running())

    async def begin(self, call: EndpointCall) -> StartedSession:
        """Starts a session; with a text, also its first turn."""
        body: NewSession = call.body
        row = await asyncio.to_thread(self._begin, body.cwd)
        if body.model:
            await asyncio.to_thread(self._board.agent.choose, row.session, body.model)
        if not body.text:
            return StartedSession(row.session, row.epoch, row.seq)
        epoch, seq = await self._board.agent.service.submit(row.session, body.text)
        return StartedSession(row.session, epoch, seq)

    def _begin(self, cwd: str) -> Row:
        folder = typed_path(cwd or str(self._board.folder))
        if not folder.is_dir():
            raise UsageError(
                t("There is no folder {folder}.", folder=folder),
                hint=t("Nothing was started."),
            )
        return self._app.begin(SessionCreated(surface="dashboard", cwd=str(folder)))

    async def show(self, call: EndpointCall) -> Detail:
        """A session, the process that runs it, and its open questions."""
        info = await session_of(self._board, call)
        holder = await asyncio.to_thread(self._app.store.leases.holder, info.id)
        waiting = await self._board.waiting(info.id)
        model, window = await asyncio.to_thread(self._model, info.id)
        return Detail(
            info,
            holder.owner if holder else "",
            waiting,
            model,
            window,
            self._board.agent.mode(info.id),
        )

    def _model(self, session: str) -> tuple[str, int]:
        """The model of a session and its window."""
        try:
            self._board.agent.read_model(session)
            model = self._board.agent.describe(session)
        except HermesError:  # the status says what is missing
            return "", 0
        custom = self._app.settings.custom_providers.get(model.provider)
        facts = facts_of(model.name, custom.models if custom else None)
        return model.label, 0 if facts is UNKNOWN else facts.window

    def rename(self, call: EndpointCall) -> SessionInfo:
        """Sets the title of a session; an empty one removes it."""
        info = find(self._board, call.path["id"])
        self._app.record(
            info.id, SessionTitled(title=call.body.title.strip(), by="user")
        )
        return find(self._board, info.id)

    def delete(self, call: EndpointCall) -> Rows:
        """Deletes a session with all its data, unless a process is running it."""
        info = find(self._board, call.path["id"])
        rows = self._app.delete(info.id)
        self._board.tell_loop(self._board.feed.read_log, info.id)
        return Rows(rows)

    def events(self, call: EndpointCall) -> EventPage:
        """Its rows, as envelopes."""
        info, query = find(self._board, call.path["id"]), call.query
        after = query.after if query.after >= 0 else max(0, info.head + query.after)
        rows = self._app.store.log.events(info.id, after=after, limit=query.limit + 1)
        shown = [
            dict(shown_event(self._app.envelope(row))) for row in rows[: query.limit]
        ]
        return EventPage(
            info, info.epoch, info.head, shown, more=len(rows) > query.limit
        )

    def messages(self, call: EndpointCall) -> Messages:
        """All messages, including compacted and undone ones."""
        info = find(self._board, call.path["id"])
        found: list[Message] = self._app.store.log.messages(
            info.id, after=call.query.after
        )
        return Messages(
            [{"role": type(one).role} | msgspec.to_builtins(one) for one in found]
        )

    def children(self, call: EndpointCall) -> SessionList:
        """Sessions that work or worked for this one."""
        return SessionList(
            self._app.store.sessions.children(find(self._board, call.path["id"]).id),
            more=False,
        )

    def see(self, call: EndpointCall) -> Acknowledged:
        """Writes that somebody looked at a session."""
        info = find(self._board, call.path["id"])
        if info.seen < call.body.messages:
            self._app.store.marks.see(info.id, call.body.messages)
            event = SessionMarked(sessions=(info.id,))
            self._app.bus.publish(event.topic, payload_of(event))
        return Acknowledged()

    def export(self, call: EndpointCall) -> Response:
        """The session as JSON lines, as `hermes sessions import` reads it, or in another format."""
        info = find(self._board, call.path["id"])
        kind: DocumentFormat = call.query.format
        lines = iter(session_document(self._app.store, info, kind))
        name = _file_name(info.id)

        async def body() -> AsyncIterator[bytes]:
            while (line := await asyncio.to_thread(next, lines, None)) is not None:
                yield line.encode() + b"\n"

        headers = {
            "content-disposition": f'attachment; filename="session_{name}.{kind}"'
        }
        return StreamingResponse(body(), media_type=MEDIA_TYPES[kind], headers=headers)

    def export_several(self, call: EndpointCall) -> Response:
        """Sessions as documents in a ZIP file."""
        query: ExportsQuery = call.query
        wanted = [*dict.fromkeys(query.sessions.split(","))]
        if len(wanted) > _MAX_EXPORTED:
            raise UsageError(
                t(
                    "At most {max_exported} sessions can be exported at once.",
                    max_exported=_MAX_EXPORTED,
                )
            )
        found = [find(self._board, session) for session in wanted]
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
            for info in found:
                lines = session_document(self._app.store, info, query.format)
                text = "\n".join(lines) + "\n"
                file.writestr(f"session_{_file_name(info.id)}.{query.format}", text)
        headers = {"content-disposition": 'attachment; filename="hermes_sessions.zip"'}
        return Response(
            archive.getvalue(), media_type="application/zip", headers=headers
        )

    def files(self, call: EndpointCall) -> FileNames:
        """Files in the session's folder whose names begin with or contain a text, for completion."""
        info, query = find(self._board, call.path["id"]), call.query
        return FileNames(
            self._board.names(Path(info.cwd), query.prefix, query.limit)
            if info.cwd
            else []
        )

    def search(self, call: EndpointCall) -> Hits:
        """Messages that contain the words, newest first, and sessions with such titles."""
        query: SearchQuery = call.query
        if not query.q.strip() or not self._app.has_log:
            return Hits([])
        store = self._app.store
        hits = store.search.find(query.q, session=query.session, limit=query.limit)
        if query.session:
            return Hits(hits)
        return Hits(hits, store.sessions.titled(query.q, limit=query.limit))


def _file_name(session: str) -> str:
    return "".join(sign if sign.isalnum() or sign in "-_." else "_" for sign in session)


def find(board: Dashboard, session: str) -> SessionInfo:
    """The session with exactly that id."""
    if not board.app.has_log:
        raise SessionNotFound(t("there is no session {session}", session=session))
    info = board.app.store.sessions.find(session)
    if info.id != session:
        raise SessionNotFound(
            t("there is no session {session}", session=session),
            hint=t("Its whole id is needed here."),
        )
    return info


async def session_of(board: Dashboard, call: EndpointCall) -> SessionInfo:
    """The session that a request names."""
    return await asyncio.to_thread(find, board, call.path["id"])
