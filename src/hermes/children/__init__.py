"""Programs that Hermes starts and talks to through pipes, and that must never outlive it."""

from hermes.children.child import Child

__all__ = ["Child"]
