"""Settings: the home folder, the user's choices and the secrets. `load` reads them once, frozen."""

from hermes.settings.home import Home
from hermes.settings.load import find_home, load, load_secrets
from hermes.settings.secrets import Secrets
from hermes.settings.sections import Settings

__all__ = ["Home", "Secrets", "Settings", "find_home", "load", "load_secrets"]
