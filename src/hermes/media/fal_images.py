"""fal.ai: queues a request, polls until it is done, and fetches its result."""

import asyncio
import base64
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from hermes.errors import MediaErrorKind
from hermes.media.image_generation import (
    AspectRatio,
    Download,
    ImageRequest,
    MadeImage,
)
from hermes.media.image_service import ImageService, ServiceRequest
from hermes.media.xai_images import data_url
from hermes.text.translation import translator

t = translator(__name__)


QUEUE_URL = "https://queue.fal.run"
DEFAULT_MODEL = "fal-ai/flux-2-dev"
_SIZES: Mapping[AspectRatio, str] = {
    "landscape": "landscape_4_3",
    "square": "square_hd",
    "portrait": "portrait_4_3",
}
_POLL_S = 0.5
_T = TypeVar("_T")


class _Queued(msgspec.Struct):
    request_id: str
    status_url: str = ""
    response_url: str = ""


class _Status(msgspec.Struct):
    status: str


class _File(msgspec.Struct):
    url: str


class _Result(msgspec.Struct):
    images: list[_File] = []


class FalImages:
    """A model of fal.ai. The model for editing has its own name: the model's, with `/edit`."""

    name = "fal"

    def __init__(
        self,
        model: str,
        *,
        key: str,
        service: ImageService,
        download: Download,
        timeout_s: float,
        queue_url: str = QUEUE_URL,
    ) -> None:
        self.model = model or DEFAULT_MODEL
        self._headers = {"authorization": f"Key {key}"}
        self._service = service
        self._download = download
        self._timeout_s = timeout_s
        self._queue_url = queue_url.rstrip("/")

    async def make(self, request: ImageRequest) -> MadeImage:
        """Makes a picture, or edits those in the request."""
        fields: dict[str, Any] = {
            "prompt": request.prompt,
            "image_size": _SIZES[request.aspect_ratio],
            "num_images": 1,
        }
        model = self.model
        if request.references:
            model = model if model.endswith("/edit") else f"{model}/edit"
            fields["image_urls"] = [data_url(one) for one in request.references]
        url = f"{self._queue_url}/{model}"
        queued = self._decoded(
            await self._service.post(url, self._headers, fields), _Queued
        )
        result = await self._waited(url, queued)
        if not result.images:
            raise self._service.error(
                MediaErrorKind.REFUSED, t.later("sent no picture")
            )
        return MadeImage(await self._content(result.images[0].url))

    async def _waited(self, url: str, queued: _Queued) -> _Result:
        """Waits for the result of a request."""
        place = f"{url}/requests/{queued.request_id}"
        status_url = self._own(queued.status_url) or f"{place}/status"
        response_url = self._own(queued.response_url) or place
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._until_done(status_url)
        except TimeoutError as error:
            raise self._service.error(
                MediaErrorKind.NETWORK,
                t.later("took longer than {timeout_s:g} s", timeout_s=self._timeout_s),
                hint=t.later("The user can raise media.images.timeout."),
            ) from error
        return self._decoded(await self._get(response_url), _Result)

    async def _until_done(self, status_url: str) -> None:
        while True:
            status = self._decoded(await self._get(status_url), _Status)
            if status.status == "COMPLETED":
                return
            await asyncio.sleep(_POLL_S)

    def _own(self, url: str) -> str:
        """Returns an address from the service if it is the service's own, because the key must go nowhere else."""
        return url if url.startswith(f"{self._queue_url}/") else ""

    async def _get(self, url: str) -> bytes:
        return await self._service.send(ServiceRequest(url=url, headers=self._headers))

    async def _content(self, url: str) -> bytes:
        if url.startswith("data:"):
            return base64.b64decode(url.partition(",")[2])
        return await self._download(url)

    def _decoded(self, body: bytes, kind: type[_T]) -> _T:
        try:
            return msgspec.json.decode(body, type=kind)
        except msgspec.MsgspecError as error:
            raise self._service.error(
                MediaErrorKind.NOT_SUPPORTED, t.later("sent a reply that can't be read")
            ) from error
