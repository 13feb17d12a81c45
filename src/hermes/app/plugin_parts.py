"""Plugins inside the agent: their tools, their vetoes, their slash commands and their context engines."""

import asyncio
import inspect
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from hermes.core.compaction import CompactionCut, NotCompacted, compacted_to
from hermes.core.ports import Effect, Tool, ToolContext
from hermes.errors import HermesError, ToolFailed
from hermes.plugins.agent_plugins import (
    AgentPlugins,
    PluginCommand,
    PluginHook,
    PluginTool,
    call_with_known,
)
from hermes.primitives.threads import in_own_thread
from hermes.schema.events import SessionCompacted
from hermes.schema.messages import AssistantMessage, Message, ToolFinished
from hermes.schema.tool_spec import ToolResult, ToolSpec
from hermes.text.translation import translator

t = translator(__name__)


log = logging.getLogger("hermes.plugins")

_VETO_TIMEOUT_S = 10.0
_COMMAND_TIMEOUT_S = 120.0
_COMPRESS_TIMEOUT_S = 300.0


class ToolOfPlugin:
    """A plugin's tool as the agent's. Nobody knows what it does, so it counts as an effect of any kind."""

    effect: Effect = "other"

    def __init__(self, tool: PluginTool) -> None:
        self._tool = tool
        self.spec = ToolSpec(
            name=tool.name,
            description=tool.description,
            parameters=dict(tool.parameters),
        )

    def paths(self, arguments: Mapping[str, Any], cwd: Path) -> tuple[Path, ...]:  # noqa: ARG002 - the port's shape
        """Returns nothing: which files it touches is not known."""
        return ()

    async def run(
        self, arguments: Mapping[str, Any], context: ToolContext
    ) -> ToolResult:
        """Runs the plugin's function: one that is not async runs in a thread."""
        known = {"task_id": context.session, "session_id": context.session}
        handler = self._tool.handler
        try:
            result = await _called(lambda: _with_arguments(handler, arguments, known))
        except Exception as error:
            log.exception("the tool %s of a plugin failed", self._tool.name)
            raise ToolFailed(
                f"The plugin {self._tool.plugin} failed: {type(error).__name__}: {error}"
            ) from error
        return ToolResult(text=_text(result), source=f"plugin:{self._tool.plugin}")


class PluginVeto:
    """Implements the `Veto` port: asks each plugin that wants to be asked before a tool call."""

    def __init__(self, plugins: AgentPlugins) -> None:
        self._plugins = plugins

    async def reason(
        self, session: str, call_id: str, name: str, arguments: Mapping[str, Any]
    ) -> str:
        """Why a plugin forbids the call; empty if none does. A plugin that fails or hangs forbids it."""
        try:
            hooks, missing = await asyncio.to_thread(self._loaded)
        except HermesError as error:
            return t.logged(
                "the vetoes of plugins are not known: {message} {hint}",
                message=error.message,
                hint=error.hint,
            )
        if missing:
            return t.logged(
                "plugin {missing} may veto calls but can't be loaded: enable it again (hermes plugins "
                "enable {missing}) or disable it",
                missing=missing[0],
            )
        known = {
            "tool_name": name,
            "args": dict(arguments),
            "params": dict(arguments),
            "task_id": session,
            "session_id": session,
            "tool_call_id": call_id,
        }
        for hook in hooks:
            if why := await _veto_of(hook, known):
                return why
        return ""

    def _loaded(self) -> tuple[list[PluginHook], list[str]]:
        return self._plugins.vetoes, self._plugins.missing_vetoes


async def _veto_of(hook: PluginHook, known: Mapping[str, Any]) -> str:
    try:
        async with asyncio.timeout(_VETO_TIMEOUT_S):
            answer = await _called(lambda: call_with_known(hook.callback, known))
    except TimeoutError:
        return t.logged(
            "plugin {plugin} did not answer within {seconds:g} seconds",
            plugin=hook.plugin,
            seconds=_VETO_TIMEOUT_S,
        )
    except Exception as error:
        log.exception("the plugin %s failed before a tool call", hook.plugin)
        return t.logged(
            "plugin {plugin} failed while it looked at the call ({kind}: {error})",
            plugin=hook.plugin,
            kind=type(error).__name__,
            error=error,
        )
    if not isinstance(answer, Mapping) or answer.get("action") != "block":
        return ""
    said = str(
        answer.get("message") or answer.get("reason") or t.logged("it gave no reason")
    )
    return f"plugin {hook.plugin}: {said}"


