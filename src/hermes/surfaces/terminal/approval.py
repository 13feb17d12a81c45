"""Approvals and questions at a terminal: how they are shown, and how answers are parsed."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from hermes.core.accepted_plan import plan_question
from hermes.core.answers import approval_hash
from hermes.core.arguments import arguments_by_name
from hermes.surfaces.terminal.question_menu import (
    READABLE_AFTER_S,
    Act,
    PersonAnswer,
    QuestionMenu,
    is_rules_check,
)
from hermes.surfaces.terminal.style import Style, terminal_height
from hermes.surfaces.terminal.styled_text import (
    CYAN,
    DIM,
    GREEN,
    RED,
    YELLOW,
    Row,
    painted,
)
from hermes.surfaces.terminal.summary_words import (
    COMMAND_TOOLS,
    REPLACED,
    RUN_IN,
    shown_change,
    shown_summary,
)
from hermes.surfaces.terminal.text import clean, one_line, wrap
from hermes.surfaces.terminal.tool_line import (
    marks_for,
    marks_of_this_run,
    patched_files,
)
from hermes.text.translation import (
    shown_approval_reason,
    shown_question,
    to_translate,
    translator,
)

if TYPE_CHECKING:
    from hermes.app.session_service import SessionService

t = translator(__name__)

QUESTION_EVENTS = frozenset(
    (
        "agent.approval.requested",
        "agent.approval.answered",
        "agent.question.asked",
        "agent.question.answered",
    )
)
"""Events a surface also handles for child agents, because it answers for them."""

_REACHES = {
    "network": to_translate("It may use the network."),
    "machine": to_translate(
        "It runs outside the sandbox: it can reach your files and the network."
    ),
}
_USES_NETWORK = (
    "it uses the network"  # not translated: a reason of the policy, as the log has it
)
_CHANGES_FILE = "it changes a file"  # not translated, likewise
_FILE_TOOLS = frozenset(("write_file", "edit_file", "apply_patch"))
"""Tools whose question shows the change."""
_TITLES = {
    "read_file": to_translate("Hermes wants to read {what}"),
    "vision_analyze": to_translate("Hermes wants to look at {what}"),
    "image_generate": to_translate("Hermes wants to make a picture {what}"),
    "write_file": to_translate("Hermes wants to write {what}"),
    "edit_file": to_translate("Hermes wants to edit {what}"),
}
_DIFF_LOOKS = {"+": GREEN, "-": RED, "@": CYAN}
_MAX_SUMMARY_LINES = 40
_MIN_SUMMARY_LINES = 6
_ROWS_AROUND_SUMMARY = (
    15  # the heading, remarks, a menu with wrapped lines, the input and the status line
)
_TAIL_LINES = 8  # shown from the end of a long summary
_MAX_PATCH_FILES_NAMED = 5  # of a patch
_CUT_SUMMARY_CHARS = 20_000  # from this length on, the policy may have cut the summary
_SHORT_ANSWERS = frozenset(("y", "yes", "s", "a", "always", "n", "no", "v"))
_REMEMBERED_ANSWER_WAIT_S = (
    0.03  # a remembered answer arrives by then, and its question is never shown
)
KEY_GRACE_S = READABLE_AFTER_S
Taken: TypeAlias = Literal["answered", "asked", "unclear"] | Act
"""The outcome of a line: an answer, the next step of the menu, nothing, or something for the screen to do."""


class Questions:
    """The open questions of one session, shown one at a time.

    `show` is called at once, `listen` when an answer counts: input before that was meant for
    something else.
    """

    def __init__(
        self,
        show: Callable[[Mapping[str, Any] | None], None],
        listen: Callable[[Mapping[str, Any]], None] = lambda _: None,
        *,
        clock: Callable[[], float] | None = None,
        last_key_at: Callable[[], float] = lambda: float("-inf"),
    ) -> None:
        self._last_key_at = last_key_at
        self._show = show
        self._listen = listen
        self._clock = clock or (lambda: asyncio.get_running_loop().time())
        self.menu: QuestionMenu | None = None
        """The menu of the current question."""
        self._open: dict[tuple[str, str], Mapping[str, Any]] = {}  # by session and call
        self._shown = ("", "")
        self._since = 0.0

    @property
    def current(self) -> Mapping[str, Any] | None:
        """The question that the next line answers."""
        return self._open.get(self._shown)

    @property
    def as_edited(self) -> Mapping[str, Any] | None:
        """The current question, with the plan as the person has changed it."""
        request, menu = self.current, self.menu
        if request is None or menu is None or not menu.plan:
            return request
        return {**request, "text": plan_question(menu.plan)}

    def on_event(self, event: Mapping[str, Any]) -> None:
        """Opens questions, and closes those answered anywhere."""
        match event["type"]:
            case "agent.approval.requested" | "agent.question.asked":
                key = _key(event)
                if key == self._shown and not _is_same(event, self._open[key]):
                    self._close(key)  # asked again with a different text
                self._open[key] = event
                asyncio.get_running_loop().call_later(
                    _REMEMBERED_ANSWER_WAIT_S, self._put_next
                )
            case (
                "agent.approval.answered"
                | "agent.question.answered"
                | "agent.tool.finished"
            ):
                self._close(_key(event))
            case "agent.turn.ended":
                for key in [
                    key for key in self._open if key[0] == event.get("session_id", "")
                ]:
                    self._close(key)
            case _:
                pass

    async def take(
        self,
        line: str,
        deliver: Callable[[PersonAnswer], Awaitable[bool]],
        *,
        typed_at: float | None = None,
    ) -> Taken:
        """Uses a line as the answer to the current question, unless it came too early."""
        menu = self.menu
        if menu is None or self.is_early(typed_at):
            return "unclear"
        step = menu.step
        found = menu.line(line)
        if isinstance(found, PersonAnswer):
            await self.give(found, deliver)
            return "answered"
        return found or ("asked" if menu.step != step else "unclear")

    async def give(
        self, answer: PersonAnswer, deliver: Callable[[PersonAnswer], Awaitable[bool]]
    ) -> bool:
        """Delivers an answer to the current question, with what the person saw of it. Returns whether it counted."""
        request = self.current
        if request is None or request["call_id"] != answer.call_id:
            return False
        shown = approval_hash(request) if answer.word is not None else ""
        session = request.get("session_id", "")
        return await deliver(answer._replace(session=session, shown=shown))

    def is_early(self, typed_at: float | None) -> bool:
        """Returns whether a line was sent before anybody can have read the question.

        `typed_at` is in the event loop's time; None for lines from a pipe.
        """
        return typed_at is not None and typed_at < self._since + KEY_GRACE_S

    def _close(self, key: tuple[str, str]) -> None:
        self._open.pop(key, None)
        if key == self._shown:
            self._shown, self.menu = ("", ""), None
            self._show(None)
            self._put_next()

    def _put_next(self) -> None:
        if self._shown not in self._open and self._open:
            self._shown = next(iter(self._open))
            self._since = self._clock()
            request = self._open[self._shown]
            self.menu = QuestionMenu(
                request, self._clock, last_key_at=self._last_key_at()
            )
            self._show(request)
            asyncio.get_running_loop().call_later(KEY_GRACE_S, self._begin, self._shown)

    def _begin(self, key: tuple[str, str]) -> None:
        if key == self._shown and (request := self.current) is not None:
            self._listen(request)


async def deliver_answer(
    service: "SessionService", answer: PersonAnswer, session: str
) -> bool:
    """Answers the session, or the child session that asked. Returns False if nothing waits for the
    answer.
    """
    session = answer.session or session
    if answer.word is None:
        return await service.reply(
            session, answer.call_id, answer.text, by="cli", plan=answer.plan
        )
    return await service.answer(
        session,
        answer.call_id,
        answer.word,
        by="cli",
        shown=answer.shown,
        reason=answer.text,
        rule=answer.rule,
    )


def _is_same(first: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Returns whether two events show the same question on the screen."""
    if first["type"] != other["type"]:
        return False
    if first["type"] == "agent.approval.requested":
        return approval_hash(first) == approval_hash(other)
    return (first["text"], list(first.get("options") or ())) == (
        other["text"],
        list(other.get("options") or ()),
    )


