"""The input of the live screen: editing, history, completion, pastes and pictures, and a draft that survives."""

import asyncio
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import ThreadedCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

from hermes.learning.learning_service import SkillCommand
from hermes.primitives.tasks import BackgroundTasks
from hermes.settings.home import Home
from hermes.surfaces.tui.clipboard import picture
from hermes.surfaces.tui.completion import InputCompleter, Skills
from hermes.surfaces.tui.drafts import Drafts
from hermes.surfaces.tui.file_list import FileList
from hermes.surfaces.tui.input_history import InputHistory
from hermes.surfaces.tui.pastes import Pastes
from hermes.surfaces.tui.typed_input import TypedInput

_NOTICE_QUESTION_S = 1.5  # seconds that it takes to notice a question while typing
_DRAFT_DELAY_S = 0.2  # seconds of no typing before a draft is written


class InputBox:
    """What is being typed. `send` gets it; `interrupt`, `stop` and `leave` are Ctrl-C, Esc and Ctrl-D on an empty
    input; `touched` is told of every change."""

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
        """Whether a question is being answered: any line counts, and none is remembered."""
        self.hot = ""
        """Keys that are an answer by themselves."""
        self.skills: Skills = lambda: ()
        self._home = home
        self._clock = clock
        self._touched = float("-inf")  # when the input changed last
        self._surprised = float(
            "-inf"
        )  # until when an answer may be the end of something else that was being typed
        self._pastes = Pastes()
        self._drafts = Drafts(home, folder)
        self._aside = Document()
        self._offered = ""  # what stands in the input and was not typed
        self._saving: asyncio.TimerHandle | None = None
        self._tasks = BackgroundTasks("pasting a picture")
        self.buffer = Buffer(
            multiline=True,
            history=InputHistory(home.root / "input_history.jsonl"),
            completer=ThreadedCompleter(InputCompleter(FileList(folder), self._skills)),
            complete_while_typing=Condition(self._completes),
            on_text_changed=lambda _: self._changed(),
        )

    def recover(self) -> bool:
        """Brings back what was typed and not sent when an earlier chat of this folder died."""
        text = self._drafts.recover()
        self.offer(text)
        return bool(text)

    def offer(self, text: str) -> None:
        """Puts words into an empty input."""
        if not self.buffer.text:
            self._offered = self._pastes.fold(text)
            self.buffer.insert_text(self._offered)

    def put_aside(self) -> None:
        """Makes room for the answer to a question. Who is typing may not have seen it when the next Enter comes."""
        now = self._clock()
        if self.buffer.text and now - self._touched < _NOTICE_QUESTION_S:
            self._surprised = now + _NOTICE_QUESTION_S
        self._aside, self.answering = self.buffer.document, True
        self.buffer.set_document(Document())

    def bring_back(self) -> None:
        """What was put aside comes back."""
        self.answering = False
        self.buffer.set_document(self._aside)
        self._aside = Document()

    def close(self) -> None:
        """The chat ends: what is left in the input is kept for the next one."""
        if self._saving is not None:
            self._saving.cancel()
        self._drafts.keep(self._words())

    def keys(self) -> KeyBindings:
        """The keys that do something of their own."""
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
        keys.add("s-tab")(lambda event: event.current_buffer.complete_previous())
        keys.add("c-v", eager=True)(self._clipboard)
        keys.add(Keys.BracketedPaste, eager=True)(
            lambda event: self._insert(self._pastes.take(event.data))
        )
        keys.add("backspace")(self._backspace)
        keys.add("/")(lambda _: self._slash())
        keys.add("escape", "l")(lambda _: self.send(TypedInput("/learn")))
        keys.add("escape", filter=Condition(lambda: not self.buffer.text))(
            lambda _: self.stop()
        )
        keys.add("c-c")(self._interrupted)
        keys.add(Keys.SIGINT)(self._interrupted)
        keys.add("c-d", filter=Condition(lambda: not self.buffer.text))(
            lambda _: self.leave()
        )
        return keys

    def _enter(self, event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        state = buffer.complete_state
        if (
            state is not None
            and state.current_completion is not None
            and not buffer.text.startswith("/")
        ):
            buffer.complete_state = None  # the first Enter takes the suggestion
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
        if self.answering and self._clock() < self._surprised:
            self._surprised = float("-inf")
            self.buffer.reset()
            self.say("You were typing when the question came. Please answer it now.")
            return
        now = asyncio.get_running_loop().time()
        typed = TypedInput(
            self._pastes.whole(text), self._pastes.pictures(text), steers, now
        )
        if text and not self.answering:
            self.buffer.history.append_string(typed.text)
            self._pastes.clear()
        self.buffer.reset()
        self.send(typed)

    def _slash(self) -> None:
        """A command is typed: it takes the place of words that were only offered. The arrow up brings them back."""
        if self._offered and self.buffer.text == self._offered:
            self._put_by()
        self.buffer.insert_text("/")

    def _put_by(self) -> None:
        """Takes the words out of the input and into the history."""
        self.buffer.history.append_string(self._pastes.whole(self.buffer.text))
        self._pastes.clear()
        self.buffer.reset()

    def _tab(self, event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.complete_state:
            buffer.complete_next()
        elif self._completes():
            buffer.start_completion(select_first=True)

    def _backspace(self, event: KeyPressEvent) -> None:
        """A mark of something pasted goes as a whole."""
        buffer = event.current_buffer
        before = buffer.document.text_before_cursor
        mark = next((mark for mark in self._pastes.marks if before.endswith(mark)), " ")
        buffer.delete_before_cursor(len(mark) * event.arg)

    def _interrupted(self, event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.text and not self.answering:
            self._put_by()
        elif buffer.text:
            buffer.reset()
        else:
            self.interrupt()

    def _clipboard(self, _: KeyPressEvent) -> None:
        self._tasks.start(self._paste_picture())

    async def _paste_picture(self) -> None:
        found = await picture(self._home.cache / "pictures")
        if found is None:
            self.say(
                "There is no picture in the clipboard, or no program (wl-paste, xclip, pngpaste) to read it with."
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

    def _words(self) -> str:
        """The input as it would be sent, also while it waits for a question to be answered."""
        return self._pastes.whole(
            self._aside.text if self.answering else self.buffer.text
        )

    def _changed(self) -> None:
        self._touched = self._clock()
        self.touched()
        if self.answering and self.buffer.text and self.buffer.text in self.hot:
            self._submit(steers=False)
        if self._saving is not None:
            self._saving.cancel()
        self._saving = asyncio.get_running_loop().call_later(_DRAFT_DELAY_S, self._save)

    def _save(self) -> None:
        asyncio.get_running_loop().run_in_executor(
            None, self._drafts.keep, self._words()
        )
