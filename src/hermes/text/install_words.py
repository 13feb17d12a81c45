"""How the user installs a part that is missing, in the reader's language."""

from hermes.installation import install_command
from hermes.text.translation import Later, translator

t = translator(__name__)


def install_hint(extra: str) -> Later:
    """How the user installs an extra (of pyproject.toml) for this copy."""
    command = install_command(extra)
    if command:
        return t.later("Install it with: {command}", command=command)
    return t.later("Reinstall Hermes with the extra {extra!r}.", extra=extra)
