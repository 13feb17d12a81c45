"""MCP servers: list, add, test and remove them. Secrets are only referred to by name."""

import asyncio
import re
import shlex
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, TypeAlias

import msgspec

from hermes.commands.command import Arg, command
from hermes.commands.context import CommandContext
from hermes.commands.views import (
    Block,
    Line,
    Span,
    TextResult,
    line,
    message,
    table,
)
from hermes.errors import HermesError, NotFound, UsageError, translated
from hermes.mcp import McpServers, Probe, ServerFailed, ServerStatus, is_server_name
from hermes.mcp.logins import LoginStore, login_command
from hermes.mcp.server_config import ServerReports
from hermes.settings.edit import remove_entry, set_value
from hermes.settings.key_shapes import is_secret_value
from hermes.settings.load import load
from hermes.settings.mcp import McpServerSettings
from hermes.settings.redaction import has_credentials, mask
from hermes.settings.secrets import is_secret_name
from hermes.text.formats import first_line
from hermes.text.translation import shown_reason, to_translate, translator

t = translator(__name__)


LoginState: TypeAlias = Literal["none", "signed in", "ended"]

EXAMPLES = to_translate("""\
examples:
  hermes mcp add files -- npx -y @modelcontextprotocol/server-filesystem ~/notes
  hermes mcp add github --env GITHUB_TOKEN -- github-mcp-server stdio
  hermes mcp add weather --url https://example.org/mcp --header 'Authorization: Bearer ${WEATHER_TOKEN}'
  hermes mcp list                           what is configured, without connecting
  hermes mcp test files                     connect, list the tools, say how long it took
  hermes mcp test files --accept            ... and accept the tools as they are now
  hermes mcp login linear                   sign in at a service, in your browser
""")
_UNCHANGED = to_translate("Nothing was changed.")
_ADD_ONE = to_translate("Add one: hermes mcp add NAME -- COMMAND, or --url URL")


class ListedServer(msgspec.Struct, frozen=True):
    """A server, with the command or address behind it, without secrets."""

    status: ServerStatus
    where: str
    login: LoginState = "none"

    @property
    def tools(self) -> str:
        """How many tools it has, or why none."""
        status = self.status
        if status.state == "off":
            return "off"
        if status.state == "failed":
            return "can't be used"
        if not status.tools:
            return t("not connected yet")
        if self.login == "ended":
            return "login expired"
        changed = f", {len(status.changed)} changed" if status.changed else ""
        return t("{count:,} tool", "{count:,} tools", count=status.tools) + changed

    @property
    def note(self) -> str:
        """The state of the server, and why; empty if it only waits for its first call."""
        status = self.status
        if status.state in {"idle", "off"} and not status.changed:
            return ""
        parts = [f"{status.name}: {status.state}"]
        if status.retry_in:
            parts.append(t("tried again in {retry_in:.0f} s", retry_in=status.retry_in))
        if status.changed:
            parts.append(t("changed: {names}", names=", ".join(status.changed)))
        detail = first_line(shown_reason(status.detail))
        return ", ".join(parts) + (f": {detail}" if detail else "")


class ServerListing(msgspec.Struct, frozen=True, kw_only=True):
    """The configured servers."""

    servers: tuple[ListedServer, ...]

    def document(self) -> Any:
        rows = [
            msgspec.to_builtins(one.status) | {"where": one.where, "login": one.login}
            for one in self.servers
        ]
        return {"servers": rows}

    def view(self, _now: float) -> Iterable[Block]:
        if not self.servers:
            yield line(
                t("There are no MCP servers. {add_one}", add_one=t.marked(_ADD_ONE))
            )
            return
        rows = [(one.status.name, one.tools, one.where) for one in self.servers]
        yield table((t("SERVER"), t("TOOLS"), t("WHERE")), rows, narrow=((0, 1), (2,)))
        for one in self.servers:
            if one.note:
                yield line(one.note, "dim")
        for one in self.servers:
            if one.login == "ended":
                yield line(
                    t(
                        "Sign in again: {login_command}",
                        login_command=login_command(one.status.name),
                    ),
                    "warn",
                )
        changed = [one.status.name for one in self.servers if one.status.changed]
        if changed:
            yield line(
                t(
                    "\nChanged since you accepted it. Look, then accept: hermes mcp test {changed}",
                    changed=changed[0],
                ),
                "warn",
            )


