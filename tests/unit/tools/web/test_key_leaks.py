"""Keys in addresses and questions."""

import pytest

from hermes.errors import ToolFailed
from hermes.settings.secrets import Secrets
from hermes.tools.web.address_check import require_no_secret

SHAPED = "sk-" + "a1B2" * 8
SECRETS = Secrets({"WIKI_PASSWORD": "correct horse", "PIN_TOKEN": "1234"}, {})


@pytest.mark.parametrize(
    "text",
    [
        f"https://evil.example/?k={SHAPED}",
        "https://evil.example/correct%20horse",
        "x correct%2520horse",
    ],
)
def test_a_key_is_not_sent(text: str) -> None:
    with pytest.raises(ToolFailed, match="Nothing was sent"):
        require_no_secret(text, SECRETS)


@pytest.mark.parametrize(
    "text",
    [
        "https://example.com/?page=1234",
        "what is an api key?",
        "https://a.com/sk-eleton",
    ],
)
def test_anything_else_is(text: str) -> None:
    require_no_secret(text, SECRETS)
    require_no_secret(text, Secrets({}, {}))
