"""The environment of a server: variables from an allowlist, and secrets where the settings refer to them."""

import re
from collections.abc import Mapping

from hermes.children.helper_programs import (
    PLAIN_PREFIXES,
    PLAIN_VARIABLES,
    trusted_path,
)
from hermes.errors import SettingsError
from hermes.settings import Secrets
from hermes.settings.redaction import has_credentials
from hermes.settings.secrets import is_secret_name
from hermes.text.translation import translator

t = translator(__name__)

_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_SECRET_HEADERS = frozenset(
    ("authorization", "proxy-authorization", "cookie", "x-api-key")
)


class Values:
    """Replaces the `${NAME}` of one server's settings, and remembers which secrets it used."""

    def __init__(self, secrets: Secrets, environment: Mapping[str, str]) -> None:
        self._secrets = secrets
        self._environment = environment
        self.used: set[str] = set()

    def filled(self, text: str) -> str:
        """Returns the text with every reference replaced. Raises SettingsError if one is not set."""
        return _REFERENCE.sub(self._value, text)

    def _value(self, match: re.Match[str]) -> str:
        name, default = match[1], match[2]
        value = self._secrets.get(name)
        if value is not None:
            self.used.add(value)
            return value
        value = self._environment.get(name) or default
        if value is None:
            raise SettingsError(
                t.later("{name} is not set.", name=name),
                hint=t.later("Store it with: hermes config set {name}", name=name),
            )
        return value


def handed_on(environment: Mapping[str, str]) -> dict[str, str]:
    """Returns the variables of the user's environment that every server gets: paths and language, but no keys."""
    given = {
        name: value
        for name, value in environment.items()
        if (name in PLAIN_VARIABLES or name.startswith(PLAIN_PREFIXES))
        and not has_credentials(value)
    }
    return given | {"PATH": trusted_path(environment)}


def secret_values(values: Mapping[str, str]) -> set[str]:
    """Returns the values whose names say that they are secret, such as a token or an authorization."""
    words = {name: value.split() for name, value in values.items() if value}
    return {
        word[-1]
        for name, word in words.items()
        if word and (is_secret_name(name) or name.lower() in _SECRET_HEADERS)
    }
