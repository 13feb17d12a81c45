"""`hermes api`: serves OpenAI's API, and manages its keys."""

import argparse
import asyncio
import signal

import msgspec

from hermes.app import App, build
from hermes.errors import HermesError, UsageError
from hermes.installation import install_hint
from hermes.settings import Home, Secrets
from hermes.settings.load import find_home, load, load_secrets
from hermes.surfaces.gateway.api_server.api_keys import (
    DEFAULT_SCOPES,
    SCOPES,
    ApiKey,
    ApiKeys,
    Scope,
)

_EXAMPLES = """\
examples:
  hermes api key add laptop                 make a key; it is shown once
  hermes api                                serve on http://127.0.0.1:8711/v1
  hermes api key add scripts --scope chat --days 90
  hermes api key list                       list the keys
  hermes api key remove laptop              remove a key, at once

`hermes gateway run` serves the API too, once there is a key.
"""
_DAY_S = 86_400.0
_MAX_KEY_DAYS = 3650


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EXAMPLES
    parser.add_argument(
        "--host",
        metavar="ADDRESS",
        help="the address to listen on; by default the setting api.host",
    )
    parser.add_argument(
        "--port", metavar="NUMBER", type=int, help="the port to listen on; 0 for any"
    )
    actions = parser.add_subparsers(
        dest="action", metavar="ACTION", parser_class=type(parser)
    )
    add_key_action(actions)


def add_key_action(
    actions: "argparse._SubParsersAction[argparse.ArgumentParser]",
) -> None:
    """`key add|list|remove`, for this command and for `hermes gateway`."""
    key = actions.add_parser(
        "key",
        help="make, list and remove keys",
        description="Make, list and remove keys.",
    )
    doing = key.add_subparsers(dest="doing", metavar="ACTION", parser_class=type(key))
    add = doing.add_parser(
        "add",
        help="make a key and show it, once",
        description="Make a key and show it, once.",
    )
    add.add_argument("name", metavar="NAME", help="what it is for")
    add.add_argument(
        "--scope",
        metavar="SCOPE",
        action="append",
        default=[],
        help=f"what it may do: {', '.join(SCOPES)}",
    )
    add.add_argument(
        "--days",
        metavar="NUMBER",
        type=float,
        default=0.0,
        help="how long it is valid (default: no limit)",
    )
    listed = doing.add_parser(
        "list", help="list the keys", description="List the keys."
    )
    listed.add_argument("--json", action="store_true", help="print JSON")
    remove = doing.add_parser(
        "remove", help="remove a key", description="Remove a key."
    )
    remove.add_argument("key", metavar="KEY", help="its id or its name")


def run(args: argparse.Namespace) -> int:
    home = find_home()
    return run_keys(args, home) if args.action == "key" else _serve(args, home)


def run_keys(args: argparse.Namespace, home: Home) -> int:
    """`key ...`."""
    keys = ApiKeys(home, build(load(home=home), home).clock.now)
    match args.doing:
        case "add":
            made, text = keys.add(
                args.name, _scopes(args.scope), seconds=_seconds(args.days)
            )
            print(
                f"{text}\n\nThis is the only time that the key is shown. Its scopes: {', '.join(made.scopes)}."
            )
        case "remove":
            gone = keys.remove(args.key)
            print(f"Removed the key {gone.name} ({gone.id}).")
        case _:
            _list(keys.all(), as_json=getattr(args, "json", False))
    return 0


def _scopes(wanted: list[str]) -> tuple[Scope, ...]:
    unknown = [scope for scope in wanted if scope not in SCOPES]
    if unknown:
        raise UsageError(
            f"There is no scope {unknown[0]!r}.",
            hint=f"There are: {', '.join(SCOPES)}.",
        )
    return tuple(scope for scope in SCOPES if scope in wanted) or DEFAULT_SCOPES


def _seconds(days: float) -> float:
    if not 0 <= days <= _MAX_KEY_DAYS:
        raise UsageError(
            f"A key is valid for at most {_MAX_KEY_DAYS} days, or without limit (0)."
        )
    return days * _DAY_S


def _list(keys: list[ApiKey], *, as_json: bool) -> None:
    from hermes.surfaces.terminal.text import one_line, stdout_screen, table

    if as_json:
        rows = [
            {
                name: value
                for name, value in msgspec.to_builtins(key).items()
                if name != "digest"
            }
            for key in keys
        ]
        print(
            msgspec.json.format(msgspec.json.encode({"keys": rows}), indent=2).decode()
        )
        return
    if not keys:
        print("There are no keys yet. Make one with: hermes api key add NAME")
        return
    rows = [
        ("KEY", "NAME", "MAY"),
        *((key.id, one_line(key.name), ", ".join(key.scopes)) for key in keys),
    ]
    for number, line in enumerate(table(rows)):
        print(line if number else stdout_screen().style.bold(line))


def _serve(args: argparse.Namespace, home: Home) -> int:
    settings = load(home=home)
    section = settings.api
    if args.host is not None:
        section = msgspec.structs.replace(section, host=args.host)
    if args.port is not None:
        if not 0 <= args.port <= 65535:
            raise UsageError(f"{args.port} is not a port.", hint="Use 0 to 65535.")
        section = msgspec.structs.replace(section, port=args.port)
    with build(msgspec.structs.replace(settings, api=section), home) as app:
        asyncio.run(_until_stopped(app, load_secrets(home=home)))
    print("The API server has stopped.")
    return 0


async def _until_stopped(app: App, secrets: Secrets) -> None:
    try:
        from hermes.surfaces.gateway.api_server.server import ApiServer
    except ImportError as error:
        raise HermesError(
            f"The API server needs a package that is not installed ({error.name}).",
            hint=install_hint("web"),
        ) from error

    def ready(url: str) -> None:
        app.go_live(secrets, "api")
        print(f"Serving OpenAI's API at {url}. Ctrl-C stops it.", flush=True)

    serving = asyncio.ensure_future(ApiServer(app, secrets).run(ready))
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, serving.cancel)
    await asyncio.wait({serving})
    if not serving.cancelled():
        serving.result()
