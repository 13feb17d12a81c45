"""Signing in to remote MCP servers, and out again."""

from typing import Annotated, Any

import msgspec

from hermes.commands.command import Arg, command
from hermes.commands.context import CommandContext, LineReader
from hermes.commands.mcp import configured_servers
from hermes.commands.views import TextResult, line, message
from hermes.errors import HermesError, NotFound
from hermes.mcp import ServerFailed
from hermes.mcp.login import ServerSignIn
from hermes.mcp.logins import LoginStore
from hermes.settings.mcp import McpServerSettings
from hermes.text.translation import to_translate, translator

t = translator(__name__)


_OPEN = to_translate("Open this address in a browser, and sign in:")
_PASTE = to_translate(
    "If the browser is on another machine, it ends on a page that can't be opened: copy that page's address (it begins "
    "with http://127.0.0.1) and paste it here."
)


class BegunLogin(msgspec.Struct, frozen=True, kw_only=True):
    """A login that waits for the person in their browser."""

    name: str
    address: str

    def document(self) -> Any:
        return {"name": self.name, "address": self.address}

    def view(self, _now: float) -> Any:
        yield line(f"{t.marked(_OPEN)}\n\n{self.address}\n")
        yield line(
            t(
                "It ends on a page that can't be opened. Copy the address of that page, and finish with: "
                "hermes mcp login {name} --address 'ADDRESS'",
                name=self.name,
            )
        )


@command("mcp login", scope="admin")
async def log_in(
    context: CommandContext,
    name: Annotated[str, "the server"],
    *,
    address: Annotated[
        str, Arg("the address that the browser was sent to", metavar="URL")
    ] = "",
    no_wait: Annotated[
        bool, "print the address and finish later with --address"
    ] = False,
) -> TextResult | BegunLogin:
    """Sign in to a remote server (OAuth)."""
    surface = context.surface
    try:
        sign_in = ServerSignIn(name, _server(context, name), context.home)
        if address:
            await sign_in.finish(address)
        elif no_wait or not isinstance(surface, LineReader):
            return BegunLogin(name=name, address=await sign_in.begin())
        else:
            reader = surface.read_line if surface.can_read else None

            def show(where: str) -> None:
                surface.tell(line(f"{t.marked(_OPEN)}\n\n{where}\n"))
                if reader is not None:
                    surface.tell(line(f"{t.marked(_PASTE)}\n", "dim"))

            await sign_in.run(show, reader)
    except ServerFailed as failed:
        raise HermesError(
            t("You are not signed in to {name}: {full}.", name=name, full=failed.full),
            hint=failed.hint,
        ) from failed
    return message(t("Signed in to {name}. Try it: hermes mcp test {name}", name=name))


@command("mcp logout", scope="admin")
def log_out(context: CommandContext, name: Annotated[str, "the server"]) -> TextResult:
    """Sign out of a server: delete its login."""
    if not LoginStore(context.home).forget(name):
        raise NotFound(
            t("There is no login at {name}.", name=name), hint=t("See: hermes mcp list")
        )
    return message(t("Deleted the login at {name}.", name=name))


def _server(context: CommandContext, name: str) -> McpServerSettings:
    found = configured_servers(context).get(name)
    if found is None:
        raise NotFound(
            t("There is no MCP server {name!r}.", name=name),
            hint=t("See: hermes mcp list"),
        )
    return found
