"""Files and pictures that come with a message: new ones, saved before it is, and those of an earlier message that is edited."""

import base64
import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from hermes.app import App
from hermes.app.attachments import uploaded_file
from hermes.app.speech import listener
from hermes.app.typed_part import attached_files
from hermes.errors import UsageError
from hermes.primitives.files import replace_file
from hermes.schema.event_base import Event
from hermes.schema.messages import Image, UserMessage
from hermes.surfaces.dashboard.routes.chat_bodies import (
    EarlierAttachments,
    FileBody,
    ImageBody,
)
from hermes.text.translation import translator

t = translator(__name__)

PICTURE_ENDINGS = {
    "image/png": ".png",
    "image/jpeg": ".jpg",
    "image/gif": ".gif",
    "image/webp": ".webp",
}


class Uploads:
    """Saves into the home of one app."""

    def __init__(self, app: App) -> None:
        self._app = app

    def save_files(self, session: str, files: list[FileBody]) -> str:
        """Saves files in the session's media folder. Returns what the message says about them."""
        folder = self._app.home.media / session
        blocks: list[str] = []
        for file in files:
            try:
                data = base64.b64decode(file.data, validate=True)
            except ValueError as error:
                raise UsageError(
                    t("{name} can't be read: it is not base64.", name=file.name),
                    hint=t("Nothing was sent."),
                ) from error
            name = re.sub(r"[^\w.\-]+", "_", Path(file.name).name).strip("._")[-80:]
            own = folder / hashlib.sha256(data).hexdigest()[:8]
            path = own / (name or "file")
            if not path.exists():
                self._app.home.ensure(folder.parent, folder, own)
                replace_file(path, data, durable=True, alone=False)
            app = self._app
            reads = app.settings.media.documents != "off"
            blocks.append(
                uploaded_file(path, listen=listener(app), reads_documents=reads)
            )
        return "".join(blocks)

    def save_pictures(self, pictures: list[ImageBody]) -> tuple[Image, ...]:
        """Saves pictures as files, named by a hash of their content."""
        folder = self._app.home.root / "pictures"
        kept: list[Image] = []
        for picture in pictures:
            ending = PICTURE_ENDINGS.get(picture.media_type)
            try:
                data = base64.b64decode(picture.data, validate=True)
            except ValueError as error:
                raise UsageError(
                    t("A picture can't be read: it is not base64."),
                    hint=t("Nothing was sent."),
                ) from error
            if ending is None or not data:
                raise UsageError(
                    t("That is not a picture."),
                    hint=t("PNG, JPEG, GIF and WebP can be shown to a model."),
                )
            self._app.home.ensure(folder)
            path = folder / f"{hashlib.sha256(data).hexdigest()[:32]}{ending}"
            if not path.exists():
                replace_file(path, data, durable=False, alone=False)
            kept.append(Image(source=str(path), media_type=picture.media_type))
        return tuple(kept)


class EarlierFiles(NamedTuple):
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


def attachments_of(message: Event | None, wanted: EarlierAttachments) -> EarlierFiles:
    """The wanted attachments of a message; what it does not have is left out."""
    if not isinstance(message, UserMessage):
        return EarlierFiles()
    images = enumerate(message.images)
    recordings = enumerate(message.recordings)
    files = attached_files(message.text)
    return EarlierFiles(
        tuple(image for place, image in images if place in wanted.images),
        {path: files[path] for path in wanted.files if path in files},
        tuple(file for place, file in recordings if place in wanted.recordings),
    )
