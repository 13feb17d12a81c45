"""Plugins and hooks: listing them, and allowing one to run exactly as it is now."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Iterable
from typing import Annotated, Any

import msgspec

from hermes.commands.command import Arg, command
from hermes.commands.context import CommandContext
from hermes.commands.views import Block, TextResult, line, message, table
from hermes.errors import HermesError, NotFound
from hermes.plugins import Plugin, PluginRegistry
from hermes.plugins.hooks import EVENTS, HANDLER, Hook, Hooks
from hermes.text.translation import shown_reason, to_translate, translator

t = translator(__name__)


EXAMPLES = {
    "plugins": to_translate(
        "A plugin is a folder in `plugins/` of the Hermes home. It runs inside Hermes, as you."
    ),
    "hooks": to_translate(
        "A hook is a folder in `hooks/` of the Hermes home with HOOK.yaml and handler.py. It runs as you."
    ),
}
_PLUGIN_STATES = {
    "off": to_translate("off"),
    "enabled": to_translate("enabled"),
    "changed": to_translate(
        "changed since you enabled it: off until you enable it again"
    ),
    "broken": to_translate("can't be used"),
}
_HOOK_STATES = {
    "off": to_translate("new: off until you trust it"),
    "trusted": to_translate("trusted"),
    "changed": to_translate(
        "changed since you trusted it: off until you trust it again"
    ),
    "broken": to_translate("can't be used"),
}
_SAMPLE_EVENT = {
    "platform": "test",
    "user": "",
    "session_id": "test-session",
    "turn_id": "test-turn",
    "message": "hello",
    "response": "Hello. How can I help?",  # not translated: a sample
    "reason": "done",
}

PluginName = Annotated[str, Arg("the plugin", metavar="NAME")]
HookName = Annotated[str, Arg("the hook", metavar="NAME")]


class PluginListing(msgspec.Struct, frozen=True, kw_only=True):
    """The plugins, none of which was run."""

    plugins: tuple[Plugin, ...]

    def document(self) -> Any:
        return {"plugins": self.plugins}

    def view(self, _now: float) -> Iterable[Block]:
        if not self.plugins:
            yield line(
                t(
                    "There are no plugins. A plugin is a folder in `plugins/` of the Hermes home, "
                    "with a dashboard/manifest.json or a plugin.yaml."
                )
            )
            return
        rows = [
            (
                one.name,
                one.manifest.version if one.manifest else "",
                _with_problem(
                    t.marked(_PLUGIN_STATES[one.state]), shown_reason(one.problem)
                ),
            )
            for one in self.plugins
        ]
        yield table((t("PLUGIN"), t("VERSION"), t("STATE")), rows, cut=False)


class HookListing(msgspec.Struct, frozen=True, kw_only=True):
    """The hooks, none of which was run."""

    hooks: tuple[Hook, ...]
    folder: str

    def document(self) -> Any:
        return {"hooks": self.hooks}

    def view(self, _now: float) -> Iterable[Block]:
        if not self.hooks:
            yield line(
                t(
                    "There are no hooks. A hook is a folder in {folder}; it can listen to {events}.",
                    folder=self.folder,
                    events=", ".join(EVENTS),
                )
            )
            return
        rows = [
            (
                one.name,
                " ".join(one.manifest.events) if one.manifest else "",
                _with_problem(
                    t.marked(_HOOK_STATES[one.state]), shown_reason(one.problem)
                ),
            )
            for one in self.hooks
        ]
        yield table((t("HOOK"), t("EVENTS"), t("STATE")), rows, cut=False)


@command("plugins list", scope="observe")
def list_plugins(context: CommandContext) -> PluginListing:
    """List the plugins; none of them is run."""
    return PluginListing(plugins=tuple(PluginRegistry(context.home).every()))


class PluginCommandRow(msgspec.Struct, frozen=True):
    """A slash command of a plugin."""

    name: str
    plugin: str
    description: str
    hint: str


class PluginCommandListing(msgspec.Struct, frozen=True, kw_only=True):
    """The slash commands of enabled plugins."""

    commands: tuple[PluginCommandRow, ...]

    def view(self, _now: float) -> Iterable[Block]:
        if not self.commands:
            yield line(t("No enabled plugin has a slash command."))
            return
        rows = [
            (f"/{one.name} {one.hint}".rstrip(), one.plugin, one.description)
            for one in self.commands
        ]
        yield table((t("COMMAND"), t("PLUGIN"), t("WHAT IT DOES")), rows)


@command("plugins commands", scope="observe")
def list_plugin_commands(context: CommandContext) -> PluginCommandListing:
    """List the slash commands of enabled plugins."""
    plugins = context.app.plugins
    found = plugins.commands.values() if plugins is not None else ()
    rows = (
        PluginCommandRow(one.name, one.plugin, one.description, one.hint)
        for one in found
    )
    return PluginCommandListing(commands=tuple(rows))


@command("plugins run", scope="admin")
async def run_command_of_plugin(
    context: CommandContext,
    name: Annotated[str, Arg("its name, without the slash", metavar="COMMAND")],
    words: Annotated[
        tuple[str, ...], Arg("what is typed behind it", metavar="WORDS")
    ] = (),
) -> TextResult:
    """Run a slash command of a plugin."""
    from hermes.app.plugin_parts import run_plugin_command

    plugins = context.app.plugins
    found = await asyncio.to_thread(lambda: plugins.commands if plugins else {})
    if name not in found:
        raise NotFound(
            t("No enabled plugin has a command /{name}.", name=name),
            hint=t("To list them: hermes plugins commands"),
        )
    return message(await run_plugin_command(found[name], " ".join(words)))


@command("plugins enable")
def enable_plugin(context: CommandContext, name: PluginName) -> TextResult:
    """Let a plugin run, exactly as it is now."""
    plugin = PluginRegistry(context.home).enable(name)
    return message(
        t(
            "{name} is enabled ({hash}). New sessions get its tools; "
            "a running dashboard loads it when it is shown next.",
            name=plugin.name,
            hash=plugin.hash[:12],
        )
    )


@command("plugins disable")
def disable_plugin(context: CommandContext, name: PluginName) -> TextResult:
    """Disable a plugin."""
    was_enabled = PluginRegistry(context.home).disable(name)
    return message(
        t("{name} is disabled.", name=name)
        if was_enabled
        else t("{name} was not enabled.", name=name)
    )


@command("hooks list", scope="observe")
def list_hooks(context: CommandContext) -> HookListing:
    """List the hooks; none of them is run."""
    hooks = tuple(Hooks(context.home).every())
    return HookListing(hooks=hooks, folder=str(context.home.hooks))


@command("hooks trust")
def trust_hook(context: CommandContext, name: HookName) -> TextResult:
    """Let a hook run, exactly as it is now."""
    hook = Hooks(context.home).trust(name)
    events = ", ".join(hook.manifest.events) if hook.manifest else ""
    return message(
        t(
            "{name} is trusted as it is now ({hash}), for {events}.",
            name=hook.name,
            hash=hook.hash[:12],
            events=events,
        ),
        t(
            "It runs {folder} as you, from the next start of Hermes on.",
            folder=hook.folder / HANDLER,
        ),
    )


@command("hooks untrust")
def untrust_hook(context: CommandContext, name: HookName) -> TextResult:
    """Withdraw the trust in a hook, so that it no longer runs."""
    was_trusted = Hooks(context.home).untrust(name)
    if not was_trusted:
        return message(t("{name} was not trusted.", name=name))
    return message(t("{name} is off, from the next start of Hermes on.", name=name))


@command("hooks test")
def try_hook(
    context: CommandContext,
    name: HookName,
    event: Annotated[
        str, Arg("such as agent:end (default: its first one)", metavar="EVENT")
    ] = "",
) -> TextResult:
    """Run a hook once, with a made-up event."""
    hook = Hooks(context.home).find(name)
    if hook.manifest is None or hook.state != "trusted":
        raise HermesError(
            t(
                "The hook {name} is not trusted: {problem}.",
                name=hook.name,
                problem=hook.problem or t.marked(_HOOK_STATES[hook.state]),
            ),
            hint=t(
                "Look at {folder}, then: hermes hooks trust {name}",
                folder=hook.folder / HANDLER,
                name=hook.name,
            ),
        )
    from hermes.plugins.hook_runner import load_handler

    exact = (one for one in hook.manifest.events if "*" not in one)
    kind = event or next(exact, "agent:end")
    if not hook.subscribes_to(kind):
        context.surface.warn(
            t(
                "{name} does not listen to {kind}; running it anyway.",
                name=hook.name,
                kind=kind,
            )
        )
    started = time.monotonic()
    try:
        result = load_handler(hook, printing=True)(kind, dict(_SAMPLE_EVENT))
        if inspect.isawaitable(result):
            asyncio.run(_await(result, hook.manifest.timeout))
    except Exception as error:  # noqa: BLE001 - the hook's own failure is what the user wants to see
        import traceback

        context.surface.warn("".join(traceback.format_exception(error)))
        context.surface.warn(t("{name} failed on {kind}.", name=hook.name, kind=kind))
        return message(failed=True)
    seconds = time.monotonic() - started
    return message(
        t(
            "{name} took {seconds:.3f} s for {kind}.",
            name=hook.name,
            seconds=seconds,
            kind=kind,
        )
    )


async def _await(result: Awaitable[Any], timeout_s: float) -> None:
    async with asyncio.timeout(timeout_s):
        await result


def _with_problem(state: str, problem: str) -> str:
    return f"{state}: {problem}" if problem else state
