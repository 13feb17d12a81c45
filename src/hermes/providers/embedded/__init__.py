"""The embedded model: an answer with no key and no account, from a small model in a child process.

    folder = models_folder(environment, Path.home())
    for found in find_local_weights(environment, Path.home()): ...   # files of other programs, offered first
    choice = choose_for_this_machine(folder, environment)            # `choice.sentence` says which and why
    if find(choice.entry, folder) is None:                           # show `offer(...).question`, ask, then draw:
        for progress in fetch(choice.entry, folder, hub=...): ...
    file = known_file(choice.entry.id, folder)
    kind = (await adapter_of(file, folder)).adapter                  # how it uses tools: tested once, then remembered
    model = run_file(file, folder, kind)

Importing this package loads nothing heavy; the engine's library lives in the child alone.
"""

from hermes.providers.embedded.build import (
    ModelFile,
    adapter_of,
    build_custom_model,
    build_model,
    custom_file,
    engine_for,
    known_file,
    run_file,
)
from hermes.providers.embedded.catalogue import (
    CATALOGUE,
    DEFAULT,
    KnownModel,
    ModelHub,
    known_models,
    model_hub,
)
from hermes.providers.embedded.download_progress import Progress
from hermes.providers.embedded.local_weights import LocalWeights, find_local_weights
from hermes.providers.embedded.model import PROVIDER, EmbeddedModel
from hermes.providers.embedded.weights import (
    DownloadOffer,
    fetch,
    find,
    find_best,
    offer,
    size_text,
)
from hermes.providers.embedded.weights_choice import (
    WeightsChoice,
    choose_for_this_machine,
)
from hermes.settings.home import models_folder

__all__ = [
    "CATALOGUE",
    "DEFAULT",
    "PROVIDER",
    "DownloadOffer",
    "EmbeddedModel",
    "KnownModel",
    "LocalWeights",
    "ModelFile",
    "ModelHub",
    "Progress",
    "WeightsChoice",
    "adapter_of",
    "build_custom_model",
    "build_model",
    "choose_for_this_machine",
    "custom_file",
    "engine_for",
    "fetch",
    "find",
    "find_best",
    "find_local_weights",
    "known_file",
    "known_models",
    "model_hub",
    "models_folder",
    "offer",
    "run_file",
    "size_text",
]
