"""Search services. Each module speaks one API; `choose` decides which are asked, and in which order."""

from collections.abc import Callable, Sequence

from hermes.errors import ToolFailed
from hermes.settings.secrets import Secrets
from hermes.settings.sections import WebSettings
from hermes.tools.web.backends.backend import Backend, WebResult
from hermes.tools.web.backends.brave import Brave
from hermes.tools.web.backends.duckduckgo import DuckDuckGo
from hermes.tools.web.backends.exa import Exa
from hermes.tools.web.backends.searxng import Searxng
from hermes.tools.web.backends.serper import Serper
from hermes.tools.web.backends.tavily import Tavily
from hermes.tools.web.web_client import WebClient

__all__ = ["KEYS", "Backend", "WebResult", "choose"]

_WITH_KEY: dict[str, tuple[str, Callable[[WebClient, str], Backend]]] = {
    "brave": ("BRAVE_API_KEY", Brave),
    "tavily": ("TAVILY_API_KEY", Tavily),
    "exa": ("EXA_API_KEY", Exa),
    "serper": ("SERPER_API_KEY", Serper),
}
KEYS = tuple(key for key, _ in _WITH_KEY.values())
"""The variables that hold the services' keys."""


def choose(
    settings: WebSettings, secrets: Secrets, client: WebClient, trusted: WebClient
) -> Sequence[Backend]:
    """The services to ask, in order. `trusted` is the client that may reach the SearXNG of the settings."""
    wanted = settings.search_backend
    available: dict[str, Backend] = {}
    if settings.searxng_url:
        available["searxng"] = Searxng(trusted, settings.searxng_url)
    for name, (variable, make) in _WITH_KEY.items():
        key = secrets.get(variable)
        if key:
            available[name] = make(client, key)
    available["duckduckgo"] = DuckDuckGo(client)
    if wanted == "auto":
        return tuple(available.values())
    return (available.get(wanted) or Missing(wanted),)


class Missing:
    """A service that was asked for but is not set up: it says so when it is asked."""

    def __init__(self, name: str) -> None:
        self.name = name

    async def search(self, query: str, count: int) -> Sequence[WebResult]:  # noqa: ARG002 - the port's shape
        """Never answers."""
        if self.name == "searxng":
            raise ToolFailed(
                "web.searxng_url is not set.",
                hint="The user can set it to their SearXNG's address.",
            )
        variable = _WITH_KEY[self.name][0]
        raise ToolFailed(
            f"{variable} is not set.",
            hint=f"The user can set it with: hermes config set {variable}",
        )
