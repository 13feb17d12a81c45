"""Making pictures: the port to the backends, and the tool `image_generate`.

A picture is saved in the session's folder, below `media` in the home, before anything reports it.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol, TypeAlias

import msgspec
from msgspec import Meta

from hermes.core.ports import ToolContext
from hermes.errors import HermesError, MediaError, MediaErrorKind
from hermes.images.image_info import Size, media_type, pixel_size
from hermes.media.image_backends import SENSE
from hermes.media.picture_folder import PictureFolder, read_picture
from hermes.schema.messages import Usage
from hermes.schema.tool_spec import ToolResult
from hermes.text.translation import translator
from hermes.tools.tool import judged, tool

t = translator(__name__)

MAX_REFERENCES = 3
_MAX_NAME_CHARACTERS = 40
_NAME = re.compile(r"[^\w]+")

AspectRatio: TypeAlias = Literal["landscape", "square", "portrait"]
PIXELS: Mapping[AspectRatio, Size] = {
    "landscape": Size(1536, 1024),
    "square": Size(1024, 1024),
    "portrait": Size(1024, 1536),
}


class ReferencePicture(msgspec.Struct, frozen=True):
    """A picture to change or to combine with others."""

    data: bytes
    media_type: str


class ImageRequest(msgspec.Struct, frozen=True):
    """The picture to make."""

    prompt: str
    aspect_ratio: AspectRatio = "landscape"
    references: tuple[ReferencePicture, ...] = ()

    @property
    def size(self) -> Size:
        """The size in pixels, for a backend that needs one."""
        return PIXELS[self.aspect_ratio]


class MadeImage(msgspec.Struct, frozen=True):
    """A picture from a backend, with the tokens, if the backend counts them."""

    data: bytes
    usage: Usage = Usage()


class ImageBackend(Protocol):
    """A service or a program that makes pictures."""

    @property
    def name(self) -> str:
        """The backend's name, such as `openai`."""
        ...

    @property
    def model(self) -> str:
        """The model; empty if it is not known."""
        ...

    async def make(self, request: ImageRequest) -> MadeImage:
        """Makes one picture. Raises MediaError."""
        ...


class ImageSpending(Protocol):
    """The budget of a session."""

    def check(self, session: str, price_usd: float | None) -> None:
        """Raises HermesError if a picture at this price could exceed a cap. The price is None if unknown."""
        ...

    async def note(
        self, session: str, backend: ImageBackend, usage: Usage | None, failure: str
    ) -> None:
        """Records what a picture cost, or why there is none."""
        ...


def _references(arguments: Mapping[str, Any]) -> Iterable[str]:
    match arguments.get("images"):
        case [*names]:
            return [one for one in names if isinstance(one, str)]
        case _:
            return []


class ImageGenerator(msgspec.Struct, frozen=True):
    """The dependencies of `image_generate`."""

    backend: ImageBackend
    folder: Callable[[str], Path]
    """The folder for the pictures of a session."""
    spending: ImageSpending
    price_usd: float | None = None
    """The price of one picture; None if it is not known."""


class ImageTool:
    """`image_generate` of one session."""

    def __init__(self, parts: ImageGenerator) -> None:
        self._parts = parts

    @tool("image_generate", effect="network", paths=_references)
    async def image_generate(
        self,
        context: ToolContext,
        prompt: Annotated[str, Meta(min_length=1)],
        aspect_ratio: AspectRatio = "landscape",
        images: Annotated[
            tuple[str, ...],
            Meta(
                max_length=MAX_REFERENCES,
                description="Files to change or to combine.",
            ),
        ] = (),
    ) -> ToolResult:
        """Makes a picture, which the user is shown, or changes one."""
        references = [
            await asyncio.to_thread(_reference, name, judged(name, context))
            for name in images
        ]
        backend = self._parts.backend
        context.show(f"Making a picture with {backend.name} {backend.model}\n")
        request = ImageRequest(prompt, aspect_ratio, tuple(references))
        made = await self._made(context.session, request)
        return await asyncio.to_thread(self._result, context.session, prompt, made.data)

    async def _made(self, session: str, request: ImageRequest) -> MadeImage:
        backend, spending = self._parts.backend, self._parts.spending
        try:
            spending.check(session, self._parts.price_usd)
        except HermesError as error:
            raise MediaError(
                MediaErrorKind.REFUSED, error.words, sense=SENSE, hint=error.hint_words
            ) from error
        try:
            made = await backend.make(request)
        except MediaError as error:
            await spending.note(session, backend, None, error.message)
            raise
        usage = made.usage
        if usage.cost_usd is None:
            usage = msgspec.structs.replace(usage, cost_usd=self._parts.price_usd)
        await spending.note(session, backend, usage, "")
        return made

    def _result(self, session: str, prompt: str, data: bytes) -> ToolResult:
        kind, size = media_type(data[:16]), pixel_size(data)
        if not kind or size is None:
            raise MediaError(
                MediaErrorKind.NOT_SUPPORTED,
                t.later(
                    "{name} sent something that is no picture ({count:,} bytes).",
                    name=self._parts.backend.name,
                    count=len(data),
                ),
                sense=SENSE,
            )
        folder = PictureFolder(self._parts.folder(session))
        image = folder.write(data, kind, _name(prompt))
        shown = msgspec.structs.replace(
            image,
            withheld=True,
            description="The picture that you made.",  # not translated
        )
        text = (  # not translated
            f"Saved in {image.source} ({size.width} x {size.height}). "
            "The user sees it; vision_analyze shows it to you."
        )
        return ToolResult(text=text, images=(shown,))


def _reference(name: str, file: Path) -> ReferencePicture:
    data = read_picture(name, file)
    kind = media_type(data[:16])
    if not kind:
        raise MediaError(
            MediaErrorKind.NOT_SUPPORTED,
            t.later("{name} is not a picture that can be changed.", name=name),
            sense=SENSE,
            hint=t.later("Use PNG, JPEG or WebP."),
        )
    return ReferencePicture(data, kind)


def _name(prompt: str) -> str:
    words = _NAME.sub("-", prompt.lower()).strip("-")
    return words[:_MAX_NAME_CHARACTERS].strip("-") or "picture"


Download: TypeAlias = Callable[[str], Awaitable[bytes]]
"""Fetches a picture from an address that a service returned. Raises MediaError."""
