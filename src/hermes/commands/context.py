"""`CommandContext`, the first argument of a command: the home, the app, the session it is about, and the person's
surface."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self, runtime_checkable

from hermes.commands.views import Block
from hermes.errors import Refused, UsageError
from hermes.settings import Home, Secrets, Settings
from hermes.settings.load import environment, find_home, load, load_secrets
from hermes.text.translation import translator

if TYPE_CHECKING:
    from hermes.app import App
    from hermes.app.agent import Agent
    from hermes.app.session_service import SessionService
    from hermes.commands.conversation import Conversation
    from hermes.learning.learning_service import LearningService

t = translator(__name__)


class Surface(Protocol):
    """What a command needs from the surface on which it was given, besides returning a result."""

    name: str

    def tell(self, *blocks: Block) -> None:
        """Shows something right away, before the result."""

    def warn(self, message: str, hint: str = "") -> None:
        """Shows what the person should know besides the result."""

    def confirm(self, question: str, nothing_done: str) -> bool:
        """Asks for a yes; raises Refused where nobody can be asked."""

    def read_secret(self, name: str) -> str:
        """Asks for a value that is not shown."""


@runtime_checkable
class LineReader(Protocol):
    """A surface on which a person can type something while a command waits for something else too."""

    @property
    def can_read(self) -> bool:
        """Whether somebody is there."""
        ...

    async def read_line(self) -> str:
        """Waits for a line."""
        ...


class CommandContext:
    """One call of a command. Nothing is loaded or opened before it is needed."""

    def __init__(
        self,
        surface: Surface,
        *,
        app: "App | None" = None,
        conversation: "Conversation | None" = None,
        agent: "Agent | None" = None,
    ) -> None:
        self.surface = surface
        self.conversation = conversation
        """The chat that the command was typed in."""
        self._app = app
        self._agent = agent
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.close()

    @property
    def is_shared(self) -> bool:
        """Whether other work goes on in this process, on the same app."""
        return self._app is not None

    @property
    def session(self) -> str:
        """The session of the chat that the command was typed in; empty elsewhere."""
        return self.conversation.session if self.conversation is not None else ""

    @property
    def chat(self) -> "Conversation":
        """The chat; UsageError where there is none."""
        if self.conversation is None:
            raise UsageError(t("This command works only in a chat."))
        return self.conversation

    @property
    def service(self) -> "SessionService | None":
        """The service that runs sessions in this process; None if nothing does, as in a shell command."""
        if self.conversation is not None:
            return self.conversation.agent.service
        return self._agent.service if self._agent is not None else None

    def confirm(self, question: str, nothing_done: str) -> None:
        """Returns after a yes; otherwise raises Refused."""
        if not self.surface.confirm(question, nothing_done):
            raise Refused(nothing_done)

    @cached_property
    def home(self) -> Home:
        return self._app.home if self._app is not None else find_home()

    @cached_property
    def settings(self) -> Settings:
        """The settings of the app; without an app, those that the files have now."""
        if self._app is not None:
            return self._app.settings
        return load(home=self.home)

    @property
    def secrets(self) -> Secrets:
        return load_secrets(home=self.home)

    @property
    def environment(self) -> Mapping[str, str]:
        return environment()

    @cached_property
    def app(self) -> "App":
        """The app of this process, or one that is closed after the command."""
        if self._app is not None:
            return self._app
        from hermes.app import build

        return self._stack.enter_context(build(self.settings, self.home))

    @cached_property
    def learning(self) -> "LearningService":
        """Memory and skills of this home."""
        from hermes.app.learning.remote_lease import remote_lease
        from hermes.learning.learning_service import open_learning

        return open_learning(
            self.home,
            self.settings.learning,
            self.environment,
            exclusive_remote=remote_lease(self.settings, lambda: self.app.store),
        )

    def close_later(self, close: Callable[[], object]) -> None:
        """Calls `close` after the result was shown."""
        self._stack.callback(close)

    def path(self, text: str) -> Path:
        """A path as a person types it."""
        return Path(text).expanduser()
