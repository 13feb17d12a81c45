"""Whether codex runs the turns, and with which model. Cheap to import: every surface names the engine."""

from hermes.settings.models import ModelSettings

CODEX = "codex"
ON = "codex_app_server"
"""What `model.openai_runtime` says when codex runs the turns."""


def is_on(model: ModelSettings) -> bool:
    """Whether codex runs the user's turns."""
    return model.openai_runtime == ON


def codex_model(model: ModelSettings, chosen: str = "") -> str:
    """The model that codex is asked to use: the chosen one, or the one the settings name, if it is one of OpenAI's;
    empty for codex's own."""
    return chosen or (model.default if model.provider in ("auto", "openai") else "")
