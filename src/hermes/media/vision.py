"""Looking at pictures: `vision_analyze`, and the port to whatever examines a picture.

A model that accepts images gets the pixels. For a text-only model, another model answers the question, or OCR reads the
text in the picture; the result says which.
"""

import asyncio
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import msgspec
from msgspec import Meta

from hermes.core.ports import Effect, ToolContext
from hermes.errors import MediaError, MediaErrorKind
from hermes.media.picture_folder import KeptPicture, PictureFolder, read_picture
from hermes.schema.messages import Image
from hermes.schema.tool_spec import ToolResult
from hermes.settings.secrets import Secrets
from hermes.settings.tools import WebSettings
from hermes.text.translation import translator
from hermes.tools.tool import judged, tool

if TYPE_CHECKING:
    from hermes.tools.browser.browser_tools import BrowserTools
    from hermes.tools.web.address_check import HostRule, Resolver
    from hermes.tools.web.web_client import WebClient

t = translator(__name__)

_SCHEMES = ("http://", "https://")
_DESCRIBE = "Describe this picture."  # not translated


class PictureAnswer(msgspec.Struct, frozen=True):
    """The answer about a picture, and its source: a model, or OCR."""

    text: str
    by: str


class PictureLooker(Protocol):
    """Examines pictures for a session."""

    def sees(self, session: str) -> bool:
        """Returns whether the session's model gets the pixels themselves."""
        ...

    def reads_only_text(self, session: str) -> bool:
        """Returns whether the session's model accepts no pictures, so that a result contains a description instead."""
        ...

    def can_look(self, session: str) -> bool:
        """Returns whether anything can look at pictures for the session: its model, another one, or OCR."""
        ...

    async def answer(self, session: str, image: Image, question: str) -> PictureAnswer:
        """Answers a question about a picture. Raises MediaError if that is not possible."""
        ...


class VisionAccess(msgspec.Struct, frozen=True):
    """Fetches pictures from the web, by the rules and limits of `web_fetch`."""

    web: WebSettings
    secrets: Secrets
    environment: Mapping[str, str]
    resolver: "Resolver | None" = None
    rule: "HostRule | None" = None


def is_address(image: str) -> bool:
    """Returns whether a picture is given as a web address rather than a path."""
    return image.strip().lower().startswith(_SCHEMES)


def _paths(arguments: Mapping[str, Any]) -> Iterable[str]:
    image = arguments.get("image")
    if isinstance(image, str) and not is_address(image):
        return [image]
    return []


def _effect(arguments: Mapping[str, Any]) -> Effect:
    return "read" if _paths(arguments) else "network"


def _can_look(owner: "VisionTool") -> bool:
    return owner.can_look


class VisionTool:
    """`vision_analyze` of one session. Prompts describe it as soon as something can look at pictures."""

    def __init__(
        self,
        folder: PictureFolder,
        access: VisionAccess,
        looker: PictureLooker,
        session: str = "",
    ) -> None:
        self._folder = folder
        self._access = access
        self._looker = looker
        self._session = session

    @property
    def can_look(self) -> bool:
        """Whether anything looks at pictures for this session."""
        return self._looker.can_look(self._session)

    @tool(
        "vision_analyze",
        effect="network",
        effect_of=_effect,
        paths=_paths,
        joins=_can_look,
    )
    async def vision_analyze(
        self,
        context: ToolContext,
        image: Annotated[str, Meta(description="Path or URL.")],
        question: str = "",
    ) -> ToolResult:
        """Looks at a picture."""
        if is_address(image):
            data = await self._fetched(image.strip())
        else:
            file = judged(image, context)
            data = await asyncio.to_thread(read_picture, image, file)
        kept = await asyncio.to_thread(self._folder.keep, image, data)
        return await looked_at(
            self._looker, context.session, PictureQuestion(image, kept, question)
        )

    async def _fetched(self, address: str) -> bytes:
        from hermes.tools.web.address_check import require_no_secret
        from hermes.tools.web.web_client import WebRequest

        require_no_secret(address, self._access.secrets)
        reply = await self._client.fetch(
            WebRequest(url=address, headers={"Accept": "image/*"})
        )
        if reply.cut:
            raise MediaError(
                MediaErrorKind.TOO_LARGE,
                t.later(
                    "{address} is larger than {max_bytes:,} bytes.",
                    address=address,
                    max_bytes=self._access.web.max_bytes,
                ),
                sense="vision",
                hint=t.later("The user can raise web.max_bytes."),
            )
        if reply.status >= 400:
            raise MediaError(
                MediaErrorKind.REFUSED,
                t.later("The server answered {phrase}.", phrase=reply.phrase),
                sense="vision",
                hint=t.later("Check the address."),
            )
        return reply.body

    @cached_property
    def _client(self) -> "WebClient":
        from hermes.tools.web.web_settings import build_client

        access = self._access
        return build_client(
            access.web, access.environment, access.resolver, access.rule
        )


class PictureQuestion(msgspec.Struct, frozen=True):
    """A stored picture, the name that the model used for it, and the question about it."""

    name: str
    picture: KeptPicture
    question: str = ""


async def looked_at(
    looker: PictureLooker, session: str, asked: PictureQuestion
) -> ToolResult:
    """Returns the picture for a model that accepts images, otherwise an answer about it."""
    image, head = asked.picture.image, f"[{asked.name}: {asked.picture.label}]"
    if looker.sees(session):
        return ToolResult(text=head, images=(image,))
    answer = await looker.answer(session, image, asked.question or _DESCRIBE)
    if looker.reads_only_text(session):  # the description replaces the picture
        described = msgspec.structs.replace(image, description=answer.text)
        return ToolResult(
            text=f"{head} {answer.by} looked at it.", images=(described,)
        )  # not translated
    text = f"{head} {answer.by} looked at it:\n{answer.text}"  # not translated
    return ToolResult(text=text, source=asked.name)


def _has_opened(owner: "BrowserVision") -> bool:
    return owner.browser.has_opened and owner.can_look


class BrowserVision:
    """The tool of one session, beside its browser."""

    def __init__(
        self,
        browser: "BrowserTools",
        folder: PictureFolder,
        looker: PictureLooker,
        session: str = "",
    ) -> None:
        self.browser = browser
        self._folder = folder
        self._looker = looker
        self._session = session

    @property
    def can_look(self) -> bool:
        """Whether anything looks at pictures for this session."""
        return self._looker.can_look(self._session)

    @tool("browser_vision", effect="read", joins=_has_opened)
    async def browser_vision(
        self, context: ToolContext, question: str = ""
    ) -> ToolResult:
        """Looks at what the browser shows."""
        shot = await self.browser.screenshot()
        kept = await asyncio.to_thread(self._folder.keep, "page", shot.data)
        asked = PictureQuestion("page", kept, question)
        result = await looked_at(self._looker, context.session, asked)
        saved = f"{result.text}\nSaved in {kept.image.source}."
        return msgspec.structs.replace(result, text=saved, source=shot.url)