class ProbedServers(msgspec.Struct, frozen=True, kw_only=True):
    """Servers that were connected to, with what they offer or why they can't be used."""

    results: dict[str, Probe | HermesError]
    accepted: bool = False

    @property
    def exit_code(self) -> int:
        return int(any(isinstance(one, HermesError) for one in self.results.values()))

    def document(self) -> Any:
        return {"servers": [_document(name, one) for name, one in self.results.items()]}

    def view(self, _now: float) -> Iterable[Block]:
        for name, result in self.results.items():
            if isinstance(result, Probe):
                yield from probe_view(name, result, accepted=self.accepted)


@command("mcp list", slash="mcp", scope="observe", group="Permissions")
def list_servers(context: CommandContext) -> ServerListing:
    """List the MCP servers, their tools and what has changed; nothing is connected."""
    settings = configured_servers(context)
    chat = context.conversation
    servers = chat.agent.toolbox.servers if chat is not None else None
    statuses = (servers or _servers(context, settings)).status()
    return ServerListing(
        servers=tuple(
            ListedServer(
                one, _where(settings[one.name]), _login(context, settings, one.name)
            )
            for one in statuses
            if one.name in settings
        )
    )


@command("mcp add", scope="admin")
async def add_server(  # noqa: PLR0913 - the options of one command
    context: CommandContext,
    name: Annotated[str, "a name of your choice: letters, digits, - and _"],
    command_line: Annotated[
        tuple[str, ...],
        Arg(
            "after --: the program to start, and its arguments",
            metavar="COMMAND",
            after_dashes=True,
        ),
    ] = (),
    *,
    url: Annotated[str, "the address of a service, instead of a program"] = "",
    env: Annotated[
        tuple[str, ...],
        Arg("a variable for it; NAME alone is a secret", metavar="NAME[=VALUE]"),
    ] = (),
    header: Annotated[
        tuple[str, ...], Arg("sent to the service", metavar="'NAME: VALUE'")
    ] = (),
    cwd: Annotated[
        str, Arg("the folder to run it in (default: your home folder)", metavar="DIR")
    ] = "",
    timeout: Annotated[  # noqa: ASYNC109 - it is a setting
        float | None, Arg("how long a call may be silent", metavar="SECONDS")
    ] = None,
    no_test: Annotated[bool, "add it without trying it"] = False,
) -> TextResult:
    """Add a server once it has answered."""
    home = context.home
    if not is_server_name(name):
        raise UsageError(
            t("{name!r} can't be a server's name.", name=name),
            hint=t("Use letters, digits, - and _, at most 32."),
        )
    if name in configured_servers(context):
        raise UsageError(
            t("There is already a server {name}.", name=name),
            hint=t("Remove it first: hermes mcp remove {name}", name=name),
        )
    _require_one_kind(name, command_line, url, env=env or cwd, header=header)
    program, *arguments = command_line or ("",)
    given: dict[str, Any] = {
        "command": program,
        "args": arguments,
        "url": url,
        "cwd": cwd,
        "env": dict(map(_variable, env)),
        "headers": dict(map(_header, header)),
        "timeout": timeout,
    }
    values = {key: value for key, value in given.items() if value}
    server = _checked(values)
    if not no_test:
        servers = _servers(context, {name: server})
        result = (await _probe_all(servers, [name], accept=True))[name]
        if isinstance(result, HermesError) and _login_command(name) in result.hint:
            error = _unusable(name, result)
            context.surface.warn(translated(error.words), result.hint)
        elif isinstance(result, HermesError):
            error = _unusable(name, result)
            hint = t(
                "Nothing was changed (--no-test adds it anyway). {hint}",
                hint=result.hint,
            )
            raise HermesError(error.words, hint=hint.strip())
        else:
            context.surface.tell(*probe_view(name, result))
    config = home.ensure().config
    for key, value in _leaves(values):
        set_value(config, f"mcp_servers.{name}.{key}", value)
    return message(
        t("Added {name}; new sessions offer its tools as mcp.{name}.TOOL.", name=name)
    )


@command("mcp test", scope="admin")
async def probe_servers(
    context: CommandContext,
    name: Annotated[str, "one server (default: all that are enabled)"] = "",
    *,
    accept: Annotated[bool, "accept the tools as they are now"] = False,
) -> ProbedServers:
    """Connect to servers and list their tools."""
    configured = configured_servers(context)
    if name and name not in configured:
        raise NotFound(
            t("There is no MCP server {name!r}.", name=name),
            hint=t("See: hermes mcp list"),
        )
    enabled = (one for one, server in sorted(configured.items()) if server.enabled)
    names = [name] if name else list(enabled)
    if not names:
        raise NotFound(t("There is no MCP server to test."), hint=t.marked(_ADD_ONE))
    results = await _probe_all(_servers(context, configured), names, accept=accept)
    for one, result in results.items():
        if isinstance(result, HermesError):
            error = _unusable(one, result)
            context.surface.warn(translated(error.words), translated(error.hint_words))
    return ProbedServers(results=results, accepted=accept)


