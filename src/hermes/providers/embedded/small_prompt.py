"""The small model's own prompt: a fixed system text, worked examples, and as much of the conversation as fits."""

from hermes.providers.embedded.conversation import CallStep, RequestExchange, shown
from hermes.providers.embedded.engine_wire import ChatTurn
from hermes.providers.embedded.examples import EXAMPLES

WINDOW_CHARACTERS = 5_000  # characters of conversation
MAX_RESULT_CHARACTERS = 1_500  # characters of one result
_MAX_REQUEST_CHARACTERS = 2_500  # characters of one request
_MAX_OLD_RESULT_CHARACTERS = 300  # characters of a result in an earlier exchange
_MAX_OLD_TEXT_CHARACTERS = 600  # characters of an answer or line in an earlier exchange

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

CHAT_SYSTEM = "You are Hermes, a helpful assistant. Answer shortly and plainly."


def prefix() -> tuple[ChatTurn, ...]:
    """The part of the prompt that never changes."""
    turns = [ChatTurn("system", SYSTEM)]
    for request, *rest in EXAMPLES:
        turns.append(ChatTurn("user", request))
        turns += [
            ChatTurn("user" if index % 2 else "assistant", text)
            for index, text in enumerate(rest)
        ]
    return tuple(turns)


def conversation(
    exchanges: list[RequestExchange], *, window: int = WINDOW_CHARACTERS, note: str = ""
) -> tuple[ChatTurn, ...]:
    """The current exchange, and as many of the earlier ones as fit beside it. `note` is added to the last turn."""
    *earlier, current = exchanges
    turns = _current(current, window)
    left = window - _size(turns)
    for exchange in reversed(earlier):
        older = _earlier(exchange)
        left -= _size(older)
        if left < 0:
            break
        turns = older + turns
    if note:
        turns[-1] = ChatTurn(turns[-1].role, f"{turns[-1].content}\n{note}")
    return tuple(turns)


def chat(
    system: tuple[str, ...],
    exchanges: list[RequestExchange],
    *,
    window: int = WINDOW_CHARACTERS,
) -> tuple[ChatTurn, ...]:
    """A prompt without actions: just talk."""
    text = (
        trim("\n\n".join(part for part in system if part), window // 3) or CHAT_SYSTEM
    )
    turns: list[ChatTurn] = []
    left = window
    for index, exchange in enumerate(reversed(exchanges)):
        pair = [
            ChatTurn(
                "user",
                trim(
                    exchange.request, _MAX_REQUEST_CHARACTERS if index else window // 2
                ),
            )
        ]
        if exchange.answer:
            pair.append(
                ChatTurn("assistant", trim(exchange.answer, _MAX_OLD_TEXT_CHARACTERS))
            )
        left -= _size(pair)
        if index and left < 0:
            break
        turns = pair + turns
    return (ChatTurn("system", text), *turns)


def trim(text: str, size: int) -> str:
    """The beginning and the end of a text, saying how much is left out between."""
    if len(text) <= size:
        return text
    mark = f"\n[... {len(text) - size} more characters ...]\n"
    head = max(0, (size - len(mark)) * 2 // 3)
    tail = max(0, size - len(mark) - head)
    return (text[:head] + mark + (text[-tail:] if tail else ""))[:size]


def _size(turns: list[ChatTurn]) -> int:
    """Characters, counting those outside ASCII twice: they cost more tokens."""
    return sum(
        len(turn.content) + sum(char > "\x7f" for char in turn.content)
        for turn in turns
    )


def _current(exchange: RequestExchange, window: int) -> list[ChatTurn]:
    """The request and its newest steps."""
    turns = [
        ChatTurn(
            "user", trim(exchange.request, min(_MAX_REQUEST_CHARACTERS, window // 2))
        )
    ]
    left = window - _size(turns)
    steps: list[ChatTurn] = []
    for step in reversed(exchange.steps):
        if step.looked and step.absent:
            continue
        pair = _step(
            step,
            line=min(_MAX_REQUEST_CHARACTERS, window // 2),
            result=min(MAX_RESULT_CHARACTERS, window // 3),
        )
        left -= _size(pair)
        if steps and left < 0:
            break
        steps = pair + steps
    return turns + steps


def _earlier(exchange: RequestExchange) -> list[ChatTurn]:
    """An exchange that is over: shorter, and always with an end."""
    turns = [ChatTurn("user", trim(exchange.request, _MAX_REQUEST_CHARACTERS))]
    for step in exchange.steps:
        if not (step.looked and step.absent):
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


def _step(step: CallStep, *, line: int, result: int) -> list[ChatTurn]:
    head = "result:" if step.ok else "error:"
    if step.looked and step.action is not None:
        head = f"{step.action.path} already exists: use append or replace. It holds:"
    text = trim(_result(step), result) or "(nothing)"
    return [
        ChatTurn("assistant", trim(step.line, line)),
        ChatTurn("user", f"{head}\n{text}"),
    ]


def _result(step: CallStep) -> str:
    """What of a result is worth its tokens: of a file its text, of a change that worked its first line."""
    verb = step.action.verb if step.action is not None else ""
    if verb == "read" and step.ok:
        seen = shown(step.result)
        return seen.text if seen.whole else f"{seen.text}\n[there is more]"
    if verb in {"write", "append", "replace"} and step.ok:
        return step.result.partition("\n")[0].rstrip(":")
    return step.result.strip()
