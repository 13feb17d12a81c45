"""The local models that tests may use: `nano` is fetched once, `base` is used only if it is in the cache already."""

import importlib.util
import os
from pathlib import Path

import pytest

from hermes.errors import ModelError
from hermes.providers.embedded import CATALOGUE, fetch, find, models_folder

FOLDER = models_folder(os.environ, Path.home())


def need_nano() -> Path:
    """The cache folder with nano in it. Where it can't be had the test is skipped; in CI that is a failure."""
    if importlib.util.find_spec("xllamacpp") is None:
        missing("the engine xllamacpp is not installed")
    try:
        list(fetch(CATALOGUE["nano"], FOLDER))
    except ModelError as error:
        missing(f"the model nano can't be had: {error.message}")
    return FOLDER


def need_base() -> Path:
    """The cache folder, if base is in it; 1.1 GB are never fetched by a test."""
    if find(CATALOGUE["base"], FOLDER) is None:
        pytest.skip(
            "the model base is not in the cache (`hermes model add base` fetches it)"
        )
    return FOLDER


def missing(reason: str) -> None:
    """Skips, or fails in CI."""
    if in_ci():
        pytest.fail(reason)
    pytest.skip(reason)


def in_ci() -> bool:
    return os.environ.get("CI") == "true"
