"""Follows the turn that answers one prompt, sends its updates to the editor, and says how it ended."""

import asyncio
from collections.abc import Mapping
from typing import Any

from acp.exceptions import RequestError
from acp.interfaces import Client
from acp.schema import PromptResponse, StopReason

from hermes.app import App
from hermes.app.feed import SessionFeed
from hermes.app.session_service import SessionService
from hermes.errors import HermesError
from hermes.primitives.tasks import BackgroundTasks, cancel_and_wait
from hermes.schema.messages import Image
from hermes.surfaces.acp.questions import EditorQuestions
from hermes.surfaces.acp.updates import UpdateStream

_STOP_REASONS: Mapping[str, StopReason] = {
    "done": "end_turn",
    "interrupted": "cancelled",
    "budget": "max_turn_requests",
    "refused": "refusal",
}
_CANCEL_TIMEOUT_S = 10.0
"""After this long a cancelled prompt is answered, even if its turn has not ended yet."""
_INTERNAL_ERROR = -32603


class PromptTurn:
    """One prompt of an editor. `cancelled` always leads to an answer."""

    def __init__(  # noqa: PLR0913 - what a turn is shown with
        self,
        app: App,
        client: Client,
        questions: EditorQuestions,
        service: SessionService,
        session: str,
        cancelled: asyncio.Event,
        *,
        shows_terminals: bool = False,
    ) -> None:
        folder = app.store.sessions.origin(session).working_directory
        self._app = app
        self._client = client
        self._questions = questions
        self._service = service
        self._session = session
        self._stream = UpdateStream(folder, shows_terminals=shows_terminals)
        self._asking = BackgroundTasks("asking the person at the editor")
        self._cancelled = cancelled
        self._typed_answer = asyncio.Event()
        """Set when a question waits for the person's next prompt."""

    async def run(self, text: str, images: tuple[Image, ...]) -> PromptResponse:
        """Sends the prompt, or the answer to the question that waits for it, and follows the turn to its end."""
        if self._cancelled.is_set():
            return PromptResponse(stop_reason="cancelled")
        feed = self._app.feed
        with feed.session_inbox(self._session) as inbox:
            waiting = await self._service.open_question(self._session)
            if waiting is not None:
                epoch, seq = await asyncio.to_thread(self._head)
                await self._service.reply(
                    self._session, waiting.call_id, text, by="editor"
                )
            else:
                epoch, seq = await self._service.submit(
                    self._session, text, images=images
                )
            events = SessionFeed(
                self._app, feed, self._session, epoch=epoch, after=seq
            ).follow(inbox)
            return await self._first_end(events)

    async def _first_end(self, events: Any) -> PromptResponse:
        """Waits for the turn to end, to fail, to be cancelled for too long, or to need a typed answer."""
        tasks = [
            asyncio.ensure_future(one)
            for one in (
                self._follow(events),
                self._failure(),
                self._typed_answer_needed(),
                self._overdue(),
            )
        ]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await cancel_and_wait(*tasks)
            await self._asking.close()
        return next(task for task in tasks if task in done).result()

    def _head(self) -> tuple[int, int]:
        info = self._app.store.sessions.find(self._session)
        return info.epoch, info.head

    async def _overdue(self) -> PromptResponse:
        await self._cancelled.wait()
        await asyncio.sleep(_CANCEL_TIMEOUT_S)
        return PromptResponse(stop_reason="cancelled")

    async def _typed_answer_needed(self) -> PromptResponse:
        await self._typed_answer.wait()
        return PromptResponse(stop_reason="end_turn")

    async def _failure(self) -> PromptResponse:
        """Raises why the session can't be worked on, such as a missing model. Waits for ever if the turn runs."""
        try:
            await self._service.idle(self._session)
        except HermesError as error:
            raise RequestError(_INTERNAL_ERROR, str(error)) from error
        return await asyncio.Future()

    async def _follow(self, batches: Any) -> PromptResponse:
        async for batch in batches:
            for item in batch:
                end = await self._show(item.event)
                if end is not None:
                    return end
        raise RequestError(_INTERNAL_ERROR, "The session ended without an answer.")

    async def _show(self, event: Mapping[str, Any]) -> PromptResponse | None:
        kind = event["type"]
        if kind == "agent.approval.requested":
            self._asking.start(
                self._questions.approve(self._session, event, self._stream)
            )
        elif kind == "agent.question.asked":
            self._asking.start(self._ask(event))
        if event.get("session_id") != self._session:
            return None
        if kind == "agent.turn.started" and self._cancelled.is_set():
            # It was cancelled while there was nothing to stop yet
            await self._service.interrupt(self._session, by="editor")
        for update in self._stream.of(event):
            await self._client.session_update(session_id=self._session, update=update)
        return _ended(event) if kind == "agent.turn.ended" else None

    async def _ask(self, event: Mapping[str, Any]) -> None:
        if await self._questions.ask(self._session, event, self._stream):
            return
        from acp import helpers

        text = "\n\n".join(
            part for part in (str(event.get("plan", "")), str(event["text"])) if part
        )
        await self._client.session_update(
            session_id=self._session,
            update=helpers.update_agent_message_text(f"\n\n{text}\n"),
        )
        self._typed_answer.set()


def _ended(event: Mapping[str, Any]) -> PromptResponse:
    reason = _STOP_REASONS.get(str(event["reason"]))
    if reason is None:
        raise RequestError(_INTERNAL_ERROR, str(event.get("detail") or event["reason"]))
    return PromptResponse(stop_reason=reason)
