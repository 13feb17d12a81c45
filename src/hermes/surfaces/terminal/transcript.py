"""Shows a session: its heading, the transcript, or the list of its rows."""

from collections.abc import Iterable, Iterator, Mapping

from hermes.app.typed_part import typed_part
from hermes.core.fence import unfenced
from hermes.schema.event_base import Event
from hermes.schema.events import (
    ApprovalAnswered,
    ApprovalRequested,
    CompactionFailed,
    InterruptRequested,
    LoginExpired,
    ModelRetried,
    OwnCommandRan,
    PictureReduced,
    PictureWithheld,
    ReplyRejected,
    SessionCompacted,
    SessionImported,
    SessionRecovered,
    SessionRedone,
    SessionTitled,
    SessionUndone,
    TurnChecked,
    TurnEnded,
)
from hermes.schema.messages import (
    AssistantMessage,
    Image,
    ToolCall,
    ToolFinished,
    Usage,
    UserMessage,
)
from hermes.schema.shown_reasons import state_in_words
from hermes.store.log_row import Row
from hermes.store.sessions import SessionInfo
from hermes.surfaces.terminal.call_words import call_words
from hermes.surfaces.terminal.text import (
    TextScreen,
    clean,
    cut,
    moment,
    money,
    one_line,
    wrap,
)
from hermes.text.translation import shown_reason, translator

t = translator(__name__)


_MAX_RESULT_LINES = 8  # of a result
_MAX_REASONING_LINES = 2


def heading(info: SessionInfo, screen: TextScreen) -> Iterator[str]:
    """Yields the session's id, folder, times and size."""
    yield from (
        screen.style.bold(line)
        for line in wrap(one_line(info.title) or "(no title)", screen.columns)
    )
    kind = "" if info.kind == "root" else f"{info.kind} of {info.parent}"
    facts = [info.id, kind, info.surface, info.model, info.cwd]
    sums = [
        _span(info.created, info.updated),
        t("{count:,} message", "{count:,} messages", count=info.messages),
        t("{count:,} turn", "{count:,} turns", count=info.turns),
    ]
    if info.tokens:
        sums.append(t("{count:,} token", "{count:,} tokens", count=info.tokens))
    for parts in (facts, [*sums, money(info.cost_usd)]):
        line = " · ".join(one_line(part) for part in parts if part)
        yield from (screen.style.dim(piece) for piece in wrap(line, screen.columns))


def _span(start: float, end: float) -> str:
    """Returns the time range, without repeating the date."""
    first, last = moment(start), moment(end)
    if first == last:
        return first
    return f"{first} to {last.removeprefix(first[:11])}"


def transcript(rows: Iterable[Row], screen: TextScreen) -> Iterator[str]:
    """Yields the messages and calls for a person. Other rows are left out."""
    day = ""
    labels: dict[str, str] = {}
    for row in rows:
        if isinstance(row.event, AssistantMessage):
            labels |= {call.id: _label(call) for call in row.event.tool_calls}
        lines = list(_entry(row, screen, labels))
        if not lines:
            continue
        if (today := moment(row.ts, "%A, %Y-%m-%d")) != day:
            day = today
            yield from ("", screen.style.dim(day))
        yield from lines


def listing(rows: Iterable[Row], screen: TextScreen) -> Iterator[str]:
    """Yields every row on a line: its number, time, type and the start of its fields."""
    for row in rows:
        data = one_line(row.data)
        number, kind = f"{row.seq:>5}", f"{cut(one_line(row.type), 23):<23}"
        if screen.is_narrow:
            yield f"{number}  {kind.rstrip()}"
            yield screen.style.dim(f"       {cut(data, screen.columns - 7)}")
        else:
            time = f"{moment(row.ts, '%H:%M:%S'):<8}"
            yield f"{number}  {time}  {screen.style.bold(kind)}  {screen.style.dim(cut(data, screen.columns - 42))}"


