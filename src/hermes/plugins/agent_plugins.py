"""What enabled plugins add to the agent: tools, slash commands, context engines, and hooks that may veto a tool call.

Such a plugin has an `__init__.py` in its folder with `register(context)`, like plugins of the original agent. It is
imported in each process that runs sessions, from exactly the files that the user approved.
"""

import inspect
import logging
import re
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from hermes.errors import HermesError
from hermes.plugins import verified_import
from hermes.plugins.plugin_registry import Plugin, PluginRegistry
from hermes.settings import Home
from hermes.text.translation import translator

t = translator(__name__)

log = logging.getLogger("hermes.plugins")

ENTRY = "__init__.py"
VETO_HOOK = "pre_tool_call"
_PREFIX = "hermes_plugin_agent_"
_TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_COMMAND_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")


class PluginTool(msgspec.Struct, frozen=True):
    """A plugin's tool. `handler` gets the arguments as a dict and returns the text for the model."""

    plugin: str
    name: str
    description: str
    parameters: Mapping[str, Any]
    handler: Callable[..., Any]
    is_available: Callable[[], Any] | None = None


class PluginCommand(msgspec.Struct, frozen=True):
    """A plugin's slash command. `handler` gets the text typed after it and returns the text for the user."""

    plugin: str
    name: str
    description: str
    hint: str
    handler: Callable[..., Any]


class PluginHook(msgspec.Struct, frozen=True):
    """A plugin's function that is called before each tool call."""

    plugin: str
    callback: Callable[..., Any]


class PluginContextEngine(msgspec.Struct, frozen=True):
    """A plugin's object with `compress(messages, ...)`, which returns fewer messages."""

    plugin: str
    name: str
    engine: Any


class PluginContext:
    """The argument of a plugin's `register`: collects what the plugin adds, and which unsupported features it used."""

    def __init__(self, plugin: Plugin) -> None:
        self.name = plugin.name
        self.tools: dict[str, PluginTool] = {}
        self.commands: dict[str, PluginCommand] = {}
        self.vetoes: list[PluginHook] = []
        self.engines: dict[str, PluginContextEngine] = {}
        self.ignored: set[str] = set()

    def register_tool(
        self,
        name: str,
        toolset: str = "",
        schema: Mapping[str, Any] | None = None,
        handler: Callable[..., Any] | None = None,
        check_fn: Callable[[], Any] | None = None,
        **more: Any,
    ) -> None:
        """Adds a tool. `schema` has its `description` and its `parameters`, a JSON Schema object."""
        del toolset
        if handler is None or not _TOOL_NAME.fullmatch(name):
            raise HermesError(
                t.later("the tool {name!r} needs a plain name and a handler", name=name)
            )
        found = schema or {}
        parameters = found.get("parameters") or {"type": "object", "properties": {}}
        words = found.get("description") or more.get("description") or name
        self.tools[name] = PluginTool(
            self.name, name, str(words), parameters, handler, check_fn
        )

    def register_command(
        self,
        name: str,
        handler: Callable[..., Any],
        description: str = "",
        args_hint: str = "",
        **_: Any,
    ) -> None:
        """Adds the slash command `/name`."""
        name = name.removeprefix("/").lower()
        if not _COMMAND_NAME.fullmatch(name):
            raise HermesError(
                t.later("/{name} can't be the name of a command", name=name)
            )
        self.commands[name] = PluginCommand(
            self.name, name, description, args_hint, handler
        )

    def register_hook(self, name: str, callback: Callable[..., Any]) -> None:
        """Adds a function that is called before each tool call. Other moments are events: see `hermes_events`."""
        if name == VETO_HOOK:
            self.vetoes.append(PluginHook(self.name, callback))
        else:
            self.ignored.add(f"hook {name}")

    def register_context_engine(self, *given: Any) -> None:
        """Adds a context engine, which the setting `compression.engine` selects by name."""
        engine = given[-1]
        name = str(getattr(engine, "name", "") or given[0])
        self.engines[name] = PluginContextEngine(self.name, name, engine)

    def __getattr__(self, name: str) -> Any:
        """Returns a no-op for features that only the original agent has, so that the rest of the plugin works."""
        if not name.startswith("register_"):
            raise AttributeError(name)
        self.ignored.add(name)
        return _nothing


