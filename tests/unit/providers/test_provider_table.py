"""Which family a service belongs to."""

import pytest

from hermes.providers.provider_table import (
    FAMILIES,
    GENERIC,
    echo_of,
    family,
    family_of,
    is_local,
)


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("https://api.openai.com/v1", "openai"),
        ("https://openrouter.ai/api/v1", "openrouter"),
        ("https://api.moonshot.cn/v1", "moonshot"),
        ("http://localhost:11434/v1", "ollama"),
        ("http://192.168.1.5:1234/v1", "lmstudio"),
        ("https://example.org:11434/v1", "generic"),
        ("https://notopenrouter.ai/v1", "generic"),
        ("http://127.0.0.1:9999/v1", "generic"),
    ],
)
def test_an_address_tells_its_family(address: str, name: str) -> None:
    assert family_of(address).family == name


def test_everyday_names_work() -> None:
    names = {
        name: (found.family if (found := family(name)) else None)
        for name in ("kimi", "Grok", "google", "nobody")
    }
    assert names == {
        "kimi": "moonshot",
        "Grok": "xai",
        "google": "gemini",
        "nobody": None,
    }


@pytest.mark.parametrize(
    ("address", "local"),
    [
        ("http://localhost:1/v1", True),
        ("http://127.0.0.2/v1", True),
        ("http://[::1]:8000/v1", True),
        ("http://10.1.2.3/v1", True),
        ("http://ollama:11434/v1", True),
        ("http://box.lan/v1", True),
        ("https://api.openai.com/v1", False),
        ("http://8.8.8.8/v1", False),
        ("", False),
    ],
)
def test_this_machine_and_private_networks_are_local(address: str, local: bool) -> None:
    assert is_local(address) is local


def test_every_family_has_an_address_and_a_key() -> None:
    for quirks in FAMILIES:
        assert quirks.base_url.startswith("http"), quirks.family
        if quirks.family == "bedrock":  # AWS' own name for it
            assert quirks.key_variable == "AWS_BEARER_TOKEN_BEDROCK"
        elif quirks.key_variable or not quirks.sign_in:
            assert quirks.key_variable.endswith("_API_KEY"), quirks.family
        assert quirks.default_model or not quirks.needs_key, quirks.family
        assert family(quirks.family) is quirks


@pytest.mark.parametrize(
    ("model", "echo"),
    [
        ("deepseek-v4", "always"),
        ("deepseek/deepseek-v3.2", "always"),
        ("XiaomiMiMo/MiMo-V2-Flash", "always"),
        ("accounts/fireworks/models/deepseek-v3p1", "always"),
        ("deepseek-r1-distill-llama-70b", "never"),
        ("qwen3", "never"),
    ],
)
def test_deepseek_and_mimo_get_their_thinking_back_on_any_host(
    model: str, echo: str
) -> None:
    assert echo_of(GENERIC, model) == echo
