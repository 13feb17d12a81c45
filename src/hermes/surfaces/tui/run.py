"""A chat from its first prompt to its goodbye: the screen, the agent, the signals, and what is done on the side."""

import asyncio
import signal
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.app import App
from hermes.app.agent import Agent
from hermes.primitives.tasks import running
from hermes.settings.load import environment, load_secrets
from hermes.surfaces.terminal.event_watcher import watched
from hermes.surfaces.terminal.run_options import RunOptions
from hermes.surfaces.terminal.signals import listen_for_end
from hermes.surfaces.terminal.text import count
from hermes.surfaces.terminal.wait_notice import NOTICES
from hermes.surfaces.tui.conversation import EXIT_HUNG_UP, ChatConversation, folder_of
from hermes.surfaces.tui.plain_screen import PlainScreen

if TYPE_CHECKING:
    from hermes.surfaces.tui.live_screen import LiveScreen
    from hermes.tools.sandbox import Sandbox


def converse(app: App, session: str, question: RunOptions, *, is_live: bool) -> int:
    """The whole conversation. Returns the exit code."""
    return asyncio.run(_converse(app, session, question, is_live=is_live))


async def _converse(
    app: App, session: str, question: RunOptions, *, is_live: bool
) -> int:
    agent = Agent(
        app,
        load_secrets(home=app.home),
        approvals=question.approvals,
        model=question.model,
    )
    live = _live_screen(app, session) if is_live else None
    screen = live or PlainScreen()
    chat = ChatConversation(app, agent, screen, session, question)
    screen.on_interrupt = chat.interrupt
    if live is not None:
        live.on_gone = lambda: chat.end(EXIT_HUNG_UP)
        live.on_keys(stop=chat.stop, touched=chat.presses.forget, skills=chat.skills)
    async with screen:
        if is_live:  # a key there; this is for a signal that somebody sends
            asyncio.get_running_loop().add_signal_handler(signal.SIGINT, chat.interrupt)
        listen_for_end(chat.end)
        chat.agent.learner.start()
        loop = asyncio.get_running_loop()

        def say(text: str) -> None:
            loop.call_soon_threadsafe(chat.view.say, text)

        with watched(chat.see), watched(chat.see, "session.*"), NOTICES.shown_by(say):
            if question.resume:
                await chat.go_on()
            if live is not None and live.recover():
                chat.view.say("What you typed last and did not send is back.")
            screen.settle()
            async with running(_warm(chat)):  # while the person types
                await chat.talk()
            await chat.agent.release()
    chat.say_goodbye()
    return chat.code


async def _warm(chat: ChatConversation) -> None:
    """What can wait until the prompt is there."""
    chat.refresh()
    sandbox = await asyncio.to_thread(_sandbox)
    chat.view.foot.sandbox = sandbox.kind if sandbox.kind != "none" else "no sandbox"
    if sandbox.kind == "none":
        chat.view.say(
            f"No sandbox: {sandbox.why} Every command is asked about.", alarming=True
        )
    chat.view.tick()
    waiting = await asyncio.to_thread(chat.agent.learner.learning.proposals.pending)
    if waiting:
        chat.view.say(
            f"{count(len(waiting), 'proposed change')} to decide on: /learn or Alt-L"
        )
    await chat.agent.model.warm()


def _sandbox() -> "Sandbox":
    from hermes.tools.sandbox import find_sandbox

    return find_sandbox(environment().get("PATH", ""), Path.home())


def _live_screen(app: App, session: str) -> "LiveScreen":
    from hermes.surfaces.tui.input_box import InputBox
    from hermes.surfaces.tui.live_screen import LiveScreen

    return LiveScreen(InputBox(app.home, folder_of(app, session)))
