"""Titles of sessions: at first the first words; then, if the user wants it, a better one by a model.

Nothing waits for the model, and its cost is in the log.
"""

import contextlib
from collections.abc import Callable

from hermes.app.auxiliary_models import AuxiliaryModels
from hermes.core.history import ConversationHistory
from hermes.errors import HermesError, TitledAlready
from hermes.primitives.tasks import BackgroundTasks
from hermes.schema.events import SessionTitled
from hermes.schema.messages import AssistantMessage, UserMessage
from hermes.schema.model import ModelRequest

MAX_TITLE_CHARS = 60

_INSTRUCTIONS = (
    "Give the conversation below a title of at most six words, in its own language. Answer with the title alone: "
    "no quotes, no full stop."  # not translated
)
_MAX_TITLE_SOURCE_CHARS = 2_000
_MAX_TITLE_TOKENS = 1_000  # including reasoning


class Titles:
    """Looks for better titles in the background. `auxiliary` returns the models that help in a session."""

    def __init__(self, auxiliary: Callable[[str], AuxiliaryModels]) -> None:
        self._auxiliary = auxiliary
        self._tasks = BackgroundTasks("looking for a title")

    def begin(self, session: str, history: ConversationHistory) -> None:
        """Starts the search for a better title, if the user wants one."""
        auxiliary = self._auxiliary(session)
        if auxiliary.setting_of("title") == "off" or len(history.messages) < 2:
            return
        self._tasks.start(_find(auxiliary, session, title_request(history)))

    async def close(self) -> None:
        """Stops looking; the first words stay."""
        await self._tasks.close()


async def _find(
    auxiliary: AuxiliaryModels, session: str, request: ModelRequest
) -> None:
    try:
        message = await auxiliary.ask("title", session, request)
    except HermesError:  # `ask` has noted it in the session
        return
    if title := shortened(message.text.strip().strip("\"'`.")):
        with contextlib.suppress(TitledAlready):  # the user's own title stays
            await auxiliary.note(session, SessionTitled(title=title, by="model"))


def first_words(history: ConversationHistory) -> str:
    """A title without a model: the first words of the person."""
    first = next(
        (
            message.text
            for message in history.messages
            if isinstance(message, UserMessage)
        ),
        "",
    )
    typed, _, attached = first.partition("\n\n<")  # attached files and skills
    return shortened(typed if attached and typed.strip() else first)


def title_request(history: ConversationHistory) -> ModelRequest:
    """The request for a title."""
    said = [
        message
        for message in history.messages
        if isinstance(message, UserMessage | AssistantMessage)
    ][:4]
    text = "\n\n".join(
        f"{message.role}: {message.text[:_MAX_TITLE_SOURCE_CHARS]}"
        for message in said
        if message.text
    )
    return ModelRequest(
        system=(_INSTRUCTIONS,),
        messages=(UserMessage(text=text),),
        max_output_tokens=_MAX_TITLE_TOKENS,
    )


def shortened(text: str) -> str:
    """One line that fits as a title."""
    line = " ".join(text.split())
    return (
        line
        if len(line) <= MAX_TITLE_CHARS
        else line[: MAX_TITLE_CHARS - 1].rsplit(" ", 1)[0] + "…"
    )
