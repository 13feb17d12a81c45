"""OpenAI's images API, and that of compatible services: `/images/generations`, and `/images/edits` as a form."""

import base64
import binascii
from collections.abc import Mapping

import msgspec

from hermes.errors import MediaErrorKind
from hermes.media.image_generation import Download, ImageRequest, MadeImage
from hermes.media.image_service import (
    FormPart,
    ImageService,
    ServiceRequest,
    encode_form,
)
from hermes.schema.messages import Usage
from hermes.text.translation import translator

t = translator(__name__)


class _Item(msgspec.Struct):
    b64_json: str | None = None
    url: str | None = None


class _Counted(msgspec.Struct):
    input_tokens: int = 0
    output_tokens: int = 0


class _Reply(msgspec.Struct):
    data: list[_Item] | None = None
    usage: _Counted | None = None


class OpenAIImages:
    """A service with OpenAI's images API."""

    def __init__(
        self,
        name: str,
        model: str,
        *,
        base_url: str,
        headers: Mapping[str, str],
        service: ImageService,
        download: Download,
    ) -> None:
        self.name = name
        self.model = model
        self._base_url = base_url.rstrip("/")
        self._headers = headers
        self._service = service
        self._download = download

    async def make(self, request: ImageRequest) -> MadeImage:
        """Makes a picture, or edits those in the request."""
        size = f"{request.size.width}x{request.size.height}"
        fields = {"prompt": request.prompt, "size": size}
        if self.model:
            fields["model"] = self.model
        if request.references:
            body = await self._edit(request, fields)
        else:
            url = f"{self._base_url}/images/generations"
            body = await self._service.post(url, self._headers, fields)
        return await read_reply(body, self._service, self._download)

    async def _edit(self, request: ImageRequest, fields: Mapping[str, str]) -> bytes:
        field = "image" if len(request.references) == 1 else "image[]"
        parts = tuple(
            FormPart(field, f"{number}.{one.media_type.removeprefix('image/')}", one)
            for number, one in enumerate(request.references, 1)
        )
        body, kind = encode_form(fields, parts)
        url = f"{self._base_url}/images/edits"
        headers = {**self._headers, "content-type": kind}
        return await self._service.send(
            ServiceRequest(url=url, headers=headers, body=body)
        )


async def read_reply(
    body: bytes, service: ImageService, download: Download
) -> MadeImage:
    """Returns the first picture in such a reply: as base64, or from an address. Raises MediaError."""
    try:
        reply = msgspec.json.decode(body, type=_Reply)
        item = (reply.data or [_Item()])[0]
        data = base64.b64decode(item.b64_json, validate=True) if item.b64_json else b""
    except (msgspec.MsgspecError, binascii.Error) as error:
        raise service.error(
            MediaErrorKind.NOT_SUPPORTED, t.later("sent a reply that can't be read")
        ) from error
    if not data and item.url:
        data = await download(item.url)
    if not data:
        raise service.error(MediaErrorKind.REFUSED, t.later("sent no picture"))
    counted = reply.usage or _Counted()
    usage = Usage(
        input_tokens=counted.input_tokens, output_tokens=counted.output_tokens
    )
    return MadeImage(data, usage)
