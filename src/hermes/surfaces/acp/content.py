"""The content of an editor's prompt: its text, mentioned files and pictures, joined into one message."""

import base64
import binascii
import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from acp.schema import (
    BlobResourceContents,
    EmbeddedResourceContentBlock,
    ImageContentBlock,
    ResourceContentBlock,
    TextContentBlock,
    TextResourceContents,
)

from hermes.errors import UsageError
from hermes.images.image_info import picture_type
from hermes.primitives.files import replace_file
from hermes.schema.messages import Image
from hermes.text.hidden_text import without_hidden


class PromptContent:
    """Collects the blocks of a prompt. Pictures are saved in `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._typed: list[str] = []
        self._attached: list[str] = []
        self.images: list[Image] = []

    @property
    def text(self) -> str:
        """What the person typed, and below it what the editor attached."""
        return "".join(self._typed).strip() + "".join(self._attached)

    def add(self, blocks: Iterable[Any]) -> None:
        """Adds blocks. Raises UsageError for one that Hermes can't take."""
        for block in blocks:
            match block:
                case TextContentBlock():
                    self._typed.append(block.text)
                case ImageContentBlock():
                    self._add_image(block.data)
                case ResourceContentBlock():
                    self._typed.append(_mention(block.uri, block.name))
                case EmbeddedResourceContentBlock():
                    self._add_resource(block.resource)
                case _:
                    raise UsageError(f"Hermes can't take {block.type} from an editor.")

    def _add_resource(
        self, resource: TextResourceContents | BlobResourceContents
    ) -> None:
        name = _mention(resource.uri, "")
        self._typed.append(name)
        if isinstance(resource, BlobResourceContents):
            self._add_image(resource.blob)
            return
        text = without_hidden(resource.text).replace("</attached", "<\\/attached")
        path = name.removeprefix("@").replace('"', "")
        self._attached.append(f'\n\n<attached path="{path}">\n{text}\n</attached>')

    def _add_image(self, data: str) -> None:
        try:
            content = base64.b64decode(data, validate=True)
        except binascii.Error as error:
            raise UsageError("A picture is not valid base64.") from error
        kind = picture_type(content[:32])
        if not kind:
            raise UsageError(
                "An attachment is neither text nor a picture that a model can see."
            )
        self._folder.mkdir(parents=True, exist_ok=True)
        name = f"{hashlib.sha256(content).hexdigest()[:16]}.{kind.split('/')[1]}"
        path = self._folder / name
        if not path.exists():
            replace_file(path, content, durable=False, alone=False)
        self.images.append(Image(source=str(path), media_type=kind))


def _mention(uri: str, name: str) -> str:
    """A file or a page as a person would name it."""
    address = urlsplit(uri)
    if address.scheme == "file":
        return f"@{unquote(address.path)}"
    return f"[{name}]({uri})" if name else uri
