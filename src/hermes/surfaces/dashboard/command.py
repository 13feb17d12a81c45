"""`hermes dashboard`: serves the dashboard, prints a one-time link, or a token for a script."""

import argparse
import asyncio
import signal
import sys
from collections.abc import Coroutine
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from hermes.app import build
from hermes.errors import HermesError, UsageError
from hermes.installation import install_hint
from hermes.settings import Home, Settings
from hermes.settings.load import environment, find_home, load, load_secrets
from hermes.surfaces.dashboard.credentials import SCOPES, Keyring
from hermes.surfaces.dashboard.running_file import (
    RunningDashboard,
    announce,
    running_dashboard,
)

_EXAMPLES = """\
examples:
  hermes dashboard                              serve it, and open it
  hermes dashboard --link                       another link to the running dashboard
  hermes dashboard --print-token --scope observe --scope chat
"""
_LINK_TOKEN_LIFETIME_S = 60.0
_DAY_S = 24 * 3600.0
_LINK_REQUEST_TIMEOUT_S = 10.0
_LEFTOVER_TASKS_TIMEOUT_S = 2.0
_BROWSER_TIMEOUT_S = 30.0


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EXAMPLES
    parser.add_argument(
        "--host",
        metavar="ADDRESS",
        default=None,
        help="the address to listen on; by default the setting dashboard.host",
    )
    parser.add_argument(
        "--port",
        metavar="NUMBER",
        type=int,
        default=None,
        help="the port to listen on; 0 for any",
    )
    parser.add_argument(
        "--no-open", action="store_true", help="print the link and open no browser"
    )
    parser.add_argument(
        "--link",
        action="store_true",
        help="print another link to the running dashboard",
    )
    parser.add_argument(
        "--print-token", action="store_true", help="print a token for a script"
    )
    parser.add_argument(
        "--scope",
        metavar="SCOPE",
        action="append",
        default=[],
        help=f"what the token is for: {', '.join(SCOPES)}",
    )
    parser.add_argument(
        "--days",
        metavar="NUMBER",
        type=float,
        default=30.0,
        help="how long the token is valid",
    )
    parser.add_argument(
        "--channel",
        metavar="NAME",
        default="",
        help="the only channel it may publish on",
    )
    parser.add_argument(
        "--sign-out",
        action="store_true",
        help="revoke every token and sign out every browser",
    )


def run(args: argparse.Namespace) -> int:
    home = find_home()
    keys = Keyring(home, build(load(home=home), home).clock.now)
    if args.sign_out:
        keys.renew()
        if (running := running_dashboard(home)) is not None:
            announce(home, keys, running.url, running.pid)
        print(
            "All tokens are revoked and all browsers signed out, including those of a running dashboard."
        )
        return 0
    if args.print_token:
        return _print_token(keys, args)
    running = running_dashboard(home)
    if running is not None and not running.listens():
        running = None
    if args.link and running is None:
        raise UsageError(
            "No dashboard is running.", hint="Start one with: hermes dashboard"
        )
    if running is not None:
        return _print_link(running, keys, load(home=home), again=not args.link)
    return _serve(_chosen(load(home=home), args), home, open_it=not args.no_open)


def _print_token(keys: Keyring, args: argparse.Namespace) -> int:
    scopes = tuple(scope for scope in SCOPES if scope in args.scope)
    unknown = [scope for scope in args.scope if scope not in SCOPES]
    if unknown or not scopes:
        what = (
            f"There is no scope {unknown[0]!r}."
            if unknown
            else "A token needs a scope."
        )
        raise UsageError(
            what,
            hint=f"There are: {', '.join(SCOPES)}. Such as: --print-token --scope observe",
        )
    if not 0 < args.days <= 3650:
        raise UsageError("A token is valid for more than 0 and at most 3650 days.")
    print(keys.mint("token", scopes, seconds=args.days * _DAY_S, channel=args.channel))
    return 0


def _print_link(
    running: RunningDashboard, keys: Keyring, settings: Settings, *, again: bool
) -> int:
    if again:
        print(f"The dashboard is already running at {running.url}", file=sys.stderr)
    print(
        _ask_for_link(
            running,
            keys.mint("token", ("admin",), seconds=_LINK_TOKEN_LIFETIME_S),
            settings.dashboard.tls_cert,
        )
    )
    return 0


