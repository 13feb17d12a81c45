"""The word that somebody meant: a misspelt one, or another word for the same thing."""

from collections.abc import Sequence

_SAME = (
    ("create", "new", "add", "make"),
    ("remove", "delete", "drop", "archive", "rm", "del"),
    ("list", "ls"),
    ("show", "status", "info", "view", "get"),
    ("complete", "done", "finish", "close"),
    ("move", "mv"),
    ("clone", "copy", "cp"),
    ("use", "switch", "select"),
    ("stop", "kill", "cancel", "abort"),
    ("tell", "send", "steer"),
    ("add", "login", "signin", "sign-in"),
    ("remove", "logout", "signout", "sign-out"),
    ("run", "start", "begin"),
    ("auth", "login", "logout", "signin", "account", "accounts"),
    ("kanban", "board", "boards", "card", "cards", "task", "tasks"),
    ("acp", "editor", "editors", "zed"),
)


def intended_word(word: str, known: Sequence[str], likeness: float = 0.6) -> str:
    """The known word that is spelt like this one, or means the same; empty if there is none."""
    import difflib

    near = difflib.get_close_matches(word, known, 1, likeness)
    if near:
        return near[0]
    same = (one for group in _SAME if word.lower() in group for one in group)
    return next((one for one in same if one in known), "")
