"""Results of commands as messages in a chat."""

from collections.abc import Iterable

import msgspec

from hermes.commands.markdown import markdown
from hermes.commands.undo import TurnDiff
from hermes.commands.views import Block, Column, Record, message, table
from hermes.surfaces.gateway.adapters.text_formats import telegram_html

_LINK = "[your bank](https://evil.example)"


class Shown(msgspec.Struct, frozen=True):
    """A title in a table and beside a name."""

    def view(self, _now: float) -> Iterable[Block]:
        yield table((Column("ID"), Column("TITLE")), [("s1", _LINK)])
        yield Record((("title", _LINK),))


def test_a_file_can_not_end_the_code_block_that_its_changes_are_shown_in() -> None:
    diff = f" a\n ```\n {_LINK}\n-b\n+c"
    shown = telegram_html(markdown(TurnDiff(diff=diff), 0.0))
    assert "<a href" not in shown
    assert shown.count("<pre>") == 1


def test_text_of_others_makes_no_link_that_hides_its_address() -> None:
    for result in (message(_LINK), Shown()):
        shown = telegram_html(markdown(result, 0.0))
        assert "<a href" not in shown
        assert "https://evil.example" in shown