@command("mcp remove", scope="admin")
def remove_server(
    context: CommandContext, name: Annotated[str, "the server"]
) -> TextResult:
    """Remove a server and its cached tools."""
    home = context.home
    known = configured_servers(context)
    if name not in known:
        hint = (
            t("There are: {known}.", known=", ".join(known))
            if known
            else t("There are none.")
        )
        raise NotFound(t("There is no MCP server {name!r}.", name=name), hint=hint)
    if not remove_entry(home.config, "mcp_servers", name):
        raise HermesError(
            t("{name} is not in {config}.", name=name, config=home.config),
            hint=t("It is set in the environment; unset that variable."),
        )
    _servers(context, load(home=home).mcp_servers).forget(name)
    return message(t("Removed {name}.", name=name))


class ListedMcpTool(msgspec.Struct, frozen=True):
    """A tool of a server, as models see it."""

    name: str
    description: str
    parameters: dict[str, Any]
    changed: bool


class McpToolListing(msgspec.Struct, frozen=True, kw_only=True):
    """The tools of servers, as they are remembered."""

    tools: tuple[ListedMcpTool, ...]

    def view(self, _now: float) -> Iterable[Block]:
        if not self.tools:
            yield line(t("No tools are known yet. Connect once: hermes mcp test"))
            return
        rows = [
            (one.name, first_line(one.description) + (" (changed)" * one.changed))
            for one in self.tools
        ]
        yield table((t("TOOL"), t("WHAT IT DOES")), rows, narrow=((0,), (1,)))


@command("mcp tools", scope="observe")
def list_server_tools(
    context: CommandContext,
    name: Annotated[str, "one server (default: all)"] = "",
) -> McpToolListing:
    """List the tools of the servers, as last seen; nothing is connected."""
    configured = configured_servers(context)
    if name and name not in configured:
        raise NotFound(
            t("There is no MCP server {name!r}.", name=name),
            hint=t("See: hermes mcp list"),
        )
    wanted = {one: configured[one] for one in configured if not name or one == name}
    servers = _servers(context, wanted)
    changed = {
        f"mcp.{one.name}.{tool}" for one in servers.status() for tool in one.changed
    }
    return McpToolListing(
        tools=tuple(
            ListedMcpTool(
                key, one.spec.description, one.spec.parameters, changed=key in changed
            )
            for key, one in servers.tools().items()
        )
    )


def configured_servers(context: CommandContext) -> Mapping[str, McpServerSettings]:
    """The servers in the settings as they are now; a long-running process may have loaded older ones."""
    if not context.is_shared or not context.home.config.exists():
        return context.settings.mcp_servers
    return load(home=context.home).mcp_servers


def _login(
    context: CommandContext, settings: Mapping[str, McpServerSettings], name: str
) -> LoginState:
    """Whether the user is signed in at a server."""
    url = settings[name].url
    login = LoginStore(context.home).of(name, url) if url else None
    if login is None:
        return "none"
    return "ended" if login.ended else "signed in"


def probe_view(name: str, result: Probe, *, accepted: bool = False) -> Iterable[Block]:
    """A server that answered, and its tools."""
    tools = t("{count:,} tool", "{count:,} tools", count=len(result.listing.tools))
    about = f" answers in {result.seconds:.2f} s: {result.title}, {tools}"
    yield Line((Span(name, "bold"), Span(about)))
    size = max((len(one) for one in result.listing.tools), default=0) + 2
    for one, tool in result.listing.tools.items():
        yield line(f"  {one:<{size}}{first_line(tool.description)}", fit="cut")
    for problem in result.listing.left_out:
        yield line(
            t("  left out: {problem}", problem=shown_reason(problem)), "dim", fit="cut"
        )
    if result.changed:
        changed = ", ".join(result.changed)
        yield line(
            t("  Changed since you accepted it: {changed}.", changed=changed), "warn"
        )
        yield line(
            t("  Use it as it is now: hermes mcp test {name} --accept", name=name),
            "warn",
        )
    elif accepted:
        yield line(t("  Accepted as it is now."))


def _servers(
    context: CommandContext, settings: Mapping[str, McpServerSettings]
) -> McpServers:
    def scanned(text: str) -> str:
        from hermes.learning.scan import scan  # only a server that answers needs it

        return scan(text)

    return McpServers(
        dict(settings),
        context.home,
        context.secrets,
        context.environment,
        reports=ServerReports(scan=scanned),
    )


