"""Settings of tools: approvals, the sandbox, the web, the browser, language servers."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from hermes.settings.section import Section

_ABOUT = "empty for one that is on your PATH, `off` for none."  # not translated: part of a description


class ApprovalSettings(Section, frozen=True):
    """Requests for approval. `policy.yaml` says what needs none."""

    timeout: Annotated[
        float,
        Meta(
            ge=0,
            le=604_800,
            description="Seconds until an unanswered request counts as denied; 0 for never.",
        ),
    ] = 3_600.0


class WebSettings(Section, frozen=True):
    """Fetching and searching the web. Hermes reaches only public addresses, whatever a page says."""

    search_backend: Annotated[
        Literal["auto", "brave", "tavily", "exa", "serper", "searxng", "duckduckgo"],
        Meta(
            description="The search service; `auto` uses those that have a key (BRAVE_API_KEY, ...), otherwise DuckDuckGo."
        ),
    ] = "auto"
    searxng_url: Annotated[
        str,
        Meta(description="URL of your own SearXNG; it may be on a private network."),
    ] = ""
    allow_hosts: Annotated[
        tuple[str, ...],
        Meta(
            description="Private hosts that Hermes may also reach, by exact name: `wiki.lan`, `10.0.0.7:9000`."
        ),
    ] = ()
    proxy: Annotated[
        str,
        Meta(
            description="URL of a proxy; `environment` uses HTTPS_PROXY and similar variables; empty for none."
        ),
    ] = ""
    timeout: Annotated[
        float,
        Meta(
            gt=0, le=600, description="Seconds one page may take, including redirects."
        ),
    ] = 30.0
    max_bytes: Annotated[
        int,
        Meta(
            ge=1000,
            le=200_000_000,
            description="The most bytes to read of one page, after decompression.",
        ),
    ] = 10_000_000


class BrowserSettings(Section, frozen=True):
    """The browser for pages that need scripts. It follows the rules of `web`."""

    executable: Annotated[
        str, Meta(description="Path of Chromium or Chrome; empty to look for one.")
    ] = ""
    profile: Annotated[
        str,
        Meta(
            description="Folder for the browser's profile and logins; empty for a new profile in each session."
        ),
    ] = ""
    headless: Annotated[bool, Meta(description="Run the browser without a window.")] = (
        True
    )
    timeout: Annotated[
        float,
        Meta(
            gt=0,
            le=600,
            description="Seconds one step may take, such as opening a page.",
        ),
    ] = 30.0
    idle_timeout: Annotated[
        float,
        Meta(gt=0, le=86400, description="Seconds until an idle browser is closed."),
    ] = 900.0
    as_root: Annotated[
        bool,
        Meta(
            description="Let root open pages too. For root, they run without Chromium's own sandbox."
        ),
    ] = False


class ToolSettings(Section, frozen=True):
    """Which tools the model is offered; see `hermes tools`. An entry is a toolset, a tool or a pattern like `mcp.*`."""

    enabled: Annotated[
        tuple[str, ...],
        Meta(description="Tools to offer in addition to the defaults of each surface."),
    ] = ()
    disabled: Annotated[
        tuple[str, ...],
        Meta(description="Tools never to offer; this overrides every other setting."),
    ] = ()


class SandboxSettings(Section, frozen=True):
    """The sandbox for commands that the model runs."""

    hide_secrets: Annotated[
        bool,
        Meta(
            description="Hide a project's .env files and keys from commands, unless git tracks them or you allow a"
            " command to reach the whole machine."
        ),
    ] = True


class LanguageServerSettings(Section, frozen=True):
    """Language servers: after a turn that changed files, their errors in these files reach the model."""

    python: Annotated[
        str, Meta(description=f"The server for Python, as a command; {_ABOUT}")
    ] = ""
    go: Annotated[
        str, Meta(description=f"The server for Go, as a command; {_ABOUT}")
    ] = ""
    rust: Annotated[
        str, Meta(description=f"The server for Rust, as a command; {_ABOUT}")
    ] = ""
    typescript: Annotated[
        str,
        Meta(
            description=f"The server for TypeScript and JavaScript, as a command; {_ABOUT}"
        ),
    ] = ""
