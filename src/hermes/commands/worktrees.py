"""Worktrees: copies of a repository to work in beside the checkout, listed, made, merged and dropped."""

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from hermes.app.worktrees import Worktree, Worktrees, user_worktrees
from hermes.commands.command import Arg, command
from hermes.commands.context import CommandContext
from hermes.commands.project import folder_of
from hermes.commands.views import Block, Column, TextResult, line, message, table
from hermes.errors import UsageError
from hermes.schema.events import SessionCreated
from hermes.text.formats import ago
from hermes.text.translation import to_translate, translator

t = translator(__name__)


EXAMPLES = to_translate("""\
examples:
  hermes --worktree fix            chat in a copy of this repository, on the branch hermes/fix
  hermes worktree list             the copies and what they hold
  hermes worktree merge fix        commit what is there and merge it into this checkout
  hermes worktree drop fix         delete the copy; work that is not merged needs --force
""")
WorktreeName = Annotated[str, Arg("the worktree")]
WorktreeAction = Literal["list", "new", "open", "merge", "drop"]


class WorktreeRow(msgspec.Struct, frozen=True, kw_only=True):
    """A worktree and what it holds."""

    name: str
    folder: str
    source: str
    branch: str
    created: float
    state: str
    is_clean: bool


class WorktreeListing(msgspec.Struct, frozen=True, kw_only=True):
    """The worktrees of a repository, or of all."""

    worktrees: tuple[WorktreeRow, ...]
    in_chat: bool = False

    def view(self, now: float) -> Iterable[Block]:
        if not self.worktrees:
            yield line(
                t(
                    "There are no worktrees. Make one: hermes --worktree NAME, or /worktree new NAME"
                ),
                fit="wrap",
            )
            return
        rows = [
            (one.name, one.state, ago(one.created, now), one.folder)
            for one in self.worktrees
        ]
        columns = (
            Column(t("NAME")),
            Column(t("HOLDS")),
            Column(t("MADE")),
            Column(t("FOLDER")),
        )
        yield table(columns, rows, narrow=((0, 1), (3,)))
        word = "/worktree" if self.in_chat else "hermes worktree"
        yield line(
            t("Merge one: {word} merge NAME. Delete one: {word} drop NAME", word=word),
            "dim",
        )


@command(
    "worktree list", slash="worktree action name", role="owner", scope="observe",
    group="Changes",
)  # fmt: skip
async def show_worktrees(
    context: CommandContext,
    action: Annotated[WorktreeAction, Arg("what to do, in a chat")] = "list",
    name: WorktreeName = "",
    *,
    force: Annotated[bool, Arg("drop it although work is not merged")] = False,
) -> WorktreeListing | TextResult:
    """List worktrees; make, open, merge or drop one."""
    if action == "list":
        return await asyncio.to_thread(_listing, context)
    if context.conversation is None:
        raise UsageError(
            t("Use the command itself: hermes worktree {action} NAME", action=action)
        )
    match action:
        case "new":
            return await _make(context, name)
        case "open":
            tree = await asyncio.to_thread(_find, context, name)
            return await _enter(context, tree)
        case "merge":
            return await asyncio.to_thread(_merge, context, name)
        case _:
            return await _drop_in_chat(context, name, force=force)


@command("worktree new", group="Changes")
async def make_worktree(context: CommandContext, name: WorktreeName = "") -> TextResult:
    """Make a worktree of the repository in this folder."""
    return await _make(context, name)


@command("worktree merge", group="Changes")
def merge_worktree(context: CommandContext, name: WorktreeName) -> TextResult:
    """Commit what a worktree holds and merge it into the checkout."""
    return _merge(context, name)


@command("worktree drop", group="Changes")
def drop_worktree(
    context: CommandContext,
    name: WorktreeName,
    *,
    force: Annotated[bool, Arg("also if it has work that is not merged")] = False,
) -> TextResult:
    """Delete a worktree; unmerged work is kept under refs/hermes/dropped."""
    return _drop(_find(context, name), force=force)


def worktree_rows(trees: Worktrees, found: Iterable[Worktree]) -> list[WorktreeRow]:
    """Worktrees with what they hold."""
    states = [(one, trees.state(one)) for one in found]
    return [
        WorktreeRow(
            name=one.name,
            folder=one.folder,
            source=one.source,
            branch=one.branch,
            created=one.created,
            state=str(state),
            is_clean=state.is_clean,
        )
        for one, state in states
    ]


