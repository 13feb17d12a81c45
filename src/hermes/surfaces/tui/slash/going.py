"""Commands about the turn: steering, queueing, stopping it, taking it back, and leaving."""

from typing import TYPE_CHECKING

from hermes.surfaces.terminal.interrupts import is_elsewhere

if TYPE_CHECKING:
    from hermes.surfaces.tui.conversation import ChatConversation


async def steer(chat: "ChatConversation", text: str) -> None:
    """Puts words into the running turn."""
    if text:
        await chat.submit(text, delivery="steer")
    else:
        chat.view.say("Say what the model should know now: /steer TEXT")


async def queue(chat: "ChatConversation", text: str) -> None:
    """Lets words wait for their turn, or lists what waits."""
    if text:
        await chat.submit(text)
        return
    for number, waiting in enumerate(chat.view.queued, 1):
        chat.view.say(f"{number}. {waiting}")
    if not chat.view.queued:
        chat.view.say("Nothing waits.")


async def stop(chat: "ChatConversation", _: str) -> None:
    """Stops the running turn."""
    if chat.works and not is_elsewhere(chat.app, chat.session):
        chat.halt()
    elif chat.works:
        await chat.agent.service.interrupt(chat.session, by="cli")
    else:
        chat.view.say("Nothing is running.")


async def leave(chat: "ChatConversation", _: str) -> None:
    """Ends the chat."""
    chat.quit()
