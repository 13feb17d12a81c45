"""`hermes mcp test`: connects to servers, and prints what they offer and what has changed."""

import asyncio
from typing import Any

import msgspec

from hermes.errors import HermesError, UsageError
from hermes.mcp import McpServers, Probe, ServerFailed
from hermes.settings.load import load
from hermes.surfaces.cli.mcp import servers_of
from hermes.surfaces.terminal.stderr_message import say
from hermes.surfaces.terminal.text import (
    TextScreen,
    count,
    cut,
    one_line,
    stdout_screen,
)


def test(name: str, *, accept: bool, as_json: bool) -> int:
    """Tries one server, or all that are enabled. The exit code is 1 if one of them can't be used."""
    settings = load()
    if name and name not in settings.mcp_servers:
        raise UsageError(
            f"There is no MCP server {name!r}.", hint="See: hermes mcp list"
        )
    names = (
        [name]
        if name
        else [
            one
            for one, server in sorted(settings.mcp_servers.items())
            if server.enabled
        ]
    )
    if not names:
        raise UsageError(
            "There is no MCP server to test.",
            hint="Add one: hermes mcp add NAME -- COMMAND, or --url URL",
        )
    found = asyncio.run(probe_all(servers_of(settings), names, accept=accept))
    if as_json:
        rows = [_row(one, result) for one, result in found.items()]
        print(
            msgspec.json.format(
                msgspec.json.encode({"servers": rows}), indent=2
            ).decode()
        )
    else:
        for one, result in found.items():
            show(one, result, accepted=accept)
    return int(any(isinstance(result, HermesError) for result in found.values()))


async def probe_all(
    servers: McpServers, names: list[str], *, accept: bool
) -> dict[str, Probe | HermesError]:
    """Tries servers, all at once. Nothing of them is left running."""
    try:
        return dict(
            zip(
                names,
                await asyncio.gather(
                    *(_probe(servers, one, accept=accept) for one in names)
                ),
                strict=True,
            )
        )
    finally:
        await servers.close()


async def _probe(
    servers: McpServers, name: str, *, accept: bool
) -> Probe | HermesError:
    try:
        return await servers.probe(name, accept=accept)
    except HermesError as error:
        return error


def show(name: str, result: Probe | HermesError, *, accepted: bool = False) -> None:
    """One server in words."""
    if isinstance(result, HermesError):
        say(f"The MCP server {name} can't be used: {words(result)}.", result.hint)
        return
    screen = stdout_screen()
    tools = count(len(result.listing.tools), "tool")
    print(
        screen.style.bold(name),
        f"answers in {result.seconds:.2f} s: {result.title}, {tools}",
    )
    for line in _tools(result, screen):
        print(line)
    for problem in result.listing.left_out:
        print(screen.style.dim(cut(f"  left out: {problem}", screen.columns)))
    if result.changed:
        print(
            screen.style.yellow(
                f"  Changed since you accepted it: {', '.join(result.changed)}."
            )
        )
        print(
            screen.style.yellow(
                f"  Use it as it is now: hermes mcp test {name} --accept"
            )
        )
    elif accepted:
        print("  Accepted as it is now.")


def words(error: HermesError) -> str:
    """Why a server can't be used."""
    return (error.full if isinstance(error, ServerFailed) else error.message).rstrip(
        "."
    )


def _tools(result: Probe, screen: TextScreen) -> list[str]:
    width = max((len(name) for name in result.listing.tools), default=0) + 2
    return [
        cut(f"  {name:<{width}}{one_line(tool.description)}", screen.columns)
        for name, tool in result.listing.tools.items()
    ]


def _row(name: str, result: Probe | HermesError) -> dict[str, Any]:
    if isinstance(result, HermesError):
        return {
            "name": name,
            "ok": False,
            "problem": words(result),
            "hint": result.hint,
        }
    tools = [
        {
            "name": f"mcp.{name}.{tool.name}",
            "description": tool.description,
            "changed": tool.name in result.changed,
        }
        for tool in result.listing.tools.values()
    ]
    return {
        "name": name,
        "ok": True,
        "title": result.title,
        "seconds": round(result.seconds, 3),
        "tools": tools,
        "left_out": result.listing.left_out,
    }
