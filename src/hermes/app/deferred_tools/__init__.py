"""Tools that a model finds by searching instead of having all their descriptions in its prompt."""

from hermes.app.deferred_tools.catalogue import ToolCatalogue, ToolIndexes, shown_tools

__all__ = ["ToolCatalogue", "ToolIndexes", "shown_tools"]
