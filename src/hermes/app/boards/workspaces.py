"""The workspace of a card: a scratch folder, a folder of the user, or a worktree of a git repository."""

import shutil
from pathlib import Path

import msgspec

from hermes.app.app import App
from hermes.app.worktrees import user_worktrees
from hermes.errors import HermesError, NotFound
from hermes.primitives.files import make_private_folder
from hermes.schema.boards import Board, Card
from hermes.text.translation import translator

t = translator(__name__)


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


def leave_workspace(app: App, card: Card, board: Board | None) -> str:
    """Cleans up after a finished card. Returns what a person should know: where its work is."""
    wanted = card.workspace or (board.workspace if board else "") or "scratch"
    kind, _, path = wanted.partition(":")
    if kind == "scratch":
        shutil.rmtree(scratch_root(app) / card.id, ignore_errors=True)
        return ""
    if kind != "worktree":
        return ""
    trees = user_worktrees()
    try:
        tree = trees.find(Path(path), card.id)
        state = trees.state(tree)
        if state.is_clean:
            trees.drop(tree)
            return ""
    except HermesError as error:
        return f"The worktree of this card could not be looked at: {error.message}"
    return (
        f"Its work ({state}) is in {tree.folder}, on the branch {tree.branch}. In {path}, merge it with: "
        f"hermes worktree merge {tree.name}; or drop it with: hermes worktree drop {tree.name}"
    )
