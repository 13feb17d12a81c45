"""The embedded model: an answer with no key and no account, from a small model in a child process.

    folder = models_folder(environment, Path.home())
    if find(CATALOGUE["base"], folder) is None:         # show `offer(...).question`, ask, then draw:
        for progress in fetch(CATALOGUE["base"], folder): ...
    model = build_model("base", folder)

Importing this package loads nothing heavy; the engine's library lives in the child alone.
"""

from hermes.providers.embedded.banner import banner
from hermes.providers.embedded.build import build_custom_model, build_model
from hermes.providers.embedded.catalogue import CATALOGUE, DEFAULT, KnownModel
from hermes.providers.embedded.model import PROVIDER, EmbeddedModel
from hermes.providers.embedded.weight_sources import Progress
from hermes.providers.embedded.weights import (
    DownloadOffer,
    fetch,
    find,
    models_folder,
    offer,
)

__all__ = [
    "CATALOGUE",
    "DEFAULT",
    "PROVIDER",
    "DownloadOffer",
    "EmbeddedModel",
    "KnownModel",
    "Progress",
    "banner",
    "build_custom_model",
    "build_model",
    "fetch",
    "find",
    "models_folder",
    "offer",
]
