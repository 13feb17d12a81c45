"""`ModelEndpoint`: a model at an address, and all that is known and chosen for it."""

from collections.abc import Mapping

import msgspec

from hermes.providers.catalogue import ModelFacts, facts_of
from hermes.providers.quirks import Quirks
from hermes.settings.sections import CustomModel


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What the user chose for every call; a request's own values win."""

    max_output_tokens: int | None = None
    temperature: float | None = None
    reasoning_effort: str = ""
    reasoning_summary: str = ""


class ModelEndpoint(msgspec.Struct, frozen=True, kw_only=True):
    """All a codec needs to know to build a request."""

    provider: str
    base_url: str
    model: str
    quirks: Quirks
    facts: ModelFacts
    options: Options = Options()
    custom: Mapping[str, CustomModel] = {}

    def at_model(self, model: str) -> "ModelEndpoint":
        """The same address, another model."""
        if not model or model == self.model:
            return self
        return msgspec.structs.replace(
            self, model=model, facts=facts_of(model, self.custom)
        )
