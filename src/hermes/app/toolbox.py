"""What the tools of a session are made of, out of an App."""

from hermes.app.app import App
from hermes.app.recall import StoreRecall
from hermes.core.ports import Tool
from hermes.settings.load import environment
from hermes.tools import Needs
from hermes.tools.toolsets import Choice


def needs_of(app: App, *, surface: str = "cli", extra: tuple[Tool, ...] = ()) -> Needs:
    """For `session_tools`; `extra` are tools that come from elsewhere."""
    wanted = app.settings.tools
    return Needs(
        outputs=app.home.cache / "outputs",
        environment=environment(),
        hermes_home=app.home.root,
        recall=StoreRecall(lambda: app.store),
        extra=extra,
        choice=Choice(surface, wanted.enabled, wanted.disabled),
    )
