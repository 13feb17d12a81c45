"""The lists that a chat at a live screen offers: sessions, models, permissions, agents, and turns to go back to."""

import asyncio
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hermes.app import App
from hermes.app.child_sessions import ChildStatus
from hermes.app.prompt_files import PromptKind
from hermes.app.typed_part import typed_part
from hermes.app.undo import Rewind, RewindPoint, shadows_of
from hermes.commands.background import child_label
from hermes.commands.command import Command
from hermes.commands.context import CommandContext
from hermes.commands.policy import Permissions, shown_permission
from hermes.commands.side_work import AgentOverview
from hermes.schema.messages import AssistantMessage, UserMessage
from hermes.store.sessions import SessionInfo
from hermes.surfaces.terminal.diff_view import without_headers
from hermes.surfaces.terminal.styled_text import plain
from hermes.surfaces.terminal.text import ago, money, one_line
from hermes.surfaces.tui.live_screen import LiveScreen
from hermes.surfaces.tui.overlays.picker import Picked, Picker, PickerItem, PickerText
from hermes.text.translation import to_translate, translator
from hermes.tools.escapes import shown

if TYPE_CHECKING:
    from hermes.surfaces.tui.chat_port import TerminalChat
    from hermes.surfaces.tui.conversation import ChatConversation

t = translator(__name__)

_MAX_SESSIONS = 500
_PREVIEW_ROWS = 60  # of the log
_MAX_PREVIEW_CHARACTERS = 600  # of one message
_MAX_SHOWN_LINES = 12  # of a file that is asked about
_PREVIEW_COLUMNS = 200  # the list wraps them
_WRITTEN = "written "
SIGN_IN_WORDS = "add "
"""How the argument for `/model` begins if the person would rather sign in: it is one for `/auth`."""
_EXTENTS = (
    PickerItem("both", to_translate("Conversation and files")),
    PickerItem(
        "conversation",
        to_translate("Conversation only"),
        to_translate("files stay as they are"),
    ),
    PickerItem(
        "files", to_translate("Files only"), to_translate("the conversation stays")
    ),
)


async def pick(
    chat: "ChatConversation",
    text: PickerText,
    items: Sequence[PickerItem],
    *,
    start: int = 0,
) -> Picked | None:
    """Lets the person choose. Returns None if they did not, or the screen can't show a list."""
    if not isinstance(chat.screen, LiveScreen):
        return None
    picker = Picker(text, items, chat.screen.marks, start=start)
    await chat.screen.show(picker)
    return picker.picked


async def agree_to_file(chat: "ChatConversation", kind: PromptKind, name: str) -> bool:
    """Asks about a command or an agent that comes with the project, and shows its file. Returns whether the person
    agreed. A file that is too long to be seen whole beside the question is not asked about here.
    """
    files = chat.agent.prompt_files
    known = await asyncio.to_thread(files.all, chat.folder, kind)
    file = next((one for one in known if one.name == name.strip().lower()), None)
    if file is None or file.is_trusted:
        return False
    text = await asyncio.to_thread(files.content, file)
    is_long = text.count("\n") > _MAX_SHOWN_LINES or len(text) > _MAX_PREVIEW_CHARACTERS
    if not text or is_long:
        return False
    title = t(
        "{path} comes with the project, and you have not agreed to it yet.",
        path=file.path,
    )
    items = (
        PickerItem("agree", t("Use it from now on"), preview=lambda: shown(text)),
        PickerItem("", t("Not now"), preview=lambda: shown(text)),
    )
    picked = await pick(chat, PickerText(title=title), items, start=1)
    if picked is None or not picked.item.key:
        return False
    await asyncio.to_thread(files.agree, [file])
    return True


async def pick_argument(port: "TerminalChat", command: Command) -> str | None:
    """Returns the argument for a command that was typed alone, chosen from a list.

    Empty if the command has no list; None if the person left the list without a choice.
    """
    if not isinstance(port.chat.screen, LiveScreen):
        return ""
    match command.slash:
        case "resume" | "sessions":
            return await _pick_session(port.chat)
        case "model":
            return await _pick_model(port)
        case "permissions":
            return await _take_back_permissions(port, command)
        case "agents":
            return await _pick_agent(port, command)
        case _:
            return ""


