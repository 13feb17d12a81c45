"""Names the model that answers, and the program that runs the turns."""

from typing import Literal, TypeAlias

import msgspec

from hermes.app.app import App
from hermes.codex.engine_choice import CODEX
from hermes.providers.provider_table import label_of
from hermes.schema.events import SessionModelChosen

EngineName: TypeAlias = Literal["native", "codex"]


class ModelInfo(msgspec.Struct, frozen=True):
    """Names the model that answers."""

    provider: str
    name: str

    @property
    def local(self) -> bool:
        """Whether the model runs inside Hermes, on this machine."""
        return self.provider == "embedded"

    @property
    def engine(self) -> EngineName:
        """Which program runs the turns."""
        return "codex" if self.provider == CODEX else "native"

    @property
    def label(self) -> str:
        """The name of the model for a person. For codex, its name comes first."""
        if self.local:
            from hermes.providers.local_model import display_name

            return display_name(self.name)
        if self.engine == "codex":
            return f"{CODEX} {self.name}".strip()
        return self.name or self.provider

    @property
    def full_label(self) -> str:
        """The name of the model, with that of its service for a person."""
        if self.local or self.engine == "codex":
            return self.label
        return f"{label_of(self.provider)} {self.name}".strip()


def kept_model(app: App, session: str) -> str:
    """The model that was chosen for a session; empty if none was."""
    if not app.has_log:
        return ""
    logged = app.store.log.latest(session, SessionModelChosen.topic)
    return logged.model if isinstance(logged, SessionModelChosen) else ""
