"""The real models for speech that tests use. They are fetched once into the user's cache, as `hermes voice add` does."""

import importlib.util
import os
from pathlib import Path

import msgspec
from tests.integration.providers.local_models import FOLDER, missing

from hermes.errors import HermesError
from hermes.media.speech_deps import SpeechDeps
from hermes.media.speech_downloads import fetch_model
from hermes.media.speech_models import PIPER, WHISPER, SpeechModel
from hermes.settings import Home, Secrets
from hermes.settings.media import MediaSettings
from hermes.testing.fetched import NotFetched, cache_folder, locked


def need_moonshine() -> Path:
    """The folder of Moonshine's package, with its recordings. Without it the test is skipped; in CI that is a failure."""
    found = importlib.util.find_spec("moonshine_voice")
    if found is None or found.origin is None:
        missing("the extra `voice` is not installed, so no speech is understood")
        raise AssertionError
    return Path(found.origin).parent


def need_whisper() -> None:
    """Fetches Whisper's model. Where it can't be had the test is skipped; in CI that is a failure."""
    if importlib.util.find_spec("faster_whisper") is None:
        missing("the extra `voice` is not installed, so Whisper can't run")
    _need(WHISPER)


def need_piper() -> None:
    """Fetches Piper and its voice, like `need_whisper`."""
    _need(PIPER)


def _need(model: SpeechModel) -> None:
    try:
        with locked(cache_folder(os.environ) / "speech"):
            list(fetch_model(model, FOLDER))
    except (HermesError, NotFetched) as error:
        missing(f"{model.name} can't be had: {error}")


def speech(home: Path, **settings: str) -> SpeechDeps:
    """What the backends are built from, with these settings of `media`."""
    media = msgspec.structs.replace(MediaSettings(), **settings)
    return SpeechDeps(media, Secrets({}, {}), Home(home), os.environ)