def _key(event: Mapping[str, Any]) -> tuple[str, str]:
    """Returns the key of a call. Call ids are unique only within their session."""
    return event.get("session_id", ""), event["call_id"]


def question_lines(
    request: Mapping[str, Any], style: Style, columns: int, *, whole: bool = False
) -> list[str]:
    """Returns the lines of a question. A very long summary is cut, with a note."""
    if request["type"] == "agent.question.asked":
        return _question(request, style, columns)
    return [painted(row, style) for row in _request_rows(request, columns, whole=whole)]


def whole_question(request: Mapping[str, Any], columns: int) -> list[Row]:
    """Returns all rows of a question, for a pager."""
    if request.get("plan"):
        return _plan_rows(request, columns, colours=True)
    if request["type"] == "agent.question.asked":
        lines = _question(request, Style(enabled=False), columns)
        return [((line, ""),) for line in lines]
    return _request_rows(request, columns, whole=True)


def _request_rows(
    request: Mapping[str, Any], columns: int, *, whole: bool
) -> list[Row]:
    """Returns the rows of a request for approval. A very long summary is cut, with a note."""
    title, summary = _title_and_summary(request)
    rows = _summary_rows(summary, request, columns)
    if whole and (uncut := _uncut(request)):
        rows += _text_rows(uncut, columns)
    remarks = (wrap(clean(text), columns - 2) for text in _remarks(request))
    return [
        *(((line, YELLOW),) for line in wrap(title, columns)),
        *(rows if whole else _shortened(rows)),
        *(((f"  {line}", DIM),) for lines in remarks for line in lines),
    ]


