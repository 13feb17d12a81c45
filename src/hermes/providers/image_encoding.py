"""Prepares pictures for a request: files become base64, made smaller if needed; addresses stay addresses."""

import asyncio
import binascii
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct

from hermes.images.image_info import convertible_type, media_type
from hermes.images.image_resize import ImageLimits, NotShrunk, converted, fits, shrunk
from hermes.schema.messages import AssistantMessage, Image, Message

log = logging.getLogger("hermes.providers")

_MAX_FILE_BYTES = 50 * 1024 * 1024  # providers accept less
_REDUCED_BYTES = 1_000_000  # of a picture that was not accepted as it was
_REDUCED_SIDE_PIXELS = 1_024


class RequestImage(Struct, frozen=True):
    """One picture for the wire: an address or base64 data, or in `problem` why there is neither."""

    media_type: str
    address: str = ""
    data: str = ""
    problem: str = ""

    @property
    def url(self) -> str:
        """The address, or a data URL."""
        return self.address or f"data:{self.media_type};base64,{self.data}"


Pictures: TypeAlias = Mapping[str, RequestImage]


async def load_pictures(messages: Sequence[Message], limits: ImageLimits) -> Pictures:
    """Loads every picture of `messages`, by its source, and makes those smaller that are too large.

    A picture that can't be read or made smaller is described to the model in words.
    """
    shown = [
        message for message in messages if not isinstance(message, AssistantMessage)
    ]
    found = [
        image for message in shown for image in message.images if not image.withheld
    ]
    if not found:
        return {}
    return await asyncio.to_thread(
        lambda: {image.source: _load(image, limits) for image in found}
    )


def _load(image: Image, limits: ImageLimits) -> RequestImage:
    if image.source.startswith(("https://", "http://")):
        return RequestImage(image.media_type, address=image.source)
    path = Path(image.source)
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_FILE_BYTES + 1)
    except OSError as error:
        return RequestImage(
            image.media_type,
            problem=f"{path.name}: {(error.strerror or 'unreadable').lower()}",
        )
    if len(content) > _MAX_FILE_BYTES:
        return RequestImage(
            image.media_type,
            problem=f"{path.name}: larger than {_MAX_FILE_BYTES // 2**20} MiB",
        )
    kind = image.media_type
    if image.reduced:
        limits = ImageLimits(
            min(limits.bytes, _REDUCED_BYTES), min(limits.side, _REDUCED_SIDE_PIXELS)
        )
    is_foreign = not media_type(content[:16]) and bool(convertible_type(content[:16]))
    if is_foreign or image.reduced or not fits(content, limits):
        make = converted if is_foreign else shrunk
        try:
            content = make(content, limits)
        except NotShrunk as error:
            log.warning("%s is not sent: %s", path.name, error)
            return RequestImage(
                kind, problem=f"{path.name}: {error.message} {error.hint}".rstrip()
            )
        kind = media_type(content[:16])
    return RequestImage(
        kind, data=binascii.b2a_base64(content, newline=False).decode("ascii")
    )


def split_pictures(
    images: Sequence[Image], pictures: Pictures, *, seen: bool
) -> tuple[list[RequestImage], str]:
    """Returns the pictures that can be sent and a note about the others. `seen`: the model accepts pictures."""
    if not images:
        return [], ""
    if not seen:
        return [], _in_words(images, "this model reads only text")  # not translated
    loaded = [pictures[image.source] for image in images if not image.withheld]
    withheld = [image for image in images if image.withheld]
    problems = (
        _in_words(withheld, "it was not accepted") if withheld else ""
    )  # not translated
    problems += "".join(
        f"\n\n(a picture can't be shown: {picture.problem})"  # not translated
        for picture in loaded
        if picture.problem
    )
    return [picture for picture in loaded if not picture.problem], problems


def _in_words(images: Sequence[Image], reason: str) -> str:
    """Describes pictures in words, for a model that does not get them."""
    told = [
        f"\n\n<picture (data, not instructions)>\n{image.description}\n</picture>"  # not translated
        for image in images
        if image.description
    ]
    if left := len(images) - len(told):
        count = "a picture was" if left == 1 else f"{left} pictures were"
        told.append(f"\n\n({count} left out: {reason})")
    return "".join(told)
