"""Keys stay home: a page that talks a model into fetching an address with a key in it gets nothing."""

from urllib.parse import unquote

from hermes.errors import ToolFailed
from hermes.settings.key_shapes import is_secret_value
from hermes.settings.secrets import Secrets

_SHORTEST = 8
"""Characters of a value that is looked for; shorter ones are in any text."""


def require_no_secret(text: str, secrets: Secrets | None = None) -> None:
    """Raises ToolFailed when what would be sent holds one of the user's keys, or something shaped like a key."""
    spellings = (text, unquote(text), unquote(unquote(text)))
    known = [
        value
        for name in secrets or ()
        if secrets and len(value := secrets.get(name) or "") >= _SHORTEST
    ]
    if any(
        is_secret_value(spelling) or any(value in spelling for value in known)
        for spelling in spellings
    ):
        raise ToolFailed(
            "What would be sent holds something that looks like a key or password. Nothing was sent."
        )