def _ask_for_link(running: RunningDashboard, token: str, cert: str) -> str:
    """Asks the running dashboard for a link."""
    import http.client
    import ssl

    place = urlsplit(running.url)
    host, port = place.hostname or "", place.port or 80
    connection = http.client.HTTPConnection(host, port, timeout=_LINK_REQUEST_TIMEOUT_S)
    if place.scheme == "https":
        context = ssl.create_default_context(
            cafile=cert
        )  # its own certificate, and no other, whatever name it has
        context.check_hostname = False
        connection = http.client.HTTPSConnection(
            host, port, timeout=_LINK_REQUEST_TIMEOUT_S, context=context
        )
    try:
        connection.request(
            "POST", "/api/auth/links", headers={"Authorization": f"Bearer {token}"}
        )
        answer = connection.getresponse()
        content = answer.read(10_000)
    except OSError as error:
        raise HermesError(
            f"The dashboard at {running.url} does not answer ({error}).",
            hint=f"If it is gone, remove running.json and start another. Its process was {running.pid}.",
        ) from error
    finally:
        connection.close()
    if answer.status != 200:
        raise HermesError(
            f"The dashboard at {running.url} refused ({answer.status}).",
            hint="Start it again.",
        )
    return str(msgspec.json.decode(content)["url"])


def _chosen(settings: Settings, args: argparse.Namespace) -> Settings:
    section = settings.dashboard
    if args.host is not None:
        section = msgspec.structs.replace(section, host=args.host)
    if args.port is not None:
        if not 0 <= args.port <= 65535:
            raise UsageError(f"{args.port} is not a port.", hint="Use 0 to 65535.")
        section = msgspec.structs.replace(section, port=args.port)
    return msgspec.structs.replace(settings, dashboard=section)


def _serve(settings: Settings, home: Home, *, open_it: bool) -> int:
    try:
        from hermes.surfaces.dashboard.server import ServedDashboard, serve
    except ImportError as error:
        raise HermesError(
            f"The dashboard needs a package that is not installed ({error.name}).",
            hint=install_hint("web"),
        ) from error

    def ready(served: ServedDashboard, link: str) -> None:
        print(
            f"Hermes is at {served.board.url}\n\nOpen this link; it works once:\n  {link}\n",
            flush=True,
        )
        print("Ctrl-C stops it. Another link: hermes dashboard --link", flush=True)
        if open_it and sys.stdout.isatty() and _has_screen():
            _open(link)

    async def main() -> None:
        stop = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        await serve(app, load_secrets(home=home), ready, stop)

    with build(settings, home) as app:
        _run(main())
    print("The dashboard has stopped.")
    return 0


def _run(work: Coroutine[Any, Any, None]) -> None:
    """Like `asyncio.run`, but does not wait forever for a plugin's task that ignores its cancellation."""

    async def finish() -> bool:
        await work
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        return (
            not left
            or not (await asyncio.wait(left, timeout=_LEFTOVER_TASKS_TIMEOUT_S))[1]
        )

    runner = asyncio.Runner()
    all_ended = True
    try:
        all_ended = runner.run(finish())
    finally:
        if all_ended:
            runner.close()


def _has_screen() -> bool:
    return sys.platform == "darwin" or bool(
        environment().get("DISPLAY") or environment().get("WAYLAND_DISPLAY")
    )


def _open(link: str) -> None:
    """Opens the link in a browser through a temporary page, because everybody can see process arguments."""
    import subprocess
    import tempfile
    import threading

    from hermes.children.helper_programs import trusted_path
    from hermes.children.own_python import module_command

    with tempfile.NamedTemporaryFile("w", suffix=".html", delete=False) as file:
        file.write(f'<meta http-equiv="refresh" content="0;url={link}">')
    command = module_command("webbrowser", Path(file.name).as_uri())
    environ, nowhere = (
        {**environment(), "PATH": trusted_path(environment())},
        subprocess.DEVNULL,
    )
    start = partial(
        subprocess.run,
        command,
        env=environ,
        stdin=nowhere,
        stdout=nowhere,
        stderr=nowhere,
        check=False,
    )
    threading.Thread(target=start, daemon=True).start()
    threading.Timer(
        _BROWSER_TIMEOUT_S, lambda: Path(file.name).unlink(missing_ok=True)
    ).start()
