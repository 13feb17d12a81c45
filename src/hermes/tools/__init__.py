"""The tools: what the model can do, and what it may do. See `tool` for how one is made."""

from collections.abc import Mapping
from pathlib import Path

from hermes.core.ports import Tool
from hermes.tools.files import Files
from hermes.tools.output import OutputFolder
from hermes.tools.policy import InterimPolicy
from hermes.tools.ripgrep import find_ripgrep
from hermes.tools.search import Search
from hermes.tools.sensitive import Guard
from hermes.tools.terminal import Terminal
from hermes.tools.todo import todo

__all__ = ["InterimPolicy", "default_tools"]


def default_tools(output_folder: Path, *, environment: Mapping[str, str], hermes_home: Path) -> dict[str, Tool]:
    """The tools of one session (they know what it has read, and where its terminal is), by name.

    `output_folder` keeps outputs too long to show; it is made on first use, and belongs in the home's cache.
    """
    files = Files()
    search = Search(Guard(hermes_home.resolve()), find_ripgrep(environment))
    terminal = Terminal(OutputFolder(output_folder), environment)
    tools: list[Tool] = [
        terminal.terminal,
        files.read_file,
        search.list_files,
        search.search_files,
        files.write_file,
        files.edit_file,
        todo,
    ]
    return {tool.spec.name: tool for tool in tools}
