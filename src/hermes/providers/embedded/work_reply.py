"""A reply that works in the folder: one action of the line protocol as an ordinary tool call, or the final answer.

Code reads the files that the request mentions before the model chooses. The answer is held back sentence by sentence
and checked against what ran.
"""

import re
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing

import msgspec

from hermes.providers.embedded import claims, code_fix, grammar, reply_guards
from hermes.providers.embedded.completion import (
    Completion,
    CompletionEnded,
    CompletionEngine,
    CompletionText,
)
from hermes.providers.embedded.conversation import (
    LOOK_TAG,
    NAMED_TAG,
    RequestExchange,
    SeenFile,
    seen_files,
    todo_items,
)
from hermes.providers.embedded.decision import typed_part
from hermes.providers.embedded.folder_view import (
    FolderView,
    absent_files,
    mentioned_files,
    named_files,
)
from hermes.providers.embedded.grammar import Allowed
from hermes.providers.embedded.line_protocol import (
    Action,
    NotALine,
    parse_line,
    parse_loosely,
    runs_away,
)
from hermes.providers.embedded.reply_parts import ReplyParts, usage_of
from hermes.providers.embedded.tool_verbs import OfferedTools
from hermes.schema.messages import ToolCall, Usage
from hermes.schema.model import ModelEvent, TextDelta, ToolCallStarted

MAX_WORK_TOKENS = 900
ANSWER_NOW = "(no more actions are possible: say what was done and what was not)"
_MAX_ATTEMPTS = 4
_MAX_PREPARED_FILES = 3
_MOVES = re.compile(
    r"\b(?:delete|remove|rename|move|copy|lösche|verschiebe|kopiere|supprime|déplace|borra|elimina|mueve)\s+"
    r"(?:the |die |le |la |el )?(?:file |folder |datei |fichier |archivo )?[\w/-]*\.?\w+\.\w+|\bmove \S+\.\w+ (?:in)?to\b",
    re.IGNORECASE,
)
_MAKES = re.compile(
    r"\b(?:add|append|copy|creat\w*|export|generat\w*|mak\w*|mov\w*|new|note|put|renam\w*|sav\w*|stor\w*|translat\w*|writ\w*|"
    r"erstell\w*|schreib\w*|speicher\w*|leg\w*|crée\w*|écri\w*|crea\w*|escrib\w*|guarda\w*)\b",
    re.IGNORECASE,
)
_PRODUCT = re.compile(
    r"\b\w+\.(?:js|ts|go|sh|db|rs)|(?i:makefile|dockerfile|readme|license|changelog)"
)
"""Products and kinds of files whose names look like file names: node.js, a Makefile."""
_NO_ROOM = "I ran out of room before this was complete, so nothing of it was done."
_REPEATED = "I began to repeat myself while writing this, so nothing of it was done."
_STOPPED = " [stopped here: the reply did not end by itself]"


class AnswerIsTalk(Exception):
    """The request is not about the folder after all, so the plain chat should answer it. Nothing has been shown yet."""


PromptForNote = Callable[[str], Completion]
"""Returns the prompt of this exchange, with a note at its end."""


