"""What happens in a session, as a chat shows it. Reads events; decides nothing."""

from collections.abc import Mapping, Sequence
from typing import Any

from hermes.surfaces.terminal.approval import CHOICES, Questions, lines_of
from hermes.surfaces.terminal.text import clean, cut, money, wrap
from hermes.surfaces.terminal.toolline import Calls, duration, preparing
from hermes.surfaces.tui.screen import Screen


class ChatView:
    """Follows one session on a screen."""

    def __init__(self, screen: Screen, session: str) -> None:
        self._screen = screen
        self._calls = Calls()
        self._began = 0.0
        self._streamed = False
        self._waiting: dict[int, str] = {}
        self.session = session
        self.busy = False
        self.questions = Questions(self._put)

    def see(self, event: Mapping[str, Any]) -> None:
        """Shows an event of the session."""
        if event.get("session_id") != self.session:
            return
        if event["type"] == "agent.message.delta":  # first, because most are of this kind
            if not self._streamed:
                self._streamed = True
                self._wait()
            self._screen.write(event["text"])
            return
        self._calls.see(event)
        self.questions.see(event)
        self._show(event)

    def say(self, text: str, *, alarming: bool = False) -> None:
        """A remark of Hermes itself."""
        style = self._screen.style
        for line in wrap(clean(text), self._screen.columns - 1):
            self._screen.line(style.red(line) if alarming else style.dim(line))

    def ask_again(self) -> None:
        """The last line was no answer."""
        self.say("Please answer y, s or n.")
        self._ask()

    def _show(self, event: Mapping[str, Any]) -> None:
        screen = self._screen
        match event["type"]:
            case "agent.message.user":
                if event.get("origin", "user") == "user":
                    self._waiting[event["seq"]] = event["text"]
                    self._wait()
            case "agent.turn.started":
                self.busy, self._began = True, event["ts"]
                self._echo(event.get("inputs", ()))
                self._wait()
            case "agent.message.assistant":
                if not self._streamed and event.get("text"):
                    screen.write(event["text"])
                self._streamed = False
                screen.whole()
            case "agent.tool.started":
                self._wait()
            case "agent.tool.finished":
                screen.line(self._calls.finish(event, screen.style, screen.marks, screen.columns))
                self._wait()
            case "agent.turn.steered":
                self._echo(event["inputs"])
            case "agent.model.preparing" | "agent.model.retried" | "agent.reply.rejected":
                self._remark(event)
            case "agent.turn.ended":
                self._end(event)
            case _:
                pass

    def _remark(self, event: Mapping[str, Any]) -> None:
        """Something about the model that a person would wonder about."""
        match event["type"]:
            case "agent.model.preparing":
                self._screen.status(cut(f"{self._screen.marks.runs} {preparing(event)}", self._screen.columns - 1))
            case "agent.model.retried":
                self._streamed = False
                self._screen.whole()
                self.say(f"Trying again in {duration(event.get('delay', 0))}: {_reason(event)}")
            case _:
                self.say(f"The reply could not be used: {_reason(event)}")

    def _wait(self) -> None:
        """Says what goes on, and how many messages wait for their turn."""
        parts = [] if self._streamed or not self.busy else [self._calls.running() or "thinking"]
        parts += [f"{len(self._waiting)} waiting"] if self.busy and self._waiting else []
        bullet = f" {self._screen.marks.bullet} "
        text = f"{self._screen.marks.runs} {bullet.join(parts)}" if parts else ""
        self._screen.status(cut(text, self._screen.columns - 1))

    def _echo(self, inputs: Sequence[int]) -> None:
        """Shows the messages that are being answered now."""
        for seq in inputs:
            text = self._waiting.pop(seq, "")
            if text and not self._screen.echoes:
                first, *rest = wrap(clean(text), self._screen.columns - 3)
                self._screen.line(self._screen.style.bold(self._screen.marks.prompt + first))
                for line in rest:
                    self._screen.line(self._screen.style.bold(f"  {line}"))

    def _end(self, event: Mapping[str, Any]) -> None:
        self.busy, self._streamed = False, False
        self._screen.whole()
        words = {"interrupted": "Interrupted; what was written is kept.", "refused": "The model refused."}
        reason = event["reason"]
        if reason != "done":
            detail = event.get("detail", "")
            self.say(f"{words.get(reason, 'It failed.')} {detail}".strip(), alarming=reason != "interrupted")
        usage = event.get("usage") or {}
        tokens = usage.get("input_tokens", 0) + usage.get("output_tokens", 0)
        parts = [duration(event["ts"] - self._began), f"{tokens:,} tokens", money(usage.get("cost_usd") or 0.0)]
        bullet = f" {self._screen.marks.bullet} "
        self._screen.line(self._screen.style.dim(bullet.join(part for part in parts if part)))
        self._screen.line()
        self._screen.status("")

    def _put(self, request: Mapping[str, Any] | None) -> None:
        if request is None:
            self._screen.ask("")
            self._wait()
            return
        self._screen.status("")
        for line in lines_of(request, self._screen.style, self._screen.columns - 1):
            self._screen.line(line)
        self._ask()

    def _ask(self) -> None:
        self._screen.ask(CHOICES if self._screen.columns >= 60 else "Allow? y/s/n")


def _reason(event: Mapping[str, Any]) -> str:
    return str(event.get("detail") or event.get("reason", ""))
