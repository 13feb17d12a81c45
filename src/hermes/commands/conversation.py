"""What commands need of a chat, be it in a terminal or in a chat app."""

from typing import Protocol

from hermes.app.agent import Agent, ApprovalMode


class Conversation(Protocol):
    """A chat: one person, one session at a time."""

    @property
    def session(self) -> str:
        """The session that is talked in."""
        ...

    @property
    def agent(self) -> Agent:
        """Who works on the session."""
        ...

    @property
    def approvals(self) -> ApprovalMode:
        """What runs without asking."""
        ...

    @property
    def facts(self) -> tuple[tuple[str, str], ...]:
        """What only this surface knows of the chat, for `/status`."""
        ...

    async def require_idle(self) -> None:
        """Raises SessionBusy while a turn runs."""
        ...

    async def begin(self) -> None:
        """Goes on in a new session."""
        ...

    async def enter(self, session: str) -> None:
        """Goes on in another session."""
        ...

    async def stop(self) -> bool:
        """Stops the turn; False when none runs."""
        ...

    def rewound(self, text: str) -> None:
        """Takes note that turns were undone or restored; `text` is what the person had said first."""
        ...

    async def retry(self, *, force: bool) -> None:
        """Undoes the last turn and runs it again."""
        ...

    async def use_model(self, name: str, *, force: bool) -> str:
        """Lets another model answer in this chat; returns its name. `force` also takes one that is not listed."""
        ...

    async def use_approvals(self, mode: ApprovalMode) -> None:
        """Changes what runs without asking."""
        ...
