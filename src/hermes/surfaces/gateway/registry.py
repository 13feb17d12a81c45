"""The platforms: those that come with Hermes, and those of enabled plugins.

The module of a platform is imported only when it runs. A plugin adds platforms with a
file `gateway/adapter.py` in its folder; its `ADAPTERS` are the functions that build each
adapter, by the platform's name.
"""

import importlib
import logging
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from hermes.errors import HermesError, UsageError
from hermes.plugins import Plugin, PluginRegistry, verified_import
from hermes.settings import Home, Secrets, Settings
from hermes.settings.gateway import CHAT_PLATFORMS, missing_setting
from hermes.surfaces.gateway.adapter import AdapterDeps, GatewayPart
from hermes.surfaces.gateway.api_server.api_keys import keys_file
from hermes.text.install_words import install_hint
from hermes.text.translation import translator

t = translator(__name__)


log = logging.getLogger("hermes.gateway")

Builder: TypeAlias = Callable[[AdapterDeps], GatewayPart]

_ENTRY = "gateway/adapter.py"


class Platform(NamedTuple):
    """A platform that comes with Hermes. It runs when its secrets are set; `extra` must be installed."""

    name: str
    module: str
    secrets: tuple[str, ...]
    extra: str = ""


PLATFORMS = (
    Platform(
        "telegram",
        "hermes.surfaces.gateway.adapters.telegram.adapter",
        CHAT_PLATFORMS["telegram"],
    ),
    Platform(
        "discord",
        "hermes.surfaces.gateway.adapters.discord.adapter",
        CHAT_PLATFORMS["discord"],
        "discord",
    ),
    Platform(
        "slack",
        "hermes.surfaces.gateway.adapters.slack.adapter",
        CHAT_PLATFORMS["slack"],
        "slack",
    ),
    Platform(
        "email",
        "hermes.surfaces.gateway.adapters.mail.adapter",
        CHAT_PLATFORMS["email"],
    ),
    Platform(
        "webhook",
        "hermes.surfaces.gateway.adapters.webhook",
        CHAT_PLATFORMS["webhook"],
        "web",
    ),
    Platform(
        "ntfy",
        "hermes.surfaces.gateway.adapters.ntfy",
        CHAT_PLATFORMS["ntfy"],
    ),
    Platform(
        "mattermost",
        "hermes.surfaces.gateway.adapters.mattermost",
        CHAT_PLATFORMS["mattermost"],
        "web",
    ),
    Platform(
        "whatsapp",
        "hermes.surfaces.gateway.adapters.whatsapp",
        CHAT_PLATFORMS["whatsapp"],
        "web",
    ),
    Platform(
        "signal",
        "hermes.surfaces.gateway.adapters.signal",
        CHAT_PLATFORMS["signal"],
    ),
    Platform(
        "matrix",
        "hermes.surfaces.gateway.adapters.matrix.adapter",
        CHAT_PLATFORMS["matrix"],
        "matrix",
    ),
    Platform(
        "api", "hermes.surfaces.gateway.api_server.server", ("GATEWAY_API_KEY",), "web"
    ),
)


def configured_platforms(settings: Settings, secrets: Secrets, home: Home) -> list[str]:
    """The names of the platforms that should run."""
    if settings.gateway.platforms:
        return list(dict.fromkeys(settings.gateway.platforms))
    found = [
        one.name
        for one in PLATFORMS
        if all(secrets.get(name) for name in one.secrets)
        and not missing_setting(settings.gateway, one.name)
    ]
    if "api" not in found and keys_file(home).exists():
        found.append("api")
    return [*found, *_plugin_platforms(home)]


def build_part(name: str, deps: AdapterDeps) -> GatewayPart:
    """Builds the part of a platform. Raises HermesError for what a person can fix."""
    builder = _builder(name, deps.app.home)
    if missing := missing_setting(deps.app.settings.gateway, name):
        raise UsageError(
            t("{name} needs the setting {missing}.", name=name, missing=missing),
            hint=t("Set it: hermes config set {missing}", missing=missing),
        )
    part = builder(deps)
    part.name = part.name or name
    return part


def _builder(name: str, home: Home) -> Builder:
    platform = next((one for one in PLATFORMS if one.name == name), None)
    if platform is None:
        from_plugins = _plugin_platforms(home)
        if name in from_plugins:
            return from_plugins[name]
        known = ", ".join([*(one.name for one in PLATFORMS), *from_plugins])
        raise UsageError(
            t("There is no platform {name!r}.", name=name),
            hint=t("There are: {known}.", known=known),
        )
    try:
        return importlib.import_module(platform.module).build
    except ImportError as error:
        hint = install_hint(platform.extra) if platform.extra else ""
        raise HermesError(
            t(
                "{name} needs a package that is not installed ({error_name}).",
                name=name,
                error_name=error.name,
            ),
            hint=hint,
        ) from error


def _plugin_platforms(home: Home) -> dict[str, Builder]:
    """The builders of the platforms of enabled plugins, by name."""
    if not (home.root / "plugins.json").exists():
        return {}
    enabled = [
        plugin for plugin in PluginRegistry(home).every() if plugin.state == "enabled"
    ]
    return {
        name: builder
        for plugin in enabled
        for name, builder in _adapters(plugin).items()
    }


def _adapters(plugin: Plugin) -> dict[str, Builder]:
    """The builders of one plugin. A plugin that can't be loaded is logged and has none."""
    if not (plugin.folder / _ENTRY).is_file():
        return {}
    try:
        files = verified_import.read(plugin.folder, plugin.hash)
        return dict(
            verified_import.load(
                plugin.folder, _ENTRY, files, f"hermes_plugin_{plugin.name}_gateway"
            ).ADAPTERS
        )
    except Exception:
        log.exception("the plugin %s can't be loaded", plugin.name)
        return {}
