"""Routes of plugins: list, enable and disable them, and serve the files of their pages."""

import asyncio
import mimetypes
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec
from starlette.responses import Response

from hermes.app import App
from hermes.errors import HermesError, UsageError
from hermes.plugins import Plugin
from hermes.plugins.agent_plugins import ENTRY
from hermes.plugins.plugin_registry import files_of, hash_of
from hermes.surfaces.dashboard.plugins import Plugins
from hermes.surfaces.web.endpoint import Endpoint, EndpointCall
from hermes.surfaces.web.errors import Refusal
from hermes.text.translation import translator

t = translator(__name__)


_MAX_SHOWN_BYTES = 256 * 1024  # bytes of a file
_SERVED = frozenset(
    {
        ".js",
        ".mjs",
        ".css",
        ".svg",
        ".png",
        ".jpg",
        ".webp",
        ".woff2",
        ".json",
        ".html",
        ".txt",
        ".wasm",
    }
)


class PluginRow(msgspec.Struct, frozen=True):
    """A plugin as the page shows it. `state`: off, enabled, changed (asks again), broken or failed.

    `uses_sdk`: its page is written for the SDK of the original agent. `in_agent`: it adds something to the agent.
    """

    name: str
    state: str
    hash: str
    error: str
    label: str = ""
    version: str = ""
    icon: str = ""
    description: str = ""
    tab: bool = False
    position: str = ""
    widget: bool = False
    uses_sdk: bool = False
    in_agent: bool = False
    bundled: bool = False
    entry: str = ""
    css: str = ""
    api: str = ""


class PluginList(msgspec.Struct, frozen=True):
    plugins: list[PluginRow]


class PluginFile(msgspec.Struct, frozen=True):
    """A file of a plugin. `text` is null for a file that is not text or too long to show."""

    path: str
    size: int
    text: str | None


class PluginContent(msgspec.Struct, frozen=True):
    """Everything that would run. The hash covers exactly these files."""

    plugin: PluginRow
    folder: str
    files: list[PluginFile]


class Enable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`hash` is that of the files the user was shown."""

    enabled: bool
    hash: str = ""


class PluginRoutes:
    """Handlers over the plugins of one dashboard."""

    def __init__(self, plugins: Plugins, app: App) -> None:
        self._plugins = plugins
        self._app = app

    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint(
                "GET", "/api/plugins", "observe", self.overview, answer=PluginList
            ),
            Endpoint(
                "GET",
                "/api/plugins/{name}",
                "observe",
                self.content,
                answer=PluginContent,
            ),
            Endpoint(
                "PUT",
                "/api/plugins/{name}",
                "admin",
                self.change,
                body=Enable,
                answer=PluginList,
            ),
            *(
                Endpoint(
                    "GET",
                    f"/{place}/{{name}}/{{file:path}}",
                    "observe",
                    self.file,
                    answer=None,
                )
                for place in ("plugins", "dashboard-plugins")
            ),
        ]

    async def overview(self) -> PluginList:
        """All plugins, and their state."""
        agent = self._app.plugins
        if agent is not None:
            await asyncio.to_thread(agent.contexts)  # which may fail to be imported
        return PluginList(
            [self._row(plugin) for plugin in await self._plugins.refresh()]
        )

    def content(self, call: EndpointCall) -> PluginContent:
        """A plugin with its files, to be reviewed before it is enabled. Runs none of its code."""
        plugin = self._plugins.catalogue.find(call.path["name"])
        files = (
            [_shown(plugin.folder, path) for path in files_of(plugin.folder)]
            if plugin.hash
            else []
        )
        if plugin.hash and hash_of(plugin.folder) != plugin.hash:
            raise HermesError(
                t("The plugin {name} changed while it was read.", name=plugin.name),
                hint=t("Look at it again."),
            )
        return PluginContent(self._row(plugin), str(plugin.folder), files)

    async def change(self, call: EndpointCall) -> PluginList:
        """Enables a plugin as it was shown, or disables it."""
        name, body = call.path["name"], call.body
        catalogue = self._plugins.catalogue
        if body.enabled and not body.hash:
            raise UsageError(
                t("Which version of the plugin? Its hash is missing."),
                hint=t("Nothing was changed."),
            )
        if body.enabled:
            await asyncio.to_thread(catalogue.enable, name, body.hash)
            self._plugins.errors.pop(name, None)
        else:
            await asyncio.to_thread(catalogue.disable, name)
        return await self.overview()

    def file(self, call: EndpointCall) -> Response:
        """A file of a running plugin's page, if it is still the one the user approved.

        Plugins for the original agent ask for theirs below `/dashboard-plugins`.
        """
        name = PurePosixPath(call.path["file"])
        content = (
            self._plugins.file(call.path["name"], str(name))
            if name.suffix in _SERVED
            else None
        )
        if content is None:
            raise Refusal(
                404,
                t("There is no such file."),
                t("If the plugin has changed, enable it again."),
            )
        kind = (
            "text/javascript"
            if name.suffix in {".js", ".mjs"}
            else mimetypes.guess_type(name.name)[0]
        )
        return Response(content, media_type=kind, headers={"cache-control": "no-cache"})

    def _row(self, plugin: Plugin) -> PluginRow:
        agent = self._app.plugins
        error = self._plugins.errors.get(plugin.name, "") or (
            agent.errors.get(plugin.name, "") if agent is not None else ""
        )
        said: dict[str, Any] = {}
        if manifest := plugin.manifest:
            said = msgspec.to_builtins(manifest)
            said.pop("name")
            said |= {
                "tab": manifest.has_tab,
                "position": manifest.position,
                "uses_sdk": manifest.uses_sdk,
                "css": manifest.css or "",
                "api": manifest.api or "",
            }
        state = "failed" if error and plugin.state == "enabled" else plugin.state
        return PluginRow(
            plugin.name,
            state,
            plugin.hash,
            error or plugin.problem,
            bundled=plugin.bundled,
            in_agent=(plugin.folder / ENTRY).is_file(),
            **said,
        )


def _shown(folder: Path, path: Path) -> PluginFile:
    content = path.read_bytes()
    is_text = len(content) <= _MAX_SHOWN_BYTES and b"\0" not in content
    text = content.decode("utf-8", "replace") if is_text else None
    return PluginFile(path.relative_to(folder).as_posix(), len(content), text)
