"""Shows a one-shot run at a terminal: the answer as it is written, the calls and the questions.

The answer is shown as it is written only if stdout and stderr are both terminals: only then can a line on stderr
separate it from words before a call, or from a reply that broke off.
"""

import asyncio
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from hermes.app.agent import Agent
from hermes.schema.shown_reasons import shown_event
from hermes.surfaces.terminal.answer_output import AnswerOutput
from hermes.surfaces.terminal.approval import (
    QUESTION_EVENTS,
    Questions,
    again,
    deliver_answer,
    menu_label,
    menu_lines,
    question_lines,
)
from hermes.surfaces.terminal.notices import (
    COMPACTION,
    GOAL,
    compaction_notice,
    evidence_lines,
    goal_notice,
)
from hermes.surfaces.terminal.question_menu import PersonAnswer
from hermes.surfaces.terminal.style import stderr_style, terminal_width
from hermes.surfaces.terminal.text import clean, cut
from hermes.surfaces.terminal.tool_line import RunningCalls, marks_for, preparing
from hermes.text.translation import translator

if TYPE_CHECKING:
    from hermes.surfaces.terminal.line_input import LineReader

t = translator(__name__)


class AskScreen:
    """Shows one session's run."""

    def __init__(self, agent: Agent, session: str) -> None:
        self._agent = agent
        self._session = session
        self._style = stderr_style()
        self._marks = marks_for(sys.stderr.encoding)
        self._calls = RunningCalls()
        self._questions = Questions(self._show_request, lambda _: self._ask_again())
        self._answer_output = AnswerOutput()
        self._is_below_line = False
        self._status = ""
        self.tells = sys.stderr.isatty()
        self.streams = self.tells and sys.stdout.isatty()

    def attach(self, stack: ExitStack) -> None:
        """When there is a person, lets them answer questions until the stack is closed."""
        if self.tells and sys.stdin.isatty():
            from hermes.surfaces.terminal.line_input import LineReader

            stack.enter_context(self._agent.questions.attached("cli"))
            lines = stack.enter_context(LineReader())
            stack.callback(asyncio.ensure_future(self._answer(lines)).cancel)

    def on_event(self, event: Mapping[str, Any]) -> None:
        """Shows an event."""
        event = shown_event(event)
        if event.get("session_id") != self._session:
            if (
                self.tells
                and event.get("root_session_id") == self._session
                and event["type"] in QUESTION_EVENTS
            ):
                self._questions.on_event(event)
            return
        if self.streams and event["type"] == "agent.message.delta":
            self._stream(event["text"])
        if event["type"] in {
            "agent.picture.reduced",
            "agent.picture.withheld",
        }:  # also into a file
            self._line(self._style.yellow(clean(event["detail"])))
        if event["type"] == "agent.turn.checked":
            paint = self._style.dim if event.get("ok", True) else self._style.yellow
            for line in evidence_lines(event):
                self._line(paint(clean(line)))
        if event["type"].startswith(GOAL):
            resume = f"hermes goal resume {event['session_id']}"
            if notice := goal_notice(event, resume):
                self._line(self._style.dim(clean(notice)))
        if event["type"] in COMPACTION:
            self._line(self._style.yellow(clean(compaction_notice(event))))
        if self.tells:
            self._calls.on_event(event)
            self._questions.on_event(event)
            self._show_status(event)

    def finish(self) -> None:
        """Ends the line that is being written."""
        self._set_status("")
        self._answer_output.end()

    def print_answer(self, text: str) -> None:
        """Prints an answer that was not shown while it was written."""
        self._stream(text)
        self.finish()

    def _stream(self, text: str) -> None:
        self._set_status("")
        if self._is_below_line and self.streams:
            print(file=sys.stderr, flush=True)
        self._is_below_line = False
        self._answer_output.write(text)

    def _show_status(self, event: Mapping[str, Any]) -> None:
        columns = terminal_width(sys.stderr)
        match event["type"]:
            case "agent.turn.started":
                if event.get("runtime") == "codex":
                    self._line(self._style.dim(t("Codex answers.")))
                self._set_status(f"{self._marks.runs} thinking")
            case "agent.tool.started":
                self.finish()
                self._set_status(f"{self._marks.runs} {self._calls.running()}")
            case "agent.tool.finished":
                self._line(self._calls.finish(event, self._style, self._marks, columns))
                self._set_status(
                    f"{self._marks.runs} {self._calls.running() or t('thinking')}"
                )
            case "agent.model.preparing":
                self._set_status(f"{self._marks.runs} {preparing(event)}")
            case "agent.model.retried":
                self._line(
                    self._style.yellow(
                        clean(
                            t(
                                "trying again: {reason}",
                                reason=event.get("detail") or event["reason"],
                            )
                        )
                    )
                )
            case "agent.login.expired":
                words = t(
                    "{detail} Sign in again: {command}",
                    detail=event["detail"],
                    command=event["command"],
                )
                self._line(self._style.yellow(clean(words)))
            case "agent.turn.ended":
                self.finish()
            case _:
                pass

    def _line(self, text: str) -> None:
        self.finish()
        print(text, file=sys.stderr, flush=True)
        self._is_below_line = True

    def _set_status(self, text: str) -> None:
        """Shows a line that the next output replaces, with room for the ^C that a terminal shows after it."""
        if not self.tells or not self._style.enabled or text == self._status:
            return
        erase = "\r\x1b[K" if self._status else ""
        shown = self._style.dim(cut(text, terminal_width(sys.stderr) - 3))
        sys.stderr.write(erase + shown)
        sys.stderr.flush()
        self._status = text

    def _show_request(
        self, request: Mapping[str, Any] | None, *, whole: bool = False
    ) -> None:
        if request is None:
            return
        for line in question_lines(
            request, self._style, terminal_width(sys.stderr), whole=whole
        ):
            self._line(line)
        if whole:
            self._ask_again()

    def _ask_again(self) -> None:
        self.finish()
        menu = self._questions.menu
        if menu is not None:
            for line in menu_lines(menu, terminal_width(sys.stderr) - 1):
                print(line, file=sys.stderr)
        label = menu_label(menu) if menu else ""
        print(
            self._style.bold(f"{label} {self._marks.prompt}".lstrip()),
            end="",
            file=sys.stderr,
            flush=True,
        )

    async def _answer(self, lines: "LineReader") -> None:
        while (line := await lines.read()) is not None:
            menu = self._questions.menu
            if menu is None:
                continue
            taken = await self._questions.take(
                line.text, self._deliver, typed_at=line.at
            )
            if taken == "view":
                self._show_request(menu.request, whole=True)
            elif taken != "answered":
                if taken == "unclear":
                    print(again(menu), file=sys.stderr)
                self._ask_again()
        while (
            request := self._questions.current
        ) is not None:  # nobody can answer any more
            asks = request["type"] == "agent.question.asked"
            word = None if asks else "deny"
            await self._deliver(
                PersonAnswer(
                    request["call_id"], word, session=request.get("session_id", "")
                )
            )

    async def _deliver(self, given: PersonAnswer) -> bool:
        return await deliver_answer(self._agent.service, given, self._session)
