"""Draws the menu of a question."""

from collections.abc import Iterator

from hermes.surfaces.terminal.question_menu import QuestionMenu
from hermes.surfaces.terminal.styled_text import BOLD, CYAN, DIM, YELLOW, Row
from hermes.surfaces.terminal.text import clean, wrap
from hermes.surfaces.terminal.tool_line import Marks
from hermes.text.translation import translator

t = translator(__name__)


def menu_rows(menu: QuestionMenu, columns: int, marks: Marks) -> list[Row]:
    """Returns the rows of a menu. It is dim, and names no keys, until a key counts."""
    rows = [*_title(menu, columns)]
    if not menu.types:
        for number in range(len(menu.choices)):
            rows += _choice(menu, number, columns, marks)
    hint = [((line, DIM),) for line in wrap(_hint(menu, marks), columns)]
    if menu.is_readable:
        return [*rows, *hint]
    waits: list[Row] = [((marks.runs, DIM),), *([((" ", DIM),)] * (len(hint) - 1))]
    return [*(tuple((text, DIM) for text, _ in row) for row in rows), *waits]


def choice_at(menu: QuestionMenu, row: int, columns: int, marks: Marks) -> int | None:
    """Returns the choice that is shown in a row of the menu."""
    if menu.types:
        return None
    top = len([*_title(menu, columns)])
    for number in range(len(menu.choices)):
        below = top + len([*_choice(menu, number, columns, marks)])
        if top <= row < below:
            return number
        top = below
    return None


def _title(menu: QuestionMenu, columns: int) -> Iterator[Row]:
    look = YELLOW if menu.step == "rule" else BOLD
    for number, line in enumerate(menu.title):
        for text in wrap(clean(line), columns):
            yield ((text, look if number < 2 else DIM),)


def _label(menu: QuestionMenu, number: int) -> str:
    choice = menu.choices[number]
    return f"{choice.label} ({choice.key})" if choice.key else choice.label


def _choice(
    menu: QuestionMenu, number: int, columns: int, marks: Marks
) -> Iterator[Row]:
    is_chosen = number == menu.at
    look = f"{BOLD};{CYAN}" if is_chosen else ""
    first, *more = wrap(clean(_label(menu, number)), columns - 5)
    mark = marks.prompt.strip() if is_chosen else " "
    yield ((f"{mark} {number + 1}  {first}", look),)
    for line in more:
        yield ((f"     {line}", look),)


def _hint(menu: QuestionMenu, marks: Marks) -> str:
    bullet = marks.separator
    if menu.types:
        back = t("Esc goes back") if menu.has_choices else t("Esc stops")
        return bullet.join((t("Enter sends"), back))
    arrows = "↑↓" if marks.bar != "|" else t("arrows")
    view = (t("v shows all"),) if menu.is_approval or menu.request.get("plan") else ()
    mode = (
        (t("Shift-Tab changes the mode"),)
        if menu.step == "choose" and menu.is_approval
        else ()
    )
    back = t("Esc goes back") if menu.step == "rule" else t("Esc stops")
    return bullet.join(
        (t("{arrows}, a number or a key", arrows=arrows), *view, *mode, back)
    )
