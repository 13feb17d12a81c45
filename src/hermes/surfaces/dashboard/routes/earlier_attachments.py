"""Attachments of an earlier message, which are sent again when that message is edited."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from hermes.app.typed_part import attached_files
from hermes.schema.event_base import Event
from hermes.schema.messages import Image, UserMessage
from hermes.surfaces.dashboard.routes.chat_bodies import EarlierAttachments


class Earlier(NamedTuple):
    """What goes along again; `files` has the block of each file by its path."""

    images: tuple[Image, ...] = ()
    files: Mapping[str, str] = MappingProxyType({})
    recordings: tuple[str, ...] = ()

    def with_images(self, images: tuple[Image, ...]) -> tuple[Image, ...]:
        """These images and the earlier ones, each once."""
        return images + tuple(one for one in self.images if one not in images)

    def with_files(self, text: str) -> str:
        """A text with the earlier files behind it that it does not hold already."""
        held = attached_files(text)
        return text + "".join(
            block for path, block in self.files.items() if path not in held
        )


def attachments_of(message: Event | None, wanted: EarlierAttachments) -> Earlier:
    """The wanted attachments of a message; what it does not have is left out."""
    if not isinstance(message, UserMessage):
        return Earlier()
    images = enumerate(message.images)
    recordings = enumerate(message.recordings)
    files = attached_files(message.text)
    return Earlier(
        tuple(image for place, image in images if place in wanted.images),
        {path: files[path] for path in wanted.files if path in files},
        tuple(file for place, file in recordings if place in wanted.recordings),
    )
