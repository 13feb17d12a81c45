"""xAI's images API. Replies have OpenAI's shape; requests have an aspect ratio, not a size, and edits are JSON."""

from collections.abc import Mapping
from typing import Any

from hermes.media.image_generation import (
    AspectRatio,
    Download,
    ImageRequest,
    MadeImage,
    ReferencePicture,
)
from hermes.media.image_service import ImageService
from hermes.media.openai_images import read_reply

DEFAULT_MODEL = "grok-imagine-image"
_RATIOS: Mapping[AspectRatio, str] = {
    "landscape": "3:2",
    "square": "1:1",
    "portrait": "2:3",
}


class XaiImages:
    """Grok Imagine."""

    name = "xai"

    def __init__(
        self,
        model: str,
        *,
        base_url: str,
        headers: Mapping[str, str],
        service: ImageService,
        download: Download,
    ) -> None:
        self.model = model or DEFAULT_MODEL
        self._base_url = base_url.rstrip("/")
        self._headers = headers
        self._service = service
        self._download = download

    async def make(self, request: ImageRequest) -> MadeImage:
        """Makes a picture, or edits those in the request."""
        fields: dict[str, Any] = {
            "model": self.model,
            "prompt": request.prompt,
            "response_format": "b64_json",
            "aspect_ratio": _RATIOS[request.aspect_ratio],
        }
        path = "generations"
        if request.references:
            path = "edits"
            pictures = [_picture(one) for one in request.references]
            fields |= (
                {"image": pictures[0]} if len(pictures) == 1 else {"images": pictures}
            )
        body = await self._service.post(
            f"{self._base_url}/images/{path}", self._headers, fields
        )
        return await read_reply(body, self._service, self._download)


def _picture(reference: ReferencePicture) -> dict[str, str]:
    return {"type": "image_url", "url": data_url(reference)}


def data_url(reference: ReferencePicture) -> str:
    """Returns the picture as a data URL."""
    import base64

    data = base64.b64encode(reference.data).decode()
    return f"data:{reference.media_type};base64,{data}"
