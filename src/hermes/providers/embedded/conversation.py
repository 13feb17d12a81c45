"""Converts Hermes' messages to the small model's conversation: exchanges of request, steps with results, and answer.

Also tracks the contents of files, as far as results of the current exchange showed them.
"""

import re
from collections.abc import Iterable

import msgspec

from hermes.providers.embedded.line_protocol import Action, write_line
from hermes.providers.embedded.tool_verbs import OfferedTools
from hermes.providers.image_encoding import split_pictures
from hermes.schema.messages import (
    AssistantMessage,
    Message,
    ToolCall,
    ToolFinished,
    UserMessage,
)

LOOK_TAG = "look-"  # prefixes the id of our own read that checks whether the file of a `write` exists
NAMED_TAG = "named-"  # prefixes the id of our own read of a mentioned file
_HEADER = re.compile(
    r"\[[^\n]{0,4096}: (?:lines (\d+)-(\d+) of (\d+)[^\n]{0,200}|empty file)\]\n?"
)
_FOOTER = re.compile(r"\[[^\n]{0,4096}\b\d{1,20} more lines\b[^\n]{0,4096}\]")
_ABSENT = re.compile(
    r"no such|not found|does not exist|doesn't exist|not exist|no file|there is no",
    re.IGNORECASE,
)


class CallStep(msgspec.Struct, frozen=True, kw_only=True):
    """One call and its result."""

    call: ToolCall
    action: Action | None
    result: str = ""
    ok: bool = True

    @property
    def line(self) -> str:
        """The reply that made this call."""
        return (
            write_line(self.action)
            if self.action is not None
            else f"use {self.call.name}"
        )

    @property
    def overwrites(self) -> bool:
        """Whether Hermes, not the model, read the file because the model wants to write it."""
        return self.call.id.startswith(LOOK_TAG)

    @property
    def prepared(self) -> bool:
        """Whether Hermes, not the model, read the file because the request mentions it."""
        return self.call.id.startswith(NAMED_TAG)

    @property
    def absent(self) -> bool:
        """Whether the result says that the file does not exist."""
        return not self.ok and _ABSENT.search(self.result) is not None


class RequestExchange(msgspec.Struct, frozen=True, kw_only=True):
    """A request, the steps taken for it, and the answer, if there is one yet."""

    request: str
    steps: tuple[CallStep, ...] = ()
    answer: str = ""


def read_messages(
    messages: Iterable[Message], toolbox: OfferedTools
) -> list[RequestExchange]:
    """Returns the exchanges, oldest first; the last one is in progress."""
    exchanges: list[RequestExchange] = []
    for message in messages:
        match message:
            case UserMessage():
                _, pictures = split_pictures(message.images, {}, seen=False)
                exchanges.append(RequestExchange(request=message.text + pictures))
            case AssistantMessage():
                last = exchanges.pop() if exchanges else RequestExchange(request="")
                steps = tuple(
                    CallStep(call=call, action=toolbox.action(call))
                    for call in message.tool_calls
                )
                answer = last.answer if steps or not message.text else message.text
                exchanges.append(
                    RequestExchange(
                        request=last.request, steps=last.steps + steps, answer=answer
                    )
                )
            case ToolFinished():
                if exchanges:
                    exchanges[-1] = _with_result(exchanges[-1], message)
    return exchanges or [RequestExchange(request="")]


class SeenFile(msgspec.Struct, frozen=True):
    """The content of a file, as far as it was shown. `whole` means that nothing is missing."""

    text: str
    whole: bool = True


def seen_files(exchange: RequestExchange) -> dict[str, SeenFile]:
    """Returns the contents of files, as the steps of this exchange read or wrote them."""
    seen: dict[str, SeenFile] = {}
    for step in exchange.steps:
        action = step.action
        if action is None or not step.ok:
            continue
        held = seen.get(action.path)
        match action.verb:
            case "read":
                seen[action.path] = shown(step.result)
            case "write":
                seen[action.path] = SeenFile(action.text)
            case "append" if held is not None:
                seen[action.path] = SeenFile(
                    f"{held.text.rstrip()}\n{action.text}".lstrip("\n"), held.whole
                )
            case "replace" if held is not None:
                seen[action.path] = SeenFile(
                    held.text.replace(action.old, action.text, 1), held.whole
                )
            case _:
                pass
    return seen


def shown(result: str) -> SeenFile:
    """Returns the file's text from a read result, without the header and footer that some tools add."""
    header = _HEADER.match(result)
    body, _, last_line = result.rpartition("\n")
    if _FOOTER.fullmatch(last_line) is None:
        body = result
    if header is None:
        return SeenFile(body, body == result)
    first, last, total = (int(number or 0) for number in header.groups())
    return SeenFile(body[header.end() :], first <= 1 and last == total)


def todo_items(
    exchanges: Iterable[RequestExchange], toolbox: OfferedTools
) -> list[str]:
    """Returns the to-do list after the last call."""
    calls = [step.call for exchange in exchanges for step in exchange.steps if step.ok]
    last = next(
        (call for call in reversed(calls) if toolbox.role(call) == "todo"), None
    )
    return toolbox.todo_items(last) if last is not None else []


def _with_result(exchange: RequestExchange, finished: ToolFinished) -> RequestExchange:
    _, pictures = split_pictures(finished.images, {}, seen=False)
    result = finished.text + pictures
    steps = tuple(
        msgspec.structs.replace(step, result=result, ok=finished.ok)
        if step.call.id == finished.call_id
        else step
        for step in exchange.steps
    )
    return msgspec.structs.replace(exchange, steps=steps)
