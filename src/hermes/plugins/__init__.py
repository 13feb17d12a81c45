"""Plugins on disk: which there are, what they say of themselves, and which the user has enabled. Runs none of them."""

from hermes.plugins.catalogue import Catalogue, Plugin
from hermes.plugins.manifest import Manifest

__all__ = ["Catalogue", "Manifest", "Plugin"]