def _listing(context: CommandContext) -> WorktreeListing:
    trees = user_worktrees()
    source: Path | None = None
    if context.conversation is not None or not context.is_shared:
        folder = folder_of(context)
        own = trees.at(folder)
        try:
            source = Path(own.source) if own else trees.repository(folder)
        except UsageError:  # not in a repository: all of them
            source = None
    rows = tuple(worktree_rows(trees, trees.all(source)))
    return WorktreeListing(worktrees=rows, in_chat=context.conversation is not None)


def _word(context: CommandContext, action: str) -> str:
    """What a person types next: in the chat, or in a shell."""
    in_chat = context.conversation is not None
    return f"/worktree {action}" if in_chat else f"hermes worktree {action}"


def _find(context: CommandContext, name: str) -> Worktree:
    if not name:
        raise UsageError(t("Which worktree?"), hint=t("See: worktree list"))
    return user_worktrees().find(folder_of(context), name)


async def _make(context: CommandContext, name: str) -> TextResult:
    folder = await asyncio.to_thread(folder_of, context)
    now = context.app.clock.now() if context.is_shared else _now()
    trees = user_worktrees()
    tree = await asyncio.to_thread(trees.make, folder, name, now=now)
    if context.conversation is not None:
        return await _enter(context, tree)
    return message(
        t("Made the worktree {name}: {folder}", name=tree.name, folder=tree.folder),
        t("Work in it: hermes --worktree {name}", name=tree.name),
    )


def _now() -> float:
    import time

    return time.time()


async def _enter(context: CommandContext, tree: Worktree) -> TextResult:
    """Begins a session in a worktree and continues there."""
    await context.chat.require_idle()
    await _begin_in(context, tree.folder)
    return message(
        t(
            "You are in the worktree {name} now, in a new session: {folder}",
            name=tree.name,
            folder=tree.folder,
        ),
        t("When it is good: /worktree merge {name}", name=tree.name),
    )


async def _begin_in(context: CommandContext, folder: str) -> None:
    """Begins a session in a folder and continues there."""
    created = SessionCreated(surface=context.surface.name, cwd=folder)
    begun = await asyncio.to_thread(context.app.begin, created)
    await context.chat.enter(begun.session, recap=False)


def _merge(context: CommandContext, name: str) -> TextResult:
    tree = _find(context, name)
    merged = user_worktrees().merge(tree)
    if not merged.commits:
        return message(
            t(
                "{name} has nothing that {into} does not have.",
                name=tree.name,
                into=merged.into,
            )
        )
    return message(
        t(
            "Merged {count:,} commit of {name} into {into}.",
            "Merged {count:,} commits of {name} into {into}.",
            count=merged.commits,
            name=tree.name,
            into=merged.into,
        ),
        t(
            "The worktree is still there. Delete it: {drop}",
            drop=_word(context, f"drop {tree.name}"),
        ),
    )


async def _drop_in_chat(
    context: CommandContext, name: str, *, force: bool
) -> TextResult:
    """Drops a worktree. A chat that works in it continues in the repository, in a new session."""
    tree = await asyncio.to_thread(_find, context, name)
    folder = await asyncio.to_thread(folder_of, context)
    if not folder.is_relative_to(tree.folder):
        return await asyncio.to_thread(_drop, tree, force=force)
    await context.chat.require_idle()
    dropped = await asyncio.to_thread(_drop, tree, force=force)
    await _begin_in(context, tree.source)
    return message(
        *dropped.lines,
        t("You are in {folder} now, in a new session.", folder=tree.source),
    )


def _drop(tree: Worktree, *, force: bool) -> TextResult:
    kept = user_worktrees().drop(tree, force=force)
    if not kept:
        return message(t("Dropped the worktree {name}.", name=tree.name))
    return message(
        t(
            "Dropped the worktree {name}. Its work is kept in the repository as {kept}.",
            name=tree.name,
            kept=kept,
        ),
        t("Bring it back: git branch {name} {kept}", name=tree.name, kept=kept),
    )
