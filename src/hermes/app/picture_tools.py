"""Builds the tools for pictures and the browser from the settings."""

import asyncio
import logging
from typing import TYPE_CHECKING

import msgspec

from hermes.app.app import App
from hermes.app.spending_caps import Spending
from hermes.core.budget import BudgetSpent, Price
from hermes.core.ports import Tool
from hermes.errors import MediaError, MediaErrorKind, in_sentences
from hermes.media.image_backends import ImageSettings, build_backend, chosen_backend
from hermes.media.picture_folder import PictureFolder
from hermes.media.vision import PictureAnswer, PictureLooker, VisionAccess, VisionTool
from hermes.schema.events import AuxiliaryCalled
from hermes.schema.messages import Image, Usage
from hermes.settings import Secrets
from hermes.settings.load import environment
from hermes.text.translation import translator
from hermes.tools.policy.rule_file import host_rule
from hermes.tools.process.long_output import OutputFolder
from hermes.tools.toolsets import ToolChoice

t = translator(__name__)

if TYPE_CHECKING:
    from hermes.media.image_generation import ImageBackend, ImageSpending

log = logging.getLogger("hermes.media")


def image_settings(app: App, secrets: Secrets) -> ImageSettings:
    """Where the choice of the backend for pictures comes from."""
    return ImageSettings(app.settings, secrets, environment(), app.home.root)


class NoPictureLooker:
    """Implements `PictureLooker` where tools are only listed, and no session has them."""

    def sees(self, session: str) -> bool:  # noqa: ARG002 - the port's shape
        """Shows pictures as they are."""
        return True

    def reads_only_text(self, session: str) -> bool:  # noqa: ARG002 - the port's shape
        """Leaves that open."""
        return False

    def can_look(self, session: str) -> bool:  # noqa: ARG002 - the port's shape
        """Lists the tools for it."""
        return True

    async def answer(self, session: str, image: Image, question: str) -> PictureAnswer:  # noqa: ARG002 - the port's shape
        """Always fails."""
        raise MediaError(
            MediaErrorKind.NOT_CONFIGURED,
            t.later("There is no session."),
            sense="vision",
        )


class SessionImageSpending:
    """Implements `ImageSpending`: the caps of sessions, and rows that say what a picture cost."""

    def __init__(self, app: App, spending: Spending) -> None:
        self._app = app
        self._spending = spending

    def check(self, session: str, price_usd: float | None) -> None:
        """Raises BudgetSpent if a picture could pass a cap."""
        price = None if price_usd is None else Price(price_usd, 0.0)
        try:
            self._spending.check(session, 1, price)
        except BudgetSpent as error:
            if price is not None:
                raise
            hint = t.later("Set media.images.price, or set the cap in tokens.")
            raise BudgetSpent(error.message, hint=hint) from error

    async def note(
        self, session: str, backend: "ImageBackend", usage: Usage | None, failure: str
    ) -> None:
        """Writes down what a picture cost, or why there is none."""
        self._spending.spend(session, usage)
        called = AuxiliaryCalled(
            task="image",
            provider=backend.name,
            model=backend.model,
            usage=usage,
            failure=failure,
        )
        await asyncio.to_thread(self._app.record, session, called)


class NoImageSpending:
    """Implements `ImageSpending` where tools are only listed."""

    def check(self, session: str, price_usd: float | None) -> None:
        """Allows everything."""

    async def note(
        self, session: str, backend: "ImageBackend", usage: Usage | None, failure: str
    ) -> None:
        """Writes nothing."""


class PicturePorts(msgspec.Struct, frozen=True):
    """What the tools for pictures need from the sessions of a process."""

    looker: PictureLooker
    spending: "ImageSpending"


class PictureTools:
    """Makes the tools of one session whose backend is there and not switched off."""

    def __init__(
        self, app: App, secrets: Secrets, ports: PicturePorts | None, session: str = ""
    ) -> None:
        self._session = session
        self._app = app
        self._secrets = secrets
        self._looker = ports.looker if ports else NoPictureLooker()
        self._spending = ports.spending if ports else NoImageSpending()
        self._folder = PictureFolder(app.home.cache / "pictures")

    def tools(self) -> tuple[Tool, ...]:
        """`vision_analyze` and `image_generate`."""
        looking = (self._vision().vision_analyze,) if self._sees else ()
        return (*looking, *self._generation())

    def _generation(self) -> tuple[Tool, ...]:
        """`image_generate`, if something here makes pictures."""
        given = image_settings(self._app, self._secrets)
        if not chosen_backend(given):
            return ()
        from hermes.media.image_generation import ImageGenerator, ImageTool

        try:
            backend = build_backend(given)
        except MediaError as error:  # `hermes doctor` says so too
            log.warning("image_generate is not offered: %s", in_sentences(error))
            return ()
        price = self._app.settings.media.images.price or None
        if backend.name == "command":
            price = price or 0.0
        media = self._app.home.media
        parts = ImageGenerator(
            backend, lambda session: media / session, self._spending, price
        )
        return (ImageTool(parts).image_generate,)

    def browser_tools(
        self, outputs: OutputFolder, choice: ToolChoice
    ) -> tuple[Tool, ...]:
        """The tools of a browser, if they are wanted and there is one on this machine."""
        if not choice.wants("browser_navigate"):
            return ()
        from hermes.tools.browser.executable import find_browser, needs_no_sandbox

        settings = self._app.settings
        is_asked_for = choice.enables("browser_navigate") or settings.browser.as_root
        if needs_no_sandbox() and not is_asked_for:
            return ()
        if not find_browser(settings.browser.executable, environment()):
            return ()
        from hermes.tools.browser.browser_tools import BrowserTools

        browser = BrowserTools(
            settings.browser,
            settings.web,
            outputs,
            environment(),
            secrets=self._secrets,
            rule=host_rule(self._app.home.root),
        )
        if not self._sees:
            return tuple(browser.tools)
        from hermes.media.vision import BrowserVision

        looking = BrowserVision(browser, self._folder, self._looker, self._session)
        return (*browser.tools, looking.browser_vision)

    @property
    def _sees(self) -> bool:
        return self._app.settings.media.vision.strip() != "off"

    def _vision(self) -> VisionTool:
        access = VisionAccess(
            self._app.settings.web,
            self._secrets,
            environment(),
            rule=host_rule(self._app.home.root),
        )
        return VisionTool(self._folder, access, self._looker, self._session)
