"""A model at an address, with everything known about it and chosen for it."""

from collections.abc import Mapping

import msgspec

from hermes.providers.catalogue import ModelFacts, facts_of
from hermes.providers.provider_table import Quirks
from hermes.schema.model import ModelRequest
from hermes.settings.models import CustomModel


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What the user chose for every call. A request's own values override it."""

    max_output_tokens: int | None = None
    temperature: float | None = None
    reasoning_effort: str = ""
    reasoning_summary: str = ""


class ModelEndpoint(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a codec needs to build a request."""

    provider: str
    base_url: str
    model: str
    quirks: Quirks
    facts: ModelFacts
    key_variable: str = ""
    options: Options = Options()
    custom: Mapping[str, CustomModel] = {}
    headers: Mapping[str, str] = {}

    @property
    def tells_thinking_apart(self) -> bool:
        """Whether its text never has thinking in it: tags in it are what the model wants to say. Others serve any model."""
        is_known = self.quirks.family in ("openai", "anthropic")
        own = (f"https://{host}/" for host in self.quirks.hosts)
        return is_known and f"{self.base_url}/".startswith(tuple(own))

    def at_model(self, model: str) -> "ModelEndpoint":
        """Returns this endpoint with another model."""
        if not model or model == self.model:
            return self
        return msgspec.structs.replace(
            self, model=model, facts=facts_of(model, self.custom)
        )

    def at_address(self, base_url: str) -> "ModelEndpoint":
        """Returns this endpoint at the address of an account; empty for the usual one."""
        if not base_url or base_url == self.base_url:
            return self
        return msgspec.structs.replace(self, base_url=base_url)

    def output_limit(self, request: ModelRequest) -> int | None:
        """The most tokens a reply may have; None if nobody set a limit."""
        return request.max_output_tokens or self.options.max_output_tokens

    def temperature(self, request: ModelRequest) -> float | None:
        """The temperature to send; None if nobody chose one or the model does not accept one."""
        if self.facts.fixed_sampling:
            return None
        if request.temperature is not None:
            return request.temperature
        return self.options.temperature
