"""`hermes dashboard`: serves the dashboard, prints a one-time link, or a token for a script."""

import asyncio
import signal
import sys
from collections.abc import Coroutine
from functools import partial
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import msgspec

from hermes.app import build
from hermes.commands.command import Arg, command
from hermes.commands.context import CommandContext
from hermes.commands.views import TextResult, message
from hermes.errors import HermesError, UsageError
from hermes.settings import Home, Settings
from hermes.settings.load import environment, load_secrets
from hermes.surfaces.dashboard.credentials import SCOPES, Keyring
from hermes.surfaces.dashboard.running_file import (
    RunningDashboard,
    announce,
    running_dashboard,
)
from hermes.surfaces.web.hosts_and_origins import Host, Port, listening_on
from hermes.text.formats import DAY_S
from hermes.text.install_words import install_hint
from hermes.text.translation import to_translate, translator

t = translator(__name__)


EXAMPLES = to_translate("""\
examples:
  hermes dashboard                              serve it, and open it
  hermes dashboard --link                       another link to the running dashboard
  hermes dashboard --print-token --scope observe --scope chat
""")
_LINK_TOKEN_LIFETIME_S = 60.0
_TOKEN_DAYS = 30.0
_MAX_TOKEN_DAYS = 3650
_LINK_REQUEST_TIMEOUT_S = 10.0
_LEFTOVER_TASKS_TIMEOUT_S = 2.0
_BROWSER_TIMEOUT_S = 30.0


@command("dashboard")
def serve_dashboard(  # noqa: PLR0913 - its options
    context: CommandContext,
    *,
    host: Host = None,
    port: Port = None,
    no_open: Annotated[bool, "print the link and open no browser"] = False,
    link: Annotated[bool, "print another link to the running dashboard"] = False,
    print_token: Annotated[bool, "print a token for a script"] = False,
    scope: Annotated[
        tuple[str, ...], f"what the token is for: {', '.join(SCOPES)}"
    ] = (),
    days: Annotated[
        float, Arg("how long the token is valid", metavar="NUMBER")
    ] = _TOKEN_DAYS,
    channel: Annotated[
        str, Arg("the only channel it may publish on", metavar="NAME")
    ] = "",
    sign_out: Annotated[bool, "revoke every token and sign out every browser"] = False,
) -> TextResult:
    """Serve Hermes in your browser."""
    home, settings = context.home, context.settings
    keys = Keyring(home, context.app.clock.now)
    if sign_out:
        return _sign_out(home, keys)
    if print_token:
        return message(_token(keys, scope, days, channel))
    running = running_dashboard(home)
    if running is not None and not running.listens():
        running = None
    if running is None:
        if link:
            raise UsageError(
                t("No dashboard is running."),
                hint=t("Start one with: hermes dashboard"),
            )
        section = listening_on(settings.dashboard, host, port)
        chosen = msgspec.structs.replace(settings, dashboard=section)
        return _serve(chosen, home, open_it=not no_open)
    if not link:
        print(
            t("The dashboard is already running at {url}", url=running.url),
            file=sys.stderr,
        )
    token = keys.mint("token", ("admin",), seconds=_LINK_TOKEN_LIFETIME_S)
    return message(_ask_for_link(running, token, settings.dashboard.tls_cert))


def _sign_out(home: Home, keys: Keyring) -> TextResult:
    keys.renew()
    if (running := running_dashboard(home)) is not None:
        announce(home, keys, running.url, running.pid)
    return message(
        t(
            "All tokens are revoked and all browsers signed out, including those of a running dashboard."
        )
    )


def _token(keys: Keyring, wanted: tuple[str, ...], days: float, channel: str) -> str:
    scopes = tuple(scope for scope in SCOPES if scope in wanted)
    unknown = [scope for scope in wanted if scope not in SCOPES]
    if unknown or not scopes:
        what = (
            t("There is no scope {unknown!r}.", unknown=unknown[0])
            if unknown
            else t("A token needs a scope.")
        )
        raise UsageError(
            what,
            hint=t(
                "There are: {scopes}. Such as: --print-token --scope observe",
                scopes=", ".join(SCOPES),
            ),
        )
    if not 0 < days <= _MAX_TOKEN_DAYS:
        raise UsageError(t("A token is valid for more than 0 and at most 3650 days."))
    return keys.mint("token", scopes, seconds=days * DAY_S, channel=channel)


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
            t(
                "The dashboard at {url} does not answer ({error}).",
                url=running.url,
                error=error,
            ),
            hint=t(
                "If it is gone, remove running.json and start another. Its process was {pid}.",
                pid=running.pid,
            ),
        ) from error
    finally:
        connection.close()
    if answer.status != 200:
        raise HermesError(
            t(
                "The dashboard at {url} refused ({status}).",
                url=running.url,
                status=answer.status,
            ),
            hint=t("Start it again."),
        )
    return str(msgspec.json.decode(content)["url"])


def _serve(settings: Settings, home: Home, *, open_it: bool) -> TextResult:
    try:
        from hermes.surfaces.dashboard.server import ServedDashboard, serve
    except ImportError as error:
        raise HermesError(
            t(
                "The dashboard needs a package that is not installed ({name}).",
                name=error.name,
            ),
            hint=install_hint("web"),
        ) from error

    def ready(served: ServedDashboard, link: str) -> None:
        print(
            t(
                "Hermes is at {url}\n\nOpen this link; it works once:\n  {link}\n",
                url=served.board.url,
                link=link,
            ),
            flush=True,
        )
        print(t("Ctrl-C stops it. Another link: hermes dashboard --link"), flush=True)
        if open_it and sys.stdout.isatty() and _has_screen():
            _open(link)

    async def main() -> None:
        stop = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        await serve(app, load_secrets(home=home), ready, stop)

    with build(settings, home) as app:
        _run(main())
    return message(t("The dashboard has stopped."))


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
        # not translated: markup
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
