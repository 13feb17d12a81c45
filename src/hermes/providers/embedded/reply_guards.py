"""Guards outside the model: they decide what the next reply may be, given what happened; the grammar enforces it."""

import re

from hermes.providers.embedded.conversation import (
    CallStep,
    RequestExchange,
    SeenFile,
    seen_files,
)
from hermes.providers.embedded.folder_view import NO_FOLDER, FolderView
from hermes.providers.embedded.grammar import Allowed
from hermes.providers.embedded.line_protocol import Verb

MAX_CALLS = 6
_CHANGE = re.compile(
    r"\b(?:add|append|apply|bump|change|comment|convert|copy|correct|creat|delet|drop|edit|fill|fix|format|generat|improve|insert|"
    r"mak|mark|modif|move|note|put|refactor|remov|renam|replac|rewrit|sav|set|sort|split|stor|swap|switch|translat|turn|"
    r"updat|writ)",
    re.IGNORECASE,
)
_CHANGING: frozenset[Verb] = frozenset({"write", "append", "replace"})
_MAX_REQUEST_CHARACTERS = (
    2_000  # characters of a request; in long pasted text, a name means nothing
)
_MAX_NAMED_PATHS = 150  # paths in a grammar; with more, any path may be named


def allow(
    exchange: RequestExchange, verbs: frozenset[Verb], view: FolderView = NO_FOLDER
) -> Allowed:
    """Returns what the model may do next in this exchange. An answer is always allowed."""
    steps = exchange.steps
    if _stuck(steps):
        return Allowed(verbs=frozenset({"say"}))
    seen = seen_files(exchange)
    last = steps[-1] if steps else None
    if last is not None and last.overwrites and last.action is not None:
        return _after_look(exchange, last, verbs, seen)
    if _only_asks(exchange.request):
        verbs -= _CHANGING
    absent = tuple(
        step.action.path for step in steps if step.action is not None and step.absent
    )
    readable, listable = _paths(view)
    if view.known and not readable:
        verbs -= {"read"}
    return Allowed(
        verbs=verbs,
        files=seen,
        words=_words(exchange),
        look="write" in verbs and (view.known or "read" in verbs),
        absent=tuple(dict.fromkeys(absent)),
        readable=readable,
        listable=listable,
    )


def _paths(view: FolderView) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Returns the paths that may be read and listed; empty if any path may be named."""
    if not view.known or not view.complete or len(view.files) > _MAX_NAMED_PATHS:
        return (), ()
    return view.files, (".", *view.folders)


def instead_of_write(
    path: str, exchange: RequestExchange, allowed: Allowed, verbs: frozenset[Verb]
) -> Allowed | None:
    """Returns what is allowed after `write` named a file that it may not write; None if it may.

    An existing file can only be changed. A name without an extension that the request does not mention is not a file:
    the model was asked to write something, not to save it to a file.
    """
    seen = seen_files(exchange)
    if path in seen:
        return Allowed(
            verbs=verbs & {"append", "replace", "say"},
            files={path: seen[path]},
            words=_words(exchange),
        )
    if not re.search(r"[./]", path) and path.lower() not in exchange.request.lower():
        return Allowed(
            verbs=_talk_instead(allowed.verbs), files=allowed.files, words=allowed.words
        )
    return None


def _only_asks(request: str) -> bool:
    """Returns whether the request is a question that asks for no change."""
    return request.rstrip().endswith("?") and _CHANGE.search(request) is None


def _talk_instead(verbs: frozenset[Verb]) -> frozenset[Verb]:
    say: frozenset[Verb] = frozenset({"say"})
    return (verbs - {"write"}) | say


def _words(exchange: RequestExchange) -> frozenset[str]:
    return frozenset(re.findall(r"\w{3,}", exchange.request[:_MAX_REQUEST_CHARACTERS]))


def _stuck(steps: tuple[CallStep, ...]) -> bool:
    """Returns whether the model is stuck: it made too many calls, or the same call twice in a row."""
    own = [
        step
        for step in steps
        if not step.prepared and not (step.overwrites and step.absent)
    ]
    return len(own) >= MAX_CALLS or (len(own) >= 2 and own[-1].line == own[-2].line)


def _after_look(
    exchange: RequestExchange,
    look: CallStep,
    verbs: frozenset[Verb],
    seen: dict[str, SeenFile],
) -> Allowed:
    path = look.action.path if look.action is not None else ""
    if look.absent:
        return Allowed(verbs=frozenset({"write", "say"}), only_path=path)
    if look.ok:
        changing = verbs & {"append", "replace", "say"}
        return Allowed(verbs=changing, files={path: seen[path]}, words=_words(exchange))
    return Allowed(
        verbs=frozenset({"say"})
    )  # the file exists but can't be read: never overwrite it