class WorkReply:
    """One reply: a generation, and another one if the first named a file that can't be written."""

    def __init__(
        self,
        engine: CompletionEngine,
        parts: ReplyParts,
        toolbox: OfferedTools,
        exchanges: list[RequestExchange],
        view: FolderView,
    ) -> None:
        self._engine = engine
        self._parts = parts
        self._toolbox = toolbox
        self._exchanges = exchanges
        self._exchange = exchanges[-1]
        self._view = view
        self._tokens = 0

    async def events(self, prompt: PromptForNote) -> AsyncGenerator[ModelEvent, None]:
        """Streams the reply."""
        if calls := self._prepared_reads():
            for call in calls:
                yield ToolCallStarted(call.id, call.name)
            usage = Usage(cost_usd=0.0)
            yield self._parts.finished(usage, calls=calls, finish="tool_calls")
            return
        if missing := self._missing():
            usage = Usage(cost_usd=0.0)
            yield TextDelta(missing)
            yield self._parts.finished(usage, text=missing)
            return
        if (fix := await self._repaired()) is not None:
            yield fix
            return
        allowed = reply_guards.allow(self._exchange, self._toolbox.verbs, self._view)
        for _ in range(_MAX_ATTEMPTS):
            again: Allowed | None = None
            async with aclosing(self._attempt(allowed, prompt)) as events:
                async for event in events:
                    if isinstance(event, Allowed):
                        again = event
                    else:
                        yield event
            if again is None:
                return
            allowed = again

    def _prepared_reads(self) -> tuple[ToolCall, ...]:
        """Returns reads of the files that the request mentions, or else of the previous exchange's files."""
        if self._exchange.steps or "read" not in self._toolbox.verbs:
            return ()
        typed, _ = typed_part(self._exchange.request)
        paths = [] if _MOVES.search(typed) else mentioned_files(typed, self._view)
        if code_fix.wants_fix(typed) and all(map(code_fix.is_test, paths)):
            paths += code_fix.project_files(self._view)
        if not paths and not named_files(typed) and len(self._exchanges) > 1:
            before = seen_files(self._exchanges[-2])
            paths = [path for path in before if path in self._view.files]
        chosen = list(dict.fromkeys(paths))[:_MAX_PREPARED_FILES]
        return tuple(self._read(path, NAMED_TAG) for path in chosen)

    def _missing(self) -> str:
        """Returns the answer if the request is about a file that does not exist; otherwise empty."""
        typed, _ = typed_part(self._exchange.request)
        absent = absent_files(typed, self._view)
        if self._exchange.steps or not absent or mentioned_files(typed, self._view):
            return ""
        if _MAKES.search(typed) or all(map(_PRODUCT.fullmatch, absent)):
            return ""
        near = self._view.nearest(absent[0])
        hint = (
            f"Did you mean {near}?"
            if near
            else f"This folder has {self._view.listing()}."
        )
        return f"There is no {absent[0]} in this folder, so nothing was read or changed. {hint}"

    async def _repaired(self) -> ModelEvent | None:
        """Returns a call that writes a repaired code file; None if there is nothing to repair or the model failed."""
        if "write" not in self._toolbox.verbs:
            return None
        seen = seen_files(self._exchange)
        path = code_fix.target(self._exchange, seen)
        if not path:
            return None
        text = ""
        usage = Usage(cost_usd=0.0)
        async with aclosing(
            self._engine.complete(code_fix.prompt(self._exchange, path, seen))
        ) as reports:
            async for report in reports:
                if isinstance(report, CompletionText):
                    text += report.text
                else:
                    usage = usage_of(report)
        repaired = code_fix.checked(text, path, seen[path].text)
        if not repaired:
            return None
        return self._call(Action(verb="write", path=path, text=repaired), usage, None)

    def _read(self, path: str, tag: str) -> ToolCall:
        name, arguments = self._toolbox.call(Action(verb="read", path=path), {})
        return ToolCall(id=self._parts.call_id(tag), name=name, arguments=arguments)

    async def _attempt(
        self, allowed: Allowed, prompt: PromptForNote
    ) -> AsyncGenerator[ModelEvent | Allowed, None]:
        """Runs one generation. Ends with `ReplyFinished`, or with what is allowed instead of the attempted write."""
        is_last = allowed.verbs == {"say"} and bool(self._exchange.steps)
        asked = msgspec.structs.replace(
            prompt(ANSWER_NOW if is_last else ""), grammar=grammar.build(allowed)
        )
        line, tokens = "", 0
        answer = CheckedAnswer(self._exchange)
        started: ToolCallStarted | None = None
        end: tuple[ModelEvent | Allowed, ...] = ()
        async with aclosing(self._engine.complete(asked)) as reports:
            async for report in reports:
                if isinstance(report, CompletionEnded):
                    end = self._finish(line, report, started, allowed, answer)
                    break
                tokens += 1
                line += report.text
                if not self._engine.obeys_grammar:
                    continue
                if line.startswith("say "):
                    self._check_subject(line[4:], answer)
                    if more := answer.add(line[4:]):
                        yield TextDelta(more)
                elif started is None and (action := _begun(line)) is not None:
                    started = self._start(action)
                    yield started
                if runs_away(line, tokens):
                    end = self._run_away(line, tokens, answer)
                    break
        self._tokens += tokens
        for event in end:  # after the engine is free again
            yield event

    def _run_away(
        self, line: str, tokens: int, answer: "CheckedAnswer"
    ) -> tuple[ModelEvent, ...]:
        """Ends a reply that does not stop by itself. An incomplete call is dropped."""
        usage = Usage(output_tokens=self._tokens + tokens, cost_usd=0.0)
        if line.startswith("say "):
            rest = answer.finish(line[4:] + _STOPPED)
            return TextDelta(rest), self._parts.finished(usage, text=answer.text)
        return TextDelta(_REPEATED), self._parts.finished(usage, text=_REPEATED)

    def _finish(
        self,
        line: str,
        done: CompletionEnded,
        started: ToolCallStarted | None,
        allowed: Allowed,
        answer: "CheckedAnswer",
    ) -> tuple[ModelEvent | Allowed, ...]:
        usage = usage_of(done, self._tokens)
        cut = done.finish == "length"
        try:
            action = self._parsed(line, allowed)
        except NotALine:
            action, cut = None, True
        if action is not None and action.verb == "say":
            self._check_subject(action.text, answer)
            rest = answer.finish(action.text)
            end = self._parts.finished(
                usage, text=answer.text, finish="length" if cut else "stop"
            )
            return (TextDelta(rest), end) if rest else (end,)
        if cut or action is None:
            end = self._parts.finished(usage, text=_NO_ROOM, finish="length")
            return TextDelta(_NO_ROOM), end
        if action.verb == "write" and allowed.look and action.path != allowed.only_path:
            instead = self._instead_of_write(action, allowed)
            if instead is not None:
                return instead if isinstance(instead, tuple) else (instead,)
        return (self._call(action, usage, started),)

    def _check_subject(self, text: str, answer: "CheckedAnswer") -> None:
        """Raises AnswerIsTalk if an answer begins with a missing file that the request does not mention."""
        typed, _ = typed_part(self._exchange.request)
        if not answer.text and claims.misses_what_nobody_named(text, typed):
            raise AnswerIsTalk

    def _parsed(self, line: str, allowed: Allowed) -> Action:
        """Parses a line. Without an enforced grammar, anything else is an answer, and paths are checked here."""
        if self._engine.obeys_grammar:
            return parse_line(line, _texts(allowed.files))
        action = parse_loosely(line, _texts(allowed.files))
        if action.verb not in allowed.verbs:
            return Action(verb="say", text=claims.honest_ending(self._exchange))
        if action.verb in {"read", "list"} and self._view.known:
            path = self._view.resolve(action.path) or action.path
            if not self._view.exists(path):
                return Action(verb="say", text=f"There is no {action.path} here.")
            return msgspec.structs.replace(action, path=path)
        return action

    def _call(
        self, action: Action, usage: Usage, started: ToolCallStarted | None
    ) -> ModelEvent:
        seen = _texts(seen_files(self._exchange))
        items = todo_items(self._exchanges, self._toolbox)
        name, arguments = self._toolbox.call(action, seen, items)
        call_id = started.id if started else self._parts.call_id()
        call = ToolCall(id=call_id, name=name, arguments=arguments)
        return self._parts.finished(usage, calls=(call,), finish="tool_calls")

    def _instead_of_write(
        self, action: Action, allowed: Allowed
    ) -> Allowed | tuple[ModelEvent, ...] | None:
        """Returns what to do about a file that the model wants to write; None if it may be written.

        An existing file is read first, because a small model must not overwrite content it has not seen.
        """
        path = action.path
        instead = reply_guards.instead_of_write(
            path, self._exchange, allowed, self._toolbox.verbs
        )
        if instead is not None:
            return instead
        if self._view.known and not self._view.exists(path):
            if action.text:
                return None
            return Allowed(verbs=frozenset({"write"}), only_path=path)
        call = self._read(path, LOOK_TAG)
        usage = Usage(output_tokens=self._tokens, cost_usd=0.0)
        return (
            ToolCallStarted(call.id, call.name),
            self._parts.finished(usage, calls=(call,), finish="tool_calls"),
        )

    def _start(self, action: Action) -> ToolCallStarted:
        name, _ = self._toolbox.call(action, _texts(seen_files(self._exchange)))
        return ToolCallStarted(self._parts.call_id(), name)