async def pick_rewind(chat: "ChatConversation") -> tuple[RewindPoint, str] | None:
    """Returns the turn to go back to, and `both`, `conversation` or `files`."""
    rewind = Rewind(chat.app, shadows_of(chat.app))
    points = await asyncio.to_thread(rewind.points, chat.session)
    items = [
        PickerItem(
            point.turn,
            one_line(typed_part(point.text)) or "(no message)",
            t("the last turn", "{count} turns back", count=point.turns),
            lambda point=point: _turn_preview(rewind, chat.session, point),
        )
        for point in points
    ]
    title = t("Go back to just before which message?")
    found = await pick(
        chat, PickerText(title=title, nothing=t("There is no turn to undo.")), items
    )
    if found is None:
        return None
    what = await pick(chat, PickerText(title=t("Restore what?")), _EXTENTS)
    if what is None:
        return None
    point = next(one for one in points if one.turn == found.item.key)
    return point, what.item.key


async def _pick_session(chat: "ChatConversation") -> str | None:
    infos = await asyncio.to_thread(chat.app.store.sessions.recent, limit=_MAX_SESSIONS)
    others = [info for info in infos if info.id != chat.session and info.messages]
    now = time.time()
    items = [
        PickerItem(
            info.id,
            one_line(info.title) or "(no title)",
            _session_detail(info, now),
            lambda info=info: _session_preview(chat.app, info),
        )
        for info in others
    ]
    text = PickerText(
        title=t("Continue which session?"),
        nothing=t("No other sessions yet."),
        enter=t("open"),
    )
    found = await pick(chat, text, items)
    return found.item.key if found else None


async def _take_back_permissions(port: "TerminalChat", command: Command) -> str | None:
    """Lists rules and permissions; Enter takes one back, and the list stays open. Empty if there is nothing to list."""
    while True:
        with CommandContext(port, app=port.chat.app, conversation=port) as context:
            found = await command.run(context, {})
        items: list[PickerItem] = []
        if isinstance(found, Permissions):
            items = _permission_items(found, str(port.chat.folder))
        if not items:
            return ""
        text = PickerText(title=t("What runs without asking"), enter=t("take it back"))
        picked = await pick(port.chat, text, items)
        if picked is None:
            return None
        if picked.item.key.startswith(_WRITTEN):
            file = port.chat.app.home.root / "policy.yaml"
            port.chat.view.say(
                t("You wrote that rule yourself. Change it in {file}", file=file)
            )
            return None
        with CommandContext(port, app=port.chat.app, conversation=port) as context:
            port.show(await command.run(context, {"which": picked.item.key}))
        if len(items) == 1:
            return None


def _permission_items(found: Permissions, folder: str) -> list[PickerItem]:
    """The entries by the numbers that the command knows them by, then the rules that only a file holds."""
    whens = {"always": t("always"), "session": t("until you quit")}
    kinds = [*(("always", one) for one in found.remembered)]
    kinds += [("session", one) for one in found.granted]
    reasons = {
        "always": t("In every session, because you chose “always”."),
        "session": t("In this session, until you quit."),
    }
    items = [
        PickerItem(
            str(number),
            shown_permission(text).replace(folder, t("this folder")),
            whens[when],
            lambda text=text, when=when: t(
                "Hermes does this without asking:\n{rule}\n\n{reason}\nEnter takes it back; Hermes asks again then.",
                rule=shown_permission(text),
                reason=reasons[when],
            ),
        )
        for number, (when, text) in enumerate(kinds, 1)
    ]
    return items + [
        PickerItem(
            f"{_WRITTEN}{number}",
            shown(text),
            "policy.yaml",
            lambda text=text: t(
                "{rule}\n\nYou wrote this rule in policy.yaml, and can change it there.",
                rule=shown(text),
            ),
        )
        for number, text in enumerate(found.rules)
    ]


async def _pick_agent(port: "TerminalChat", command: Command) -> str | None:
    """Lists what works for this session: Enter opens one, Ctrl-X stops it, Ctrl-T writes to it.

    Empty if nothing does.
    """
    with CommandContext(port, app=port.chat.app, conversation=port) as context:
        found = await command.run(context, {})
    if not isinstance(found, AgentOverview) or not found.children:
        return ""
    items = [
        PickerItem(
            one.id[-6:],
            one_line(child_label(one)) or "(no task)",
            f"{one.state} · {one.id[-6:]}",
            lambda one=one: child_preview(one),
        )
        for one in reversed(found.children)
    ]
    text = PickerText(
        title=t("Agents of this session"),
        enter="open",
        actions={"c-x": t("stop"), "c-t": t("write to it")},
    )
    picked = await pick(port.chat, text, items)
    if picked is None:
        return None
    if picked.key == "c-t":
        port.chat.screen.suggest(f"/agents tell {picked.item.key} ")
        return None
    return f"{'stop' if picked.key == 'c-x' else 'open'} {picked.item.key}"