def _title_and_summary(request: Mapping[str, Any]) -> tuple[str, str]:
    """Returns the heading and what follows it. A tool's name with which a summary begins is not repeated in the
    heading.
    """
    name, text = clean(request["name"]), _summary(request)
    first, _, rest = text.partition("\n")
    if is_rules_check(request):
        return t(
            "This project's rules want to run in the sandbox after each turn that changes files:"
        ), rest
    if name in COMMAND_TOOLS and first.startswith(RUN_IN):
        return t(
            "Hermes wants to run a command in {folder}",
            folder=first.removeprefix(RUN_IN),
        ), rest
    if first == name:
        return _use_title(name, request), rest
    if first.startswith((f"{name} ", f"{name}: ")):
        what = first[len(name) :].removeprefix(":").strip()
        title = (
            t.marked(_TITLES[name], what=what)
            if name in _TITLES
            else t("Hermes wants to use {name}: {what}", name=name, what=what)
        )
        return f"{title}{':' if rest else ''}", rest
    return _use_title(name, request), text


def _use_title(name: str, request: Mapping[str, Any]) -> str:
    """Returns the heading for a tool whose summary does not say what it does: the files of a patch, or its name."""
    files = _files(request)
    if name == "apply_patch" and files:
        title = t.marked(_TITLES["edit_file"], what=files)
        return f"{title}:"
    if files:
        return t("Hermes wants to use {name} on {files}:", name=name, files=files)
    return t("Hermes wants to use {name}:", name=name)


def _summary_rows(text: str, request: Mapping[str, Any], columns: int) -> list[Row]:
    if not text:
        return []
    if not _has_diff(text, request):
        return _text_rows(_shown(request, text), columns)
    from hermes.surfaces.terminal.diff_view import (
        FileDiff,
        parts_of,
        patch_parts,
        whole_diff_rows,
    )

    marks = marks_of_this_run()
    rows: list[Row] = []
    words = _shown(request, text)
    if request["name"] == "apply_patch":
        words = words.removeprefix(f"Edit {_files(request)}\n")  # the heading says it
        parts = patch_parts(words)
    else:
        parts = parts_of(words, str(_arguments(request).get("path", "")))
    for part in parts:
        if isinstance(part, FileDiff):
            rows += whole_diff_rows(part, columns, marks)
        else:
            rows += _text_rows(part, columns, _DIFF_LOOKS.get(part[:1], ""))
    return rows


def _shown(request: Mapping[str, Any], text: str) -> str:
    """Returns the lines below the heading in the reader's language: all of the summary, or those after its first one."""
    is_whole = text == _summary(request)
    return (shown_summary if is_whole else shown_change)(request["name"], text)


def _has_diff(text: str, request: Mapping[str, Any]) -> bool:
    """Returns whether the policy wrote a diff into this summary. A command, or the content of a new file, may look like
    one, and is shown as it is.
    """
    match request["name"]:
        case "edit_file" | "apply_patch":
            return True
        case "write_file":
            return text.startswith(REPLACED)
        case _:
            return False


def _text_rows(text: str, columns: int, look: str = "") -> list[Row]:
    lines = wrap(text, max(columns - 2, 20))
    return [(("  ", ""), (line, look)) for line in lines]


