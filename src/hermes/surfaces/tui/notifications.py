"""Notifications when a chat waits for its user or has finished, and nobody looks at the window.

The terminal reports when its window gets or loses the focus (mode 1004). If it does not report this, a person who has
typed nothing for a while is assumed not to be looking.
"""

import asyncio
import re
import time
from collections.abc import Callable, Mapping
from typing import Any

from prompt_toolkit.input.ansi_escape_sequences import ANSI_SEQUENCES
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.keys import Keys

from hermes.children.helper_programs import find_program
from hermes.primitives.tasks import BackgroundTasks
from hermes.schema.shown_reasons import state_in_words
from hermes.settings.sections import NotifySettings
from hermes.surfaces.terminal.summary_words import shown_summary
from hermes.text.translation import translator

t = translator(__name__)

FOCUS_REPORTS_ON, FOCUS_REPORTS_OFF = "\x1b[?1004h", "\x1b[?1004l"
_SAVE_TITLE, _RESTORE_TITLE = "\x1b[22;2t", "\x1b[23;2t"
_AWAY_AFTER_S = 30.0
_PROGRAM_TIMEOUT_S = 5.0
_MAX_CHARS = 160
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f;]+")
_OSC_9 = frozenset(("iTerm.app", "WezTerm", "ghostty", "vscode", "WarpTerminal"))
_OSC_777_TERMS = ("rxvt", "foot")
_GOT, _LOST = Keys.F23, Keys.F24
"""No keyboard has them, and prompt_toolkit has no keys for these reports."""


class Focus:
    """Whether somebody looks at the window."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._reported: bool | None = None
        self._touched = clock()

    def report(self, *, focused: bool) -> None:
        """Takes a report of the terminal."""
        self._reported = focused

    def touch(self) -> None:
        """Notes that a key was pressed."""
        self._touched = self._clock()
        if self._reported is False:
            self._reported = True

    @property
    def is_away(self) -> bool:
        """Whether nobody seems to look."""
        if self._reported is not None:
            return not self._reported
        return self._clock() - self._touched >= _AWAY_AFTER_S


class Notifier:
    """Notifies about the events of one chat. `send` writes a control sequence to the terminal."""

    def __init__(
        self,
        settings: NotifySettings,
        send: Callable[[str], None],
        environ: Mapping[str, str],
        focus: Focus | None = None,
    ) -> None:
        self._settings = settings
        self._send = send
        self._environ = environ
        self.focus = focus or Focus()
        self._began = 0.0
        self._programs = BackgroundTasks("showing a desktop notification")

    def start(self) -> None:
        """Asks the terminal to report its focus, and remembers its title."""
        self._send(FOCUS_REPORTS_ON)
        if self._settings.title:
            self._send(_SAVE_TITLE)

    async def close(self) -> None:
        """Restores what `start` changed."""
        self._send(FOCUS_REPORTS_OFF)
        if self._settings.title:
            self._send(_RESTORE_TITLE)
        await self._programs.close()

    def on_event(self, event: Mapping[str, Any], session: str) -> None:
        """Takes an event of the session or of one that works for it."""
        if session not in (event.get("session_id"), event.get("root_session_id")):
            return
        match event["type"]:
            case "agent.turn.started":
                self._began = event["ts"]
                self._show_title(t("working"))
            case "agent.approval.requested" | "agent.question.asked":
                summary = shown_summary(event.get("name", ""), event.get("summary", ""))
                asked = summary or event.get("text") or t("a question")
                self._show_title(t("waits for you"))
                self.notify(t("Hermes asks: {asked}", asked=asked))
            case "agent.turn.ended" if event.get("session_id") == session:
                self._show_title("")
                if event["ts"] - self._began >= self._settings.after:
                    done = event["reason"] == "done"
                    self.notify(
                        t("Hermes is done") if done else t("Hermes has stopped")
                    )
            case "agent.child.ended" if event.get("kind") != "delegate":
                reason = state_in_words(event.get("reason") or "ended")
                self.notify(t("Background task: {reason}", reason=reason))
            case "agent.goal.paused" if event.get("by") == "hermes":
                self.notify(t("The goal is paused"))
            case "agent.goal.judged" if event["verdict"] in ("done", "needs_you"):
                reached = event["verdict"] == "done"
                self.notify(t("Goal reached") if reached else t("The goal needs you"))
            case _:
                pass

    def notify(self, text: str) -> None:
        """Notifies in the ways of the settings, if nobody looks or the settings say always."""
        wanted = self._settings.when
        if wanted == "never" or (wanted == "unfocused" and not self.focus.is_away):
            return
        words = _UNPRINTABLE.sub(" ", text).strip()[:_MAX_CHARS]
        if self._settings.bell:
            self._send("\a")
        if self._settings.terminal and (sequence := self._osc(words)):
            self._send(self._through_tmux(sequence))
        if self._settings.desktop:
            self._programs.start(self._on_desktop(words))

    def _show_title(self, state: str) -> None:
        if self._settings.title:
            name = f"Hermes ({state})" if state else "Hermes"
            self._send(f"\x1b]2;{name}\a")

    def _osc(self, text: str) -> str:
        """The terminal's own sequence for notifications; empty if it is not known to have one."""
        term = self._environ.get("TERM", "")
        program = self._environ.get("TERM_PROGRAM", "")
        if "kitty" in term or "KITTY_WINDOW_ID" in self._environ:
            return f"\x1b]99;;{text}\x1b\\"
        if program in _OSC_9 or {"WT_SESSION", "ConEmuPID"} & self._environ.keys():
            return f"\x1b]9;{text}\a"
        if term.startswith(_OSC_777_TERMS) or "VTE_VERSION" in self._environ:
            return f"\x1b]777;notify;Hermes;{text}\a"
        return ""

    def _through_tmux(self, sequence: str) -> str:
        """tmux passes on what is marked for the terminal around it."""
        if "TMUX" not in self._environ:
            return sequence
        return f"\x1bPtmux;{sequence.replace(chr(27), chr(27) * 2)}\x1b\\"

    async def _on_desktop(self, text: str) -> None:
        program = find_program("notify-send", self._environ)
        if program is None:
            return
        null = asyncio.subprocess.DEVNULL
        process = await asyncio.create_subprocess_exec(
            program, "--app-name=Hermes", "--", "Hermes", text,
            stdin=null, stdout=null, stderr=null,
        )  # fmt: skip
        try:
            async with asyncio.timeout(_PROGRAM_TIMEOUT_S):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()


def focus_keys(on_focus: Callable[[bool], object]) -> KeyBindings:
    """Bindings that pass the reports on. Without them the reports would be typed as text."""
    ANSI_SEQUENCES.update({"\x1b[I": _GOT, "\x1b[O": _LOST})
    keys = KeyBindings()
    keys.add(_GOT, eager=True)(lambda _: on_focus(True))
    keys.add(_LOST, eager=True)(lambda _: on_focus(False))
    return keys
