"""SQL given to a database program: whether it only reads, changes rows, or throws data away."""

import re

from hermes.tools.policy.effects import EFFECTS, READ, WORK, Effect, asks, worst

_READS = frozenset(
    (
        "select",
        "explain",
        "with",
        "show",
        "describe",
        "desc",
        "values",
        "table",
        "begin",
        "commit",
        "end",
    )
)
_DESTROYS = frozenset(
    ("drop", "truncate", "vacuum", "reindex", "replace", "flushall", "flushdb")
)
_LOOKING = (
    r"\.(tables?|schema|indexes|indices|headers?|mode|databases|dbinfo|help|show|width|timer|echo|fullschema|nullvalue"
    r"|separator|stats|quit|exit)\b"
)


def judge_sql(text: str) -> Effect:
    """What all its statements do, taken together."""
    bare = re.sub(r"--[^\n]*|/\*.*?\*/", " ", text, flags=re.DOTALL)
    bare = re.sub(r"'(?:[^']|'')*'", "''", bare)
    return worst(
        _statement(one.strip()) for one in re.split(r";|\n(?=\.)", bare) if one.strip()
    )


def _statement(text: str) -> Effect:  # noqa: PLR0911 - a line for each kind of statement
    if text.startswith("."):
        return READ if re.match(_LOOKING, text) else EFFECTS["runs"]
    words = re.findall(r"[a-z_]+", text.lower())
    first = words[0] if words else ""
    if first == "pragma":
        return WORK if "=" in text else READ
    if first in _DESTROYS or "drop" in words[:4]:
        return EFFECTS["destroys"]
    if first in ("delete", "update") and "where" not in words:
        return asks(
            f"it {'deletes' if first == 'delete' else 'changes'} every row of a table"
        )
    if re.search(r"\bwhere\s+(1\s*=\s*1|true|1)\s*($|;)", text.lower()):
        return asks("it changes every row of a table")
    if first in _READS and not {
        "delete",
        "update",
        "insert",
        "load_extension",
        "writefile",
    } & set(words):
        return READ
    return (
        asks("it attaches another database, or runs code")
        if {"attach", "load_extension"} & set(words)
        else WORK
    )
