"""Expands prompts and resources of MCP servers in a person's message: `/server:prompt arguments` and `@server:uri`.

Both are texts of the server: a prompt was scanned when it arrived; a resource is scanned now and marked as data.
"""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from hermes.app.typed_part import typed_part
from hermes.core.calls import readable
from hermes.errors import ToolFailed
from hermes.primitives.lazy_pattern import lazy_pattern
from hermes.text.translation import translator

t = translator(__name__)


if TYPE_CHECKING:
    from hermes.mcp import McpServers

_PROMPT = lazy_pattern(
    r"/([A-Za-z0-9][A-Za-z0-9_-]{0,31}):([A-Za-z0-9_./-]{1,96})(?:\s+(.*))?", re.DOTALL
)
_RESOURCE = lazy_pattern(
    r"(?:^|(?<=\s))@([A-Za-z0-9][A-Za-z0-9_-]{0,31}):([A-Za-z][A-Za-z0-9+.-]*:\S+)"
)
_MAX_RESOURCES = 8


class ServerMessage(msgspec.Struct, frozen=True):
    """A message with the texts of servers. `left` says what was not attached, and why."""

    text: str
    left: tuple[str, ...] = ()


def names_resource(name: str, is_server: Callable[[str], bool]) -> bool:
    """Whether a name after `@` means a resource of a server, not a file."""
    found = _RESOURCE.match(f"@{name}")
    return found is not None and is_server(found[1])


async def with_server_texts(
    servers: "McpServers | None", message: str
) -> ServerMessage:
    """The message with the prompt that it calls and the resources that it names. Raises HermesError for a prompt."""
    if servers is None:
        return ServerMessage(message)
    typed = typed_part(message)
    left: list[str] = []
    blocks = [await _prompt(servers, typed)]
    named = dict.fromkeys(
        (server, uri.rstrip(".,;!?)]}'\""))
        for server, uri in _RESOURCE.findall(typed)
        if servers.has(server)
    )
    for server, uri in list(named)[:_MAX_RESOURCES]:
        try:
            result = await servers.resource(server, uri)
        except ToolFailed as error:
            left.append(
                t.logged(
                    "{uri} is not attached: {message}", uri=uri, message=error.message
                )
            )
            continue
        if not result.ok:
            left.append(
                t.logged("{uri} is not attached: {text}", uri=uri, text=result.text)
            )
            continue
        text = readable(result).replace("</attached", "<\\/attached")
        name = f"{server}:{uri}".replace('"', "")
        blocks.append(f'\n\n<attached path="{name}">\n{text}\n</attached>')
    return ServerMessage(message + "".join(blocks), tuple(left))


async def _prompt(servers: "McpServers", typed: str) -> str:
    """The text of the prompt that a message calls; empty if it calls none."""
    called = _PROMPT.fullmatch(typed.strip())
    if called is None or not servers.has(called[1]):
        return ""
    text = await servers.prompt(called[1], called[2], called[3] or "")
    body = text.replace("</command", "<\\/command")
    return f'\n\n<command name="{called[1]}:{called[2]}">\n{body}\n</command>'
