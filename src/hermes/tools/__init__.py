"""The tools of the model. `tool` makes one from a function; `toolsets` decides which session gets which.

`session_tools` makes the tools of one session. Each session has its own, because they know what it has read and where
its terminal is. New tools go at the end of the list, so that the beginning of a prompt stays the same.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import msgspec

from hermes.core.ports import Tool
from hermes.tools.ask_user import ask_user
from hermes.tools.files.apply_patch import Patches
from hermes.tools.files.file_stamps import FileStamps
from hermes.tools.files.file_tools import FileTools, Listen
from hermes.tools.files.search_tools import SearchTools
from hermes.tools.policy import ApprovalPolicy
from hermes.tools.process.long_output import OutputFolder
from hermes.tools.process.session_commands import Surroundings
from hermes.tools.process.terminal_tool import TerminalTool
from hermes.tools.python.run_python import PythonRunner
from hermes.tools.sensitive import Guard
from hermes.tools.session_search import Recall, SessionSearchTool
from hermes.tools.todo import todo
from hermes.tools.tool import tool_name
from hermes.tools.toolsets import ToolChoice, choose

if TYPE_CHECKING:
    from hermes.tools.files.open_buffers import OpenBuffers

__all__ = [
    "ApprovalPolicy",
    "Closing",
    "Needs",
    "all_tools",
    "close_tools",
    "default_tools",
    "session_tools",
]

log = logging.getLogger("hermes.tools")

_BASIC = (
    "terminal",
    "read_file",
    "list_files",
    "search_files",
    "write_file",
    "edit_file",
    "todo",
)


@runtime_checkable
class Closing(Protocol):
    """An owner of tools that must be closed at the end of a session."""

    async def close(self) -> None: ...


class Needs(msgspec.Struct, frozen=True, kw_only=True):
    """The dependencies of a session's tools."""

    outputs: Path
    """The folder for outputs that are too long to show, in the home's cache; made on first use."""
    environment: Mapping[str, str]
    hermes_home: Path
    recall: Recall | None = None
    """Past sessions; without them there is no `session_search`."""
    surroundings: Surroundings | None = None
    """The environment and limits of commands; by default those of this process, without Hermes' own variables."""
    extra: tuple[Tool, ...] = ()
    """Tools made elsewhere: the web, a browser, MCP servers, plugins, delegation."""
    choice: ToolChoice = ToolChoice()
    seen: FileStamps | None = None
    """What the session knows about files, if something else has to clear it."""
    listen: Listen | None = None
    """Transcribes recordings; without it, they are not read as text."""
    reads_documents: bool = True
    """Whether `read_file` shows the text of documents (`media.documents`)."""
    buffers: "OpenBuffers | None" = None
    """The editor that the session runs in, if it shares its unsaved files."""


def session_tools(needs: Needs) -> dict[str, Tool]:
    """Returns the tools that one session offers, by name."""
    offered: dict[str, Tool] = {}
    offered |= choose(_by_name(_make(needs, lambda: offered)), needs.choice)
    return offered


def all_tools(needs: Needs) -> dict[str, Tool]:
    """Returns every tool, offered or not."""
    return _by_name(_make(needs, dict))


async def close_tools(tools: Mapping[str, Tool]) -> None:
    """Ends everything that a session's tools left running, and deletes their temporary files."""
    owners = {
        id(owner): owner
        for one in tools.values()
        if isinstance(owner := getattr(one, "owner", None), Closing)
    }
    for owner in owners.values():
        await owner.close()


def default_tools(
    output_folder: Path, *, environment: Mapping[str, str], hermes_home: Path
) -> dict[str, Tool]:
    """Returns the tools that every model can use, including the embedded one."""
    tools = all_tools(
        Needs(outputs=output_folder, environment=environment, hermes_home=hermes_home)
    )
    return {name: tools[name] for name in _BASIC}


def _make(needs: Needs, offered: Callable[[], Mapping[str, Tool]]) -> Iterator[Tool]:
    seen = needs.seen or FileStamps()
    output = OutputFolder(needs.outputs)
    files = FileTools(
        seen,
        output,
        needs.environment,
        needs.buffers,
        needs.listen,
        reads_documents=needs.reads_documents,
    )
    guard = _guard(needs.hermes_home, needs.environment.get("HOME") or "/nonexistent")
    search = SearchTools(guard, lambda: _find_ripgrep(needs.environment), output)
    around = needs.surroundings or Surroundings(
        needs.environment, needs.hermes_home, (needs.outputs,)
    )
    terminal = TerminalTool(output, needs.environment, around)
    seen.on_write(terminal.accept)
    yield terminal.terminal
    yield files.read_file
    yield search.list_files
    yield search.search_files
    yield files.write_file
    yield files.edit_file
    yield todo
    yield Patches(seen, needs.buffers).apply_patch
    yield ask_user
    if needs.recall is not None:
        yield SessionSearchTool(needs.recall).session_search
    yield PythonRunner(output, around, offered).run_python
    yield terminal.processes.process
    yield terminal.processes.process_write
    yield from needs.extra


def _find_ripgrep(environment: Mapping[str, str]) -> Path | None:
    from hermes.tools.files.ripgrep import find_ripgrep

    return find_ripgrep(environment)


@lru_cache(maxsize=8)
def _guard(hermes_home: Path, home: str) -> Guard:
    """Returns the guard, which all sessions share, because a gateway has the tools of many sessions."""
    return Guard(hermes_home.resolve(), Path(home))


def _by_name(tools: Iterator[Tool]) -> dict[str, Tool]:
    """Maps tools by name. A later tool can't replace an earlier one of the same name."""
    found: dict[str, Tool] = {}
    for one in tools:
        name = tool_name(one)
        if found.setdefault(name, one) is not one:
            log.warning(
                "there is a tool %s already; ignored another one of that name", name
            )
    return found
