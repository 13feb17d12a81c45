"""Plugins on disk: finding them, their manifests, and which the user has enabled. Runs none of them."""

from hermes.plugins.manifest import Manifest
from hermes.plugins.plugin_registry import Plugin, PluginRegistry

__all__ = ["Manifest", "Plugin", "PluginRegistry"]