def _entry(row: Row, screen: TextScreen, labels: Mapping[str, str]) -> Iterator[str]:
    time = moment(row.ts, "%H:%M:%S")
    match row.event:
        case UserMessage(text=text, images=images):
            yield from _message_lines(screen.style.green("you"), time, screen)
            yield from _body([*_typed(text), *map(_picture, images)], screen)
        case AssistantMessage() as message:
            yield from _message_lines(
                screen.style.bold("hermes"),
                f"{time} {one_line(message.model)}".rstrip(),
                screen,
            )
            yield from _reply(message, screen)
        case ToolFinished() as result:
            label = labels.get(result.call_id) or one_line(result.name)
            yield from _result(result, label, time, screen)
        case OwnCommandRan(command=command, output=output):
            yield from _message_lines(screen.style.green("you"), time, screen)
            yield f"  $ {cut(one_line(command), screen.columns - 4)}"
            lines = _shortened(output, _MAX_RESULT_LINES, screen.columns - 4)
            yield from (screen.style.dim(line) for line in _indented(lines, 4))
        case Event() as event if note := _remark(event):
            yield from _note(note, screen)
        case _:
            return


def _remark(event: Event) -> str:
    """Returns a line for an event that a person should know about; empty for others."""
    return _turn_remark(event) or _session_remark(event)


def _turn_remark(event: Event) -> str:
    text = ""
    match event:
        case TurnEnded(reason=reason, detail=detail, usage=usage):
            how = (
                t("turn ended")
                if reason == "done"
                else t("turn {how}", how=state_in_words(reason))
            )
            text = f"{how}{_because(detail)}{_spent(usage)}"
        case InterruptRequested(by=by):
            text = (
                t("interrupt requested by {who}", who=one_line(by))
                if by
                else t("interrupt requested")
            )
        case ModelRetried(reason=reason, detail=detail):
            text = t(
                "model call retried, {reason}{because}",
                reason=one_line(reason),
                because=_because(detail),
            )
        case LoginExpired(detail=detail, command=word):
            text = t(
                "{detail} Sign in again: {word}",
                detail=one_line(shown_reason(detail)),
                word=one_line(word),
            )
        case PictureReduced(detail=detail) | PictureWithheld(detail=detail):
            text = one_line(shown_reason(detail))
        case TurnChecked(detail=detail):
            text = one_line(shown_reason(detail))
        case ReplyRejected(reason=reason, detail=detail):
            text = t(
                "reply not usable, {reason}{because}",
                reason=reason,
                because=_because(detail),
            )
        case ApprovalRequested(name=name, arguments=arguments, reason=reason):
            text = t(
                "approval requested: {summary}{because}",
                summary=call_words(name, arguments).label,
                because=_because(reason),
            )
        case ApprovalAnswered(answer=answer, by=by, reason=reason):
            word = t("denied") if answer == "deny" else t("allowed ({scope})", scope=answer)  # fmt: skip
            who = t("{decision} by {who}", decision=word, who=one_line(by)) if by else word  # fmt: skip
            text = f"{who}{_because(reason)}"
        case _:
            pass
    return text


def _session_remark(event: Event) -> str:
    text = ""
    match event:
        case SessionUndone(turns=turns):
            text = t(
                "{count:,} turn undone: the model no longer sees it",
                "{count:,} turns undone: the model no longer sees them",
                count=len(turns),
            )
        case SessionRedone():
            text = t("the last undo was reversed")
        case SessionCompacted(before=before, after=after):
            text = t(
                "conversation compressed: about {before:,} tokens became {after:,}",
                before=before,
                after=after,
            )
        case CompactionFailed(detail=detail):
            text = t(
                "could not compress the conversation{because}", because=_because(detail)
            )
        case SessionTitled(title=title):
            text = (
                t("titled: {title}", title=one_line(title))
                if title
                else t("title removed")
            )
        case SessionImported(source=source, rows=number):
            text = t(
                "imported: {count:,} row, formerly session {source}",
                "imported: {count:,} rows, formerly session {source}",
                count=number,
                source=one_line(source),
            )
        case SessionRecovered(kept=kept, lost=lost):
            text = t(
                "recovered from a damaged database: {count:,} row kept, {lost:,} lost",
                "recovered from a damaged database: {count:,} rows kept, {lost:,} lost",
                count=kept,
                lost=lost,
            )
        case _:
            pass
    return text


