"""What `hermes model list` prints."""

from hermes.commands.models import ModelListing, providers
from hermes.settings import Settings
from hermes.settings.secrets import Secrets
from hermes.surfaces.terminal.render import draw
from hermes.surfaces.terminal.style import Style
from hermes.surfaces.terminal.text import TextScreen, width


def test_prices_fit_a_terminal_of_80_columns() -> None:
    listed = providers(Settings(), Secrets({}, {}))
    listing = ModelListing(models=tuple(listed), is_overview=False)
    lines = list(draw(listing, TextScreen(80, Style(enabled=False)), 0.0))
    assert max(map(width, lines)) <= 80
    assert lines[0].endswith("OUT")
    assert not any("…" in line[-14:] for line in lines)
