"""The dependencies of the speech backends, and how a backend is chosen."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple, TypeVar

from hermes.errors import MediaError, MediaErrorKind
from hermes.settings import Home, Secrets
from hermes.settings.home import models_folder
from hermes.settings.media import MediaSettings, SpeechSettings, TranscriptionSettings
from hermes.text.translation import LaterWords, translator

t = translator(__name__)

Backend = TypeVar("Backend")


class SpeechDeps(NamedTuple):
    """The settings, the keys and the machine."""

    settings: MediaSettings
    secrets: Secrets
    home: Home
    environment: Mapping[str, str]

    def key(self, *names: str) -> str:
        """Returns the first of these secrets that is set; empty if none is."""
        return next(filter(None, (self.secrets.get(name) for name in names)), "")

    @property
    def models(self) -> Path:
        """The folder of the downloaded models."""
        return models_folder(self.environment, Path.home())


def configured(wanted: str, options: TranscriptionSettings | SpeechSettings) -> str:
    """Returns the backend that the settings name. With `auto`, a configured command or address decides."""
    if wanted != "auto":
        return wanted
    if options.command:
        return "command"
    return "openai" if options.url else "auto"


def choose_backend(
    wanted: str,
    setting: str,
    sense: str,
    builders: Mapping[str, Callable[[], Backend]],
    order: tuple[str, ...],
    advice: Callable[[], LaterWords],
) -> Backend:
    """Returns the backend that the setting names, or the first of `order` that is set up.

    If there is none, raises MediaError with the advice.
    """
    if wanted == "off":
        raise MediaError(
            MediaErrorKind.NOT_CONFIGURED,
            t.later("{capitalize} is turned off.", capitalize=sense.capitalize()),
            sense=sense,
            hint=t.later(
                "Turn it on with: hermes config set {setting} auto", setting=setting
            ),
        )
    if wanted != "auto":
        build = builders.get(wanted)
        if build is None:
            raise MediaError(
                MediaErrorKind.NOT_CONFIGURED,
                t.later(
                    "{setting} names an unknown backend: {wanted}.",
                    setting=setting,
                    wanted=wanted,
                ),
                sense=sense,
                hint=t.later(
                    "Expected one of: auto, off, {builders}.",
                    builders=", ".join(builders),
                ),
            )
        return build()
    for name in order:
        try:
            return builders[name]()
        except MediaError as error:
            if error.kind is not MediaErrorKind.NOT_CONFIGURED:
                raise
    raise MediaError(
        MediaErrorKind.NOT_CONFIGURED,
        t.later("{capitalize} is not set up.", capitalize=sense.capitalize()),
        sense=sense,
        hint=advice(),
    )
