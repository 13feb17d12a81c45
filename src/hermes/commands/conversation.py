"""What commands need from a chat, in a terminal or in a chat app."""

from typing import Protocol

from hermes.app.agent import Agent
from hermes.app.engine import ApprovalMode


class Conversation(Protocol):
    """A chat: one person, one session at a time."""

    @property
    def session(self) -> str:
        """The current session of the chat."""
        ...

    @property
    def agent(self) -> Agent:
        """The agent that works on the session."""
        ...

    @property
    def approvals(self) -> ApprovalMode:
        """What runs without asking."""
        ...

    @property
    def facts(self) -> tuple[tuple[str, str], ...]:
        """Facts about the chat that only this surface knows, for `/status`."""
        ...

    @property
    def has_audience(self) -> bool:
        """Whether other people read what is shown here."""
        ...

    async def require_idle(self) -> None:
        """Raises SessionBusy while a turn runs."""
        ...

    @property
    def via(self) -> str:
        """The message that the command came in, when its answer must go there; empty in a terminal."""
        ...

    async def begin(self) -> str:
        """Continues in a new session; returns its id."""
        ...

    async def leave_running(self) -> str:
        """Continues in a new session while the turn keeps running; returns its id."""
        ...

    async def enter(self, name: str, *, recap: bool) -> None:
        """Continues in another session, and says so. `recap` shows where it was."""
        ...

    async def resume(self) -> None:
        """Runs a turn that waits in the log."""
        ...

    async def stop(self) -> bool:
        """Stops the turn; False when none runs."""
        ...

    def rewound(self, text: str) -> None:
        """Takes note that turns were undone or restored; `text` is what the person had said first."""
        ...

    async def model_names(self) -> list[str]:
        """Models to choose from."""
        ...

    async def use_model(self, name: str, *, force: bool) -> str:
        """Lets another model answer in this chat; `force` also accepts a model that its service does not list.

        Returns a sentence that says which one.
        """
        ...

    async def use_approvals(self, mode: ApprovalMode) -> str:
        """Changes what runs without asking; returns what the person should know about it."""
        ...
