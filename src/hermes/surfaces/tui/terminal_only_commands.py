"""Commands that only a chat in the terminal has: help, steering, queueing, reviewing proposals, and leaving."""

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Literal, cast, get_args, get_type_hints

import msgspec

from hermes.app.session_journal import read_history
from hermes.children.own_python import hermes_command
from hermes.commands.command import Arg, command
from hermes.commands.context import CommandContext
from hermes.commands.models import model_in_words
from hermes.commands.proposals import NOTHING
from hermes.commands.undo import UndoResult, restore_files, undo
from hermes.commands.views import TextResult, message
from hermes.errors import MediaError, UsageError, for_reader
from hermes.schema.messages import AssistantMessage
from hermes.settings.load import load_secrets
from hermes.settings.models import ModelSettings
from hermes.surfaces.terminal.styled_text import BOLD, Row, painted
from hermes.text.translation import translator

if TYPE_CHECKING:
    from hermes.surfaces.tui.chat_port import TerminalChat
    from hermes.surfaces.tui.conversation import ChatConversation

t = translator(__name__)

Text = Annotated[str, Arg(metavar="TEXT")]


def _chat(context: CommandContext) -> "ChatConversation":
    return cast("TerminalChat", context.surface).chat


@command(slash="help", group="Chat")
async def show_help(context: CommandContext) -> TextResult:
    """Show this list."""
    from hermes.surfaces.tui.slash_lookup import help_rows

    chat = _chat(context)
    skills = [one.name for one in await asyncio.to_thread(chat.skills)]

    def rows(columns: int) -> list[Row]:
        return list(help_rows(columns, skills, chat.app.settings.aliases))

    await _show_text(chat, t("Commands and keys"), rows)
    return message()


@command(slash="details", group="Chat")
async def show_details(context: CommandContext) -> TextResult:
    """Show whole outputs, diffs and thoughts."""
    chat = _chat(context)
    if not chat.view.details:
        return message(t("Nothing is folded yet."))

    def rows(columns: int) -> list[Row]:
        return chat.view.details.rows(columns, chat.screen.marks)

    await _show_text(chat, t("Outputs, diffs and thoughts"), rows, at_end=True)
    return message()


@command(slash="keys", group="Chat")
async def show_keys(context: CommandContext) -> TextResult:
    """Show what each key does."""
    from hermes.surfaces.tui.slash_lookup import key_lines

    def rows(columns: int) -> list[Row]:
        return [((key, BOLD), (what, "")) for key, what in key_lines(columns)]

    await _show_text(_chat(context), "Keys", rows)
    return message()


async def _show_text(
    chat: "ChatConversation",
    title: str,
    rows: Callable[[int], Sequence[Row]],
    *,
    at_end: bool = False,
) -> None:
    """Shows a text in a pager, or prints it where there is none."""
    from hermes.surfaces.tui.live_screen import LiveScreen
    from hermes.surfaces.tui.overlays.pager import Pager

    screen = chat.screen
    if isinstance(screen, LiveScreen):
        await screen.show(Pager(title, rows, screen.marks, at_end=at_end))
        return
    for row in rows(screen.columns - 1):
        screen.line(painted(row, screen.style))


@command(slash="vim", group="Settings")
async def switch_keys(context: CommandContext) -> TextResult:
    """Edit the input with vim keys, or with the usual ones again."""
    from hermes.surfaces.tui.live_screen import LiveScreen

    screen = _chat(context).screen
    if not isinstance(screen, LiveScreen):
        return message(t("This terminal edits its own lines."))
    name = screen.switch_keys()
    return message(
        t("Keys: {name}. To keep them: /config set display.keys {name}", name=name)
    )


@command(slash="steer text", group="Chat")
async def steer(context: CommandContext, text: Text = "") -> TextResult:
    """Tell the model something while it works."""
    if not text:
        return message(t("There is no message to send. Usage: /steer TEXT"))
    await _chat(context).submit(text, delivery="steer")
    return message()


@command(slash="queue text", group="Chat")
async def queue(context: CommandContext, text: Text = "") -> TextResult:
    """Queue a message for the next turn; alone: list the queue."""
    chat = _chat(context)
    if text:
        await chat.submit(text)
        return message()
    queued = [f"{number}. {one}" for number, one in enumerate(chat.view.queued, 1)]
    return message(*(queued or [t("The queue is empty.")]))


@command(slash="quit how", group="Chat")
async def leave(
    context: CommandContext,
    how: Annotated[
        Literal["", "leave", "stop"],
        Arg("what happens to background work: leave it running, or stop it"),
    ] = "",
) -> TextResult:
    """Leave; the session stays. `leave` lets background work go on without this terminal, `stop` stops it."""
    chat = _chat(context)
    if how == "leave":
        chat.left_work.leave_running()
    if how:
        chat.left_work.accept(chat.session)
    chat.quit()
    return message()


@command(slash="learn", group="Learning")
async def review_proposals(context: CommandContext) -> TextResult:
    """Review what Hermes wants to remember, one key for each."""
    chat = _chat(context)
    if chat.view.questions.current is not None:
        return message(t("Please answer the question first."))
    learning = chat.agent.learner.learning
    pending = await asyncio.to_thread(learning.proposals.pending)
    if not pending:
        return message(
            f"{NOTHING} {t('To see what Hermes has learned: /memory, /skills, hermes skills history')}"
        )
    chat.decide(pending)
    return message()


