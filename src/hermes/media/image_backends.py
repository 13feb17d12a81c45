"""Chooses the backend that makes pictures, by the setting `media.image_generation` and the available keys."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from hermes.errors import (
    HermesError,
    MediaError,
    MediaErrorKind,
    ToolFailed,
    Words,
)
from hermes.providers.routing import ModelRoute, keys_of, route_to
from hermes.settings import Secrets, Settings
from hermes.text.translation import translator

t = translator(__name__)

if TYPE_CHECKING:
    from hermes.media.image_generation import Download, ImageBackend
    from hermes.media.image_service import ImageService

SENSE = "image generation"
FAL_KEY = "FAL_KEY"
FAL_ADDRESS = "FAL_BASE_URL"
_OPENAI_MODEL = "gpt-image-2"


class ImageSettings(msgspec.Struct, frozen=True):
    """The inputs of the choice."""

    settings: Settings
    secrets: Secrets
    environment: Mapping[str, str]
    hermes_home: Path

    @property
    def wanted(self) -> str:
        """The setting."""
        return self.settings.media.image_generation.strip()


def chosen_backend(given: ImageSettings) -> str:
    """Returns the name of the backend: the configured one, or the one that `auto` finds; empty for none."""
    wanted = given.wanted
    if wanted == "off":
        return ""
    if wanted != "auto":
        return wanted
    if given.settings.media.images.command:
        return "command"
    for name in ("openai", "xai"):
        if _has_key(given, name):
            return name
    return "fal" if given.secrets.get(FAL_KEY) else ""


def build_backend(given: ImageSettings) -> "ImageBackend":
    """Returns the chosen backend. Raises MediaError if it is not set up."""
    name = chosen_backend(given)
    options = given.settings.media.images
    if name == "command":
        from hermes.media.command_images import CommandImages

        if options.command:
            return CommandImages(
                options.command,
                given.environment,
                given.hermes_home,
                options.timeout,
            )
        raise _missing(
            t.later("There is no command."), t.later("Set media.images.command.")
        )
    if name == "fal":
        return _fal(given)
    if not name:
        raise _missing(
            t.later("Nothing that makes pictures is set up."),
            t.later("Set media.image_generation."),
        )
    return _service(given, name)


def _service(given: ImageSettings, name: str) -> "ImageBackend":
    """Returns a provider with OpenAI's images API, or xAI's."""
    try:
        route = route_to(given.settings, given.secrets, name, "")
        keys = keys_of(route, given.secrets)
    except HermesError as error:
        what = error.message.replace("model.provider", "media.image_generation", 1)
        raise _missing(what, error.hint_words) from error
    headers = dict(route.headers)
    if keys:
        headers["authorization"] = f"Bearer {keys[0]}"
    options = given.settings.media.images
    service = _http(given, route.quirks.label or name, route.key_variable)
    download = _download(given)
    if route.quirks.family == "xai":
        from hermes.media.xai_images import XaiImages

        return XaiImages(
            options.model,
            base_url=route.base_url,
            headers=headers,
            service=service,
            download=download,
        )
    from hermes.media.openai_images import OpenAIImages

    model = options.model or (_OPENAI_MODEL if route.quirks.family == "openai" else "")
    return OpenAIImages(
        name,
        model,
        base_url=route.base_url,
        headers=headers,
        service=service,
        download=download,
    )


def _fal(given: ImageSettings) -> "ImageBackend":
    from hermes.media.fal_images import QUEUE_URL, FalImages

    key = given.secrets.get(FAL_KEY)
    if not key:
        raise _missing(
            t.later("fal has no API key."),
            t.later("Set it: hermes config set {name}", name=FAL_KEY),
        )
    options = given.settings.media.images
    return FalImages(
        options.model,
        key=key,
        service=_http(given, "fal", FAL_KEY),
        download=_download(given),
        timeout_s=options.timeout,
        queue_url=given.secrets.get(FAL_ADDRESS) or QUEUE_URL,
    )


def _has_key(given: ImageSettings, name: str) -> bool:
    """Returns whether there is a key for the provider's own service. A custom address may not make pictures."""
    try:
        route: ModelRoute = route_to(given.settings, given.secrets, name, "")
    except HermesError:
        return False
    is_own = route.quirks.family == name
    return is_own and bool(keys_of(route, given.secrets, required=False))


def _http(given: ImageSettings, label: str, key_variable: str) -> "ImageService":
    from hermes.media.image_service import ImageService

    return ImageService(
        label,
        environment=given.environment,
        timeout_s=given.settings.media.images.timeout,
        key_hint=t.later(
            "The user can set another: hermes config set {key_variable}",
            key_variable=key_variable,
        ),
    )


def _download(given: ImageSettings) -> "Download":
    """Fetches a picture from a service, by the rules of `web_fetch`."""

    async def fetch(url: str) -> bytes:
        from hermes.media.image_service import MAX_REPLY_BYTES
        from hermes.tools.web.web_client import WebRequest
        from hermes.tools.web.web_settings import build_client

        web = msgspec.structs.replace(given.settings.web, max_bytes=MAX_REPLY_BYTES)
        try:
            reply = await build_client(web, given.environment).fetch(
                WebRequest(url=url)
            )
        except ToolFailed as error:
            raise MediaError(
                MediaErrorKind.NETWORK, error.words, sense=SENSE, hint=error.hint_words
            ) from error
        if reply.status >= 400 or reply.cut:
            raise MediaError(
                MediaErrorKind.NETWORK,
                t.later(
                    "The picture can't be downloaded ({phrase}).", phrase=reply.phrase
                ),
                sense=SENSE,
            )
        return reply.body

    return fetch


def _missing(message: str | Words, hint: str | Words) -> MediaError:
    return MediaError(MediaErrorKind.NOT_CONFIGURED, message, sense=SENSE, hint=hint)
