"""The input of the live screen: editing, history, completion, pastes, images and drafts."""

import asyncio
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import ThreadedCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition, emacs_mode, vi_insert_mode
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

from hermes.learning.learning_service import SkillCommand
from hermes.primitives.tasks import BackgroundTasks
from hermes.settings.home import Home
from hermes.surfaces.tui.completion import InputCompleter, Skills
from hermes.surfaces.tui.drafts import Drafts
from hermes.surfaces.tui.file_list import FileList
from hermes.surfaces.tui.input_history import InputHistory
from hermes.surfaces.tui.menu_input import MenuInput
from hermes.surfaces.tui.pastes import Pastes, clipboard_image
from hermes.surfaces.tui.plain_screen import TypedInput
from hermes.text.translation import translator

t = translator(__name__)

_NOTICE_QUESTION_S = 1.5  # time to notice a question while typing
_DRAFT_DELAY_S = 0.2  # pause in typing before a draft is written


class InputBox:
    """The input field and its key bindings.

    `send` receives the input; `interrupt`, `stop` and `leave` handle Ctrl-C, Esc and Ctrl-D in an
    empty input; `stop` returns whether there was something to stop; `touched` is called on every change.
    """

    def __init__(
        self, home: Home, folder: Path, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.send: Callable[[TypedInput], object] = lambda _: None
        self.interrupt: Callable[[], object] = lambda: None
        self.stop: Callable[[], object] = lambda: None
        self.touched: Callable[[], object] = lambda: None
        self.leave: Callable[[], object] = lambda: None
        self.say: Callable[[str], object] = lambda _: None
        self.answering = False
        """Whether a question is being answered: any line is sent, and none goes into the history."""
        self.instant_keys = ""
        """Keys that are sent as an answer without Enter."""
        self.menu = MenuInput(self)
        self.cycle_mode: Callable[[], object] = lambda: None
        self.skills: Skills = lambda: ()
        self.search_history: Callable[[], object] = lambda: None
        self.open_editor: Callable[[], object] = lambda: None
        self._home = home
        self._clock = clock
        self._changed_at = float("-inf")
        self._ignore_answers_until = float(
            "-inf"
        )  # an earlier Enter may end a text that was being typed
        self._pastes = Pastes()
        self._drafts = Drafts(home, folder)
        self._set_aside = Document()
        self._suggested = ""  # inserted into the input, not typed
        self._save_timer: asyncio.TimerHandle | None = None
        self._tasks = BackgroundTasks("pasting an image")
        self.buffer = Buffer(
            multiline=True,
            history=InputHistory(home.root / "input_history.jsonl"),
            completer=ThreadedCompleter(InputCompleter(FileList(folder), self._skills)),
            complete_while_typing=Condition(self._completes),
            on_text_changed=lambda _: self._changed(),
        )

    def recover(self) -> bool:
        """Restores unsent input that an earlier chat in this folder left when it died."""
        text = self._drafts.recover()
        self.suggest(text)
        return bool(text)

    def suggest(self, text: str) -> None:
        """Inserts a text if the input is empty."""
        if not self.buffer.text:
            self._suggested = self._pastes.fold(text)
            self.buffer.insert_text(self._suggested)

    def earlier_inputs(self) -> list[str]:
        """Returns what was sent before, newest first, each once."""
        return list(dict.fromkeys(reversed(self.buffer.history.get_strings())))

    @property
    def whole_text(self) -> str:
        """The input, with long pastes in full."""
        return self._pastes.expand(self.buffer.text)

    def replace(self, text: str) -> None:
        """Replaces the input."""
        self.buffer.set_document(Document(self._pastes.fold(text)))

    def set_aside(self) -> None:
        """Clears the input for the answer to a question.

        A person who is typing may press Enter before noticing the question.
        """
        now = self._clock()
        if self.buffer.text and now - self._changed_at < _NOTICE_QUESTION_S:
            self._ignore_answers_until = now + _NOTICE_QUESTION_S
        self._set_aside, self.answering = self.buffer.document, True
        self._replace(Document())

    def accept_answers(self) -> None:
        """Accepts the next line as an answer, because the person has begun to answer."""
        self._ignore_answers_until = float("-inf")

    @property
    def last_key_at(self) -> float:
        """When the person last changed the input, in the clock's time."""
        return self._changed_at

    def restore(self) -> None:
        """Restores the input that `set_aside` cleared."""
        self.answering = False
        self._replace(self._set_aside)
        self._set_aside = Document()

    def _replace(self, document: Document) -> None:
        """Replaces the input, which is no key of the person."""
        before = self._changed_at
        self.buffer.set_document(document)
        self._changed_at = before

    def close(self) -> None:
        """Saves the unsent input for the next chat."""
        if self._save_timer is not None:
            self._save_timer.cancel()
        self._drafts.save(self._unsent_text())

    def keys(self) -> KeyBindings:
        """Builds the key bindings."""
        keys = KeyBindings()
        keys.add("enter")(self._enter)
        keys.add("escape", "enter")(
            lambda event: event.current_buffer.insert_text("\n")
        )
        keys.add("c-j", eager=True)(
            lambda event: event.current_buffer.insert_text("\n")
        )
        keys.add("c-s", eager=True)(lambda _: self._submit(steers=True))
        keys.add("tab")(self._tab)
        keys.add("s-tab")(self._shift_tab)
        keys.add("c-v", eager=True)(self._clipboard)
        keys.add(Keys.BracketedPaste, eager=True)(
            lambda event: self._insert(self._pastes.insert(event.data))
        )
        keys.add("backspace")(self._backspace)
        is_inserting = emacs_mode | vi_insert_mode
        keys.add("/", filter=is_inserting)(lambda _: self._slash())
        keys.add("c-r", eager=True)(lambda _: self.search_history())
        keys.add("c-g", eager=True)(lambda _: self.open_editor())
        keys.add("c-z", eager=True)(lambda event: event.app.suspend_to_background())
        keys.add("escape", "l")(lambda _: self.send(TypedInput("/learn")))
        keys.add("escape", "v")(lambda _: self.send(TypedInput("/dictate")))
        is_empty = Condition(lambda: not self.buffer.text)
        is_free = Condition(lambda: not self.buffer.text and not self.answering)
        keys.add("escape", filter=is_empty)(lambda _: self.stop())
        keys.add("escape", "escape", filter=is_free)(lambda _: self._rewind())
        keys.add("c-o", eager=True)(
            lambda _: self.send(TypedInput("/details", by_key=True))
        )
        keys.add("?", filter=is_free)(
            lambda _: self.send(TypedInput("/keys", by_key=True))
        )
        keys.add("c-c")(self._interrupted)
        keys.add(Keys.SIGINT)(self._interrupted)
        keys.add("c-d", filter=Condition(lambda: not self.buffer.text))(
            lambda _: self.leave()
        )
        self.menu.bind(keys)
        return keys

    def _shift_tab(self, event: KeyPressEvent) -> None:
        if event.current_buffer.complete_state:
            event.current_buffer.complete_previous()
        else:
            self.cycle_mode()

    def _enter(self, event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        state = buffer.complete_state
        if (
            state is not None
            and state.current_completion is not None
            and not buffer.text.startswith("/")
        ):
            buffer.complete_state = None  # the first Enter accepts the completion
            buffer.insert_text(" ")
        elif buffer.document.text_before_cursor.endswith("\\"):
            buffer.delete_before_cursor()
            buffer.insert_text("\n")
        else:
            self._submit(steers=False)

    def _submit(self, *, steers: bool) -> None:
        text = self.buffer.text
        if text and not text.strip() and not self.answering:
            return
        if self.answering and self._clock() < self._ignore_answers_until:
            self._ignore_answers_until = float("-inf")
            self.buffer.reset()
            self.say(
                t("The question appeared while you were typing. Please answer it now.")
            )
            return
        if self.menu.types:
            self.menu.submit(self._pastes.expand(text))
            return
        now = asyncio.get_running_loop().time()
        typed = TypedInput(
            self._pastes.expand(text), self._pastes.pictures(text), steers, now
        )
        if text and not self.answering:
            self.buffer.history.append_string(typed.text)
            self._pastes.clear()
        self.buffer.reset()
        self.send(typed)

    def _rewind(self) -> None:
        """Handles Esc twice: stops what runs, or offers to go back when nothing does."""
        if not self.stop():
            self.send(TypedInput("/rewind", by_key=True))

    def _slash(self) -> None:
        """Starts a command. It replaces a text that was only suggested; arrow up brings the text back."""
        if self._suggested and self.buffer.text == self._suggested:
            self._move_to_history()
        self.buffer.insert_text("/")

    def _move_to_history(self) -> None:
        """Moves the input into the history."""
        self.buffer.history.append_string(self._pastes.expand(self.buffer.text))
        self._pastes.clear()
        self.buffer.reset()

    def _tab(self, event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.complete_state:
            buffer.complete_next()
            self._accept_only_file(buffer)
        elif self._completes():
            buffer.start_completion(select_first=True)

    def _accept_only_file(self, buffer: Buffer) -> None:
        """Accepts a file that was the only one, so that Enter sends."""
        state = buffer.complete_state
        is_only = state is not None and len(state.completions) == 1
        if is_only and not buffer.text.startswith("/"):
            buffer.complete_state = None
            if not buffer.text.endswith("/"):  # a folder may go on
                buffer.insert_text(" ")

    def _backspace(self, event: KeyPressEvent) -> None:
        """Deletes the placeholder of a paste as a whole."""
        buffer = event.current_buffer
        before = buffer.document.text_before_cursor
        mark = next((mark for mark in self._pastes.marks if before.endswith(mark)), " ")
        buffer.delete_before_cursor(len(mark) * event.arg)

    def _interrupted(self, event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.text and not self.answering:
            self._move_to_history()
        elif buffer.text:
            buffer.reset()
        else:
            self.interrupt()

    def _clipboard(self, _: KeyPressEvent) -> None:
        self._tasks.start(self._paste_picture())

    async def _paste_picture(self) -> None:
        found = await clipboard_image(self._home.cache / "pictures")
        if found is None:
            self.say(
                t(
                    "The clipboard holds no image, or no program can read it (wl-paste, xclip, pngpaste)."
                )
            )
        else:
            self._insert(self._pastes.picture(found) + " ")

    def _insert(self, text: str) -> None:
        self.buffer.insert_text(text)

    def _completes(self) -> bool:
        before = self.buffer.document.text_before_cursor
        return not self.answering and (
            before.startswith("/") or "@" in before.rpartition(" ")[2]
        )

    def _skills(self) -> Sequence[SkillCommand]:
        return self.skills()

    def _unsent_text(self) -> str:
        """Returns the input as it would be sent, also while a question is being answered."""
        return self._pastes.expand(
            self._set_aside.text if self.answering else self.buffer.text
        )

    def _changed(self) -> None:
        self._changed_at = self._clock()
        self.touched()
        self.menu.touched()
        if (
            self.answering
            and self.buffer.text
            and self.buffer.text in self.instant_keys
        ):
            self._submit(steers=False)
        if self._save_timer is not None:
            self._save_timer.cancel()
        self._save_timer = asyncio.get_running_loop().call_later(
            _DRAFT_DELAY_S, self._save
        )

    def _save(self) -> None:
        asyncio.get_running_loop().run_in_executor(
            None, self._drafts.save, self._unsent_text()
        )
