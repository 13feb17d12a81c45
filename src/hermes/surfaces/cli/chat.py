"""`hermes` at a terminal: opens a session, says who speaks, and lets the conversation begin."""

import asyncio
import sys
from typing import TYPE_CHECKING

from hermes.app import App
from hermes.app.agent import Agent
from hermes.settings.load import environment
from hermes.surfaces.cli.banner import banner
from hermes.surfaces.cli.chat_screen import PlainScreen
from hermes.surfaces.cli.conversation import Chat
from hermes.surfaces.cli.opening import begin, find_place, open_agent, open_app
from hermes.surfaces.cli.question import Question
from hermes.surfaces.cli.style import stdout_style, terminal_width
from hermes.surfaces.cli.toolline import marks_for
from hermes.surfaces.cli.watching import watched

if TYPE_CHECKING:
    from hermes.surfaces.cli.chat_live import LiveScreen


def chat(question: Question) -> int:
    """Talks until the person leaves. Returns the exit code."""
    with open_app(question) as app:
        place = find_place(app, question)
        agent = open_agent(app, question)
        session = begin(app, place, "cli")
        style, columns = stdout_style(), max(20, terminal_width())
        for line in banner(agent.describe(), session, style, columns, resumed=place.before is not None):
            print(line)
        is_live = sys.stdout.isatty() and environment().get("TERM", "dumb") != "dumb"
        # The prompt is there before what draws it is loaded; what is typed meanwhile is not lost.
        print(style.bold(marks_for(sys.stdout.encoding).prompt) if is_live else "", end="", flush=True)
        return asyncio.run(_talk(app, agent, session, question, is_live=is_live))


async def _talk(app: App, agent: Agent, session: str, question: Question, *, is_live: bool) -> int:
    screen = _live_screen() if is_live else PlainScreen()
    chat = Chat(app, agent, screen, session, question)
    screen.on_interrupt = chat.interrupt
    async with screen:
        with watched(chat.see):
            if question.resume:
                chat.recall()
            screen.status("")
            await chat.talk()
    chat.say_goodbye()
    return 1 if chat.failed else 0


def _live_screen() -> "LiveScreen":
    from hermes.surfaces.cli.chat_live import LiveScreen

    return LiveScreen()
