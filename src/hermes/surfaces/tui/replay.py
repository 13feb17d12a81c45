"""Shows the end of a conversation again, as it looked when it happened."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from hermes.schema.events import OwnCommandRan
from hermes.surfaces.terminal.question_menu import QuestionMenu
from hermes.surfaces.terminal.spoken_text import SpokenText
from hermes.surfaces.terminal.style import Style
from hermes.surfaces.terminal.styled_text import Row, painted
from hermes.surfaces.terminal.text import clean, wrap
from hermes.surfaces.terminal.tool_line import LINEAR_MARKS, Marks
from hermes.surfaces.tui.own_commands import OwnCommandResult
from hermes.surfaces.tui.plain_screen import TypedInput
from hermes.surfaces.tui.session_view import ChatView

_MAX_REPLAYED_LINES = 200


class _Part(NamedTuple):
    """Lines as they were printed, or a reply as it was written."""

    text: str
    is_reply: bool = False


class PastScreen(Protocol):
    """Where the past is printed."""

    style: Style
    marks: Marks
    animates: bool

    @property
    def columns(self) -> int:
        """The current width."""
        ...

    def line(self, text: str = "") -> None:
        """Prints whole lines."""
        ...


class ReplayScreen:
    """Collects what a view shows, for a screen that prints it at once."""

    echoes = False

    def __init__(self, screen: PastScreen) -> None:
        self.style = screen.style
        self.marks = screen.marks
        self.animates = screen.animates
        self.columns = screen.columns
        self._parts: list[_Part] = []
        self._reply = ""

    def write(self, text: str) -> None:
        self._reply += text

    def end_reply(self) -> None:
        text, self._reply = self._reply.strip("\n"), ""
        if text:
            self._parts.append(_Part(text, is_reply=True))

    def line(self, text: str = "") -> None:
        self.end_reply()
        self._parts.append(_Part(text))

    def last_lines(self, most: int) -> tuple[list[str], bool]:
        """Returns the last lines, and whether some were left out. Only replies among them are drawn."""
        lines: list[str] = []
        for number, part in enumerate(reversed(self._parts), 1):
            lines = [*self._lines_of(part), *lines]
            if len(lines) >= most:
                is_cut = len(lines) > most or number < len(self._parts)
                return lines[-most:], is_cut
        return lines, False

    def live(self, rows: Sequence[Row]) -> None:
        """Does nothing: what is over is not live."""

    def status(self, text: str) -> None:
        """Does nothing."""

    def show_prompt(self) -> None:
        """Does nothing."""

    def ask(self, label: str, *, keys: str = "") -> None:
        """Does nothing: what was asked then is not asked now."""

    def menu(self, menu: QuestionMenu | None) -> None:
        """Does nothing: what was asked then is not asked now."""

    last_key_at = float("-inf")

    async def edit(self, text: str, suffix: str) -> str:  # noqa: ARG002 - the port's shape
        return text

    def suggest(self, text: str) -> None:
        """Does nothing."""

    async def read(self) -> TypedInput | None:
        return None

    def leave(self) -> None:
        """Does nothing."""

    def _lines_of(self, part: _Part) -> list[str]:
        if not part.is_reply:
            return part.text.split("\n")
        if not self.animates:
            return list(wrap(self._plain(clean(part.text)), self.columns - 1))
        return self._drawn(part.text)

    def _plain(self, text: str) -> str:
        if self.marks != LINEAR_MARKS:
            return text
        spoken = SpokenText()
        return spoken.feed(text) + spoken.end()

    def _drawn(self, text: str) -> list[str]:
        """Renders a reply as it looked when it was written."""
        from hermes.surfaces.terminal.markdown.render import Markdown

        markdown = Markdown(
            colours=self.style.enabled, ascii_only=self.marks.bar == "|"
        )
        rows = markdown.whole(text, self.columns - 1)
        return [painted(row, self.style) for row in rows]


def replay(
    events: Sequence[Mapping[str, Any]],
    session: str,
    screen: PastScreen,
    *,
    quiet: bool = False,
) -> ChatView:
    """Prints the last lines of events that are over. Returns the view that showed them."""
    replayed = ReplayScreen(screen)
    past = ChatView(replayed, session, quiet=quiet)
    for event in events:
        if event["type"] == OwnCommandRan.topic:
            _show_own_command(event, past)
        elif event["type"] == "agent.question.asked":
            past.show_request(event)
        elif event["type"] != "agent.approval.requested":
            past.on_event(event)
    replayed.end_reply()
    lines, _ = replayed.last_lines(_MAX_REPLAYED_LINES)
    if lines:
        screen.line("\n".join(lines).rstrip("\n"))
        screen.line()
    return past


def _show_own_command(event: Mapping[str, Any], view: ChatView) -> None:
    code = event.get("code", 0)
    result = OwnCommandResult(event["command"], event.get("output", ""), code)
    view.show_own_command(result.command)
    view.show_own_result(result.command, result.output, result.ending, code)
