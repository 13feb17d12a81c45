"""Toolsets: tools grouped by purpose, and which of them each surface offers.

A set lists its tools by name or by prefix. The settings `tools.enabled` and `tools.disabled` name sets, tools or
prefixes (`mcp.github.*`); a disabled tool stays off, whatever else names it.
"""

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from functools import lru_cache

import msgspec

from hermes.core.ports import Tool
from hermes.text.translation import to_translate

OTHER = "other"


class Toolset(msgspec.Struct, frozen=True):
    """Tools that belong together."""

    name: str
    summary: str
    patterns: tuple[str, ...]


TOOLSETS = (
    Toolset(
        "terminal",
        "run commands",
        ("terminal", "terminal_*", "process", "process_*", "background_*"),
    ),
    Toolset(
        "files",
        to_translate("read, search and change files"),
        (
            "read_file",
            "list_files",
            "search_files",
            "write_file",
            "edit_file",
            "apply_patch",
        ),
    ),
    Toolset(
        "pictures",
        to_translate("look at pictures and make them"),
        ("vision_analyze", "image_generate"),
    ),
    Toolset("plan", to_translate("keep a list of steps"), ("todo",)),
    Toolset("ask", to_translate("ask the user a question"), ("ask_user",)),
    Toolset(
        "web",
        to_translate("search the web and read pages"),
        ("web_search", "web_fetch"),
    ),
    Toolset("browser", "use a real browser", ("browser_*",)),
    Toolset(
        "code", to_translate("run Python that calls the other tools"), ("run_python",)
    ),
    Toolset(
        "sessions", to_translate("look up past conversations"), ("session_search",)
    ),
    Toolset("memory", to_translate("keep notes for later sessions"), ("memory",)),
    Toolset("skills", to_translate("use and write skills"), ("skills_list", "skill_*")),
    Toolset(
        "delegate",
        to_translate("delegate work to child agents"),
        ("delegate", "delegate_*"),
    ),
    Toolset(
        "schedule", to_translate("run jobs on a schedule"), ("schedule", "schedules")
    ),
    Toolset("kanban", to_translate("work on a card of a board"), ("kanban_*",)),
    Toolset(
        "messages", to_translate("send messages to people and chats"), ("send_message",)
    ),
    Toolset("speech", "speak", ("text_to_speech",)),
    Toolset(
        "mcp",
        to_translate("tools of your MCP servers"),
        ("mcp.*", "mcp_resources", "tool_search", "tool_describe", "tool_call"),
    ),
    Toolset(OTHER, to_translate("tools of plugins"), ("*",)),
)
_BY_NAME = {toolset.name: toolset for toolset in TOOLSETS}

_LEARNED = ("memory", "skills")
_AGENTS = ("delegate", "schedule")
_PERSON = (
    "terminal",
    "files",
    "pictures",
    "plan",
    "ask",
    "web",
    "browser",
    "code",
    "sessions",
    *_LEARNED,
    *_AGENTS,
    "messages",
    "speech",
    "mcp",
    OTHER,
)
SURFACES: dict[str, tuple[str, ...]] = {
    "cli": _PERSON,
    "tui": _PERSON,
    "dashboard": _PERSON,
    "editor": _PERSON,
    "api": (
        "terminal",
        "files",
        "pictures",
        "plan",
        "ask",
        "web",
        "browser",
        "sessions",
        *_LEARNED,
        "schedule",
        "messages",
        "speech",
        "mcp",
        OTHER,
    ),
    "gateway": (
        "files",
        "pictures",
        "plan",
        "ask",
        "web",
        "browser",
        "sessions",
        *_LEARNED,
        "schedule",
        "messages",
        "speech",
        "mcp",
        OTHER,
    ),
    "batch": ("terminal", "files", "plan", "web", "code"),
    "kanban": (*(one for one in _PERSON if one != "schedule"), "kanban"),
    "cron": (
        "terminal",
        "files",
        "pictures",
        "plan",
        "web",
        "browser",
        "code",
        "sessions",
        "skills",
        "messages",
        "speech",
        "mcp",
        OTHER,
    ),
}
"""What each surface offers unless the settings say otherwise. In a chat app there is no terminal, and where nobody is
present, nobody is asked."""


BATCH_SURFACE = "batch"
"""Rows of batches. Their prompts contain nothing of the user's memory and skills, because trajectories are shared."""


class ToolChoice(msgspec.Struct, frozen=True):
    """Which tools are wanted: by the surface, and by the settings."""

    surface: str = "cli"
    enabled: tuple[str, ...] = ()
    disabled: tuple[str, ...] = ()

    def wants(self, name: str) -> bool:
        """Whether a tool is offered."""
        if any(fits(entry, name) for entry in self.disabled):
            return False
        sets = SURFACES.get(self.surface, SURFACES["gateway"])
        return toolset_of(name) in sets or self.enables(name)

    def enables(self, name: str) -> bool:
        """Whether the settings ask for a tool by its name or its set."""
        return any(fits(entry, name) for entry in self.enabled)

    def for_others(self) -> "ToolChoice":
        """For people and programs other than the user: without past sessions, and with a browser only if the settings
        name it."""
        kept = () if self.enables("browser_navigate") else ("browser",)
        disabled = (*self.disabled, "sessions", *kept)
        return msgspec.structs.replace(self, disabled=disabled)

    def unknown(self, names: Iterable[str]) -> tuple[str, ...]:
        """Names in the settings that match neither a tool nor a set."""
        known = tuple(names)
        entries = dict.fromkeys((*self.enabled, *self.disabled))
        return tuple(
            entry
            for entry in entries
            if entry not in _BY_NAME and not any(fits(entry, name) for name in known)
        )


@lru_cache(maxsize=1024)
def toolset_of(name: str) -> str:
    """The set to which a tool belongs."""
    return next(
        one.name
        for one in TOOLSETS
        if any(fnmatchcase(name, pattern) for pattern in one.patterns)
    )


def fits(entry: str, name: str) -> bool:
    """Whether an entry of the settings covers this tool: by its set, its name, or a pattern."""
    if entry in _BY_NAME:
        return toolset_of(name) == entry
    return fnmatchcase(name, entry)


def choose(tools: Mapping[str, Tool], choice: ToolChoice) -> dict[str, Tool]:
    """The tools that are offered, in their order."""
    return {name: one for name, one in tools.items() if choice.wants(name)}
