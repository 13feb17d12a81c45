"""The workspace of a card: a scratch folder, a folder of the user, or a worktree of a git repository."""

import logging
import shutil
from pathlib import Path

import msgspec

from hermes.app.app import App
from hermes.app.boards import card_rules as rules
from hermes.app.boards.board_service import Boards
from hermes.app.turn_placement import this_place
from hermes.app.worktrees import user_worktrees
from hermes.errors import HermesError, NotFound, in_sentences
from hermes.primitives.files import make_private_folder
from hermes.schema.boards import Board, Card, CardCommented, CardNotice
from hermes.store.boards import BoardTransaction
from hermes.text.translation import translator

t = translator(__name__)

log = logging.getLogger("hermes.boards")

_MAX_AGE_S = 7 * 86_400.0
"""After this time, no machine is expected to have a workspace that is to be cleared."""
_CLEARING = "clearing the workspaces of cards"  # not translated


class CardWorkspace(msgspec.Struct, frozen=True):
    """The folder of a run, and the branch of a worktree."""

    folder: Path
    branch: str = ""


def scratch_root(app: App) -> Path:
    """Returns the folder for scratch folders: outside Hermes' home, which commands can't write to."""
    wanted = app.settings.boards.folder
    if wanted:
        return Path(wanted).expanduser()
    return app.home.root.with_name(f"{app.home.root.name}-boards")


def prepare_workspace(app: App, card: Card, board: Board | None) -> CardWorkspace:
    """Creates or checks the workspace of a card. Raises HermesError if that fails."""
    wanted = card.workspace or (board.workspace if board else "") or "scratch"
    kind, _, path = wanted.partition(":")
    if kind == "scratch":
        root = make_private_folder(scratch_root(app))
        return CardWorkspace(make_private_folder(root / card.id))
    folder = Path(path)
    if not folder.is_dir():
        raise NotFound(t.later("Its folder {folder} is gone.", folder=folder))
    if kind == "dir":
        return CardWorkspace(folder)
    tree = user_worktrees().open(folder, card.id, now=app.clock.now())
    return CardWorkspace(Path(tree.folder), tree.branch)


def clear_workspaces(app: App, boards: Boards, card: str = "") -> str:
    """Clears the workspaces of cards that are over, or of one of them, as far as they are on this machine.

    What is left there is said on the card and to those who follow it. Returns what was said last.
    """
    said, failed = "", False
    here = this_place(app) if app.settings.store.url else ""
    for notice in boards.read(lambda reader: reader.left_workspaces()):
        is_old = app.clock.now() - notice.made >= _MAX_AGE_S
        is_ours = is_old or notice.text in ("", here)
        if card not in ("", notice.card) or not is_ours:
            continue
        try:
            said = _clear_noted(app, boards, notice, is_old=is_old) or said
        except (HermesError, OSError) as error:
            failed = True
            app.errors.note(_CLEARING, f"card {notice.card}: {error}")
    if not card and not failed:
        app.errors.succeeded(_CLEARING)
    return said


def _clear_noted(app: App, boards: Boards, notice: CardNotice, *, is_old: bool) -> str:
    """Clears the workspace of one card, unless it goes on again. An old one is tried for the last time."""
    card = boards.read(lambda reader: reader.card(notice.card))
    told = ""
    if card is not None and card.status in rules.OVER:
        board = boards.read(lambda reader: reader.board(card.board))
        if app.settings.store.url and not is_old and not _is_here(app, card, board):
            return ""  # another machine has it
        try:
            told = leave_workspace(app, card, board)
        except OSError as error:
            if not is_old:
                raise
            log.warning("the workspace of card %s was not cleared: %s", card.id, error)

    def write(tx: BoardTransaction) -> None:
        if not tx.end_notice(notice, "cleared") or not told or card is None:
            return
        tx.note(CardCommented(board=card.board, card=card.id, text=told, by="hermes"))
        rules.tell(tx, card, t.logged("left something behind"), told)

    boards.change(write)
    return told


def _is_here(app: App, card: Card, board: Board | None) -> bool:
    """Returns whether this machine has the workspace of a card."""
    wanted = card.workspace or (board.workspace if board else "") or "scratch"
    if wanted == "scratch":
        return (scratch_root(app) / card.id).is_dir()
    return any(one.name == card.id for one in user_worktrees().all())


def leave_workspace(app: App, card: Card, board: Board | None) -> str:
    """Cleans up after a card that is over. Returns what a person should know: where its work is."""
    wanted = card.workspace or (board.workspace if board else "") or "scratch"
    kind, _, path = wanted.partition(":")
    if kind == "scratch":
        return _leave_scratch(
            scratch_root(app) / card.id, is_done=card.status == "done"
        )
    if kind != "worktree":
        return ""
    trees = user_worktrees()
    try:
        tree = trees.find(Path(path), card.id)
        state = trees.state(tree)
        if state.is_clean:
            trees.drop(tree)
            return ""
    except NotFound:  # it never came to be, or somebody dropped it
        return ""
    except HermesError as error:
        return t.logged(
            "The worktree of this card could not be looked at: {reason}",
            reason=in_sentences(error),
        )
    return t.logged(
        "Its work ({state}) is in {folder}, on the branch {branch}. In {path}, merge it with: {merge}; or drop it with:"
        " {drop}",
        state=state,
        folder=tree.folder,
        branch=tree.branch,
        path=path,
        merge=f"hermes worktree merge {tree.name}",
        drop=f"hermes worktree drop {tree.name}",
    )


def _leave_scratch(folder: Path, *, is_done: bool) -> str:
    """Deletes a scratch folder. Files of a card that was archived before it was done stay."""
    if not is_done and folder.is_dir() and any(folder.iterdir()):
        return t.logged("Its files are in {folder}.", folder=folder)
    shutil.rmtree(folder, ignore_errors=True)
    return ""
