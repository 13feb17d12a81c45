"""What a server is given."""

import pytest

from hermes.errors import SettingsError
from hermes.mcp.environment import Values, handed_on, secret_values
from hermes.settings import Secrets


def test_references_are_filled_in_and_remembered() -> None:
    values = Values(Secrets({"MY_TOKEN": "tok"}, {}), {"REGION": "eu"})
    assert values.filled(
        "Bearer ${MY_TOKEN} in ${REGION} or ${ELSE:-nowhere}, $5 {x}"
    ) == ("Bearer tok in eu or nowhere, $5 {x}")
    assert values.used == {"tok"}


def test_a_reference_to_nothing_says_how_to_set_it() -> None:
    with pytest.raises(SettingsError, match=r"MY_TOKEN is not set\.") as error:
        Values(Secrets({}, {}), {}).filled("${MY_TOKEN}")
    assert error.value.hint == "Store it with: hermes config set MY_TOKEN"


def test_only_harmless_variables_are_handed_on() -> None:
    environment = {
        "PATH": "/bin", "HOME": "/home/me", "LC_ALL": "C", "AWS_SECRET_ACCESS_KEY": "x", "HERMES_HOME": "/h",
        "LD_PRELOAD": "/evil.so", "HTTPS_PROXY": "http://me:pw@proxy:1", "HTTP_PROXY": "http://proxy:1",
    }  # fmt: skip
    assert handed_on(environment) == {
        "PATH": "/bin",
        "HOME": "/home/me",
        "LC_ALL": "C",
        "HTTP_PROXY": "http://proxy:1",
    }


def test_values_are_secret_by_their_name() -> None:
    assert secret_values(
        {
            "API_KEY": "k1",
            "MODE": "calm",
            "Authorization": "Bearer t1",
            "EMPTY_TOKEN": "",
        }
    ) == {"k1", "t1"}
