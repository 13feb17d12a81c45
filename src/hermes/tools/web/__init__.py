"""The web: `web_fetch` reads a page, `web_search` finds some. `address_check` decides what may be reached.

This module has only the schemas of the tools. The code that does the work is loaded at the first call, so that starting
up does not wait for it.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from hermes.core.ports import Tool, ToolContext
from hermes.schema.tool_spec import ToolResult
from hermes.settings.secrets import Secrets
from hermes.settings.tools import WebSettings
from hermes.tools.process.long_output import OutputFolder
from hermes.tools.tool import tool

if TYPE_CHECKING:
    from hermes.tools.web.address_check import HostRule, Resolver
    from hermes.tools.web.fetch import Digest, PageReader
    from hermes.tools.web.search import Searcher

__all__ = ["WebTools", "web_tools"]


class WebTools:
    """The two tools and their dependencies."""

    def __init__(  # noqa: PLR0913 - what a session gives
        self,
        settings: WebSettings,
        secrets: Secrets,
        folder: OutputFolder,
        environment: Mapping[str, str],
        resolver: "Resolver | None" = None,
        digest: "Digest | None" = None,
        *,
        rule: "HostRule | None" = None,
    ) -> None:
        self._settings = settings
        self._secrets = secrets
        self._folder = folder
        self._environment = environment
        self._resolver = resolver
        self._digest = digest
        self._rule = rule

    @tool("web_search", effect="network")
    async def web_search(
        self,
        context: ToolContext,
        query: Annotated[str, Meta(min_length=1, max_length=400)],
        count: Annotated[int, Meta(ge=1, le=20)] = 8,
    ) -> ToolResult:
        """Searches the web: titles, addresses, excerpts. Read a page with web_fetch."""
        self._keep_secrets(query)
        return await self._searcher.search(context, query, count)

    @tool("web_fetch", effect="network")
    async def web_fetch(
        self,
        context: ToolContext,
        url: str,
    ) -> ToolResult:
        """Fetches a public web page as Markdown; also JSON, feeds, text and pictures. Runs no scripts."""
        self._keep_secrets(url)
        return await self._reader.read(context, url)

    def _keep_secrets(self, text: str) -> None:
        from hermes.tools.web.address_check import require_no_secret

        require_no_secret(text, self._secrets)

    @cached_property
    def _searcher(self) -> "Searcher":
        from hermes.tools.web.web_settings import build_searcher

        return build_searcher(
            self._settings, self._secrets, self._environment, self._resolver
        )

    @cached_property
    def _reader(self) -> "PageReader":
        from hermes.tools.web.web_settings import build_reader

        return build_reader(
            self._settings,
            self._folder,
            self._environment,
            self._resolver,
            self._digest,
            self._rule,
        )


def web_tools(
    settings: WebSettings,
    secrets: Secrets,
    folder: OutputFolder,
    environment: Mapping[str, str],
    digest: "Digest | None" = None,
    rule: "HostRule | None" = None,
) -> list[Tool]:
    """The web tools. Nothing is contacted before the first call. `rule` returns the user's rule for a host."""
    tools = WebTools(settings, secrets, folder, environment, digest=digest, rule=rule)
    return [tools.web_search, tools.web_fetch]