class AgentPlugins:
    """The enabled plugins of a home that add something to the agent. Reloads when the user enables or disables one."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._file: Path = home.root / "plugins.json"
        self._lock = threading.Lock()
        self._stamp: tuple[int, int] | None = None
        self._loaded: dict[str, tuple[str, PluginContext]] = {}
        self.errors: dict[str, str] = {}
        """Why an enabled plugin adds nothing."""
        self._vetoing: set[str] = set()

    def contexts(self) -> list[PluginContext]:
        """Returns what each plugin added. Reads files and may import plugins."""
        with self._lock:
            stamp = self._read_stamp()
            if stamp != self._stamp:
                self._load()
                self._stamp = stamp
            return [context for _, context in self._loaded.values()]

    @property
    def tools(self) -> list[PluginTool]:
        return [one for context in self.contexts() for one in context.tools.values()]

    @property
    def commands(self) -> dict[str, PluginCommand]:
        """The slash commands by name. If two have the same name, the first plugin's counts."""
        found: dict[str, PluginCommand] = {}
        for context in self.contexts():
            for name, one in context.commands.items():
                found.setdefault(name, one)
        return found

    @property
    def vetoes(self) -> list[PluginHook]:
        return [one for context in self.contexts() for one in context.vetoes]

    @property
    def missing_vetoes(self) -> list[str]:
        """The plugins that may veto calls but whose vetoes are not loaded: they changed, fail to load, or are gone."""
        loaded = {context.name for context in self.contexts()}
        return sorted(self._vetoing - loaded)

    def engine(self, name: str) -> PluginContextEngine:
        """Returns a context engine by name. Raises HermesError if no enabled plugin has it."""
        for context in self.contexts():
            if name in context.engines:
                return context.engines[name]
        raise HermesError(
            t.later("No enabled plugin has the context engine {name!r}.", name=name),
            hint=t.later(
                "Enable its plugin, or unset it: hermes config unset compression.engine"
            ),
        )

    def _read_stamp(self) -> tuple[int, int]:
        try:
            found = self._file.stat()
        except OSError:
            return (0, 0)
        return (found.st_mtime_ns, found.st_size)

    def _load(self) -> None:
        enabled: dict[str, Plugin] = {}
        registry = PluginRegistry(self._home)
        self._vetoing = registry.vetoing()
        if self._file.exists():
            enabled = {
                plugin.name: plugin
                for plugin in registry.every()
                if plugin.state == "enabled" and (plugin.folder / ENTRY).is_file()
            }
        for name in [*self._loaded]:
            if name not in enabled or enabled[name].hash != self._loaded[name][0]:
                del self._loaded[name]
                verified_import.unload(f"{_PREFIX}{name}")
        self.errors = {}
        for name, plugin in enabled.items():
            if name not in self._loaded:
                self._register(plugin)
        for name, (_, context) in self._loaded.items():
            self._note_vetoes(registry, name, has_vetoes=bool(context.vetoes))

    def _note_vetoes(
        self, registry: PluginRegistry, name: str, *, has_vetoes: bool
    ) -> None:
        """Records which vetoes were loaded, so that it is noticed if the plugin can't be loaded later."""
        if has_vetoes == (name in self._vetoing):
            return
        try:
            registry.note_vetoes(name, has_vetoes=has_vetoes)
        except OSError:
            log.exception("can't store whether the plugin %s has vetoes", name)

    def _register(self, plugin: Plugin) -> None:
        sys.dont_write_bytecode = True  # keep the plugin's folder unchanged
        context = PluginContext(plugin)
        try:
            files = verified_import.read(plugin.folder, plugin.hash)
            module = verified_import.load(
                plugin.folder, ENTRY, files, f"{_PREFIX}{plugin.name}"
            )
            register = getattr(module, "register", None)
            if callable(register):
                register(context)
        except (Exception, SystemExit) as error:
            log.exception("the plugin %s can't be loaded", plugin.name)
            self.errors[plugin.name] = f"{type(error).__name__}: {error}"
            return
        if context.ignored:
            missing = ", ".join(sorted(context.ignored))
            log.warning(
                "the plugin %s asks for what is not here: %s", plugin.name, missing
            )
        self._loaded[plugin.name] = (plugin.hash, context)


def _nothing(*_: Any, **__: Any) -> None:
    """Does nothing, in place of a missing feature."""


def call_with_known(callback: Callable[..., Any], known: Mapping[str, Any]) -> Any:
    """Calls a function with the named values that it accepts."""
    parameters = inspect.signature(callback).parameters.values()
    if any(one.kind is one.VAR_KEYWORD for one in parameters):
        return callback(**known)
    names = {one.name for one in parameters}
    return callback(**{name: value for name, value in known.items() if name in names})