@command(slash="rewind", group="Changes")
async def rewind(context: CommandContext) -> UndoResult | TextResult:
    """Go back to an earlier message: the conversation, the files or both."""
    from hermes.surfaces.tui.live_screen import LiveScreen
    from hermes.surfaces.tui.pickers import pick_rewind

    chat = _chat(context)
    if not isinstance(chat.screen, LiveScreen):
        return message(t("Go back with /undo N, which undoes the last N turns."))
    await context.chat.require_idle()
    found = await pick_rewind(chat)
    if found is None:
        return message()
    point, extent = found
    if extent == "files":
        return await restore_files(context, chat.session, point.turns)
    return await undo.function(
        context, chat.session, turns=point.turns, keep_files=extent == "conversation"
    )


@command(slash="setup", group="Model")
async def connect_model(context: CommandContext) -> TextResult:
    """Connect another model: a key, a server of your own, or a small local one."""
    from hermes.surfaces.tui.live_screen import LiveScreen

    chat = _chat(context)
    if await chat.is_busy():
        return message(t("Hermes is working. Stop it first with /stop."))
    if not isinstance(chat.screen, LiveScreen):
        return message(t("In a shell: hermes setup. Then start the chat again."))
    async with chat.screen.suspended_for_program():
        process = await asyncio.create_subprocess_exec(*hermes_command("setup"))
        is_connected = await process.wait() == 0
    if not is_connected:
        return message(t("The model was not changed."))
    await chat.use_saved_model()
    return message(model_in_words(chat.agent.describe(chat.session)))


@command(slash="copy what", group="Chat")
async def copy_answer(
    context: CommandContext,
    what: Annotated[
        Literal["answer", "code"], Arg("`code` for its last block of code")
    ] = "answer",
) -> TextResult:
    """Copy the last answer, or its last block of code, to the clipboard."""
    from hermes.surfaces.tui.clipboard_copy import code_of, copy_with_program, osc_52
    from hermes.surfaces.tui.live_screen import LiveScreen

    chat = _chat(context)
    history = await asyncio.to_thread(read_history, chat.app.store, chat.session)
    replies = [
        one.text
        for one in history.messages
        if isinstance(one, AssistantMessage) and one.text
    ]
    text = replies[-1] if replies else ""
    text = code_of(text) if what == "code" else text
    if not text:
        return message(t("There is no {what} to copy yet.", what=what))
    environ = context.environment
    sequence = osc_52(text, environ)
    if sequence and isinstance(chat.screen, LiveScreen):
        chat.screen.send(sequence)
    program = await copy_with_program(text, environ)
    if not program and not sequence:
        return message(
            t(
                "This is too long for the terminal to copy, and there is no clipboard program."
            )
        )
    how = f" with {program}" if program else t(" to the terminal's clipboard")
    return message(f"Copied {len(text):,} characters{how}.")


@command(slash="reasoning level", group="Model")
async def set_reasoning(
    context: CommandContext,
    level: Annotated[str, Arg("how much the model thinks", metavar="LEVEL")] = "",
) -> TextResult:
    """Show or change how much the model thinks, until you quit."""
    chat = _chat(context)
    model = chat.app.settings.model
    if not level:
        levels = ", ".join(_levels())
        return message(f"Reasoning: {model.reasoning_effort}. Levels: {levels}.")
    if level not in _levels():
        raise UsageError(
            t("There is no level {level!r}.", level=level), hint=", ".join(_levels())
        )
    if await chat.is_busy():
        return message(t("Hermes is working. Stop it first with /stop."))
    changed = msgspec.structs.replace(model, reasoning_effort=level)
    chat.app.settings = msgspec.structs.replace(chat.app.settings, model=changed)
    await chat.agent.renew(load_secrets(home=chat.app.home))
    chat.agent.learner.start()
    return message(t("Reasoning: {level}, from the next message on.", level=level))


def _levels() -> tuple[str, ...]:
    """The levels that the settings know."""
    kind = get_type_hints(ModelSettings)["reasoning_effort"]
    return get_args(kind)


@command(slash="voice mode", group="Chat")
async def read_aloud(
    context: CommandContext,
    mode: Annotated[Literal["", "on", "off", "tts"], Arg("on or off")] = "",
) -> TextResult:
    """Read replies aloud while they are written: on or off; alone: the current setting."""
    chat = _chat(context)
    if mode in ("on", "tts"):
        chat.start_reading_aloud()
    elif mode == "off":
        await chat.stop_reading_aloud()
    if chat.reader is None:
        return message(t("Replies are not read aloud. /voice on changes that."))
    return message(t("Replies are read aloud. /voice off changes that."))


@command(slash="dictate", group="Chat")
async def dictate(context: CommandContext) -> TextResult:
    """Record from the microphone; again: put what you said into the input."""
    chat = _chat(context)
    if chat.dictation is None:
        await chat.start_dictation(lambda: _finish_dictation(chat))
        return message(t("Recording. /dictate or Alt-V ends it."))
    told = await _finish_dictation(chat)
    return message(told) if told else message()


async def _finish_dictation(chat: "ChatConversation") -> str:
    """Ends the recording and takes what was said as typed. Returns why it could not; otherwise empty."""
    from hermes.surfaces.tui.live_screen import LiveScreen

    dictation, chat.dictation = chat.dictation, None
    if dictation is None:
        return ""
    try:
        text = await dictation.finish()
    except MediaError as error:
        kept = t("The recording is kept: {file}", file=dictation.file)
        return f"{for_reader(error)} {kept}"
    if isinstance(chat.screen, LiveScreen):
        chat.screen.insert(text)
    else:
        await chat.submit(text)
    return ""