def _shortened(rows: list[Row]) -> list[Row]:
    """Returns the rows of a summary, with a note instead of the middle if they are too many."""
    most = _max_summary_lines()
    hidden = len(rows) - most
    if hidden <= 0:
        return rows
    text = t(
        "  ... {count:,} more line; v shows all",
        "  ... {count:,} more lines; v shows all",
        count=hidden,
    )
    note = ((text, DIM),)
    # Show the end too: it may hold what matters.
    tail = min(_TAIL_LINES, most // 2)
    return [*rows[: most - tail], note, *rows[-tail:]]


def _max_summary_lines() -> int:
    """The most lines that still leave room for the heading and the menu in the window."""
    if not sys.stdout.isatty():
        return _MAX_SUMMARY_LINES
    room = terminal_height(sys.stdout) - _ROWS_AROUND_SUMMARY
    return max(_MIN_SUMMARY_LINES, min(room, _MAX_SUMMARY_LINES))


def _remarks(request: Mapping[str, Any]) -> list[str]:
    """Returns why the policy asks and what the call can reach."""
    reason, reach = request.get("reason"), request.get("reach")
    is_seen = reason == _CHANGES_FILE and request["name"] in _FILE_TOOLS
    remarks = [f"({shown_approval_reason(reason)})"] if reason and not is_seen else []
    is_said = reach == "network" and reason == _USES_NETWORK
    if reach in _REACHES and not is_said:
        remarks.append(t.marked(_REACHES[reach]))
    return remarks


def menu_lines(menu: QuestionMenu, columns: int) -> list[str]:
    """Returns the menu as numbered lines, for a terminal that only prints."""
    lines = [row for line in menu.title for row in wrap(clean(line), columns)]
    if menu.types:
        return lines
    for number, choice in enumerate(menu.choices, 1):
        key = f" ({choice.key})" if choice.key else ""
        first, *more = wrap(f"{clean(choice.label)}{key}", max(columns - 5, 15))
        lines += [f"{number:>3}. {first}", *(f"     {row}" for row in more)]
    return lines


def menu_label(menu: QuestionMenu) -> str:
    """Returns the label of the input for a typed answer."""
    if menu.types:
        return menu.prompt
    return t("Your choice (1-{last})", last=len(menu.choices))


def again(menu: QuestionMenu) -> str:
    """Returns what to say after a line that was no answer."""
    if menu.types:
        return t("Please answer.")
    last = len(menu.choices)
    if not menu.is_approval:
        return t(
            "Please type a number from 1 to {last}, or an answer of your own.",
            last=last,
        )
    is_repeated = not menu.rule and not is_rules_check(menu.request)
    more = t("Hermes asks about it every time.") if is_repeated else ""
    keys = ", ".join(choice.key for choice in menu.choices)
    once = len(menu.choices) == 2 and menu.step == "choose"
    said = t("Please type a number from 1 to {last}, or {keys}.", last=last, keys=keys)
    return f"{said} {more}".rstrip() if once else said


def is_answer(menu: QuestionMenu, line: str) -> bool:
    """Returns whether a line would answer an approval, so that it is surely no message."""
    words = line.strip().lower()
    return menu.is_approval and (words in _SHORT_ANSWERS or words.isdecimal())


def _summary(request: Mapping[str, Any]) -> str:
    """Returns the summary of what will happen, written by the policy."""
    return clean(request.get("summary") or request["arguments"])


def _uncut(request: Mapping[str, Any]) -> str:
    """Returns what follows a summary that the policy may have cut; empty for any other."""
    summary = request.get("summary") or request["arguments"]
    if len(summary) < _CUT_SUMMARY_CHARS:
        return ""
    return clean(f"\n{t('The whole request:')}\n{_longest(request)}")


def _patch(request: Mapping[str, Any]) -> str:
    if request["name"] != "apply_patch":
        return ""
    return str(_arguments(request).get("patch", ""))


def _files(request: Mapping[str, Any]) -> str:
    """Names the files of a patch."""
    names = patched_files(_patch(request))
    if not names:
        return ""
    shown = ", ".join(map(one_line, names[:_MAX_PATCH_FILES_NAMED]))
    hidden = len(names) - _MAX_PATCH_FILES_NAMED
    if hidden <= 0:
        return shown
    return t(
        "{files} and {count} more file",
        "{files} and {count} more files",
        files=shown,
        count=hidden,
    )


def _longest(request: Mapping[str, Any]) -> str:
    return max(
        (value for value in _arguments(request).values() if isinstance(value, str)),
        key=len,
        default="",
    )


def _arguments(request: Mapping[str, Any]) -> Mapping[str, Any]:
    return arguments_by_name(request["arguments"])


def _question(request: Mapping[str, Any], style: Style, columns: int) -> list[str]:
    if request.get("plan"):
        return _plan(request, style, columns)
    first, *more = wrap(clean(shown_question(request["text"])), columns - 2)
    return [style.yellow(f"? {first}"), *(f"  {line}" for line in more)]


def _plan(request: Mapping[str, Any], style: Style, columns: int) -> list[str]:
    """Returns the lines of a plan, with its Markdown rendered."""
    rows = _plan_rows(request, columns, colours=style.enabled)
    return [painted(row, style).rstrip() for row in rows]


def _plan_rows(request: Mapping[str, Any], columns: int, *, colours: bool) -> list[Row]:
    from hermes.surfaces.terminal.markdown.render import Markdown

    title, _, text = clean(request["text"]).partition("\n")
    is_ascii = marks_for(sys.stdout.encoding).bar == "|"
    markdown = Markdown(colours=colours, ascii_only=is_ascii)
    room = max(columns - 2, 20)
    rows = [*markdown.feed(text.strip("\n"), room), *markdown.end(room)]
    heading: list[Row] = [((f"? {line}", YELLOW),) for line in wrap(title, room)]
    return [*heading, (), *((("  ", ""), *row) if row else () for row in rows)]