class CheckedAnswer:
    """An answer as it may be shown: sentence by sentence, without claims that contradict the log."""

    def __init__(self, exchange: RequestExchange) -> None:
        self._exchange = exchange
        self._taken = 0
        self._refused = False
        self.text = ""

    def add(self, text: str) -> str:
        """Takes the answer so far and returns what may be shown now."""
        complete = list(claims.sentences(text[self._taken :]))[:-1]
        return self._take("".join(complete))

    def finish(self, text: str) -> str:
        """Takes the whole answer and returns the rest to show, with a correction if a sentence was left out."""
        rest = self._take(text[self._taken :])
        if not self._refused:
            return rest
        ending = claims.honest_ending(self._exchange)
        gap = " " if self.text and not self.text[-1].isspace() else ""
        self.text += gap + ending
        return rest + gap + ending

    def _take(self, text: str) -> str:
        self._taken += len(text)
        kept = ""
        for sentence in claims.sentences(text):
            if claims.is_false_claim(sentence, self._exchange):
                self._refused = True
            else:
                kept += sentence
        self.text += kept
        return kept


def _begun(line: str) -> Action | None:
    """Returns the verb and the file, as soon as both are complete in the generated text."""
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
        if colon:
            return Action(verb="replace", path=path, old="x")
        return None
    return msgspec.convert({"verb": word}, Action)


def _texts(files: Mapping[str, SeenFile]) -> dict[str, str]:
    return {path: seen.text for path, seen in files.items()}