async def _probe_all(
    servers: McpServers, names: list[str], *, accept: bool
) -> dict[str, Probe | HermesError]:
    """Connects to all servers at once. Leaves nothing running."""

    async def probe(name: str) -> Probe | HermesError:
        try:
            return await servers.probe(name, accept=accept)
        except HermesError as error:
            return error

    try:
        return dict(zip(names, await asyncio.gather(*map(probe, names)), strict=True))
    finally:
        await servers.close()


def _login_command(name: str) -> str:
    """What an error names that signing in would cure."""
    return f"hermes mcp login {name}"


def _unusable(name: str, error: HermesError) -> HermesError:
    why = _reason(error)
    return HermesError(
        t("The MCP server {name} can't be used: {why}.", name=name, why=why),
        hint=error.hint,
    )


def _reason(error: HermesError) -> str:
    if isinstance(error, ServerFailed):
        return error.full_shown.rstrip(".")
    return translated(error.words).rstrip(".")


def _document(name: str, result: Probe | HermesError) -> dict[str, Any]:
    if isinstance(result, HermesError):
        said = result.full if isinstance(result, ServerFailed) else result.message
        problem = {"problem": said.rstrip("."), "hint": result.hint}
        return {"name": name, "ok": False} | problem
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


def _where(server: McpServerSettings) -> str:
    if server.url:
        return mask(server.url)
    return mask(shlex.join([server.command, *server.args]))


def _require_one_kind(
    name: str, command_line: tuple[str, ...], url: str, *, env: object, header: object
) -> None:
    if bool(command_line) == bool(url):
        raise UsageError(
            t("A server is either a program or a service."),
            hint=t(
                "hermes mcp add {name} -- COMMAND ARGUMENTS, or: hermes mcp add {name} --url URL",
                name=name,
            ),
        )
    if env and url:
        raise UsageError(
            t("--env and --cwd are for a program; a service takes --header."),
            hint=t.marked(_UNCHANGED),
        )
    if header and command_line:
        raise UsageError(
            t("--header is for a service; a program takes --env."),
            hint=t.marked(_UNCHANGED),
        )


def _checked(values: dict[str, Any]) -> McpServerSettings:
    for word in (*values.get("args", ()), values.get("url", "")):
        if is_secret_value(word) or has_credentials(word):
            raise UsageError(
                t("The command and the address must not contain a key."),
                hint=t(
                    "{unchanged} Give it as a variable (--env NAME) or a header (--header 'Authorization: Bearer "
                    "${{NAME}}'), and store it with: hermes config set NAME",
                    unchanged=t.marked(_UNCHANGED),
                ),
            )
    try:
        return msgspec.convert(values, McpServerSettings)
    except msgspec.ValidationError as error:
        raise UsageError(
            t("These are not valid settings for a server: {error}.", error=error),
            hint=t.marked(_UNCHANGED),
        ) from error


def _variable(text: str) -> tuple[str, str]:
    """NAME=VALUE; NAME alone refers to the secret of that name."""
    name, equals, value = text.partition("=")
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise UsageError(
            t("--env: {name!r} can't be a variable's name.", name=name),
            hint=t.marked(_UNCHANGED),
        )
    if not equals:
        return name, f"${{{name}}}"
    _require_reference(name, value, name)
    return name, value


def _header(text: str) -> tuple[str, str]:
    name, colon, value = (part.strip() for part in text.partition(":"))
    if not colon or not re.fullmatch(r"[A-Za-z0-9-]+", name):
        raise UsageError(
            t("--header: expected 'NAME: VALUE'."), hint=t.marked(_UNCHANGED)
        )
    is_credential = name.lower() in {"authorization", "cookie"}
    _require_reference("token" if is_credential else name, value, "NAME_TOKEN")
    return name, value


def _require_reference(name: str, value: str, suggestion: str) -> None:
    """A secret is stored in .env, not in config.yaml."""
    if "${" not in value and (is_secret_name(name) or is_secret_value(value)):
        raise UsageError(
            t("That looks like a secret, and secrets don't belong in config.yaml."),
            hint=t(
                "{unchanged} Refer to it as ${{{suggestion}}}, and store it with: hermes config set {suggestion}",
                unchanged=t.marked(_UNCHANGED),
                suggestion=suggestion,
            ),
        )


def _leaves(values: dict[str, Any]) -> list[tuple[str, object]]:
    """Every single value with its key, so that the file stays readable."""
    found: list[tuple[str, object]] = []
    for key, value in values.items():
        if isinstance(value, dict):
            found += [(f"{key}.{name}", one) for name, one in value.items()]
        else:
            found.append((key, value))
    return found
