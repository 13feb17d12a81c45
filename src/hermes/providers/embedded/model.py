"""`EmbeddedModel`: the local model behind the `Model` port. Requests become lines, and lines become calls."""

import secrets
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from typing import Protocol

import msgspec

from hermes.errors import ModelError
from hermes.providers.embedded import engine_wire, grammar, reply_guards, small_prompt
from hermes.providers.embedded.conversation import (
    LOOK_TAG,
    RequestExchange,
    SeenFile,
    read_messages,
    seen_files,
    todo_items,
)
from hermes.providers.embedded.grammar import Allowed
from hermes.providers.embedded.line_protocol import (
    Action,
    NotALine,
    parse_line,
    runs_away,
)
from hermes.providers.embedded.tool_verbs import OfferedTools
from hermes.schema.messages import AssistantMessage, FinishReason, ToolCall, Usage
from hermes.schema.model import (
    ModelEvent,
    ModelRequest,
    ReplyFinished,
    TextDelta,
    ToolCallStarted,
)

PROVIDER = "embedded"
_MAX_TOKENS = 900
_WINDOW_CHARACTERS = (
    small_prompt.WINDOW_CHARACTERS,
    2_500,
    1_200,
)  # characters; smaller ones when the text has more tokens than usual
_ANSWER_NOW = "(no more actions are possible: say what was done and what was not)"


def _random_id() -> str:
    return secrets.token_hex(4)


class TextEngine(Protocol):
    """What continues a prompt: `Engine`, or a script in tests."""

    def generate(
        self,
        turns: tuple[engine_wire.ChatTurn, ...],
        *,
        prefixed: bool,
        grammar: str,
        max_tokens: int,
    ) -> AsyncGenerator[engine_wire.Delta | engine_wire.GenerationEnded, None]: ...

    async def warm(self) -> None: ...

    async def close(self) -> None: ...


class EmbeddedModel:
    """Implements the `Model` port on a local engine. With `acts` False it only talks, whatever tools are offered."""

    def __init__(
        self,
        engine: TextEngine,
        *,
        name: str,
        acts: bool = True,
        new_id: Callable[[], str] = _random_id,
    ) -> None:
        self.provider = PROVIDER
        self.name = name
        self._engine = engine
        self._acts = acts
        self._new_id = new_id

    async def warm(self) -> None:
        """Starts the engine ahead of the first request."""
        await self._engine.warm()

    async def close(self) -> None:
        """Ends the engine."""
        await self._engine.close()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """One reply: text, or one tool call. Text that does not fit the window is tried again with less of it."""
        for window in _WINDOW_CHARACTERS:
            reply = (
                _Reply(self, request, window)
                if request.tools and self._acts
                else _Chat(self, request, window)
            )
            try:
                async with aclosing(reply.events()) as events:
                    async for event in events:
                        yield event
            except ModelError as error:
                if error.reason != "too_long" or window == _WINDOW_CHARACTERS[-1]:
                    raise
            else:
                return

    def generate(
        self,
        turns: tuple[engine_wire.ChatTurn, ...],
        *,
        prefixed: bool,
        rules: str,
        limit: int | None,
    ) -> AsyncGenerator[engine_wire.Delta | engine_wire.GenerationEnded, None]:
        """The engine's stream for one prompt."""
        tokens = min(_MAX_TOKENS, limit or _MAX_TOKENS)
        return self._engine.generate(
            turns, prefixed=prefixed, grammar=rules, max_tokens=tokens
        )

    def finished(
        self,
        usage: Usage,
        *,
        text: str = "",
        calls: tuple[ToolCall, ...] = (),
        finish: FinishReason = "stop",
    ) -> ReplyFinished:
        """The end of a reply."""
        return ReplyFinished(
            AssistantMessage(
                text=text,
                tool_calls=calls,
                finish=finish,
                provider=self.provider,
                model=self.name,
                usage=usage,
            )
        )

    def new_call_id(self, tag: str = "local-") -> str:
        """An id for a call."""
        return tag + self._new_id()


class _Chat:
    """A reply without actions."""

    def __init__(
        self, model: EmbeddedModel, request: ModelRequest, window: int
    ) -> None:
        self._model = model
        self._limit = request.max_output_tokens
        exchanges = read_messages(request.messages, OfferedTools(()))
        system = (
            () if request.tools else request.system
        )  # with tools, it is written for a larger model
        self._turns = small_prompt.chat(system, exchanges, window=window)

    async def events(self) -> AsyncGenerator[ModelEvent, None]:
        text = ""
        stream = self._model.generate(
            self._turns, prefixed=False, rules="", limit=self._limit
        )
        async with aclosing(stream) as reports:
            async for report in reports:
                if isinstance(report, engine_wire.Delta):
                    text += report.text
                    yield TextDelta(report.text)
                else:
                    finish: FinishReason = (
                        "length" if report.finish == "length" else "stop"
                    )
                    yield self._model.finished(_usage(report), text=text, finish=finish)


