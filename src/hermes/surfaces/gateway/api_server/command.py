"""`hermes api`: serves OpenAI's API. `hermes api key`, also as `hermes gateway key`, manages its keys."""

import asyncio
import signal
from collections.abc import Iterable
from typing import Annotated, Any

import msgspec

from hermes.app import App, build
from hermes.commands.command import Arg, command
from hermes.commands.context import CommandContext
from hermes.commands.views import Block, TextResult, line, message, table
from hermes.errors import HermesError, UsageError
from hermes.primitives.tasks import BackgroundTasks
from hermes.settings import Secrets
from hermes.surfaces.gateway.api_server.api_keys import (
    DEFAULT_SCOPES,
    SCOPES,
    ApiKey,
    ApiKeys,
    Scope,
)
from hermes.surfaces.web.hosts_and_origins import Host, Port, listening_on
from hermes.text.formats import DAY_S, first_line
from hermes.text.install_words import install_hint
from hermes.text.translation import to_translate, translator

t = translator(__name__)


EXAMPLES = {
    "api": to_translate("""\
examples:
  hermes api key add laptop                 make a key; it is shown once
  hermes api                                serve on http://127.0.0.1:8711/v1
  hermes api key add scripts --scope chat --days 90
  hermes api key list                       list the keys
  hermes api key remove laptop              remove a key, at once

`hermes gateway run` serves the API too, once there is a key.
""")
}
_MAX_KEY_DAYS = 3650
_STOPPING_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class KeyListing(msgspec.Struct, frozen=True):
    """The keys of the API."""

    keys: tuple[ApiKey, ...]

    def document(self) -> Any:
        shown = [msgspec.to_builtins(key) for key in self.keys]
        for key in shown:
            del key["digest"]
        return {"keys": shown}

    def view(self, _now: float) -> Iterable[Block]:
        if not self.keys:
            yield line(
                t("There are no keys yet. Make one with: hermes api key add NAME")
            )
            return
        rows = [
            (key.id, first_line(key.name), ", ".join(key.scopes)) for key in self.keys
        ]
        yield table((t("KEY"), t("NAME"), t("MAY")), rows)


def add_key(
    context: CommandContext,
    name: Annotated[str, "what it is for"],
    *,
    scope: Annotated[tuple[str, ...], f"what it may do: {', '.join(SCOPES)}"] = (),
    days: Annotated[
        float, Arg("how long it is valid (default: no limit)", metavar="NUMBER")
    ] = 0.0,
) -> TextResult:
    """Make a key and show it, once."""
    if not 0 <= days <= _MAX_KEY_DAYS:
        raise UsageError(
            t(
                "A key is valid for at most {max_key_days} days, or without limit (0).",
                max_key_days=_MAX_KEY_DAYS,
            )
        )
    made, text = _keys(context).add(name, _scopes(scope), seconds=days * DAY_S)
    scopes = ", ".join(made.scopes)
    shown_once = t(
        "This is the only time that the key is shown. Its scopes: {scopes}.",
        scopes=scopes,
    )
    return message(text, "", shown_once)


def list_keys(context: CommandContext) -> KeyListing:
    """List the keys."""
    return KeyListing(tuple(_keys(context).all()))


def remove_key(
    context: CommandContext, key: Annotated[str, "its id or its name"]
) -> TextResult:
    """Remove a key."""
    gone = _keys(context).remove(key)
    return message(t("Removed the key {name} ({id}).", name=gone.name, id=gone.id))


add_api_key = command("api key add")(add_key)
list_api_keys = command("api key list")(list_keys)
remove_api_key = command("api key remove")(remove_key)
add_gateway_key = command("gateway key add")(add_key)
list_gateway_keys = command("gateway key list")(list_keys)
remove_gateway_key = command("gateway key remove")(remove_key)


@command("api")
def serve_api(
    context: CommandContext, *, host: Host = None, port: Port = None
) -> TextResult:
    """Serve OpenAI's API until Ctrl-C."""
    section = listening_on(context.settings.api, host, port)
    settings = msgspec.structs.replace(context.settings, api=section)
    with build(settings, context.home) as app:
        asyncio.run(_until_stopped(app, context.secrets))
    return message(t("The API server has stopped."))


def _keys(context: CommandContext) -> ApiKeys:
    return ApiKeys(context.home, context.app.clock.now)


def _scopes(wanted: tuple[str, ...]) -> tuple[Scope, ...]:
    unknown = [scope for scope in wanted if scope not in SCOPES]
    if unknown:
        raise UsageError(
            t("There is no scope {unknown!r}.", unknown=unknown[0]),
            hint=t("There are: {scopes}.", scopes=", ".join(SCOPES)),
        )
    return tuple(scope for scope in SCOPES if scope in wanted) or DEFAULT_SCOPES


async def _until_stopped(app: App, secrets: Secrets) -> None:
    try:
        from hermes.surfaces.gateway.api_server.server import ApiServer
    except ImportError as error:
        raise HermesError(
            t(
                "The API server needs a package that is not installed ({name}).",
                name=error.name,
            ),
            hint=install_hint("web"),
        ) from error

    def ready(url: str) -> None:
        app.go_live(secrets, "api")
        print(t("Serving OpenAI's API at {url}. Ctrl-C stops it.", url=url), flush=True)

    server = ApiServer(app, secrets)
    serving = asyncio.ensure_future(server.run(ready))
    loop = asyncio.get_running_loop()
    draining = BackgroundTasks("draining the API server")

    async def drain() -> None:
        await server.drain(app.settings.gateway.drain_timeout)
        serving.cancel()

    def stop() -> None:
        for number in _STOPPING_SIGNALS:
            loop.add_signal_handler(number, serving.cancel)  # the next one, at once
        draining.start(drain())

    for number in _STOPPING_SIGNALS:
        loop.add_signal_handler(number, stop)
    await asyncio.wait({serving})
    await draining.close()
    if not serving.cancelled():
        serving.result()