def child_preview(one: ChildStatus) -> str:
    """Returns what a child does, what it has used, and its answer so far."""
    facts = (
        t("{count:,} turn", "{count:,} turns", count=one.turns),
        t("{count:,} token", "{count:,} tokens", count=one.tokens),
        money(one.cost_usd),
    )
    head = (_shortened(one.title), one.doing, " · ".join(filter(None, facts)))
    return "\n".join((*filter(None, head), "", _as_read(one.answer))).strip()


async def _pick_model(port: "TerminalChat") -> str | None:
    answers = port.agent.describe(port.session)
    if answers.engine == "codex":
        return ""
    current = answers.name
    names = await port.model_names() or [current]
    items = [
        PickerItem(name, name, _model_facts(name, is_current=name == current))
        for name in names
    ]
    items += await asyncio.to_thread(_account_items, port.chat.app, answers.provider)
    items.append(PickerItem(SIGN_IN_WORDS, t("Sign in with an account, no key")))
    start = names.index(current) if current in names else 0
    found = await pick(
        port.chat, PickerText(title=t("Which model answers?")), items, start=start
    )
    if found is not None and found.item.key == SIGN_IN_WORDS:
        return await _pick_sign_in(port)
    return found.item.key if found else None


def _account_items(app: App, provider: str) -> list[PickerItem]:
    """The usual models of the other providers that somebody is signed in at."""
    from hermes.providers import provider_table

    usable = [one for one in app.sign_ins.states() if not one.problem]
    others = dict.fromkeys(one.provider for one in usable if one.provider != provider)
    families = filter(None, map(provider_table.family, others))
    names = [f"{one.family}:{one.default_model}" for one in families]
    return [PickerItem(name, name, t("signed in")) for name in names]


async def _pick_sign_in(port: "TerminalChat") -> str | None:
    from hermes.providers.sign_in.services import SERVICES

    items = [PickerItem(one.name, one.label) for one in SERVICES]
    found = await pick(port.chat, PickerText(title=t("Sign in with what?")), items)
    return f"{SIGN_IN_WORDS}{found.item.key}" if found else None


def _model_facts(name: str, *, is_current: bool) -> str:
    from hermes.providers.catalogue import UNKNOWN, facts_of
    from hermes.text.formats import short_number

    facts = facts_of(name)
    window = (
        ""
        if facts is UNKNOWN
        else t("{tokens} tokens of context", tokens=short_number(facts.window))
    )
    return ", ".join(filter(None, ("current" if is_current else "", window)))


def _session_detail(info: SessionInfo, now: float) -> str:
    parts = (
        ago(info.updated, now),
        t("{count:,} message", "{count:,} messages", count=info.messages),
        info.surface,
    )
    return " · ".join(part for part in parts if part)


def _session_preview(app: App, info: SessionInfo) -> str:
    """Returns how a session ended: its last messages; then its folder and id."""
    rows = app.store.log.events(
        info.id, after=max(0, info.head - _PREVIEW_ROWS), limit=_PREVIEW_ROWS
    )
    messages: list[str] = []
    for row in rows:
        match row.event:
            case UserMessage(text=text, origin="user"):
                messages.append(f"› {_shortened(typed_part(text))}")
            case AssistantMessage(text=text) if text.strip():
                messages.append(_as_read(text))
            case _:
                pass
    return "\n".join([*messages[-2:], "", info.cwd, info.id])


def _turn_preview(rewind: Rewind, session: str, point: RewindPoint) -> str:
    """Returns the message, and what its turn changed in files."""
    diff = without_headers(rewind.diff(session, turn=point.turn))
    return (
        f"{_shortened(typed_part(point.text))}\n\n{diff or t('No files were changed.')}"
    )


def _as_read(answer: str) -> str:
    """Returns an answer without the marks of Markdown."""
    from hermes.surfaces.terminal.markdown.render import Markdown

    markdown = Markdown(colours=True, ascii_only=True)
    rows = markdown.whole(_shortened(answer), _PREVIEW_COLUMNS)
    return "\n".join(plain(row).rstrip() for row in rows)


def _shortened(text: str) -> str:
    text = text.strip()
    if len(text) <= _MAX_PREVIEW_CHARACTERS:
        return text
    return text[: _MAX_PREVIEW_CHARACTERS - 1].rstrip() + "…"
