"""Compares what a server offers with what the user accepted. Models are offered what was accepted. In every mode, a
changed tool is not used until the user accepts it."""

from collections.abc import Awaitable, Callable, Mapping

from hermes.core.ports import ToolContext
from hermes.errors import SettingsError, ToolFailed
from hermes.mcp.definitions import Definition, Listing, difference
from hermes.mcp.results import unusable
from hermes.mcp.server_cache import ToolPins
from hermes.text.translation import to_translate, translator

t = translator(__name__)


ACCEPT = to_translate("Use it as it is now")
REFUSE = to_translate("Don't use it")


class PinnedTools:
    """The accepted tools of one server."""

    def __init__(self, server: str, pins: ToolPins) -> None:
        self._server = server
        self._pins = pins

    def changed(self, listing: Listing) -> tuple[str, ...]:
        """Returns the tools whose description or parameters differ from what was accepted."""
        return tuple(name for name in listing.tools if self.is_changed(name, listing))

    def is_changed(self, tool: str, listing: Listing) -> bool:
        """Whether a tool differs from what was accepted."""
        try:
            pinned = self._pins.of(self._server)
        except (
            SettingsError
        ):  # nothing is offered then, and the server's status says why
            return False
        return (
            tool in pinned
            and tool in listing.tools
            and _differ(pinned[tool], listing.tools[tool])
        )

    def offered(self, listing: Listing) -> Mapping[str, Definition]:
        """Returns the tools as they were accepted. A tool that was never offered before is accepted now."""
        self._pins.pin(self._server, listing.tools)
        pinned = self._pins.of(self._server)
        return {name: pinned[name] for name in listing.tools}

    def accept(self, listing: Listing) -> None:
        """Accepts every tool as it is now."""
        self._pins.pin(self._server, listing.tools, replace=True)

    async def ensure(
        self, tool: str, look: Callable[[], Awaitable[Definition]], context: ToolContext
    ) -> None:
        """Checks that a tool is as it was accepted, and asks the user if not. Raises ToolFailed if they refuse."""
        now = await look()
        try:
            pinned = self._pins.of(self._server).get(tool)
            if pinned is not None and not _differ(pinned, now):
                return
            if pinned is not None:
                await self._ask(pinned, now, context)
                if _differ(await look(), now):
                    raise ToolFailed(
                        f"The MCP server {self._server} changed {tool} again.",
                        hint="Nothing was done.",
                    )
            self._pins.pin(self._server, {tool: now}, replace=True)
        except SettingsError as error:
            raise unusable(
                self._server,
                error.message.rstrip("."),
                f"Nothing was done. {error.hint}",  # not translated: a model reads it
            ) from error

    async def _ask(
        self, before: Definition, now: Definition, context: ToolContext
    ) -> None:
        question = t.logged(
            "The MCP server {server} has changed its tool {tool} since you accepted it.",
            server=self._server,
            tool=now.name,
        )
        what = question.removesuffix(".")
        later = f"The user can look at it and accept it: hermes mcp test {self._server} --accept"  # not translated
        try:
            said = await context.ask(
                f"{question}\n{difference(before, now)}\n{t.logged('Use it?')}",
                (ACCEPT, REFUSE),
            )
        except ToolFailed as nobody:
            raise ToolFailed(
                f"{what}, and nobody could be asked.", hint=f"Nothing was done. {later}"
            ) from nobody
        if said.strip().lower() not in {ACCEPT.lower(), "yes", "y"}:
            hint = t.later(
                "Nothing was done. Do not try to do the same in another way. {later}",
                later=later,
            )
            raise ToolFailed(f"{what}, and the user does not want it.", hint=hint)


def _differ(one: Definition, two: Definition) -> bool:
    return one.fingerprint != two.fingerprint
