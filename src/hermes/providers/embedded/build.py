"""Builds an `EmbeddedModel` from a name or a file. Loads and starts nothing."""

import datetime as dt
import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from hermes.errors import ModelError
from hermes.providers.embedded import decision, engine_wire, small_prompt
from hermes.providers.embedded.adapter_choice import (
    AdapterMemory,
    AdapterRecord,
    choose_adapter,
    possible_adapters,
)
from hermes.providers.embedded.catalogue import CATALOGUE, AdapterKind, KnownModel
from hermes.providers.embedded.completion import CacheSlot, ChatTurn
from hermes.providers.embedded.engine import LocalEngine
from hermes.providers.embedded.gguf_header import GgufFacts, NotGguf, read_facts
from hermes.providers.embedded.model import EmbeddedModel
from hermes.providers.embedded.weights import find, size_text
from hermes.text.translation import translator

t = translator(__name__)

if TYPE_CHECKING:
    from hermes.providers.embedded.native_model import NativeToolModel

PrepareCallback = Callable[[int, int], None]
_NATIVE_CONTEXT_TOKENS = 8_192  # a third of these are for tools


class ModelFile(msgspec.Struct, frozen=True, kw_only=True):
    """A GGUF file on this machine, and how it can be run. `key` identifies its content."""

    path: Path
    key: str
    name: str
    adapters: tuple[AdapterKind, ...]
    context_tokens: int = 4096


def known_file(
    name: str, folder: Path, models: Mapping[str, KnownModel] = CATALOGUE
) -> ModelFile:
    """Returns the file of a known model. Raises ModelError if it is not in the cache."""
    entry = models.get(name)
    if entry is None:
        known = ", ".join(models)
        hint = t.later(
            "Known are: {known}. Another GGUF file is added with `hermes model add PATH`.",
            known=known,
        )
        raise ModelError(
            t.later("there is no local model {name!r}", name=name),
            hint=hint,
            reason="not_found",
        )
    if find(entry, folder) is None:
        hint = t.later(
            "`hermes model add {name}` downloads it ({size_text}); `hermes setup` connects another "
            "model.",
            name=name,
            size_text=size_text(entry.size),
        )
        raise ModelError(
            t.later("the local model {name!r} is not on this machine yet", name=name),
            hint=hint,
            reason="not_found",
        )
    path = folder / entry.file_name
    return ModelFile(
        path=path,
        key=entry.sha256[:16],
        name=entry.name,
        adapters=entry.adapters or possible_adapters(_facts(path)),
        context_tokens=entry.context_tokens,
    )


def custom_file(path: Path) -> ModelFile:
    """Returns any other GGUF file, identified by path, size and modification time: hashing it would take too long."""
    facts = _facts(path)
    status = path.stat()
    identity = f"{path.resolve()}|{status.st_size}|{status.st_mtime_ns}"
    adapters = possible_adapters(facts)
    return ModelFile(
        path=path,
        key=hashlib.sha256(identity.encode()).hexdigest()[:16],
        name=f"{path.stem} (local)",
        adapters=adapters,
        context_tokens=min(_NATIVE_CONTEXT_TOKENS, facts.context_tokens or 4096)
        if "native" in adapters
        else 4096,
    )


def _facts(path: Path) -> GgufFacts:
    """Reads the header. Raises ModelError if the file has none."""
    try:
        return read_facts(path)
    except OSError as error:
        reason = error.strerror or str(error)
        raise ModelError(
            t.later("{path} can't be read: {reason}", path=path, reason=reason),
            hint=t.later("Check the path."),
            reason="not_found",
        ) from error
    except NotGguf as error:
        raise ModelError(
            t.later(
                "{path} is not a GGUF file that can be read: {error}",
                path=path,
                error=error,
            ),
            hint=t.later("Nothing was added."),
            reason="bad_request",
        ) from error


def run_file(
    file: ModelFile,
    folder: Path,
    kind: AdapterKind,
    *,
    on_prepare: PrepareCallback | None = None,
) -> "EmbeddedModel | NativeToolModel":
    """Returns the model in a file, with the given adapter for tools."""
    if kind == "native":
        from hermes.providers.embedded.native_model import NativeToolModel

        load = engine_wire.Load(
            path=str(file.path),
            state=str(folder / "state" / file.key),
            context=file.context_tokens,
            reads_calls=True,
        )
        engine = LocalEngine(load, on_prepare=on_prepare)
        return NativeToolModel(
            engine, name=file.name, context_tokens=file.context_tokens
        )
    load = _load(
        file.path,
        folder,
        file.key,
        acts=kind == "lines",
        context_tokens=file.context_tokens,
    )
    engine = LocalEngine(load, on_prepare=on_prepare)
    return EmbeddedModel(engine, name=file.name, acts=kind == "lines")


async def adapter_of(
    file: ModelFile, folder: Path, on_step: PrepareCallback = lambda _done, _total: None
) -> AdapterRecord:
    """Returns the adapter for the model in a file: the only possible one, the stored one, or the result of a test."""
    if len(file.adapters) == 1:
        return AdapterRecord(adapter=file.adapters[0])
    memory = AdapterMemory(folder)
    record = memory.get(file.key)
    if record is None or record.adapter not in file.adapters:
        record = await choose_adapter(
            file.adapters, lambda kind: run_file(file, folder, kind), on_step
        )
        memory.put(file.key, record)
    return record


def build_model(
    name: str,
    folder: Path,
    *,
    models: Mapping[str, KnownModel] = CATALOGUE,
    on_prepare: PrepareCallback | None = None,
) -> EmbeddedModel:
    """Returns a known model with the adapter for small models. `on_prepare` receives the progress of the first load."""
    file = known_file(name, folder, models)
    engine = engine_for(models[name], folder, on_prepare=on_prepare)
    return EmbeddedModel(engine, name=file.name, acts=models[name].acts)


def engine_for(
    entry: KnownModel, folder: Path, *, on_prepare: PrepareCallback | None = None
) -> LocalEngine:
    """Returns the engine of a known model, whose file must be in the cache."""
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
    """Returns the model in any other GGUF file, with the adapter for small models."""
    file = custom_file(path)
    engine = LocalEngine(_load(path, folder, file.key), on_prepare=on_prepare)
    return EmbeddedModel(engine, name=file.name)


def _load(
    path: Path,
    folder: Path,
    key: str,
    *,
    acts: bool = True,
    context_tokens: int = 4096,
) -> engine_wire.Load:
    """Returns what the engine's child loads. The prefixes are in the order in which a first answer needs them."""
    today = dt.datetime.now().astimezone().date()
    prefixes: dict[CacheSlot, tuple[ChatTurn, ...]] = {
        "talk": small_prompt.talk_prefix(today, sorts=acts)
    }
    if acts:
        prefixes |= {
            "work": small_prompt.work_prefix(),
            "decide": decision.PREFIX,
        }
    return engine_wire.Load(
        path=str(path),
        state=str(folder / "state" / key),
        prefixes=prefixes,
        context=context_tokens,
    )
