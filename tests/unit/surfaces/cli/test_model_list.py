"""What `hermes model list` prints."""

from hermes.settings import Settings
from hermes.settings.secrets import Secrets
from hermes.surfaces.cli.model_list import lines_of, providers
from hermes.surfaces.terminal.style import Style
from hermes.surfaces.terminal.text import TextScreen, width


def test_prices_fit_a_terminal_of_80_columns() -> None:
    listed = providers(Settings(), Secrets({}, {}))
    lines = lines_of(listed, TextScreen(80, Style(enabled=False)))
    assert max(map(width, lines)) <= 80
    assert lines[0].endswith("OUT")
    assert not any("…" in line[-14:] for line in lines)
