"""The keys of an open question: they go to its menu once it is readable, and before that to what is being typed."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from prompt_toolkit.filters import Condition
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

from hermes.surfaces.terminal.question_menu import (
    Act,
    PersonAnswer,
    QuestionMenu,
)

if TYPE_CHECKING:
    from hermes.surfaces.tui.input_box import InputBox

_MAX_STRAY_CHARS = 3  # typed into an empty input before the question was readable
_RECHECK_S = 0.1
_NAMED_KEYS = ("up", "down", "tab", "enter", "c-c", "escape")


class MenuInput:
    """Connects the menu of a question with the input box. `send` gets what was chosen."""

    def __init__(self, box: "InputBox") -> None:
        self.send: Callable[[PersonAnswer | Act], object] = lambda _: None
        self.redraw: Callable[[], object] = lambda: None
        self.menu: QuestionMenu | None = None
        self._box = box
        self._was_empty = True
        self._is_given = False

    @property
    def is_open(self) -> bool:
        """Whether a menu is shown and waits for a choice."""
        return self.menu is not None and not self._is_given

    @property
    def types(self) -> bool:
        """Whether the input holds words for the question."""
        return self.is_open and self._box.answering

    @property
    def prompt(self) -> str:
        """The label before the words that are typed; empty for the usual prompt."""
        if self.menu is not None and self.types:
            return self.menu.prompt
        return ""

    def show(self, menu: QuestionMenu | None) -> None:
        """Shows a menu, or none."""
        if menu is self.menu and not self._is_given:
            return
        self._leave_typing()
        self.menu, self._is_given = menu, False
        self._was_empty = not self._box.buffer.text
        if menu is None:
            return
        self._redraw_when_readable()
        if menu.types:
            self._type_when_readable(menu)

    def touched(self) -> None:
        """Notes that the input changed."""
        if self.menu is not None and not self._box.answering:
            self.menu.touched()

    def submit(self, text: str) -> None:
        """Takes the words that were typed for the question."""
        if self.menu is not None and (answer := self.menu.say(text)) is not None:
            self._give(answer)

    def bind(self, keys: KeyBindings) -> None:
        """Adds the keys. They come before all others while the menu can be answered."""
        chooses = Condition(lambda: self.chooses)
        for name in _NAMED_KEYS:
            keys.add(name, eager=True, filter=chooses)(self._named(name))
        keys.add(Keys.SIGINT, eager=True, filter=chooses)(self._named("c-c"))
        keys.add(Keys.Any, filter=chooses)(self._character)
        typing = Condition(lambda: self.types)
        keys.add("escape", eager=True, filter=typing)(self._named("escape"))
        keys.add("c-c", eager=True, filter=typing)(self._named("c-c"))

    def choose(self, place: int) -> None:
        """Chooses a row, as a click does."""
        menu = self.menu
        if menu is not None and self.chooses and place < len(menu.choices):
            menu.at = place
            self._press("enter")

    @property
    def chooses(self) -> bool:
        """Whether keys and clicks go to the menu: it is readable, and no command is being typed."""
        menu = self.menu
        if menu is None or not self.is_open or self._box.answering:
            return False
        return menu.is_readable and not self._box.buffer.text.startswith("/")

    def _named(self, name: str) -> Callable[[KeyPressEvent], None]:
        return lambda _: self._press(name)

    def _character(self, event: KeyPressEvent) -> None:
        menu, key = self.menu, event.data
        if menu is None or not key.isprintable():
            return
        if key == "/":
            self._box.buffer.insert_text(key)
        elif self._is_choice(menu, key):
            self._press(key)
        elif menu.typing(key):
            self._begin_typing()
            self._box.buffer.insert_text(key)

    @staticmethod
    def _is_choice(menu: QuestionMenu, key: str) -> bool:
        numbers = [str(number + 1) for number in range(len(menu.choices))]
        keys = [choice.key for choice in menu.choices if choice.key]
        has_view = menu.is_approval or menu.request.get("plan")
        return key.lower() in (*numbers, *keys, *(("v",) if has_view else ()))

    def _press(self, key: str) -> None:
        menu = self.menu
        if menu is None:
            return
        text = self._box.buffer.text
        is_stray = self._was_empty and len(text) <= _MAX_STRAY_CHARS
        if text and is_stray and not self._box.answering:
            self._box.buffer.reset()
        step = menu.step
        found = menu.press(key)
        if menu.step != step:
            self._redraw_when_readable()
        if found is not None:
            self._give(found)
        elif menu.types:
            self._begin_typing()
        else:
            self._leave_typing()
        self.redraw()

    def _give(self, found: PersonAnswer | Act) -> None:
        """Passes on what was chosen. An answer closes the menu; it comes back if the answer did not count."""
        self._leave_typing()
        self._is_given = isinstance(found, PersonAnswer) or found == "stop"
        self.send(found)
        self.redraw()

    def _redraw_when_readable(self) -> None:
        menu, loop = self.menu, asyncio.get_running_loop()
        if menu is not None and self.is_open:
            self.redraw()
            if not menu.is_readable:
                loop.call_later(_RECHECK_S, self._redraw_when_readable)

    def _begin_typing(self) -> None:
        if not self._box.answering:
            self._box.set_aside()
            self._box.accept_answers()

    def _leave_typing(self) -> None:
        if self.menu is not None and self._box.answering:
            self._box.restore()

    def _type_when_readable(self, menu: QuestionMenu) -> None:
        """Clears the input for the answer, once the person is not typing anything else."""
        if self.menu is not menu or self._is_given or self._box.answering:
            return
        if menu.is_readable:
            self._begin_typing()
            self.redraw()
        else:
            loop = asyncio.get_running_loop()
            loop.call_later(_RECHECK_S, self._type_when_readable, menu)
