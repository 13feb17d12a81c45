"""Shows the end of a conversation again, as it looked when it happened."""

from collections.abc import Mapping, Sequence
from typing import Any

from hermes.surfaces.terminal.question_menu import QuestionMenu
from hermes.surfaces.terminal.styled_text import Row, painted
from hermes.surfaces.terminal.text import clean, wrap
from hermes.surfaces.tui.plain_screen import ChatScreen, TypedInput
from hermes.surfaces.tui.session_view import ChatView

_QUESTIONS = frozenset(("agent.approval.requested", "agent.question.asked"))
_MAX_REPLAYED_LINES = 200


class ReplayScreen:
    """Collects what a view shows, for a screen that prints it at once."""

    echoes = False

    def __init__(self, screen: ChatScreen) -> None:
        self.style = screen.style
        self.marks = screen.marks
        self.animates = screen.animates
        self.columns = screen.columns
        self.lines: list[str] = []
        self._reply = ""

    def write(self, text: str) -> None:
        self._reply += text

    def end_reply(self) -> None:
        text, self._reply = self._reply.strip("\n"), ""
        if text and self.animates:
            self.lines += self._drawn(text)
        elif text:
            self.lines += wrap(clean(text), self.columns - 1)

    def line(self, text: str = "") -> None:
        self.end_reply()
        self.lines += text.split("\n")

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

    def _drawn(self, text: str) -> list[str]:
        """Renders a reply as it looked when it was written."""
        from hermes.surfaces.terminal.markdown.render import Markdown

        markdown = Markdown(
            colours=self.style.enabled, ascii_only=self.marks.bar == "|"
        )
        room = self.columns - 1
        rows = [*markdown.feed(text, room), *markdown.end(room)]
        return [painted(row, self.style) for row in rows]


def replay(
    events: Sequence[Mapping[str, Any]], view: ChatView, screen: ChatScreen
) -> bool:
    """Prints the last lines of events that are over. Returns whether some were left out."""
    replayed = ReplayScreen(screen)
    past = ChatView(replayed, view.session, quiet=view.quiet)
    for event in events:
        if event["type"] not in _QUESTIONS:
            past.on_event(event)
    replayed.end_reply()
    view.take_over(past)
    lines = replayed.lines[-_MAX_REPLAYED_LINES:]
    if lines:
        screen.line("\n".join(lines).rstrip("\n"))
        screen.line()
    return len(lines) < len(replayed.lines)