def _because(detail: str) -> str:
    return f": {one_line(shown_reason(detail))}" if detail else ""


def _message_lines(who: str, when: str, screen: TextScreen) -> Iterator[str]:
    yield ""
    yield f"{who}  {screen.style.dim(when)}"


def _body(texts: list[str], screen: TextScreen) -> Iterator[str]:
    for text in texts:
        if text:
            yield from _indented(wrap(clean(text.rstrip("\n")), screen.columns - 2), 2)


def _reply(message: AssistantMessage, screen: TextScreen) -> Iterator[str]:
    if message.reasoning:
        lines = _shortened(
            f"thinking: {message.reasoning}", _MAX_REASONING_LINES, screen.columns - 4
        )
        yield from (screen.style.dim(line) for line in _indented(lines, 4))
    yield from _body([message.text], screen)
    for call in message.tool_calls:
        yield f"  → {screen.style.bold(cut(_label(call), screen.columns - 4))}"
    if message.finish not in {"stop", "tool_calls"}:
        yield f"  {screen.style.yellow(f'(reply ended: {message.finish})')}"


def _label(call: ToolCall) -> str:
    return call_words(call.name, call.arguments).label


def _typed(text: str) -> Iterator[str]:
    """Yields what the person typed; of attachments, only their size."""
    typed = typed_part(text)
    yield typed
    if added := len(text) - len(typed):
        yield t(
            "[and {count:,} character of attached text]",
            "[and {count:,} characters of attached text]",
            count=added,
        )


def _result(
    result: ToolFinished, label: str, time: str, screen: TextScreen
) -> Iterator[str]:
    name = cut(label, screen.columns - 22)
    yield f"  ← {name}{'' if result.ok else ' ' + screen.style.red('failed')}  {screen.style.dim(time)}"
    if result.text:
        lines = _shortened(unfenced(result.text), _MAX_RESULT_LINES, screen.columns - 4)
        yield from (screen.style.dim(line) for line in _indented(lines, 4))
    yield from _indented(map(_picture, result.images), 4)


def _spent(usage: Usage | None) -> str:
    if usage is None:
        return ""
    tokens = t(
        " · {count:,} token in, {output_tokens:,} out",
        " · {count:,} tokens in, {output_tokens:,} out",
        count=usage.input_tokens,
        output_tokens=usage.output_tokens,
    )
    price = t("cost unknown") if usage.cost_usd is None else money(usage.cost_usd)
    return f"{tokens} · {price}" if price else tokens


def _note(text: str, screen: TextScreen) -> Iterator[str]:
    yield ""
    for number, line in enumerate(wrap(text, screen.columns - 3)):
        yield screen.style.dim(f"{'   ' if number else '-- '}{line}")


def _shortened(text: str, limit: int, columns: int) -> Iterator[str]:
    """Returns the first lines of a text, and how much is hidden."""
    text = text.rstrip("\n")
    shown = "\n".join(text[: limit * columns].split("\n", limit)[:limit])
    yield from wrap(clean(shown), columns)
    hidden = len(text) - len(shown)
    if hidden:
        yield from wrap(
            t(
                "… {count:,} more character (--json shows all)",
                "… {count:,} more characters (--json shows all)",
                count=hidden,
            ),
            columns,
        )


def _indented(lines: Iterable[str], columns: int) -> Iterator[str]:
    return (f"{' ' * columns}{line}".rstrip() for line in lines)


def _picture(image: Image) -> str:
    return f"[picture {one_line(image.source)}]"
