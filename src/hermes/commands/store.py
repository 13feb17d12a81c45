"""The store: the database that holds your sessions, its state, and copying everything to another one."""

from collections.abc import Iterable
from typing import Annotated

import msgspec

from hermes.app.machines import WaitingWork, find_waiting
from hermes.commands.command import Arg, command
from hermes.commands.context import CommandContext
from hermes.commands.hosts import waiting_view
from hermes.commands.views import Block, Record, line
from hermes.text.translation import translator

t = translator(__name__)


class StoreStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The database in use."""

    engine: str
    place: str
    details: tuple[tuple[str, str], ...]
    sessions: int
    rows: int
    running: int
    waiting: tuple[WaitingWork, ...] = ()

    def view(self, now: float) -> Iterable[Block]:
        contents = t(
            "{sessions}, {rows}",
            sessions=t("{count:,} session", "{count:,} sessions", count=self.sessions),
            rows=t("{count:,} row", "{count:,} rows", count=self.rows),
        )
        rows = (
            (t("engine"), self.engine),
            (t("place"), self.place),
            *self.details,
            (t("contents"), contents),
            (
                t("running"),
                t("{count:,} session", "{count:,} sessions", count=self.running),
            ),
        )
        yield Record(rows)
        yield from waiting_view(self.waiting, now)


class CopiedStore(msgspec.Struct, frozen=True, kw_only=True):
    """A finished copy."""

    rows: int
    others: dict[str, int]
    target: str

    def view(self, _now: float) -> Iterable[Block]:
        others = [
            f"{name}: {number:,}" for name, number in self.others.items() if number
        ]
        parts = ", ".join(
            [
                t("{count:,} row", "{count:,} rows", count=self.rows)
                + t(" of the log"),
                *others,
            ]
        )
        yield line(
            t(
                "Copied to {target} and compared: {parts}.",
                target=self.target,
                parts=parts,
            )
        )
        yield line(t("The source is unchanged. Set `store.url` to use the copy."))


@command("store status")
def show_store(context: CommandContext) -> StoreStatus:
    """Show which database holds your sessions, and how it is."""
    store = context.app.store
    place, details = store.describe()
    sessions, rows = store.size()
    return StoreStatus(
        engine=store.engine,
        place=place,
        details=details,
        sessions=sessions,
        rows=rows,
        running=len(store.leases.held()),
        waiting=find_waiting(context.app),
    )


@command("store copy")
def copy_whole_store(
    context: CommandContext,
    source: Annotated[
        str, Arg("sqlite:// or postgresql://USER@HOST/DATABASE", metavar="FROM")
    ],
    target: Annotated[
        str,
        Arg("the same, or sqlite:///path/to/a/new/file; must be empty", metavar="TO"),
    ],
) -> CopiedStore:
    """Copy everything to another database and compare the two. Stop every other Hermes first."""
    from hermes.store.copying import copy_store
    from hermes.store.open_configured import open_address

    settings, home = context.settings.store, context.home
    with (
        open_address(source, settings, home) as read,
        open_address(target, settings, home) as written,
    ):
        report = copy_store(read, written)
        place, _ = written.describe()
    return CopiedStore(rows=report.rows, others=report.others, target=place)