def plugin_tools(plugins: AgentPlugins) -> tuple[Tool, ...]:
    """The tools of enabled plugins that say they can be used now. Reads files."""
    return tuple(ToolOfPlugin(one) for one in plugins.tools if _is_available(one))


async def run_plugin_command(command: PluginCommand, words: str) -> str:
    """What a plugin's slash command says. Raises HermesError if it fails."""
    try:
        async with asyncio.timeout(_COMMAND_TIMEOUT_S):
            return _text(await _called(lambda: command.handler(words)))
    except TimeoutError as error:
        raise HermesError(
            t.later(
                "/{name} of the plugin {plugin} did not end within "
                "{command_timeout_s:g} seconds.",
                name=command.name,
                plugin=command.plugin,
                command_timeout_s=_COMMAND_TIMEOUT_S,
            )
        ) from error
    except Exception as error:
        log.exception("/%s of the plugin %s failed", command.name, command.plugin)
        raise HermesError(
            t.later(
                "/{name} of the plugin {plugin} failed: {kind}: {error}",
                name=command.name,
                plugin=command.plugin,
                kind=type(error).__name__,
                error=error,
            )
        ) from error


async def summarise_by_plugin(
    plugins: AgentPlugins | None,
    name: str,
    messages: Sequence[Message],
    cut: CompactionCut,
    redact: Callable[[str], str],
) -> SessionCompacted:
    """The row that compacts, with what a plugin's context engine makes of the middle. Raises NotCompacted.

    Secrets are masked in what the plugin gets and in what it returns.
    """
    middle = messages[cut.head : len(messages) - cut.tail]
    given = [_as_dict(one, redact) for one in middle]
    if plugins is None:
        raise NotCompacted(
            t.later(
                "no plugin is enabled that has the context engine {name}", name=name
            ),
            hint=t.later(
                "Enable it, or unset it: hermes config unset compression.engine"
            ),
        )
    try:
        found = await asyncio.to_thread(plugins.engine, name)
        async with asyncio.timeout(_COMPRESS_TIMEOUT_S):
            kept = await _called(lambda: found.engine.compress(given))
        summary = redact("\n\n".join(_text(one.get("content")) for one in kept).strip())
    except HermesError as error:
        raise NotCompacted(error.words, hint=error.hint_words) from error
    except Exception as error:
        log.exception("the context engine %s failed", name)
        raise NotCompacted(
            t.later(
                "the context engine {name} failed: {kind}: {error}",
                name=name,
                kind=type(error).__name__,
                error=error,
            )
        ) from error
    if not summary:
        raise NotCompacted(
            t.later("the context engine {name} returned nothing", name=name)
        )
    row = compacted_to(summary, messages, cut)
    return msgspec.structs.replace(row, provider=f"plugin {found.plugin}", model=name)


async def _called(function: Callable[[], Any]) -> Any:
    """The result of a plugin's function. It starts in a thread of its own; what it awaits runs in the event loop."""
    result = await in_own_thread(function, name="plugin")
    return await result if inspect.isawaitable(result) else result


def _with_arguments(
    handler: Callable[..., Any], arguments: Mapping[str, Any], known: Mapping[str, Any]
) -> Any:
    def bound(**more: Any) -> Any:
        return handler(dict(arguments), **more)

    parameters = inspect.signature(handler).parameters.values()
    takes_all = any(one.kind is one.VAR_KEYWORD for one in parameters)
    names = {one.name for one in parameters}
    return bound(**{key: known[key] for key in known if takes_all or key in names})


def _is_available(tool: PluginTool) -> bool:
    try:
        return tool.is_available is None or bool(tool.is_available())
    except Exception:
        log.exception(
            "the plugin %s can't say whether %s works", tool.plugin, tool.name
        )
        return False


def _text(result: Any) -> str:
    if result is None:
        return ""
    if isinstance(result, str):
        return result
    return msgspec.json.encode(result, enc_hook=str).decode()


def _as_dict(message: Message, redact: Callable[[str], str]) -> dict[str, Any]:
    """A message as plugins of the original agent know it: OpenAI's form."""
    text = redact(message.text)
    if isinstance(message, ToolFinished):
        return {"role": "tool", "tool_call_id": message.call_id, "name": message.name, "content": text}  # fmt: skip
    if not isinstance(message, AssistantMessage):
        return {"role": "user", "content": text}
    calls = [
        {"id": one.id, "type": "function", "function": {"name": one.name, "arguments": redact(one.arguments)}}
        for one in message.tool_calls
    ]  # fmt: skip
    said: dict[str, Any] = {"role": "assistant", "content": text}
    return said | ({"tool_calls": calls} if calls else {})