class _Reply:
    """A reply of the line protocol: one generation, or another when the first named a file that can't be written."""

    def __init__(
        self, model: EmbeddedModel, request: ModelRequest, window: int
    ) -> None:
        self._model = model
        self._window = window
        self._limit = request.max_output_tokens
        self._toolbox = OfferedTools(request.tools)
        self._exchanges = read_messages(request.messages, self._toolbox)
        self._tokens = 0

    @property
    def _usage(self) -> Usage:
        """What was generated so far, when the engine could not say how much it read."""
        return Usage(output_tokens=self._tokens, cost_usd=0.0)

    @property
    def _exchange(self) -> RequestExchange:
        return self._exchanges[-1]

    async def events(self) -> AsyncGenerator[ModelEvent, None]:
        allowed = reply_guards.allow(self._exchange, self._toolbox.verbs)
        for _ in range(3):
            async with aclosing(self._attempt(allowed)) as events:
                again: Allowed | None = None
                async for event in events:
                    if isinstance(event, Allowed):
                        again = event
                    else:
                        yield event
            if again is None:
                return
            allowed = again

    async def _attempt(
        self, allowed: Allowed
    ) -> AsyncGenerator[ModelEvent | Allowed, None]:
        """One generation. Ends with `ReplyFinished`, or with what is allowed instead of what the model began to write."""
        note = _ANSWER_NOW if allowed.verbs == {"say"} and self._exchange.steps else ""
        turns = small_prompt.conversation(
            self._exchanges, window=self._window, note=note
        )
        rules = grammar.build(allowed)
        line, tokens = "", 0
        started: ToolCallStarted | None = None
        end: tuple[ModelEvent | Allowed, ...] = ()
        async with aclosing(
            self._model.generate(turns, prefixed=True, rules=rules, limit=self._limit)
        ) as reports:
            async for report in reports:
                if isinstance(report, engine_wire.GenerationEnded):
                    end = self._finish(line, report, started, allowed)
                    break
                self._tokens += 1
                before, line = line, line + report.text
                if line.startswith("say "):
                    if more := line[max(len(before), 4) :]:
                        yield TextDelta(more)
                elif started is None and (action := _begun(line)) is not None:
                    started = self._start(action)
                    yield started
                tokens += 1
                if runs_away(line, tokens):
                    end = self._run_away(line)
                    break
        for event in end:  # after the engine is free again
            yield event

    def _run_away(self, line: str) -> tuple[ModelEvent, ...]:
        """Ends a reply that would not end. Half a call is no call."""
        if line.startswith("say "):
            note = " [stopped here: the reply did not end by itself]"
            return TextDelta(note), self._model.finished(
                self._usage, text=line[4:] + note
            )
        text = "I began to repeat myself while writing this, so nothing of it was done."
        return TextDelta(text), self._model.finished(self._usage, text=text)

    def _named(self, path: str, allowed: Allowed) -> tuple[ModelEvent | Allowed, ...]:
        """The model named a file to write: it may not, or we look first whether it exists."""
        instead = reply_guards.instead_of_write(
            path, self._exchange, allowed, self._toolbox.verbs
        )
        return (instead,) if instead is not None else self._look(path)

    def _start(self, action: Action) -> ToolCallStarted:
        name, _ = self._toolbox.call(action, _texts(seen_files(self._exchange)))
        return ToolCallStarted(self._model.new_call_id(), name)

    def _look(self, path: str) -> tuple[ModelEvent, ...]:
        """Reads the file that the model wants to write: a small model must not overwrite what it has not seen."""
        name, arguments = self._toolbox.call(Action(verb="read", path=path), {})
        call = ToolCall(
            id=self._model.new_call_id(LOOK_TAG), name=name, arguments=arguments
        )
        return (
            ToolCallStarted(call.id, call.name),
            self._model.finished(self._usage, calls=(call,), finish="tool_calls"),
        )

    def _finish(
        self,
        line: str,
        done: engine_wire.GenerationEnded,
        started: ToolCallStarted | None,
        allowed: Allowed,
    ) -> tuple[ModelEvent | Allowed, ...]:
        usage = msgspec.structs.replace(
            _usage(done), output_tokens=max(done.output_tokens, self._tokens)
        )
        cut = done.finish == "length"
        if line.startswith("say "):
            return (
                self._model.finished(
                    usage, text=line[4:], finish="length" if cut else "stop"
                ),
            )
        seen = _texts(seen_files(self._exchange))
        try:
            action = parse_line(line, _texts(allowed.files))
        except NotALine:
            cut = True
            action = None
        if cut or action is None:
            text = (
                "I ran out of room before this was complete, so nothing of it was done."
            )
            return (
                TextDelta(text),
                self._model.finished(usage, text=text, finish="length"),
            )
        if action.verb == "write" and allowed.look and not action.text:
            return self._named(action.path, allowed)
        name, arguments = self._toolbox.call(
            action, seen, todo_items(self._exchanges, self._toolbox)
        )
        call = ToolCall(
            id=started.id if started else self._model.new_call_id(),
            name=name,
            arguments=arguments,
        )
        return (self._model.finished(usage, calls=(call,), finish="tool_calls"),)


def _begun(line: str) -> Action | None:
    """The verb and the file, as soon as both are complete in what was generated so far."""
    word, space, rest = line.partition(" ")
    if not space:
        return None
    if word in {"write", "append"}:
        path, colon, _ = rest.partition(":\n")
        return (
            msgspec.convert({"verb": word, "path": path.strip()}, Action)
            if colon
            else None
        )
    if word == "replace":
        path, colon, _ = rest.partition(": ")
        return Action(verb="replace", path=path, old="x") if colon else None
    return msgspec.convert({"verb": word}, Action)


def _texts(files: Mapping[str, SeenFile]) -> dict[str, str]:
    return {path: seen.text for path, seen in files.items()}


def _usage(done: engine_wire.GenerationEnded) -> Usage:
    return Usage(
        input_tokens=done.input_tokens,
        output_tokens=done.output_tokens,
        cache_read_tokens=done.cached_tokens,
        cost_usd=0.0,
    )
