"""The effects of commands: the level, the access needed, and the reason shown to a person."""

from collections.abc import Iterable
from enum import IntEnum

import msgspec

from hermes.schema.events import Reach
from hermes.text.translation import to_translate, translator

t = translator(__name__)


class Level(IntEnum):
    """How serious an effect is."""

    READ = 0
    """It changes nothing."""
    WORK = 1
    """It changes only files in the workspace, as builds, tests and edits do."""
    ASK = 2
    UNCLEAR = 3
    """What it does can't be known before it runs."""
    FORBID = 4


class Effect(msgspec.Struct, frozen=True):
    """One thing a command does."""

    level: Level
    reason: str = ""
    reach: Reach = "workspace"
    """What the command needs access to."""
    once: bool = False
    """Whether an approval can cover only this one call."""
    depends_on: str = ""
    """A file that decides what the command does: an earlier approval without it does not count."""


READ = Effect(Level.READ)
LOOKS_UP = Effect(Level.READ, reach="network")
"""It only reads, but over the network (including services on this machine)."""
WORK = Effect(Level.WORK)
BY_RULE = t.logged("your rules allow it")
"""The reason of an effect that is allowed by a rule alone."""
ASKS_FOR_NETWORK = to_translate("it asks for the network")
"""The reason if the model requests network access that nothing in the command needs."""


def asks(reason: str, reach: Reach = "workspace") -> Effect:
    """An effect that needs a person's approval."""
    return Effect(Level.ASK, reason, reach)


def unclear(reason: str) -> Effect:
    """An effect that can't be predicted, so an approval covers only this call."""
    return Effect(Level.UNCLEAR, reason, once=True)


def forbidden(reason: str) -> Effect:
    """An effect that no mode allows."""
    return Effect(Level.FORBID, reason)


_FAR: dict[Reach, int] = {"workspace": 0, "network": 1, "machine": 2}


def widest(reaches: Iterable[Reach]) -> Reach:
    """The widest of several reaches."""
    return max(reaches, key=_FAR.__getitem__, default="workspace")


def worst(effects: Iterable[Effect]) -> Effect:
    """Combines effects: the highest level, its first reason, and the widest reach at that level.

    Reading keeps its network access only if it happens alone. Otherwise work would get the network without approval.
    """
    found = list(effects)
    top = max((one.level for one in found), default=Level.READ)
    same = [one for one in found if one.level == top]
    reach = widest(one.reach for one in same)
    reason = next((one.reason for one in same if one.reason), "")
    return Effect(top, reason, reach, any(one.once for one in found))


EFFECTS: dict[str, Effect] = {
    "read": READ,
    "lookup": LOOKS_UP,
    "work": WORK,
    "network": asks("it uses the network", "network"),
    "sends": asks("it sends data to another machine", "network"),
    "remote": asks("it acts on another machine", "network"),
    "packages": asks(
        "it installs or removes packages, which run other people's code", "network"
    ),
    "system": asks("it changes this machine outside the workspace", "machine"),
    "publishes": asks("it publishes or deploys something", "network"),
    "cloud": asks("it uses a cloud account or a cluster", "network"),
    "containers": asks(
        "it controls containers, which reach the whole machine", "machine"
    ),
    "services": asks("it controls this machine's services", "machine"),
    "privilege": asks("it runs with another user's permissions", "machine"),
    "accounts": asks(
        "it changes this machine's users, passwords or permissions", "machine"
    ),
    "security": asks("it weakens this machine's security", "machine"),
    "persistence": asks("it sets up something that runs later on its own", "machine"),
    "processes": asks("it stops programs that are running", "machine"),
    "devices": asks("it changes disks or devices", "machine"),
    "database": asks("it uses a database server", "network"),
    "destroys": asks("it destroys work that you may not be able to recover"),
    "secrets": asks("it reads or changes passwords, keys or tokens", "machine"),
    "history": asks("it erases logs or the command history", "machine"),
    "listens": asks("it opens a port that others can connect to", "network"),
    "spies": asks("it watches what other programs or people do", "machine"),
    "editor": asks("it opens an editor, which can run anything", "workspace"),
    "runs": asks("it makes another program run commands that Hermes can't see"),
    "session": asks("it controls terminals, windows or the desktop", "machine"),
    "rewrites": asks("it rewrites history or discards work"),
    "environment": asks("it changes what later commands do"),
    "mail": asks("it sends a message to someone", "network"),
    "miner": asks("it uses this machine's computing power for someone else", "network"),
    "power": forbidden("it stops this machine or everything running on it"),
    "overwrites": asks(
        "it overwrites or deletes branches or tags that others may use", "network"
    ),
    "remotes": asks("it changes where git fetches from and pushes to"),
    "fetched-code": asks("it runs code from the network", "network"),
    "fills-disk": asks("it fills the disk"),
    "input": unclear("it runs its input"),
    "unknown": asks("Hermes does not know what this program does"),
}
"""The effects that `programs.yaml` names."""
