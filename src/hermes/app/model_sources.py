"""Finds models that could answer on this machine: running servers, model files on disk, a local model to download, a
sign-in.

Looking for them takes up to a few seconds, so each is looked for in a thread of its own.
"""

import asyncio
import math
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from pathlib import Path
from typing import TypeVar

import msgspec

from hermes.app.connections import has_codex_login
from hermes.providers.embedded import (
    CATALOGUE,
    KnownModel,
    LocalWeights,
    WeightsChoice,
    choose_for_this_machine,
    find,
    find_local_weights,
    known_models,
    models_folder,
    size_text,
)
from hermes.providers.server_discovery import LocalServer, find_local_servers
from hermes.settings import Home
from hermes.settings.load import environment, load
from hermes.text.translation import translator

t = translator(__name__)

_Found = TypeVar("_Found")
_USUAL_BYTES_PER_SECOND = 12_500_000  # 100 Mbit/s
_MINUTE_S = 60
_MAX_FILES = 8


class LocalOffer(msgspec.Struct, frozen=True, kw_only=True):
    """A local model that can be used without an account. `name` is what the settings hold."""

    name: str
    label: str
    detail: str
    is_here: bool


class ModelSources:
    """Looks around in the background. Each future is done after a few seconds at most."""

    def __init__(self, home: Home) -> None:
        self.servers: Future[tuple[LocalServer, ...]] = _in_thread(find_servers)
        self.files: Future[tuple[LocalWeights, ...]] = _in_thread(find_files)
        self.choice: Future[WeightsChoice] = _in_thread(choose_download)
        self.codex: Future[bool] = _in_thread(lambda: has_codex_login(home))


def find_servers() -> tuple[LocalServer, ...]:
    """Returns the model servers that run on this machine."""
    return asyncio.run(find_local_servers(environment()))


def find_files() -> tuple[LocalWeights, ...]:
    """Returns the best model files that other programs have put on this disk."""
    return find_local_weights(environment(), Path.home())[:_MAX_FILES]


def choose_download() -> WeightsChoice:
    """Returns the local model that fits this machine, and why."""
    return choose_for_this_machine(_folder(), environment())


def local_offers(
    files: tuple[LocalWeights, ...],
    choice: WeightsChoice,
    pinned: Iterable[KnownModel] = (),
) -> tuple[LocalOffer, ...]:
    """Returns the files on this disk first, then the models that the settings pin, then what Hermes has or would
    download, then a smaller one.
    """
    small = CATALOGUE["small"]
    smaller = [small] if small.size < choice.entry.size else []
    entries = {one.id: one for one in (*pinned, choice.entry, *smaller)}
    return (*map(_file_offer, files), *map(_entry_offer, entries.values()))


def pinned_models(home: Home) -> tuple[KnownModel, ...]:
    """Returns the models of the setting `local_models`."""
    own = load(home=home).local_models
    known = known_models(own)
    return tuple(known[name] for name in own)


def seconds_to_download(size: int) -> float:
    """Returns how long a download takes on a usual line."""
    return size / _USUAL_BYTES_PER_SECOND


def download_time(size: int) -> str:
    """Says how long a download takes on a usual line: `about 2 minutes at 100 Mbit/s`."""
    return t(
        "about {count} minute at 100 Mbit/s",
        "about {count} minutes at 100 Mbit/s",
        count=math.ceil(seconds_to_download(size) / _MINUTE_S),
    )


def _file_offer(one: LocalWeights) -> LocalOffer:
    detail = t(
        "{billions:.1f} billion parameters, {size}, from {program}; nothing to download",
        billions=one.facts.parameters / 1e9,
        size=size_text(one.size),
        program=one.program,
    )
    if not one.facts.has_tools:
        detail += f"; {t('it can talk, but not use tools well')}"
    return LocalOffer(name=str(one.path), label=one.name, detail=detail, is_here=True)


def _entry_offer(entry: KnownModel) -> LocalOffer:
    is_here = find(entry, _folder()) is not None
    get = t("it is on this machine already")
    if not is_here:
        get = t(
            "{size} to download, {time}",
            size=size_text(entry.size),
            time=download_time(entry.size),
        )
    purpose = t("Pinned in your settings")
    if entry.purpose:
        purpose = t("For {purpose}", purpose=entry.shown_purpose)
    return LocalOffer(
        name=entry.id,
        label=entry.description,
        detail=f"{purpose}; {get}.",
        is_here=is_here,
    )


def _folder() -> Path:
    return models_folder(environment(), Path.home())


def _in_thread(work: Callable[[], _Found]) -> "Future[_Found]":
    """Runs the work in a thread that does not keep the process alive."""
    future: Future[_Found] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except Exception as error:  # noqa: BLE001 - whoever asks for the result gets it
            future.set_exception(error)

    threading.Thread(target=run, daemon=True, name="looking for models").start()
    return future
