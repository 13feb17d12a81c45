"""Commands about what Hermes has learned: proposals to decide on, skills, memory."""

import asyncio
from typing import TYPE_CHECKING

from hermes.surfaces.terminal.text import cut, one_line
from hermes.surfaces.tui.slash.asking import hermes
from hermes.surfaces.tui.styled_text import BOLD, DIM, painted

if TYPE_CHECKING:
    from hermes.surfaces.tui.conversation import ChatConversation


async def learn(chat: "ChatConversation", _: str) -> None:
    """Puts what waits for the person's word to them, one after the other."""
    if chat.view.questions.current is not None:
        chat.view.say("Please answer the question first.")
        return
    waiting = await asyncio.to_thread(chat.agent.learner.learning.proposals.pending)
    if waiting:
        chat.decide(waiting)
    else:
        chat.view.say(
            "Nothing waits for your word. What was learned: /memory, /skills, hermes skills history"
        )


async def skills(chat: "ChatConversation", _: str) -> None:
    """Lists the skills, each by the command it is."""
    commands = await asyncio.to_thread(chat.skills)
    width = min(max((len(command.name) for command in commands), default=0), 30) + 1
    for command in commands:
        about = cut(
            one_line(command.description), max(chat.screen.columns - width - 3, 20)
        )
        row = ((f"/{command.name:<{width}} ", BOLD), (about, DIM))
        chat.screen.line(painted(row, enabled=chat.screen.style.enabled))
    chat.view.say(
        "Words behind the name are the task: /NAME WORDS. More about them: hermes skills --help"
    )


async def memory(chat: "ChatConversation", _: str) -> None:
    """Shows what is remembered."""
    await hermes(chat, "memory", "show")
