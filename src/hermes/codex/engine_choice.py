"""Whether codex runs the turns, and with which model. Cheap to import: every surface names the engine."""

from hermes.settings.models import ModelSettings

CODEX = "codex"
ON = "codex_app_server"
"""The value of `model.openai_runtime` when codex runs the turns."""


def is_on(model: ModelSettings) -> bool:
    """Returns whether codex runs the user's turns."""
    return model.openai_runtime == ON


def codex_model(model: ModelSettings, chosen: str = "") -> str:
    """Returns the model for codex: the chosen one, or else the default if its provider is `auto` or `openai`.

    Empty to let codex use its own.
    """
    return chosen or (model.default if model.provider in ("auto", "openai") else "")
