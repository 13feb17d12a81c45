"""Commands about who answers and what it takes: the model, its window, its cost."""

import asyncio
from typing import TYPE_CHECKING

from hermes.app.compaction import outlook_of
from hermes.commands.model_names import checked_name
from hermes.settings.load import load_secrets
from hermes.surfaces.terminal.open_agent import choose_model
from hermes.surfaces.terminal.run_options import RunOptions
from hermes.surfaces.terminal.style import columns as aligned
from hermes.surfaces.terminal.text import count, cut, money, one_line
from hermes.surfaces.tui.context_view import window_rows
from hermes.surfaces.tui.styled_text import painted

if TYPE_CHECKING:
    from hermes.surfaces.tui.conversation import ChatConversation


async def model(chat: "ChatConversation", name: str) -> None:
    """Tells which model answers, or changes it."""
    found = ""
    if name:
        if await chat.is_busy():
            return
        name, _, force = name.partition(" ")
        route = choose_model(chat.app, RunOptions(model=name), may_ask=False)
        if force.strip() != "force":
            secrets = load_secrets(home=chat.app.home)
            found = await checked_name(
                route, chat.app.settings, secrets, force=f"/model {name} force"
            )
        await chat.reconfigure(model=name)
    now = chat.agent.describe(chat.session)
    usual = (
        "with its own model"
        if now.engine == "codex"
        else "(the first model that it lists)"
    )
    chat.view.say(
        f"{now.provider} {now.name or found or usual} answers. Another: /model NAME, or /model PROVIDER:NAME"
    )


async def cost(chat: "ChatConversation", _: str) -> None:
    """Tells what the session took."""
    rows = chat.app.store.sessions.usage(session=chat.session)
    tokens = sum(row.input_tokens + row.output_tokens for row in rows)
    amount = money(sum(row.cost_usd for row in rows)) or "$0"
    unpriced = sum(row.unpriced_calls for row in rows)
    rest = (
        f", and {count(unpriced, 'call')} whose price is not known" if unpriced else ""
    )
    calls = count(sum(row.calls for row in rows), "call")
    chat.view.say(f"{calls}, {count(tokens, 'token')}, {amount}{rest}")


async def status(chat: "ChatConversation", _: str) -> None:
    """Tells how things are."""
    info = chat.app.store.sessions.find(chat.session)
    now = chat.agent.describe(chat.session)
    foot = chat.view.foot
    rows = [
        ("session", info.id),
        ("title", one_line(info.title)),
        (
            "model",
            f"{now.provider} {now.name or foot.model.removeprefix(now.provider).strip()}".rstrip(),
        ),
        ("engine", "codex" if now.engine == "codex" else "Hermes"),
        ("context", foot.filled()),
        ("cost", money(foot.cost)),
        ("folder", info.cwd),
        ("approvals", chat.approvals),
        ("sandbox", foot.sandbox),
        ("policy", one_line(chat.agent.policy.warning)),
        ("mcp", _servers(chat)),
        ("queued", count(len(chat.view.queued), "message") if chat.view.queued else ""),
        ("now", "working" if chat.works and not chat.view.rests else "waiting for you"),
    ]
    for line in aligned([row for row in rows if row[1]], indent=0):
        chat.screen.line(cut(line, chat.screen.columns - 1))


def _servers(chat: "ChatConversation") -> str:
    """How many servers there are, and which ones can't be used."""
    servers = chat.agent.toolbox.servers
    if servers is None:
        return ""
    known = servers.status()
    failed = [one.name for one in known if one.state == "failed"]
    return count(len(known), "server") + (
        f", failed: {', '.join(failed)}; see /mcp" if failed else ""
    )


async def context(chat: "ChatConversation", _: str) -> None:
    """Tells what fills the window."""
    now = await asyncio.to_thread(chat.agent.context, chat.session)
    ahead = await asyncio.to_thread(outlook_of, chat.app, chat.session)
    ascii_only = chat.screen.marks.bar == "|"
    for row in window_rows(now, ahead, chat.screen.columns - 1, ascii_only=ascii_only):
        chat.screen.line(painted(row, enabled=chat.screen.style.enabled))


async def compress(chat: "ChatConversation", _: str) -> None:
    """Sums up the older part of the conversation."""
    if await chat.is_busy():
        return
    chat.view.say("Summing up the older part of the conversation ...")
    await chat.agent.compress(chat.session)
    now = await asyncio.to_thread(chat.agent.context, chat.session)
    chat.view.say(
        f"Done. The model now reads about {sum(part.tokens for part in now.parts):,} tokens; the log keeps all."
    )
