"""`LocalModel`: the embedded model as a candidate. It is put together at its first call: a fallback costs nothing."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.errors import SettingsError
from hermes.schema.model import ModelEvent, ModelRequest
from hermes.settings.load import environment

if TYPE_CHECKING:
    from hermes.providers.embedded import EmbeddedModel

PROVIDER = "embedded"
_USUAL = "base"


class LocalModel:
    """Implements the `Model` port. `name` is one of the embedded catalogue's, or the path of a GGUF file."""

    def __init__(self, name: str) -> None:
        self.provider = PROVIDER
        self.name = name or _USUAL
        self._model: EmbeddedModel | None = None

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        """Ends with `Finished` or raises ModelError; closing it stops the model."""
        if self._model is None:
            self._model = _build(self.name)
        events = self._model.stream(request)
        try:
            async for event in events:
                yield event
        finally:
            await events.aclose()

    async def close(self) -> None:
        """End the process that the model runs in."""
        if self._model is not None:
            await self._model.close()
            self._model = None


def _build(name: str) -> "EmbeddedModel":
    try:
        from hermes.providers import embedded
    except ImportError as error:
        hint = "Set a key (hermes config set OPENAI_API_KEY), or model.base_url for a server of your own."
        raise SettingsError("The embedded model is not part of this installation.", hint=hint) from error
    folder = embedded.models_folder(environment(), Path.home())
    if name.endswith(".gguf") or "/" in name:
        return embedded.build_custom_model(Path(name).expanduser(), folder)
    return embedded.build_model(name, folder)
