"""Runs a chat from the first prompt to the last message: the screen, the agent, signals and background work."""

import asyncio
import signal
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.app import App
from hermes.app.agent import Agent
from hermes.errors import MediaError, for_reader
from hermes.primitives.tasks import running
from hermes.settings.load import environment, load_secrets
from hermes.surfaces.terminal.event_watcher import events_in_loop
from hermes.surfaces.terminal.open_agent import keeps_models
from hermes.surfaces.terminal.run_options import RunOptions
from hermes.surfaces.terminal.signals import listen_for_end
from hermes.surfaces.terminal.stderr_message import NOTICES
from hermes.surfaces.tui.conversation import EXIT_HUNG_UP, ChatConversation, folder_of
from hermes.surfaces.tui.plain_screen import PlainScreen
from hermes.text.translation import shown_reason, translator

if TYPE_CHECKING:
    from hermes.surfaces.tui.live_screen import LiveScreen
    from hermes.surfaces.tui.notifications import Notifier
    from hermes.surfaces.tui.past import ShownPast
    from hermes.tools.sandbox import Sandbox

t = translator(__name__)


def converse(
    app: App,
    session: str,
    question: RunOptions,
    *,
    is_live: bool,
    typed: str = "",
    past: "ShownPast | None" = None,
) -> int:
    """Runs the whole conversation; `typed` are keys from before it, and `past` is what was shown of it. Returns the
    exit code.
    """
    return asyncio.run(
        _converse(app, session, question, is_live=is_live, typed=typed, past=past)
    )


async def _converse(
    app: App,
    session: str,
    question: RunOptions,
    *,
    is_live: bool,
    typed: str,
    past: "ShownPast | None",
) -> int:
    agent = Agent(
        app,
        load_secrets(home=app.home),
        approvals=question.approvals,
        model=question.model,
        keeps_models=keeps_models(question),
    )
    live = _live_screen(app, session) if is_live else None
    screen = live or PlainScreen()
    chat = ChatConversation(app, agent, screen, session)
    screen.on_interrupt = chat.interrupt
    if live is not None:
        live.on_gone = lambda: chat.end(EXIT_HUNG_UP)
        live.use_keys(app.settings.display.keys)
        live.type_early(typed)
        live.use_mouse(on=app.settings.display.mouse)
        live.on_keys(
            cycle_mode=chat.cycle_mode,
            stop=chat.stop,
            touched=chat.touched,
            skills=chat.completed_names,
        )
    async with screen:
        if is_live:  # Ctrl-C is a key there; this handles a signal from outside
            asyncio.get_running_loop().add_signal_handler(signal.SIGINT, chat.interrupt)
        listen_for_end(chat.end)
        chat.agent.learner.start()
        loop = asyncio.get_running_loop()

        def say(text: str) -> None:
            loop.call_soon_threadsafe(chat.view.say, text)

        notifier = _notifier(app, chat, live) if live is not None else None
        with (
            events_in_loop(chat.on_event),
            events_in_loop(chat.on_event, "session.*"),
            NOTICES.shown_by(say),
        ):
            if question.approvals == "plan":
                await chat.reconfigure(approvals="plan")
            if question.resume:
                await chat.resume(past)
            if live is not None and live.recover():
                chat.view.say(t("Your last message is back in the input."))
            screen.show_prompt()
            try:
                async with running(_warm(chat, live)):  # while the person types
                    if question.picks_session:
                        await chat.offer_sessions()
                    await chat.run()
            finally:
                await chat.end_voice()
            if notifier is not None:
                await notifier.close()
            await chat.agent.release()
    chat.print_goodbye()
    return chat.code


def _notifier(app: App, chat: ChatConversation, live: "LiveScreen") -> "Notifier":
    """Notifies the user of what this chat does while nobody looks at its window."""
    from hermes.surfaces.tui.notifications import Notifier

    notifier = Notifier(app.settings.notify, live.send, environment())
    live.on_focus = lambda focused: notifier.focus.report(focused=focused)
    chat.notifier = notifier
    notifier.start()
    return notifier


async def _warm(chat: ChatConversation, live: "LiveScreen | None") -> None:
    """Loads what can wait until the prompt is visible."""
    chat.refresh()
    if live is not None:
        await live.warm()
    sandbox = await asyncio.to_thread(_sandbox)
    chat.view.status.sandbox = sandbox.kind if sandbox.kind != "none" else "no sandbox"
    if sandbox.kind == "none":
        chat.view.say(
            t(
                "No sandbox: {why} Hermes asks before every command.",
                why=shown_reason(sandbox.why),
            ),
            alarming=True,
        )
    chat.view.tick()
    waiting = await asyncio.to_thread(chat.agent.learner.learning.proposals.pending)
    if waiting:
        chat.view.say(
            t(
                "{count} proposed change to review: /learn or Alt-L",
                "{count} proposed changes to review: /learn or Alt-L",
                count=len(waiting),
            )
        )
    if chat.app.settings.media.spoken_replies == "tts":
        try:
            chat.start_reading_aloud()
        except MediaError as error:
            chat.view.say(for_reader(error), alarming=True)
    await chat.agent.model.warm()


def _sandbox() -> "Sandbox":
    from hermes.tools.sandbox import find_sandbox

    return find_sandbox(environment().get("PATH", ""), Path.home())


def _live_screen(app: App, session: str) -> "LiveScreen":
    from hermes.surfaces.tui.input_box import InputBox
    from hermes.surfaces.tui.live_screen import LiveScreen

    return LiveScreen(InputBox(app.home, folder_of(app, session)))
