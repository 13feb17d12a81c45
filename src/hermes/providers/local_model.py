"""`LocalModel` is the embedded model as a candidate. It is built at its first call, so a fallback costs nothing."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.errors import SettingsError
from hermes.primitives.tasks import running
from hermes.schema.model import ModelEvent, ModelRequest, ReplyPreparing
from hermes.settings.load import environment
from hermes.text.translation import translator

t = translator(__name__)

if TYPE_CHECKING:
    from hermes.providers.embedded import EmbeddedModel, ModelFile
    from hermes.providers.embedded.catalogue import AdapterKind
    from hermes.providers.embedded.native_model import NativeToolModel
    from hermes.settings.models import LocalModelSettings

PROVIDER = "embedded"


class LocalModel:
    """Implements the `Model` port.

    `name` is one of the embedded catalogue or of `own`, the path of a GGUF file, or empty for the best on this machine.
    How the model uses tools is found out at its first call, unless `adapter` says it.
    """

    def __init__(
        self,
        name: str,
        own: "Mapping[str, LocalModelSettings] | None" = None,
        *,
        adapter: "AdapterKind | None" = None,
    ) -> None:
        self.provider = PROVIDER
        self.name = name or default_name()
        self._own = own or {}
        self._adapter = adapter
        self._model: EmbeddedModel | NativeToolModel | None = None
        self._building = asyncio.Lock()
        self._news: set[asyncio.Queue[ModelEvent | None]] = set()

    async def warm(self) -> None:
        """Starts the engine ahead of the first call."""
        await (await self._ready()).warm()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        """Streams a reply. Ends with `ReplyFinished` or raises ModelError; closing it stops the model."""
        news: asyncio.Queue[ModelEvent | None] = asyncio.Queue()
        self._news.add(news)
        try:
            async with running(self._answer(request, news)) as answering:
                while (event := await news.get()) is not None:
                    yield event
                await answering
        finally:
            self._news.discard(news)

    async def _answer(
        self, request: ModelRequest, news: "asyncio.Queue[ModelEvent | None]"
    ) -> None:
        try:
            model = await self._ready()
            async with aclosing(model.stream(request)) as events:
                async for event in events:
                    news.put_nowait(event)
        finally:
            news.put_nowait(None)

    async def _ready(self) -> "EmbeddedModel | NativeToolModel":
        async with self._building:
            if self._model is None:
                self._model = await self._build()
            return self._model

    async def _build(self) -> "EmbeddedModel | NativeToolModel":
        from hermes.providers.embedded import adapter_of, run_file

        file, folder = _find_file(self.name, self._own)
        kind = self._adapter
        if kind is None:
            kind = (await adapter_of(file, folder, self._tell)).adapter
        return run_file(file, folder, kind, on_prepare=self._tell)

    def _tell(self, done: int, total: int) -> None:
        for news in self._news:
            news.put_nowait(ReplyPreparing(done, total))

    async def close(self) -> None:
        """Ends the process that the model runs in."""
        if self._model is not None:
            await self._model.close()
            self._model = None


def default_name() -> str:
    """Returns the model that answers when none is named: the best one that is downloaded."""
    try:
        from hermes.providers import embedded
    except ImportError:
        return ""
    folder = embedded.models_folder(environment(), Path.home())
    best = embedded.find_best(folder)
    return best.id if best is not None else embedded.DEFAULT


def display_name(name: str) -> str:
    """Returns the name of a local model for a person, the same on every surface. `name` is an id, a reply's model or a file."""
    try:
        from hermes.providers.embedded import CATALOGUE
    except ImportError:
        return name or PROVIDER
    chosen = name or default_name()
    for entry in CATALOGUE.values():
        if chosen in {entry.id, entry.name}:
            return entry.description
    return Path(chosen.removesuffix(" (local)")).name


def full_name(name: str) -> str:
    """Returns the name of a model for a person, with what is typed to choose it; of a file its name alone."""
    chosen = name or default_name()
    shown = display_name(chosen)
    return shown if "/" in chosen else f"{shown} ({PROVIDER}:{chosen})"


def require_weights(
    name: str, own: "Mapping[str, LocalModelSettings] | None" = None
) -> None:
    """Raises what the first call would if the model is not on this machine. Loads nothing."""
    _find_file(name, own or {})


def _find_file(
    name: str, own: "Mapping[str, LocalModelSettings]"
) -> "tuple[ModelFile, Path]":
    """Returns the model's file, and the folder of all local models."""
    try:
        from hermes.providers import embedded
    except ImportError as error:
        hint = t.later(
            "Set a key (hermes config set OPENAI_API_KEY), or model.base_url for a server of your own."
        )
        raise SettingsError(
            t.later("The embedded model is not part of this installation."), hint=hint
        ) from error
    folder = embedded.models_folder(environment(), Path.home())
    if name.endswith(".gguf") or "/" in name:
        return embedded.custom_file(Path(name).expanduser()), folder
    return embedded.known_file(name, folder, embedded.known_models(own)), folder
