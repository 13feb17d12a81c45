"""Boards in a shell: running cards without a gateway, and watching what happens."""

import asyncio
import signal
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from hermes.app import App
from hermes.app.boards.board_service import Boards
from hermes.app.boards.dispatcher import Dispatcher, role_here
from hermes.app.boards.event_follower import BoardFollower
from hermes.commands.boards import boards_of
from hermes.commands.card_views import event_line
from hermes.commands.cards import CardName, OnBoard, show_board_stats
from hermes.commands.command import Arg, command
from hermes.commands.context import CommandContext
from hermes.commands.views import Result
from hermes.errors import Refused
from hermes.primitives.tasks import BackgroundTasks
from hermes.schema.boards import BoardHistoryEntry
from hermes.settings.load import load_secrets
from hermes.store.leases import shown
from hermes.store.role_leases import HeldRole
from hermes.surfaces.cli.answer import DONE
from hermes.surfaces.cli.logs import start as start_log
from hermes.surfaces.terminal.text import one_line
from hermes.text.translation import translator

t = translator(__name__)


_TAIL_INTERVAL_S = 0.5


def _dispatcher(app: App) -> Dispatcher:
    secrets = load_secrets(home=app.home)
    app.go_live(secrets, "kanban")
    return Dispatcher(app, secrets)


def _stop_event() -> asyncio.Event:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop


def _holders(app: App) -> list[HeldRole]:
    """Who runs the cards of this machine."""
    role = role_here(app)
    return [one for one in app.store.roles.held(role) if one.name == role]


@command("kanban run")
async def run_cards(context: CommandContext) -> int:
    """Run ready cards until you press Ctrl-C."""
    start_log()
    app, stop = context.app, _stop_event()
    boards_of(context).ensure_default()
    app.bus.subscribe("kanban.**", _print_event)
    held = _holders(app)
    if held:
        owner = shown(held[0].owner)
        print(
            t(
                "{owner} already runs the cards. This process takes over when that one ends.",
                owner=owner,
            ),
            flush=True,
        )
    else:
        print(t("Running cards when they are ready. Ctrl-C stops."), flush=True)
    followers = BackgroundTasks("following the boards")
    followers.start(BoardFollower(app).run())
    try:
        await _dispatcher(app).run(stop)
    finally:
        await followers.close()
    print(
        t("Stopped. Cards run again once `hermes kanban run` or a gateway is started.")
    )
    return DONE


@command("kanban dispatch")
async def dispatch_once(context: CommandContext) -> Result:
    """Start what is ready now, wait for it, and show how the boards are doing."""
    start_log()
    app, stop = context.app, _stop_event()
    boards_of(context).ensure_default()
    app.bus.subscribe("kanban.**", _print_event)
    dispatcher = _dispatcher(app)
    try:
        await dispatcher.step()
        if not dispatcher.is_active:
            held = _holders(app)
            owner = shown(held[0].owner) if held else t("Another process")
            raise Refused(
                t(
                    "{owner} runs the cards already, and looks every second.",
                    owner=owner,
                ),
                hint=t("`hermes kanban stats` says why each ready card waits."),
            )
        stopping = asyncio.ensure_future(stop.wait())
        finished = asyncio.ensure_future(dispatcher.finished())
        await asyncio.wait({stopping, finished}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        finished.cancel()
        await dispatcher.notices.join()
    finally:
        await dispatcher.close()
    return show_board_stats.function(context)


@command("kanban tail")
async def tail_history(
    context: CommandContext,
    card: Annotated[CardName, Arg("one card (default: the whole board)", metavar="CARD")] = "",
    *,
    board: OnBoard = "",
) -> int:  # fmt: skip
    """Follow what happens on the boards until you press Ctrl-C."""
    boards = boards_of(context)
    stop = _stop_event()
    found = boards.find(card) if card else None
    slug = found.board if found else boards.board(board).slug
    last = boards.read(lambda reader: reader.last_entry())
    while not stop.is_set():
        last = _print_after(boards, last, slug, found.id if found else "")
        try:
            async with asyncio.timeout(_TAIL_INTERVAL_S):
                await stop.wait()
        except TimeoutError:
            continue
    return DONE


def _print_after(boards: Boards, last: int, slug: str, card: str) -> int:
    rows = boards.read(lambda reader: reader.history_after(last))
    for row in rows:
        if row.data.get("board") == slug and card in ("", row.data.get("card")):
            print(one_line(event_line(row)), flush=True)
    return rows[-1].id if rows else last


def _print_event(event: Mapping[str, Any]) -> None:
    if not event.get("id"):
        return
    head = {"type", "ts", "src"}
    data = {name: value for name, value in event.items() if name not in head}
    plain = msgspec.to_builtins(data)
    row = BoardHistoryEntry(id=0, ts=float(event["ts"]), topic=str(event["type"]), data=plain)  # fmt: skip
    print(one_line(event_line(row)), flush=True)
