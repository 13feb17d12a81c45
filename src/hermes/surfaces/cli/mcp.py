"""`hermes mcp`: which MCP servers there are, adding, testing and removing one."""

import argparse
import shlex
from collections.abc import Sequence

import msgspec

from hermes.errors import HermesError, UsageError
from hermes.mcp import McpServers, ServerStatus
from hermes.settings import Settings
from hermes.settings.edit import remove_entry
from hermes.settings.load import environment, find_home, load, load_secrets
from hermes.settings.redaction import mask
from hermes.settings.sections import McpServerSettings
from hermes.surfaces.cli.parser import Parser, add_action
from hermes.surfaces.terminal.text import (
    TextScreen,
    count,
    cut,
    one_line,
    stdout_screen,
    table,
)

_EXAMPLES = """\
examples:
  hermes mcp add files -- npx -y @modelcontextprotocol/server-filesystem ~/notes
  hermes mcp add github --env GITHUB_TOKEN -- github-mcp-server stdio
  hermes mcp add weather --url https://example.org/mcp --header 'Authorization: Bearer ${WEATHER_TOKEN}'
  hermes mcp list                           what is configured, without connecting
  hermes mcp test files                     connect, list the tools, say how long it took
  hermes mcp test files --accept            ... and accept the tools as they are now
"""


class _CommandParser(Parser):
    """What comes after `--` is a command with its own options."""

    # pyrefly: ignore[missing-override-decorator, bad-override]
    def parse_known_args(
        self,
        args: Sequence[str] | None = None,
        namespace: argparse.Namespace | None = None,
    ) -> tuple[argparse.Namespace, list[str]]:
        words, found = list(args or ()), namespace or argparse.Namespace()
        at = words.index("--") if "--" in words else len(words)
        _, unknown = super().parse_known_args(words[:at], found)
        if words[at + 1 :]:
            vars(found)["command"] = [*getattr(found, "command", ()), *words[at + 1 :]]
        return found, unknown


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EXAMPLES
    actions = parser.add_subparsers(
        dest="action", metavar="ACTION", parser_class=_CommandParser
    )
    every = add_action(
        actions,
        "list",
        "list the servers, their tools and what has changed; nothing is connected",
    )
    every.add_argument("--json", action="store_true", help="print JSON")
    add = add_action(actions, "add", "add a server once it has answered")
    add.add_argument(
        "name", metavar="NAME", help="what you call it: letters, digits, - and _"
    )
    add.add_argument(
        "command",
        metavar="COMMAND",
        nargs="*",
        help="after --: the program that is started, and its words",
    )
    add.add_argument(
        "--url",
        metavar="URL",
        default="",
        help="the address of a service, instead of a program",
    )
    add.add_argument(
        "--env",
        metavar="NAME[=VALUE]",
        action="append",
        default=[],
        help="a variable for it; NAME alone is a secret",
    )
    add.add_argument(
        "--header",
        metavar="'NAME: VALUE'",
        action="append",
        default=[],
        help="sent to the service",
    )
    add.add_argument(
        "--cwd",
        metavar="DIR",
        default="",
        help="the folder it runs in; your home folder otherwise",
    )
    add.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=float,
        default=None,
        help="how long a call may be silent",
    )
    add.add_argument("--no-test", action="store_true", help="add it without trying it")
    test = add_action(actions, "test", "connect to servers and list their tools")
    test.add_argument(
        "name",
        metavar="NAME",
        nargs="?",
        default="",
        help="one server; all that are enabled otherwise",
    )
    test.add_argument(
        "--accept", action="store_true", help="accept the tools as they are now"
    )
    test.add_argument("--json", action="store_true", help="print JSON")
    lent = add_action(
        actions, "serve-tools", "offer codex the tools it lacks, on stdin and stdout"
    )
    lent.add_argument("--list", action="store_true", help="print their names instead")
    remove = add_action(
        actions, "remove", "remove a server, with what was remembered of it"
    )
    remove.add_argument("name", metavar="NAME", help="the server")


def run(args: argparse.Namespace) -> int:
    match args.action:
        case "add":
            from hermes.surfaces.cli.mcp_add import add

            return add(args)
        case "serve-tools":
            from hermes.surfaces.cli.codex_tools import run as serve_tools

            return serve_tools(args)
        case "test":
            from hermes.surfaces.cli.mcp_test import test

            return test(args.name, accept=args.accept, as_json=args.json)
        case "remove":
            return _remove(args.name)
        case _:
            return _list(as_json=getattr(args, "json", False))


def servers_of(settings: Settings) -> McpServers:
    """The servers of the settings in force."""
    home = find_home()
    return McpServers(
        settings.mcp_servers, home, load_secrets(home=home), environment()
    )


def where(server: McpServerSettings) -> str:
    """What is started or asked, without anything secret."""
    return (
        mask(server.url)
        if server.url
        else mask(shlex.join([server.command, *server.args]))
    )


def _list(*, as_json: bool) -> int:
    settings = load()
    statuses = servers_of(settings).status()
    if as_json:
        rows = [
            msgspec.to_builtins(one) | {"where": where(settings.mcp_servers[one.name])}
            for one in statuses
        ]
        print(
            msgspec.json.format(
                msgspec.json.encode({"servers": rows}), indent=2
            ).decode()
        )
        return 0
    screen = stdout_screen()
    if not statuses:
        print(
            "There are no MCP servers. Add one: hermes mcp add NAME -- COMMAND, or --url URL"
        )
        return 0
    for line in _lines(statuses, settings, screen):
        print(line)
    changed = [one.name for one in statuses if one.changed]
    if changed:
        print(
            screen.style.yellow(
                f"\nChanged since you accepted it. Look, then accept: hermes mcp test {changed[0]}"
            )
        )
    return 0


def _lines(
    statuses: tuple[ServerStatus, ...], settings: Settings, screen: TextScreen
) -> list[str]:
    rows = [
        (one.name, _state(one), one_line(where(settings.mcp_servers[one.name])))
        for one in statuses
    ]
    if screen.is_narrow:
        return [
            cut(line, screen.columns)
            for name, state, at in rows
            for line in (f"{name}  {state}", f"    {at}")
        ]
    lines = [
        cut(line, screen.columns)
        for line in table([("SERVER", "TOOLS", "WHERE"), *rows])
    ]
    return [screen.style.bold(lines[0]), *lines[1:]]


def _state(status: ServerStatus) -> str:
    if status.state == "off":
        return "off"
    if status.state == "failed":
        return "can't be used"
    if not status.tools:
        return "not asked yet"
    return count(status.tools, "tool") + (
        f", {len(status.changed)} changed" if status.changed else ""
    )


def _remove(name: str) -> int:
    home = find_home()
    if name not in load(home=home).mcp_servers:
        known = ", ".join(load(home=home).mcp_servers)
        raise UsageError(
            f"There is no MCP server {name!r}.",
            hint=f"There are: {known}." if known else "There are none.",
        )
    if not remove_entry(home.config, "mcp_servers", name):
        raise HermesError(
            f"{name} is not in {home.config}.",
            hint="It is set in the environment; unset that variable.",
        )
    servers_of(load(home=home)).forget(name)
    print(f"{name} is removed.")
    return 0
