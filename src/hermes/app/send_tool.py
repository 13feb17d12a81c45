"""The tool `send_message`: a message to a person or chat outside the conversation, which the user approves.

It goes the way of `hermes send`. A file must lie in the session's folder and hold no secrets, as in a reply of a chat.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from hermes.app.app import App
from hermes.app.outgoing import MAX_FILES, MessageOutbox
from hermes.core.ports import Tool, ToolContext
from hermes.errors import HermesError, ToolFailed
from hermes.tools.tool import judged, tool

NAME = "send_message"
_SEND_TIMEOUT_S = 60.0


def message_tools(app: App) -> tuple[Tool, ...]:
    """The tool of a session."""
    return (MessageTool(app).send_message,)


def _paths(arguments: Mapping[str, Any]) -> Iterable[str]:
    match arguments.get("files"):
        case [*names]:
            return [one for one in names if isinstance(one, str)]
        case _:
            return []


def _about(owner: Any, arguments: Mapping[str, Any]) -> str:
    return owner.describe_call(arguments) if isinstance(owner, MessageTool) else ""


class MessageTool:
    """The tool of one app."""

    def __init__(self, app: App) -> None:
        self._outbox = MessageOutbox(app)

    @tool(NAME, effect="other", paths=_paths, about=_about)
    async def send_message(
        self,
        context: ToolContext,
        target: Annotated[
            str,
            Meta(
                description="`telegram:123`, `ntfy:topic`, `email:a@b.org`, or the name of a person or chat."
            ),
        ],
        text: str,
        files: Annotated[
            tuple[str, ...],
            Meta(max_length=MAX_FILES, description="In the working directory."),
        ] = (),
    ) -> str:
        """Sends a message to somebody outside this conversation, when the user asks for it. The user approves it."""
        paths = tuple(_inside(name, context) for name in files)
        try:
            sent = await self._outbox.send(target, text, paths, _SEND_TIMEOUT_S)
        except HermesError as error:
            raise ToolFailed(error.message, hint=error.hint) from error
        if sent.state != "sent":
            raise ToolFailed(f"Not sent to {sent.target}: {sent.reason}")
        return f"Sent to {sent.target}."

    def describe_call(self, arguments: Mapping[str, Any]) -> str:
        """To whom a call would write, and with which files, for the person who decides about it."""
        try:
            target = str(arguments.get("target", ""))
            place = self._outbox.resolve(target)
        except HermesError as error:
            return f"(this would fail: {error.message})"
        name = f" ({target})" if place != target else ""
        files = ", ".join(_paths(arguments))
        return f"to {place}{name}{f', with {files}' if files else ''}"


def _inside(name: str, context: ToolContext) -> Path:
    """A file in the session's folder, where its links lead. Raises ToolFailed for any other."""
    path = judged(name, context)
    if not path.is_relative_to(context.cwd.resolve()):
        raise ToolFailed(
            f"{name} is not in the working directory.", hint="Nothing was sent."
        )
    return path
