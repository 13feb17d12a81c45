"""Plugins on disk: which there are, what they say of themselves, and which the user has enabled. Runs none of them."""

from hermes.plugins.manifest import Manifest
from hermes.plugins.plugin_registry import Plugin, PluginRegistry

__all__ = ["Manifest", "Plugin", "PluginRegistry"]
