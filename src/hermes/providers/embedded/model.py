"""`EmbeddedModel`: the adapter for small models behind the `Model` port. It decides: talk, or work in the folder."""

import datetime as dt
import secrets
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import TypeAlias

import msgspec

from hermes.errors import ModelError
from hermes.providers.embedded import decision, diff_review, small_prompt
from hermes.providers.embedded.completion import (
    Completion,
    CompletionEngine,
    CompletionText,
)
from hermes.providers.embedded.conversation import RequestExchange, read_messages
from hermes.providers.embedded.decision import RequestKind
from hermes.providers.embedded.folder_view import (
    FolderLook,
    FolderView,
    look_at_folder,
)
from hermes.providers.embedded.reply_parts import ReplyParts
from hermes.providers.embedded.talk_reply import (
    MAX_REVIEW_TOKENS,
    MAX_TALK_TOKENS,
    RequestIsWork,
    TalkReply,
)
from hermes.providers.embedded.tool_verbs import OfferedTools
from hermes.providers.embedded.work_reply import (
    MAX_WORK_TOKENS,
    AnswerIsTalk,
    WorkReply,
)
from hermes.schema.model import ModelEvent, ModelRequest

PROVIDER = "embedded"
_WINDOW_CHARACTERS = (
    small_prompt.WINDOW_CHARACTERS,
    2_500,
    1_200,
)  # characters; the smaller windows are for text with more tokens than usual
LocalClock: TypeAlias = Callable[[], dt.datetime]


def _random_id() -> str:
    return secrets.token_hex(4)


def _local_now() -> dt.datetime:
    return dt.datetime.now().astimezone()


class EmbeddedModel:
    """Implements the `Model` port with a small model. With `acts` False it only talks, even if tools are offered."""

    def __init__(  # noqa: PLR0913 - the ports have defaults
        self,
        engine: CompletionEngine,
        *,
        name: str,
        provider: str = PROVIDER,
        acts: bool = True,
        new_id: Callable[[], str] = _random_id,
        look_at: FolderLook = look_at_folder,
        now: LocalClock = _local_now,
    ) -> None:
        self.provider = provider
        self.name = name
        self._engine = engine
        self._acts = acts
        self._look_at = look_at
        self._now = now
        self._parts = ReplyParts(provider, name, new_id)

    async def warm(self) -> None:
        """Starts the engine before the first request."""
        await self._engine.warm()

    async def close(self) -> None:
        """Ends the engine."""
        await self._engine.close()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Streams one reply: text or tool calls. If the text does not fit the window, retries with less of it."""
        toolbox = OfferedTools(request.tools if self._acts else ())
        exchanges = read_messages(request.messages, toolbox)
        view = self._look_at(request.folder) if request.tools else FolderView()
        for window in _WINDOW_CHARACTERS:
            prompts = _Prompts(
                request, exchanges, view, self._now(), window, self._sorts
            )
            try:
                kind = await self._decided(prompts)
                async with aclosing(self._answer(kind, prompts, toolbox)) as events:
                    async for event in events:
                        yield event
            except ModelError as error:
                if error.reason != "too_long" or window == _WINDOW_CHARACTERS[-1]:
                    raise
            else:
                return

    async def _answer(
        self, kind: RequestKind | None, prompts: "_Prompts", toolbox: OfferedTools
    ) -> AsyncGenerator[ModelEvent, None]:
        """Streams a reply of the decided kind. The chat may turn out to be work, and work not to be about the folder."""
        while True:
            try:
                async with aclosing(self._reply(kind, prompts, toolbox)) as events:
                    async for event in events:
                        yield event
            except RequestIsWork:
                kind = "work"
            except AnswerIsTalk:
                kind = "talk"
            else:
                return

    def _reply(
        self, kind: RequestKind | None, prompts: "_Prompts", toolbox: OfferedTools
    ) -> AsyncGenerator[ModelEvent, None]:
        if kind == "work":
            work = WorkReply(
                self._engine, self._parts, toolbox, prompts.exchanges, prompts.view
            )
            return work.events(prompts.work)
        checked = bool(prompts.request.tools)
        typed, diff = decision.typed_part(prompts.exchanges[-1].request)
        if checked and diff_review.asks_for_review(typed, diff):
            review = TalkReply(
                self._engine,
                self._parts,
                opening=diff_review.opening(diff),
                closing=diff_review.CLOSING,
                resumed=prompts.window != _WINDOW_CHARACTERS[0],
            )
            return review.events(prompts.review(diff))
        talk = TalkReply(self._engine, self._parts, checked=checked)
        return talk.events(prompts.talk(kind))

    @property
    def _sorts(self) -> bool:
        """Whether the prompt of the chat also serves to decide."""
        return self._acts and self._engine.obeys_grammar

    async def _decided(self, prompts: "_Prompts") -> RequestKind | None:
        """Decides between talk and work; None if the chat is to say it. Without tools, it is always talk."""
        if not (prompts.request.tools and self._acts):
            return "talk"
        exchanges = prompts.exchanges
        known = decision.certain(exchanges, prompts.view)
        if known is not None:
            return known
        if self._sorts and not decision.follows_work(exchanges):
            return None
        text = ""
        async with aclosing(
            self._engine.complete(decision.prompt(exchanges))
        ) as reports:
            async for report in reports:
                text += report.text if isinstance(report, CompletionText) else ""
        return decision.parsed(text)


class _Prompts(msgspec.Struct, frozen=True):
    """Builds the prompts of one request, cut to a window."""

    request: ModelRequest
    exchanges: list[RequestExchange]
    view: FolderView
    now: dt.datetime
    window: int
    sorts: bool

    def work(self, note: str) -> Completion:
        """Returns the prompt for an action or the final answer."""
        turns = small_prompt.work(
            self.exchanges, self.view, self.now, window=self.window, note=note
        )
        return Completion(
            slot="work",
            turns=turns,
            prefix=small_prompt.work_prefix(),
            max_tokens=self._limit(MAX_WORK_TOKENS),
            stop=("\nresult:",),
        )

    def review(self, diff: str) -> Completion:
        """Returns the prompt for a few sentences about a diff."""
        asked = RequestExchange(request=f"{diff_review.REQUEST}\n\n{diff}")
        return self._chat("talk", [asked], self._limit(MAX_REVIEW_TOKENS))

    def talk(self, kind: RequestKind | None) -> Completion:
        """Returns the prompt of the plain chat or, without tools, of a part of Hermes with its own instructions."""
        limit = self._limit(MAX_TALK_TOKENS)
        if self.request.tools:
            return self._chat(kind, self.exchanges, limit)
        turns = small_prompt.instructed(
            self.request.system, self.exchanges, self.now, window=self.window
        )
        return Completion(slot="other", turns=turns, max_tokens=limit)

    def _chat(
        self, kind: RequestKind | None, exchanges: list[RequestExchange], limit: int
    ) -> Completion:
        turns = small_prompt.talk(
            exchanges, self.now, window=self.window, sorts=self.sorts
        )
        prefix = small_prompt.talk_prefix(self.now.date(), sorts=self.sorts)
        return Completion(
            slot="talk",
            turns=turns,
            prefix=prefix,
            grammar=decision.chat_grammar(kind) if self.sorts else "",
            max_tokens=limit,
        )

    def _limit(self, most: int) -> int:
        return min(most, self.request.max_output_tokens or most)
