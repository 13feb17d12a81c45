"""The former name of `adapter`, for plugins that were written with it."""

from typing import Any

from hermes.surfaces.gateway import adapter

_FORMER_NAMES = {
    "Adapter": "ChatAdapter",
    "House": "AdapterDeps",
    "Limits": "PlatformLimits",
    "Part": "GatewayPart",
    "Refused": "DeliveryRefused",
}


def __getattr__(name: str) -> Any:
    return getattr(adapter, _FORMER_NAMES.get(name, name))
