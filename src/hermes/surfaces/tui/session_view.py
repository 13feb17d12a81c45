"""Shows the events of a session as a chat."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from hermes.app.typed_part import typed_part
from hermes.core.ports import Clock, SystemClock
from hermes.schema.goals import GOAL_VIA
from hermes.schema.shown_reasons import shown_event
from hermes.settings.load import environment
from hermes.surfaces.terminal.approval import (
    QUESTION_EVENTS,
    Questions,
    again,
    question_lines,
)
from hermes.surfaces.terminal.inline_images import (
    graphics_protocol,
    picture_sequence,
)
from hermes.surfaces.terminal.notices import (
    COMPACTION,
    GOAL,
    child_notice,
    compaction_notice,
    evidence_lines,
    goal_notice,
    reviewed_notice,
)
from hermes.surfaces.terminal.question_menu import is_rules_check
from hermes.surfaces.terminal.styled_text import BOLD, CYAN, DIM, RED, Row, painted
from hermes.surfaces.terminal.text import clean, cut, money, one_line, wrap
from hermes.surfaces.terminal.tool_line import preparing
from hermes.surfaces.tui.details import Details, ReplyThoughts
from hermes.surfaces.tui.plain_screen import ChatScreen
from hermes.surfaces.tui.plan_view import PlanView
from hermes.surfaces.tui.status_line import StatusLine
from hermes.surfaces.tui.tool_cards import NOT_BY_PERSON, ToolCards
from hermes.text.formats import duration
from hermes.text.translation import to_translate, translator

t = translator(__name__)

_MAX_ECHOED_LINES = 8  # of one message
_MAX_SHOWN_QUEUED = 3
_OWN_LINES = 20  # of the output of a person's own command
_STALL_S = 1.0  # without an event
_ANSWERS = {
    "once": to_translate("Allowed once."),
    "session": to_translate("Allowed until you quit."),
    "always": to_translate("Always allowed."),
    "deny": to_translate("Not allowed."),
}
_FAILED = to_translate("The turn failed.")
_ENDS = {
    "interrupted": to_translate("Interrupted. The reply so far was saved."),
    "refused": to_translate("The model refused."),
    "budget": to_translate("Stopped by the budget."),
    "crashed": to_translate("Hermes stopped during this turn."),
}

_CALL_FAULTS = frozenset(("bad_arguments", "unknown_tool"))
_REMARKS = frozenset(
    (
        *(
            "agent.model.preparing",
            "agent.model.retried",
            "agent.reply.rejected",
            "agent.learning.reviewed",
        ),
        *("agent.picture.reduced", "agent.picture.withheld", "agent.login.expired"),
    )
)


def end_sentence(reason: str, detail: str) -> str:
    """Returns a sentence on how a turn ended, for any end but a normal one."""
    if reason in {"budget", "failed"} and detail:  # the detail is a whole sentence
        return detail[:1].upper() + detail[1:]
    return f"{t.marked(_ENDS.get(reason, _FAILED))} {detail}".strip()


class _Waiting(msgspec.Struct, frozen=True):
    """A message that waits for a turn."""

    text: str
    steers: bool = False

    @property
    def kind(self) -> str:
        """`queued` for the next turn, `steers` for the next step of this one."""
        return t("steers") if self.steers else t("queued")


class ChatView:
    """Shows one session on a screen."""

    def __init__(
        self,
        screen: ChatScreen,
        session: str,
        *,
        status: StatusLine | None = None,
        quiet: bool = False,
        clock: Clock | None = None,
    ) -> None:
        self._screen = screen
        self._clock = clock or SystemClock()
        self._hint = " (Ctrl-O)" if screen.animates else ""
        self._cards = ToolCards(screen.marks, self._hint)
        self._began = 0.0
        self._step_began = 0.0  # the last result or answer: waiting is no thinking
        self._streamed = False  # part of this reply was streamed
        self._writes = False  # ... and more is expected
        self._below_call = self._below_text = False
        self._command = ""  # the last one, until a turn begins
        self._is_below_command = False
        self._is_final_reply = (
            False  # the last reply made no calls: the turn is about to end
        )
        self._thinking = ReplyThoughts()
        self._plan = PlanView(screen.marks)
        self.quiet = quiet
        """Whether calls that succeed and thinking are left out."""
        self._doing = ""
        self._own_since: float | None = None  # when a command of the person began
        self._checking = ""  # what of the goal is being checked
        self._waiting: dict[int, _Waiting] = {}
        self._last_event_at = self._clock.now()
        self._early_text = (
            ""  # start of a reply, until the calls before it are shown as done
        )
        self.held = False
        """Whether queued messages wait until the person sends them."""
        self.status = status or StatusLine()
        self.session = session
        self.busy = False
        self.questions = Questions(
            self._show_question,
            self._ask_question,
            last_key_at=lambda: screen.last_key_at,
        )

    @property
    def queued(self) -> list[str]:
        """The queued messages, oldest first."""
        return (
            [one.text for one in self._waiting.values()]
            if self.busy or self.held
            else []
        )

    @property
    def is_idle(self) -> bool:
        """Whether no turn runs and none is about to."""
        return not self.busy and not self._waiting

    @property
    def is_stuck(self) -> bool:
        """Whether nothing can continue until a person answers."""
        return self.questions.current is not None and self._cards.all_waiting

    @property
    def details(self) -> Details:
        """What is shown only in part."""
        return self._cards.details

    def on_event(self, event: Mapping[str, Any]) -> None:
        """Shows an event of the session."""
        if event.get("session_id") != self.session:
            if (
                event.get("root_session_id") == self.session
                and event["type"] in QUESTION_EVENTS
            ):
                self.questions.on_event(event)  # asked by a child agent
            elif event.get(
                "root_session_id"
            ) == self.session and self.status.on_child_event(event):
                self.tick()
            return
        self._last_event_at = self._clock.now()
        if (
            event["type"] == "agent.message.delta"
        ):  # first, because it is the most frequent
            self._write(event["text"])
            return
        event = shown_event(event)
        if event["type"] == "agent.tool.finished":
            self._finish_call(event)
        if self._early_text and event["type"] == "agent.message.assistant":
            self._write_early_text()
        self._is_final_reply = False
        self._cards.on_event(event)
        self.questions.on_event(event)
        self.status.on_event(event)
        self._show(event)
        if self._early_text and not self._cards.running:
            self._write_early_text()
        self.tick()

    def tick(self) -> None:
        """Redraws the live area: spinners and elapsed times."""
        if self._early_text and self._clock.now() - self._last_event_at >= _STALL_S:
            self._write_early_text()
        self._screen.live(list(self._live()))
        self._screen.status(
            self.status.text(self._screen.columns - 1, self._screen.marks.bullet)
        )

    def say(self, text: str, *, alarming: bool = False) -> None:
        """Shows a notice by Hermes."""
        self._print_calls()
        style = self._screen.style
        for line in wrap(clean(text), self._screen.columns - 1):
            self._screen.line(style.red(line) if alarming else style.dim(line))

    def answer(self, text: str) -> None:
        """Shows what a command of the person's found or did."""
        self._print_calls()
        for line in wrap(clean(text), self._screen.columns - 1):
            self._screen.line(line)

    def take_over(self, past: "ChatView") -> None:
        """Continues a view that showed what came before."""
        self._plan = past._plan  # noqa: SLF001 - another of its kind
        self._cards.details = past.details
        self.status.context = past.status.context or self.status.context

    def hold(self) -> None:
        """Holds queued messages until the person sends them."""
        self.held = True

    def show_forced_end(self) -> None:
        """Shows that the turn was ended by force; the next turn repairs its rows."""
        self._cards.on_event({"type": "agent.turn.ended"})
        self._end({"reason": "interrupted", "ts": self._clock.now()})
        self.tick()

    def ask_again(self) -> None:
        """Asks again after a line that was no answer."""
        menu = self.questions.menu
        if menu is not None:
            self.say(again(menu))
            self._screen.menu(menu)

    def show_all(self) -> None:
        """Shows the question again in full."""
        if self.questions.current is not None:
            self.show_edited()
            self._screen.menu(self.questions.menu)

    def show_edited(self) -> None:
        """Shows the question in full, with the plan as the person has changed it."""
        request = self.questions.as_edited
        if request is not None:
            for line in question_lines(
                request, self._screen.style, self._screen.columns - 1, whole=True
            ):
                self._screen.line(line)

    def show_note(self, text: str) -> None:
        """Shows that a note was kept, set apart from what comes before and after as a command is."""
        if self._is_below_command:
            self._screen.line()
        self.say(text)
        self._is_below_command = True

    def show_own_command(self, command: str) -> None:
        """Shows a command that the person runs."""
        self._own_since = self._clock.now()
        self._print_calls()
        if not self._screen.echoes:
            if self._is_below_command:
                self._screen.line()
            self._is_below_command = False
            text = cut(f"$ {one_line(command)}", self._screen.columns - 1)
            self._row(((text, BOLD),))

    def show_own_result(
        self, command: str, output: str, ending: str, code: int
    ) -> None:
        """Shows the end of what such a command printed, and how it ended if that matters."""
        self._own_since = None
        self.details.add(f"$ {one_line(command)}", output)
        shown = output if output.strip() or code else "(no output)"
        for row in self._cards.folded(shown, self._screen.columns - 1, _OWN_LINES):
            self._row(row)
        if code:
            self._row(((f"{self._screen.marks.failed} ", RED), (ending, DIM)))
        self._screen.line()
        self.tick()

    def _show(self, event: Mapping[str, Any]) -> None:
        match event["type"]:
            case "agent.message.user":
                self._queue(event)
            case "agent.message.withdrawn":
                self._waiting.pop(event["message"], None)
            case "agent.turn.started":
                self.busy, self.held = True, False
                self._began = self._step_began = event["ts"]
                self._echo(event.get("inputs", ()))
            case "agent.message.assistant":
                self._reply(event)
            case "agent.reasoning.delta":
                self._thinking.add(event["text"], event["ts"])
            case "agent.tool.generating":
                self._screen.end_reply()
                self._writes, self._doing = (
                    False,
                    t("preparing {name}", name=one_line(event["name"])),
                )
            case "agent.approval.answered" | "agent.question.answered":
                self._answered(event)
            case "agent.turn.steered":
                self._echo(event["inputs"])
            case kind if kind in _REMARKS:
                self._remark(event)
            case kind if kind in COMPACTION:
                self._compacted(event)
            case "agent.turn.ended":
                self._end(event)
            case _:
                self._show_progress(event)

    def _show_progress(self, event: Mapping[str, Any]) -> None:
        """Shows checks, goals, work in the background, and the todo list after an undo."""
        match event["type"]:
            case "session.undone":
                self._plan.undo(event["since"])
            case "session.redone":
                self._plan.redo()
            case "agent.turn.checked":
                self._checked(event)
            case kind if kind.startswith(GOAL):
                self._goal(event)
            case "agent.child.ended" if event.get("kind") == "background" or (
                event.get("kind") == "delegate" and not self.busy
            ):  # a turn that waits for its child gets the result itself
                self._finish_reply()
                self.show_note(child_notice(event))
                self.say(
                    t("All of it: /agents open {child}", child=event["child"][-6:])
                )
            case _:
                pass

    def _goal(self, event: Mapping[str, Any]) -> None:
        """Shows an event about the session's goal."""
        if event["type"] == "agent.goal.checking":
            steps = {
                "verify": t("running the goal's check"),
                "judge": t("judging the goal"),
            }
            self._checking = steps.get(event.get("step", ""), "")
            return
        self._checking = ""
        needs_you = event["type"] == "agent.goal.paused" and event.get("by") == "hermes"
        needs_you = needs_you or event.get("verdict") == "needs_you"
        if notice := goal_notice(event):
            self._finish_reply()
            self.say(notice, alarming=needs_you)
            self._screen.line()

    def _queue(self, event: Mapping[str, Any]) -> None:
        """Queues a person's message until a turn reads it. Hermes' own message about a goal is not shown."""
        if event.get("origin", "user") == "user" and event.get("via") != GOAL_VIA:
            text = typed_part(event["text"])
            self._waiting[event["seq"]] = _Waiting(
                text, steers=event.get("delivery") == "steer"
            )

    def _reply(self, event: Mapping[str, Any]) -> None:
        if event.get("reasoning") and not self._thinking.text and not self._streamed:
            self._thinking.add(event["reasoning"], event["ts"])
        if not self._streamed and event.get("text"):
            self._begin_reply()
            self._screen.write(event["text"])
        self._finish_reply()
        self._is_final_reply = not event.get("tool_calls")

    def _compacted(self, event: Mapping[str, Any]) -> None:
        """Reports an automatic compaction; the command reports the others."""
        if self.busy:
            self._finish_reply()
            self.say(
                compaction_notice(event),
                alarming=event["type"] == "session.compaction_failed",
            )

    def _checked(self, event: Mapping[str, Any]) -> None:
        """Shows below an answer what the project's rules found. A repair begins below it."""
        self._finish_reply()
        if self._below_text:
            self._screen.line()
        self._below_text, self._below_call = False, True
        for line in evidence_lines(event):
            self.say(line, alarming=not event.get("ok", True))

    def _answered(self, event: Mapping[str, Any]) -> None:
        """Shows a person's answer to a question, given here or elsewhere."""
        if event.get("by") == "expired":
            self.say(
                t("Nobody answered in time, so the call was denied."), alarming=True
            )
        elif event.get("by") in NOT_BY_PERSON:
            return
        elif event["type"] == "agent.approval.answered":
            self.say(self._verdict(event))
        elif event.get("text"):
            self.say(t("You: {text}", text=event["text"]))
            self._below_call = True

    def _verdict(self, event: Mapping[str, Any]) -> str:
        """What a person decided, and about which call if several are open."""
        why = event.get("reason", "")
        told = (
            t("Not allowed: {why}", why=one_line(why))
            if why
            else t.marked(_ANSWERS[event["answer"]])
        )
        if event["answer"] == "once" and is_rules_check(event):
            told = t("Allowed until the rules change.")
        label = self._cards.label_among(event["call_id"])
        return f"{one_line(label)}: {told}" if label else told

    def _remark(self, event: Mapping[str, Any]) -> None:
        """Shows an event that a person would wonder about."""
        match event["type"]:
            case "agent.model.preparing":
                self._doing = preparing(event)
            case "agent.model.retried":
                self._finish_reply()
                self.say(
                    t(
                        "Retrying in {duration}: {reason}",
                        duration=duration(event.get("delay", 0)),
                        reason=_reason(event),
                    )
                )
            case "agent.login.expired":
                self._finish_reply()
                again = t("Sign in again: {command}", command=event["command"])
                words = f"{event['detail']} {again}"
                self.say(words, alarming=True)
            case "agent.picture.reduced" | "agent.picture.withheld":
                self._finish_reply()
                self.say(event["detail"], alarming=True)
            case "agent.learning.reviewed":
                self.say(reviewed_notice(event, self.status.review_cost))
                self.status.review_cost = 0.0
            case "agent.reply.rejected" if event.get("reason") in _CALL_FAULTS:
                pass  # shown with the call
            case _:
                self.say(
                    t("The reply could not be used: {reason}", reason=_reason(event))
                )

    def _write(self, text: str) -> None:
        """Shows more of a reply.

        Results are shown only once they are on disk, so a quick reply may arrive first; it waits
        for them.
        """
        if not self._writes and self._cards.running:
            self._early_text += text
            return
        if not self._writes:
            self._begin_reply()
            self._streamed, self._writes, self._doing = True, True, ""
            self.tick()
        self._screen.write(text)

    def _write_early_text(self) -> None:
        text, self._early_text = self._early_text, ""
        self._begin_reply()
        self._streamed, self._writes, self._doing = True, True, ""
        self._screen.write(text)

    def _finish_call(self, event: Mapping[str, Any]) -> None:
        """Shows a finished call: the plan in its place, others when they are complete."""
        columns, self._step_began = self._screen.columns - 1, event["ts"]
        rows = list(self._cards.finish(event, columns))
        if event["name"] == "todo" and event.get("ok", True):
            self._plan.update(event.get("text", ""), event.get("seq", 0))
            if self._screen.animates:
                return
            rows = list(self._plan.rows(columns))
        if self.quiet and event.get("ok", True):
            self._below_call = self._below_call or self._below_text
            return
        for row in rows:
            self._row(row)
            self._below_call = True
        if event["name"] == "image_generate":
            for image in event.get("images", ()):
                self._show_picture(Path(image["source"]))

    def _show_picture(self, path: Path) -> None:
        """Shows where a picture was saved, and the picture if this terminal can."""
        self._row(((f"  {self._screen.marks.bar} {path}", DIM),))
        protocol = graphics_protocol(environment()) if self._screen.animates else ""
        if protocol:
            self._screen.line(picture_sequence(path, protocol, self._screen.columns))

    def _print_calls(self) -> None:
        """Prints the finished calls that waited for others of their kind."""
        for row in list(self._cards.flush(self._screen.columns - 1)):
            if not self.quiet:
                self._row(row)
                self._below_call = True

    def _begin_reply(self) -> None:
        """Separates the reply from the calls above it."""
        self._print_calls()
        self._print_thought()
        if self._below_call:
            self._below_call = False
            self._screen.line()
        self._below_text = True

    def _print_thought(self) -> None:
        """Says how long the model thought. The thoughts themselves are folded."""
        if not self._thinking.text:
            return
        took = duration(self._thinking.seconds)
        self.details.add(t("Thought for {took}", took=took), self._thinking.text)
        self._thinking = ReplyThoughts()
        if not self.quiet:
            item = self._screen.marks.item
            self._row(((f"{item} Thought for {took}{self._hint}", DIM),))
            self._below_call = True

    def _finish_reply(self) -> None:
        self._streamed, self._writes, self._doing = False, False, ""
        self._screen.end_reply()

    def _live(self) -> Iterator[Row]:
        """Yields the rows of the live area: running calls or the current activity, then queued messages."""
        columns, marks = self._screen.columns - 1, self._screen.marks
        now = self._clock.now()
        spinner = marks.spinner[int(now * 10) % len(marks.spinner)]
        question = self.questions.current
        if self.busy:
            asked = question["call_id"] if question else ""
            yield from self._cards.rows(now, spinner, columns, asked=asked)
        is_shown_by_call = self._cards.running or question is not None
        if not (self.busy and is_shown_by_call):
            yield from self._activity_rows(now, spinner, columns)
        if self._screen.animates:
            yield from self._plan.rows(columns)
        yield from self._queued_rows(columns)

    def _activity_rows(self, now: float, spinner: str, columns: int) -> Iterator[Row]:
        """Yields what is going on and for how long, and the last line of the model's thoughts."""
        doing = self._activity(is_stalled=now - self._last_event_at >= _STALL_S)
        if not doing:
            return
        since = self._own_since or self._last_event_at
        if self.busy:
            since = self._step_began if self._began else self._last_event_at
        passed = f" {duration(now - since)}" if now - since >= 1 else ""
        yield (
            (f"{spinner} ", CYAN),
            (cut(doing, columns - 3 - len(passed)), ""),
            (passed, DIM),
        )
        if last := self._thinking.last_line:
            bar = self._screen.marks.bar
            yield ((f"  {bar} {cut(last[-columns:], columns - 5)}", DIM),)

    def _queued_rows(self, columns: int) -> Iterator[Row]:
        """Yields the messages that wait for their turn."""
        waiting = list(self._waiting.values())
        for one in waiting[:_MAX_SHOWN_QUEUED]:
            kind = t("held") if self.held else one.kind
            lead = f"  {kind} " if self.busy or self.held else ""
            text = f"{lead}{self._screen.marks.prompt}{one_line(one.text)}"
            yield ((cut(text, columns), DIM),)
        if len(waiting) > _MAX_SHOWN_QUEUED:
            yield (
                (
                    f"  {t('and {count:,} more', count=len(waiting) - _MAX_SHOWN_QUEUED)}",
                    DIM,
                ),
            )

    def _activity(self, *, is_stalled: bool) -> str:
        """Returns the current activity in a word; nothing while text streams, or at rest."""
        if not self.busy:
            if self._checking:
                return self._checking
            if self._own_since is not None:
                return t("running")
            is_starting = is_stalled and self._waiting and not self.held
            return t("starting") if is_starting else ""
        if self._is_final_reply:
            return t("finishing") if is_stalled else ""
        if self._writes:
            return t("writing") if is_stalled else ""
        return self._doing or t("thinking")

    def echo_command(self, text: str) -> None:
        """Shows a command as it was typed. A message that it sends in the same words is not shown again."""
        self._print_calls()
        if self._is_below_command:
            self._screen.line()
        self._print_typed(text)
        self._command, self._is_below_command = text, True

    def _echo(self, inputs: Sequence[int]) -> None:
        """Shows the messages that this turn answers."""
        for seq in inputs:
            waited = self._waiting.pop(seq, None)
            if waited is not None and not self._screen.echoes:
                self._print_calls()
                self._screen.end_reply()
                if waited.text != self._command:
                    if self._is_below_command:
                        self._screen.line()
                    self._print_typed(waited.text)
                self._screen.line()
                self._command, self._is_below_command = "", False
                self._below_text = False

    def _print_typed(self, text: str) -> None:
        """Prints what a person typed; the end of a long text is left out."""
        lines = list(wrap(clean(text), self._screen.columns - 3))
        is_long = len(lines) > _MAX_ECHOED_LINES
        shown = lines[: _MAX_ECHOED_LINES - 1] if is_long else lines
        if is_long:
            hidden = t(
                "{count:,} more line",
                "{count:,} more lines",
                count=len(lines) - len(shown),
            )
            shown.append(f"{self._screen.marks.runs} {hidden}")
        for number, line in enumerate(shown):
            lead = "  " if number else self._screen.marks.prompt
            self._screen.line(self._screen.style.bold(lead + line))

    def _end(self, event: Mapping[str, Any]) -> None:
        self._print_calls()
        self.busy, self._below_call = False, False
        self._print_thought()
        self._plan.end_turn()
        self._finish_reply()
        reason = event["reason"]
        if reason != "done":
            self.say(
                end_sentence(reason, str(event.get("detail", ""))),
                alarming=reason != "interrupted",
            )
        usage = event.get("usage") or {}
        tokens = usage.get("input_tokens", 0) + usage.get("output_tokens", 0)
        passed = duration(event["ts"] - self._began) if self._began else ""
        self._began = 0.0
        used = t("{count:,} token", "{count:,} tokens", count=tokens)
        # A reply that was cut off has no count: none is better than a wrong one.
        known = used if tokens else ""
        parts = [passed, known, money(usage.get("cost_usd") or 0.0)]
        between = self._screen.marks.separator
        if any(parts):
            facts = between.join(part for part in parts if part)
            self._screen.line(self._screen.style.dim(facts))
        if self.held and self._waiting:
            number = len(self._waiting)
            self.say(
                t(
                    "{count} message not sent yet. Press Enter to send it.",
                    "{count} messages not sent yet. Press Enter to send them.",
                    count=number,
                )
            )
        self._screen.line()
        self._screen.show_prompt()

    def _show_question(self, request: Mapping[str, Any] | None) -> None:
        """Shows a question, or removes one that has been answered."""
        if request is None:
            self._screen.menu(None)
            self.tick()
            return
        self.show_request(request)
        if self._screen.animates:
            self._screen.menu(self.questions.menu)

    def show_request(self, request: Mapping[str, Any]) -> None:
        """Shows what was asked, without the ways to answer it."""
        self._screen.end_reply()
        self._print_calls()
        if self._below_call or self._below_text:
            self._below_call = self._below_text = False
            self._screen.line()
        for line in question_lines(
            request, self._screen.style, self._screen.columns - 1
        ):
            self._screen.line(line)

    def _ask_question(self, _: Mapping[str, Any]) -> None:
        """Asks on a screen that only prints, where nothing could be dim until an answer counts."""
        if not self._screen.animates:
            self._screen.menu(self.questions.menu)

    def _row(self, row: Row) -> None:
        self._below_text = False
        self._screen.line(painted(row, self._screen.style))


def _reason(event: Mapping[str, Any]) -> str:
    return str(event.get("detail") or event.get("reason", ""))
