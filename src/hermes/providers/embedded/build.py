"""Putting an `EmbeddedModel` together from a name or a file. Nothing is loaded or started yet."""

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path

from hermes.errors import ModelError
from hermes.providers.embedded import decision, engine_wire, small_prompt
from hermes.providers.embedded.catalogue import CATALOGUE, KnownModel
from hermes.providers.embedded.completion import CacheSlot, ChatTurn
from hermes.providers.embedded.engine import LocalEngine
from hermes.providers.embedded.model import EmbeddedModel
from hermes.providers.embedded.weights import find, size_text

PrepareCallback = Callable[[int, int], None]


def build_model(
    name: str,
    folder: Path,
    *,
    models: Mapping[str, KnownModel] = CATALOGUE,
    on_prepare: PrepareCallback | None = None,
) -> EmbeddedModel:
    """The model of that name, whose file must be in the cache. `on_prepare` hears how far the first start is."""
    entry = models.get(name)
    if entry is None:
        known = ", ".join(models)
        hint = f"Known are: {known}. Another GGUF file is added with `hermes model add PATH`."
        raise ModelError(
            f"there is no local model {name!r}", hint=hint, reason="not_found"
        )
    if find(entry, folder) is None:
        hint = f"`hermes model add {name}` downloads it ({size_text(entry.size)}); `hermes setup` connects another model."
        raise ModelError(
            f"the local model {name!r} is not on this machine yet",
            hint=hint,
            reason="not_found",
        )
    engine = engine_for(entry, folder, on_prepare=on_prepare)
    return EmbeddedModel(engine, name=entry.name, acts=entry.acts)


def engine_for(
    entry: KnownModel, folder: Path, *, on_prepare: PrepareCallback | None = None
) -> LocalEngine:
    """The engine of a known model, whose file must be in the cache."""
    load = _load(
        folder / entry.file_name,
        folder,
        entry.sha256[:16],
        acts=entry.acts,
        context_tokens=entry.context_tokens,
    )
    return LocalEngine(load, on_prepare=on_prepare)


def build_custom_model(
    path: Path, folder: Path, *, on_prepare: PrepareCallback | None = None
) -> EmbeddedModel:
    """Any other GGUF file. It is known by its name, size and time: hashing it would take too long."""
    try:
        with path.open("rb") as file:
            is_gguf = file.read(4) == b"GGUF"
        status = path.stat()
    except OSError as error:
        reason = error.strerror or str(error)
        raise ModelError(
            f"{path} can't be read: {reason}",
            hint="Check the path.",
            reason="not_found",
        ) from error
    if not is_gguf:
        raise ModelError(
            f"{path} is not a GGUF file",
            hint="Nothing was added.",
            reason="bad_request",
        )
    identity = f"{path.resolve()}|{status.st_size}|{status.st_mtime_ns}"
    key = hashlib.sha256(identity.encode()).hexdigest()[:16]
    engine = LocalEngine(_load(path, folder, key), on_prepare=on_prepare)
    return EmbeddedModel(engine, name=f"{path.stem} (local)")


def _load(
    path: Path,
    folder: Path,
    key: str,
    *,
    acts: bool = True,
    context_tokens: int = 4096,
) -> engine_wire.Load:
    """What the engine's child loads. A first answer needs the prefixes in this order."""
    prefixes: dict[CacheSlot, tuple[ChatTurn, ...]] = {
        "talk": small_prompt.talk_prefix()
    }
    if acts:
        prefixes |= {
            "decide": decision.PREFIX,
            "work": small_prompt.work_prefix(),
        }
    return engine_wire.Load(
        path=str(path),
        state=str(folder / "state" / key),
        prefixes=prefixes,
        context=context_tokens,
    )
