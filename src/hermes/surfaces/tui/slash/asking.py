"""Commands about rights and set-up: tools, MCP servers, approvals, settings, the doctor."""

import asyncio
from typing import TYPE_CHECKING

from hermes.children.own_python import hermes_command
from hermes.errors import UsageError
from hermes.surfaces.terminal.interrupts import is_elsewhere
from hermes.surfaces.terminal.text import clean, count, cut, one_line

if TYPE_CHECKING:
    from hermes.surfaces.terminal.run_options import Approvals
    from hermes.surfaces.tui.conversation import ChatConversation

_MODES: "dict[str, Approvals]" = {
    "ask": "ask",
    "auto-edit": "auto-edit",
    "full": "full",
}
_SECONDS = 60.0


async def tools(chat: "ChatConversation", _: str) -> None:
    """Lists what the model can do in this session."""
    for name, tool in sorted(chat.agent.tools(chat.session).items()):
        first = one_line(tool.spec.description.partition("\n")[0])
        line = cut(f"{name:<16} {first}", chat.screen.columns - 1)
        chat.screen.line(line)


async def mcp(chat: "ChatConversation", _: str) -> None:
    """Tells how the MCP servers are."""
    servers = chat.agent.toolbox.servers
    if servers is None:
        chat.view.say("No MCP servers are configured. Add one: hermes mcp add")
        return
    for one in servers.status():
        again = f", tried again in {one.retry_in:.0f} s" if one.retry_in else ""
        changed = f", changed: {', '.join(one.changed)}" if one.changed else ""
        detail = f": {one_line(one.detail)}" if one.detail else ""
        line = f"{one.name:<16} {one.state}, {count(one.tools, 'tool')}{again}{changed}{detail}"
        chat.screen.line(cut(clean(line), chat.screen.columns - 1))


async def approvals(chat: "ChatConversation", mode: str) -> None:
    """Tells what is asked about, or changes it for this chat."""
    if mode:
        if mode not in _MODES:
            raise UsageError(
                f"There is no mode {mode!r}.", hint=f"One of: {', '.join(_MODES)}"
            )
        await chat.reconfigure(approvals=_MODES[mode])
    words = {
        "ask": "you are asked about every change to a file, and about commands that do more than work in this folder",
        "auto-edit": "files of this folder are changed without asking; commands as in ask",
        "full": "nothing is asked about but what can't be understood",
    }
    chat.view.say(
        f"Approvals: {chat.approvals}; {words[chat.approvals]}. Another: /approvals ask|auto-edit|full"
    )
    if mode and chat.works and is_elsewhere(chat.app, chat.session):
        chat.view.say(
            "Another terminal or program is running this turn, with its own approval mode."
        )


async def config(chat: "ChatConversation", rest: str) -> None:
    """Shows the settings; with words behind it, it is `hermes config`."""
    await hermes(chat, "config", *(rest.split() or ["show"]))


async def codex_runtime(chat: "ChatConversation", word: str) -> None:
    """Lets codex run the turns of new sessions, or Hermes itself again, or tells how it stands."""
    from hermes.codex.engine_switch import WORDS

    meant = WORDS.get(word.strip())
    if meant is None:
        raise UsageError(f"There is no {word!r} here.", hint="One of: on, off, status")
    await hermes(chat, "codex", meant)


async def doctor(chat: "ChatConversation", _: str) -> None:
    """Checks the installation."""
    await hermes(chat, "doctor")


async def hermes(chat: "ChatConversation", *arguments: str) -> None:
    """Runs a command of `hermes` beside the chat and shows what it prints."""
    pipe, out = asyncio.subprocess.DEVNULL, asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *hermes_command(*arguments),
        stdin=pipe,
        stdout=out,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        printed, _ = await asyncio.wait_for(process.communicate(), _SECONDS)
    except TimeoutError:
        process.kill()
        await process.wait()
        chat.view.say(
            f"`hermes {' '.join(arguments)}` took too long and was stopped.",
            alarming=True,
        )
        return
    for line in clean(printed.decode("utf-8", "replace")).rstrip("\n").split("\n"):
        chat.screen.line(line)
