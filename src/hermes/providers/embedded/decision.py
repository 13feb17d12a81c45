"""Decides whether a request is talk or work. Code decides the clear cases; the model decides the rest in one token.

It is the first token of a reply in the chat, which then goes on, so a request that is talk, the usual case, is read only
once. What follows work is asked about in a prompt of its own, which is shorter than the chat: it does not hold what the
work showed. So is every request where the engine ignores grammars.
"""

import re
from typing import Literal, TypeAlias

from hermes.providers.embedded import facts
from hermes.providers.embedded.completion import ChatTurn, Completion
from hermes.providers.embedded.conversation import RequestExchange
from hermes.providers.embedded.folder_view import FolderView, absent_files, named_files
from hermes.providers.embedded.small_prompt import TALK_MARK, WORK

RequestKind: TypeAlias = Literal["talk", "work"]
_GRAMMAR = 'root ::= "talk" | "work"\n'
_CHAT_GRAMMAR = f'root ::= "{WORK}" | "{TALK_MARK}" .*\n'
_TALK_GRAMMAR = f'root ::= "{TALK_MARK}" .*\n'
_MAX_CHARACTERS = 240
_SYSTEM = (
    "Sort requests. work: it needs this machine: the user's files, folder, project, tests, commands or to-do list. talk: "
    "everything else: questions, general knowledge, programming questions, chatting, writing a text or code."
)
_EXAMPLES: tuple[tuple[str, RequestKind], ...] = (
    ("which files are here?", "work"),
    ("what does notes.txt say?", "work"),
    ("what is express.js?", "talk"),
    ("write a poem", "talk"),
    ("write a poem into poem.txt", "work"),
    ("how do I list files in bash?", "talk"),
    ("run the tests", "work"),
    ("fix the bug", "work"),
    ("before: show me shop.txt (work)\nadd milk to it", "work"),
    ("how many files are in this folder?", "work"),
    ("what is 12 * 3?", "talk"),
    ("where is load_table defined?", "work"),
    ("write a function that adds two numbers", "talk"),
    ("correct this sentence: I has a dog", "talk"),
    ("before: write a poem about rain (talk)\nmake it shorter", "talk"),
    ("thanks!", "talk"),
    ("what's the weather?", "talk"),
    ("what does this project do?", "work"),
    ("remind me to call Tom", "work"),
    ("did Anna write back to me?", "talk"),
    ("I have a table users(id, city). SQL that counts them by city?", "talk"),
    ("translate 'cat' to French", "talk"),
    ("before: what is the capital of Peru? (talk)\nand of Chile?", "talk"),
    ("Wie alt ist die Erde?", "talk"),
    ("Lies brief.txt", "work"),
    ("before: write a poem (talk)\nsave it as poem.txt", "work"),
)
PREFIX: tuple[ChatTurn, ...] = (
    ChatTurn("system", _SYSTEM),
    *(
        turn
        for request, kind in _EXAMPLES
        for turn in (ChatTurn("user", request), ChatTurn("assistant", kind))
    ),
)
_CHANGE = re.compile(
    r"\b(?:add|append|apply|bump|change|creat|delet|edit|fix|insert|mak|mov|put|remov|renam|replac|sav|set|stor|updat|writ)\w*\b"
    r".*\b(?:file|folder|project|repo\w*|here|it (?:to|into|as)|code ?base)\b"
    r"|\bapply (?:it|this|the)\b|\b(?:save|store|write) (?:it|this|that|them)\b",
    re.IGNORECASE | re.DOTALL,
)
_GREETING = re.compile(
    r"\s*(?:hi|hello|hey|good (?:morning|evening|night|afternoon)|bye|goodbye|thanks?|thank you|hallo"
    r"|guten (?:tag|morgen|abend)|danke|bonjour|salut|merci|hola|gracias|ciao|grazie"
    r"|who are you|what are you|how are you|what (?:kind of )?(?:things )?can you (?:do|help (?:me )?with))"
    r"\b[^.?!\n]{0,25}[.?!]*\s*",
    re.IGNORECASE,
)
_HOW_TO = re.compile(
    r"\s*how (?:do|can|could|should|would) (?:i|you|we|one)\b|\s*how to\b|\s*wie (?:kann|mache?) ich\b",
    re.IGNORECASE,
)
_MAX_TYPED_CHARACTERS = 400


def typed_part(request: str) -> tuple[str, str]:
    """Returns the text that a person typed, and the text that was piped or pasted below it."""
    typed, gap, pasted = request.partition("\n\n")
    if not gap or len(typed) > _MAX_TYPED_CHARACTERS:
        return request, ""
    return typed, pasted


def certain(exchanges: list[RequestExchange], view: FolderView) -> RequestKind | None:
    """Returns the decision if it is certain; None if the model must decide."""
    current = exchanges[-1]
    typed, pasted = typed_part(current.request)
    if current.steps:
        return "work"
    if any(view.resolve(name) for name in named_files(typed)):
        return "work"
    if pasted:
        asks_for_change = _CHANGE.search(typed) or absent_files(typed, view)
        return "work" if asks_for_change else "talk"
    if _GREETING.fullmatch(typed) or facts.arithmetic(typed):
        return "talk"
    if _HOW_TO.match(typed):  # asks for an explanation, not for the work itself
        return "talk"
    return None


def chat_grammar(kind: RequestKind | None) -> str:
    """Returns the grammar of a reply in the chat. It begins with its kind, which the model decides if it is None."""
    return _CHAT_GRAMMAR if kind is None else _TALK_GRAMMAR


def follows_work(exchanges: list[RequestExchange]) -> bool:
    """Returns whether the request before this one was work."""
    return len(exchanges) > 1 and bool(exchanges[-2].steps)


def prompt(exchanges: list[RequestExchange]) -> Completion:
    """Returns the question for the model, apart from the chat."""
    typed, _ = typed_part(exchanges[-1].request)
    text = typed[:_MAX_CHARACTERS]
    if len(exchanges) > 1:
        before = exchanges[-2]
        kind: RequestKind = "work" if before.steps else "talk"
        text = f"before: {typed_part(before.request)[0][:80]} ({kind})\n{text}"
    return Completion(
        slot="decide",
        turns=(*PREFIX, ChatTurn("user", text)),
        prefix=PREFIX,
        grammar=_GRAMMAR,
        max_tokens=1,
    )


def parsed(reply: str) -> RequestKind:
    """Returns the model's decision. A reply that is neither counts as talk, because an answer does no harm."""
    if reply.strip().lower().startswith("w"):
        return "work"
    return "talk"
