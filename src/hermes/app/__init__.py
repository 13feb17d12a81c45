"""The composition root: `build` puts the parts of Hermes together."""

from hermes.app.app import App, build

__all__ = ["App", "build"]
