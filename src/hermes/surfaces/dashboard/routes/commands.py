"""Every command with a scope, as a route: GET for commands that only read, POST for the others."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, get_type_hints

import msgspec
from starlette.responses import Response

from hermes.app import App
from hermes.commands.command import Command
from hermes.commands.context import CommandContext
from hermes.commands.table import every_command
from hermes.commands.views import Block, Result, document_of
from hermes.errors import Refused, UsageError
from hermes.schema.shown_reasons import shown_document
from hermes.surfaces.dashboard.dashboard import Dashboard
from hermes.surfaces.web.endpoint import Endpoint, EndpointCall
from hermes.text.translation import current_sentences, translator

t = translator(__name__)


class HttpSurface:
    """Output of a command beside its result: warnings go into the JSON, progress is dropped."""

    name = "dashboard"

    def __init__(self) -> None:
        self.warnings: list[str] = []

    def tell(self, *blocks: Block) -> None:
        """Does nothing: a request has only one response."""

    def warn(self, message: str, hint: str = "") -> None:
        self.warnings.append(f"{message} {hint}".strip())

    def confirm(self, question: str, nothing_done: str) -> bool:
        raise Refused(
            question,
            hint=t(
                '{nothing_done} Confirm it with "yes": true.', nothing_done=nothing_done
            ),
        )

    def read_secret(self, name: str) -> str:
        raise UsageError(t("{name}: a value is missing.", name=name))


class CommandRoutes:
    """Handlers over one dashboard."""

    def __init__(self, dashboard: Dashboard) -> None:
        self._board = dashboard
        self._app = dashboard.app
        self._agent = dashboard.agent

    def endpoints(self) -> list[Endpoint]:
        return [
            self._endpoint(one) for one in every_command() if one.name and one.scope
        ]

    def _endpoint(self, command: Command) -> Endpoint:
        path = f"/api/commands/{command.key}"
        handler = self._handler(command)
        answer = _answer_type(command)
        if command.scope == "observe":
            return Endpoint(
                "GET", path, "observe", handler, command.query, answer=answer
            )
        return Endpoint(
            "POST", path, command.scope or "admin", handler, body=command.form, answer=answer
        )  # fmt: skip

    def _saved(self) -> list[tuple[int, int]]:
        """When the settings and secrets were last written, so that what a command changed there applies at once."""
        files = (self._app.home.config, self._app.home.env_file)
        found = [path.stat() for path in files if path.exists()]
        return [(one.st_mtime_ns, one.st_size) for one in found]

    def _handler(
        self, command: Command
    ) -> Callable[[EndpointCall], Awaitable[Response]]:
        async def handle(call: EndpointCall) -> Response:
            arguments = command.arguments(
                call.query if call.body is None else call.body
            )
            surface = HttpSurface()
            before = await asyncio.to_thread(self._saved)
            with CommandContext(surface, app=self._app, agent=self._agent) as context:
                result = await command.run(context, arguments)
                content = await asyncio.to_thread(_encode, result, surface.warnings)
            if command.scope == "admin" and before != await asyncio.to_thread(
                self._saved
            ):
                await self._board.use_changed_model()
            return Response(content, media_type="application/json")

        handle.__doc__ = f"{command.summary[:1].upper()}{command.summary[1:]}."
        return handle


def run_command(app: App, command: Command, **arguments: Any) -> Any:
    """The result of a command, for a route that has an address or a form of its own."""
    with CommandContext(HttpSurface(), app=app) as context:
        return command.function(context, **arguments)


def _answer_type(command: Command) -> Any:
    """The type of the response, for the OpenAPI description; None if the JSON is no public struct."""
    kind = command.result_type
    if hasattr(kind, "document"):
        kind = get_type_hints(kind.document).get("return")
    is_struct = isinstance(kind, type) and issubclass(kind, msgspec.Struct)
    return kind if is_struct and not kind.__name__.startswith("_") else None


def _encode(result: Result, warnings: list[str]) -> bytes:
    document = document_of(result)
    if current_sentences() is not None:
        document = shown_document(msgspec.to_builtins(document, enc_hook=str))
    if warnings and isinstance(document, dict):
        document = document | {"warnings": warnings}
    return msgspec.json.encode(document, enc_hook=str)
