"""The prompts of the small model: a plain chat for talk, and a system text with worked examples for work.

During a conversation a prompt only grows at its end, so that the engine reads nothing twice. The form of an earlier
exchange does not depend on later ones, and old exchanges are dropped many at a time.
"""

import datetime as dt

from hermes.providers.embedded import facts
from hermes.providers.embedded.completion import ChatTurn
from hermes.providers.embedded.conversation import CallStep, RequestExchange, shown
from hermes.providers.embedded.examples import EXAMPLES, TALK_EXAMPLES
from hermes.providers.embedded.folder_view import FolderView, absent_files

WINDOW_CHARACTERS = 5_000  # characters of conversation
MAX_RESULT_CHARACTERS = 1_500  # characters of one result
_MAX_REQUEST_CHARACTERS = 2_500  # characters of one request
_MAX_OLD_RESULT_CHARACTERS = 300  # characters of a result in an earlier exchange
_MAX_OLD_TEXT_CHARACTERS = 600  # characters of an answer or line in an earlier exchange
_MAX_OLD_REQUEST_CHARACTERS = 1_500  # characters of an earlier request in a chat
_MAX_OLD_ANSWER_CHARACTERS = 2_000  # characters of an earlier answer in a chat
_MAX_NOTED_CHARACTERS = (
    400  # characters of a request in which sums and days are looked for
)

SYSTEM = """\
You are Hermes, a careful assistant that works on files in the current folder. Reply with exactly one action:
read FILE - show a file
list DIR - show the names in a folder (. is the current one)
find TEXT - search for a text in all files
write FILE: - make a new file; its text starts on the next line
append FILE: - add lines at the end of a file; they start on the next line
replace FILE: OLD => NEW - change a text in a file that you have read
run COMMAND - run a shell command
todo ITEM - put an item on the to-do list
say TEXT - answer; this ends the task
Small talk and general questions: just say the answer. About files: look first, never guess. Do what was asked, \
all of it and nothing more, one action at a time; then say what you did. Say only what the results show."""

TALK_SYSTEM = """\
You are Hermes, a helpful assistant: a small model that runs on the user's own machine. You chat, answer questions, \
explain, translate, and write texts and code. When asked, you also work in the user's folder: you read, search and change \
files and run commands.
Answer in the language of the user, briefly and plainly. Show texts and code right here. You have no internet, so you \
can't know today's weather, news, prices or scores: then say that you can't look it up. Say so when you don't know. For \
code, give one code block and at most one sentence."""

WORK = "work"
TALK_MARK = "talk:"
SORTING = """\
Begin every reply with its kind. work: it needs this machine: the user's files, folder, project, tests, commands or to-do \
list; say only that word. talk: everything else: questions, general knowledge, programming questions, chatting, writing a \
text or code; then the answer."""


def work_prefix() -> tuple[ChatTurn, ...]:
    """Returns the constant part of the prompt for work."""
    turns = [ChatTurn("system", SYSTEM)]
    for request, *rest in EXAMPLES:
        turns.append(ChatTurn("user", request))
        turns += [
            ChatTurn("user" if index % 2 else "assistant", text)
            for index, text in enumerate(rest)
        ]
    return tuple(turns)


def talk_prefix(day: dt.date, *, sorts: bool = False) -> tuple[ChatTurn, ...]:
    """Returns the part of the talk prompt that is the same all day: who Hermes is, and the date.

    With `sorts`, it shows how each reply begins with the kind of the request. The date comes last, so that a new day
    changes little.
    """
    today = f"Today is {facts.day_text(day)}."
    if not sorts:
        return (ChatTurn("system", f"{TALK_SYSTEM}\n{today}"),)
    examples = (*TALK_EXAMPLES, ("what day is it?", today))
    turns = (
        turn
        for request, answer in examples
        for turn in (
            ChatTurn("user", request),
            ChatTurn(
                "assistant", answer if answer == WORK else f"{TALK_MARK} {answer}"
            ),
        )
    )
    return (ChatTurn("system", f"{TALK_SYSTEM}\n{SORTING}"), *turns)


