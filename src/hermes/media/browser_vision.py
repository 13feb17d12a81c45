"""`browser_vision`: a picture of the page that the browser shows, looked at like any other picture."""

import asyncio

import msgspec

from hermes.core.ports import ToolContext
from hermes.media.picture_folder import PictureFolder
from hermes.media.vision import PictureLooker, PictureQuestion, looked_at
from hermes.schema.tool_spec import ToolResult
from hermes.tools.browser.browser_tools import BrowserTools
from hermes.tools.tool import tool


def _has_opened(owner: "BrowserVision") -> bool:
    return owner.browser.has_opened


class BrowserVision:
    """The tool of one session, beside its browser."""

    def __init__(
        self, browser: BrowserTools, folder: PictureFolder, looker: PictureLooker
    ) -> None:
        self.browser = browser
        self._folder = folder
        self._looker = looker

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