def work(
    exchanges: list[RequestExchange],
    view: FolderView,
    now: dt.datetime,
    *,
    window: int = WINDOW_CHARACTERS,
    note: str = "",
) -> tuple[ChatTurn, ...]:
    """Returns the current exchange and as many earlier ones as fit. `note` is appended to the last turn."""
    *earlier, current = exchanges
    turns = _current(current, view, now, window)
    older = [_earlier(exchange) for exchange in earlier]
    turns = [
        *(turn for pair in _newest(older, window - _size(turns)) for turn in pair),
        *turns,
    ]
    if note:
        turns[-1] = ChatTurn(turns[-1].role, f"{turns[-1].content}\n{note}")
    return (*work_prefix(), *turns)


def talk(
    exchanges: list[RequestExchange],
    now: dt.datetime,
    *,
    window: int = WINDOW_CHARACTERS,
    sorts: bool = False,
) -> tuple[ChatTurn, ...]:
    """Returns a plain chat: who Hermes is and the date, then the conversation. With `sorts`, replies begin with a kind."""
    prefix = talk_prefix(now.date(), sorts=sorts)
    return (*prefix, *_chat_turns(exchanges, now, window, sorts=sorts))


def instructed(
    system: tuple[str, ...],
    exchanges: list[RequestExchange],
    now: dt.datetime,
    *,
    window: int = WINDOW_CHARACTERS,
) -> tuple[ChatTurn, ...]:
    """Returns the prompt for a part of Hermes with its own instructions, such as one that titles a session."""
    text = trim("\n\n".join(part for part in system if part), window // 3)
    return (
        ChatTurn("system", text or TALK_SYSTEM),
        *_chat_turns(exchanges, now, window),
    )


def _chat_turns(
    exchanges: list[RequestExchange],
    now: dt.datetime,
    window: int,
    *,
    sorts: bool = False,
) -> list[ChatTurn]:
    *earlier, current = exchanges
    notes = facts.request_notes(current.request[:_MAX_NOTED_CHARACTERS], now)
    if earlier:
        before = earlier[-1].answer[:_MAX_OLD_ANSWER_CHARACTERS]
        notes += facts.length_notes(current.request[:_MAX_NOTED_CHARACTERS], before)
    request = trim(current.request, max(window - 1_000, window // 2))
    if notes:
        request += f"\n(Note: {'; '.join(notes)}.)"
    pairs = [
        [
            ChatTurn("user", trim(exchange.request, _MAX_OLD_REQUEST_CHARACTERS)),
            ChatTurn("assistant", _old_answer(exchange, sorts=sorts)),
        ]
        for exchange in earlier
    ]
    newest = _newest(pairs, window - len(request))
    return [*(turn for pair in newest for turn in pair), ChatTurn("user", request)]


def _old_answer(exchange: RequestExchange, *, sorts: bool) -> str:
    text = trim(exchange.answer or "(stopped)", _MAX_OLD_ANSWER_CHARACTERS)
    if not sorts:
        return text
    return f"{WORK}: {text}" if exchange.steps else f"{TALK_MARK} {text}"


def _newest(parts: list[list[ChatTurn]], room: int) -> list[list[ChatTurn]]:
    """Returns the newest parts that fit. If not all fit, half of the room stays free, so the next turns only append."""
    if sum(map(_size, parts)) <= room:
        return parts
    kept: list[list[ChatTurn]] = []
    left = room // 2
    for part in reversed(parts):
        left -= _size(part)
        if left < 0:
            break
        kept.insert(0, part)
    return kept


def trim(text: str, size: int) -> str:
    """Returns the beginning and end of a text, with a note on how much is left out between them."""
    if len(text) <= size:
        return text
    mark = f"\n[... {len(text) - size} more characters ...]\n"
    head = max(0, (size - len(mark)) * 2 // 3)
    tail = max(0, size - len(mark) - head)
    return (text[:head] + mark + (text[-tail:] if tail else ""))[:size]


def _size(turns: list[ChatTurn]) -> int:
    """Returns the number of characters, counting non-ASCII ones twice because they cost more tokens."""
    return sum(
        len(turn.content) + sum(char > "\x7f" for char in turn.content)
        for turn in turns
    )


def _current(
    exchange: RequestExchange, view: FolderView, now: dt.datetime, window: int
) -> list[ChatTurn]:
    """Returns the request, what is known about its folder, and its newest steps."""
    request = trim(exchange.request, min(_MAX_REQUEST_CHARACTERS, window // 2))
    about = _circumstances(exchange, view, now)
    turns = [ChatTurn("user", f"{about}{request}")]
    left = window - _size(turns)
    steps: list[ChatTurn] = []
    for step in reversed(exchange.steps):
        if step.overwrites and step.absent:
            continue
        pair = _step(
            step,
            line=min(_MAX_REQUEST_CHARACTERS, window // 2),
            result=min(MAX_RESULT_CHARACTERS, window // 3),
            counted_for=exchange.request[:_MAX_NOTED_CHARACTERS],
        )
        left -= _size(pair)
        if steps and left < 0:
            break
        steps = pair + steps
    return turns + steps


def _earlier(exchange: RequestExchange) -> list[ChatTurn]:
    """Returns a finished exchange: shortened, and always with an end."""
    turns = [ChatTurn("user", trim(exchange.request, _MAX_REQUEST_CHARACTERS))]
    for step in exchange.steps:
        if not (step.overwrites and step.absent):
            turns += _step(
                step, line=_MAX_OLD_TEXT_CHARACTERS, result=_MAX_OLD_RESULT_CHARACTERS
            )
    return [
        *turns,
        ChatTurn(
            "assistant",
            "say " + trim(exchange.answer or "(stopped)", _MAX_OLD_TEXT_CHARACTERS),
        ),
    ]


def _circumstances(
    exchange: RequestExchange, view: FolderView, now: dt.datetime
) -> str:
    """Returns the date, the names in the folder, and which named files are missing."""
    if not view.known:
        return ""
    typed = exchange.request[:_MAX_NOTED_CHARACTERS]
    parts = [f"today: {facts.day_text(now.date())}", f"files here: {view.listing()}"]
    if facts.asks_for_numbers(typed):
        parts.append(f"counted: {view.counts()}")
    for name in absent_files(typed, view):
        near = view.nearest(name)
        parts.append(f"there is no {name}" + (f", but {near}" if near else ""))
    return f"[{'; '.join(parts)}]\n"


def _counted(path: str, result: str, request: str) -> str:
    """Returns what code counted in a file that was read, if the request asks for numbers."""
    seen = shown(result)
    if not seen.whole or not facts.asks_for_numbers(request):
        return ""
    return f"\n(counted: {facts.file_note(path, seen.text, request)})"


def _step(
    step: CallStep, *, line: int, result: int, counted_for: str = ""
) -> list[ChatTurn]:
    head = "result:" if step.ok else "error:"
    if step.overwrites and step.action is not None:
        head = f"{step.action.path} already exists: use append or replace. It holds:"
    text = trim(_result(step), result) or "(nothing)"
    if step.ok and step.action is not None and step.action.verb == "read":
        text += _counted(step.action.path, step.result, counted_for)
    return [
        ChatTurn("assistant", trim(step.line, line)),
        ChatTurn("user", f"{head}\n{text}"),
    ]


def _result(step: CallStep) -> str:
    """Returns the useful part of a result: the text of a file, or the first line of a successful change."""
    verb = step.action.verb if step.action is not None else ""
    if verb == "read" and step.ok:
        seen = shown(step.result)
        return seen.text if seen.whole else f"{seen.text}\n[there is more]"
    if verb in {"write", "append", "replace"} and step.ok:
        return step.result.partition("\n")[0].rstrip(":")
    return step.result.strip()
