"""A profile as one file, to move or share. An exported one has no secrets unless they are asked for.

An imported one may come from somebody else: it is unpacked aside and checked, the sender's approvals don't count, and
the user is told which programs its settings name.
"""

import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from hermes.app.backup import Backup, back_up, disarm_repositories, unpack
from hermes.app.boards.card_rules import move
from hermes.app.profiles import Profile, Profiles, write_description
from hermes.errors import HermesError
from hermes.schema.boards import CardStatus
from hermes.schema.schedules import NOWHERE
from hermes.settings import Home
from hermes.settings.profiles import PROFILE_FILE
from hermes.settings.redaction import mask
from hermes.settings.yaml_read import parse_yaml
from hermes.store import open_store
from hermes.store.boards import BoardTransaction
from hermes.store.store import Store
from hermes.text.translation import translator

t = translator(__name__)


_AGREEMENTS = (
    "plugins.json",
    "hooks.json",
    "mcp-pins.json",
    "trusted_projects.json",
    "written_notes.json",
    "gateway/api_keys.json",
    "dashboard/keys.json",
)
"""What the sender agreed to, and whom the sender let in, which says nothing about the receiver."""
_IMPORTED = t.logged("it came with an imported profile")
_ASIDE = {
    "policy.yaml": "policy.imported.yaml",
    "locales": "locales.imported",
}
"""Files that decide or word what the user is asked, and the names under which they are kept for the receiver to read.
"""
_RUNS = ("command", "script", "status_script", "binary", "program")
"""Settings that name a program."""
_LEADS_OUT = (
    *("base_url", "url", "proxy", "searxng_url", "memory_url", "remote", "api_url"),
    *("webhook_url", "callback_url", "voice_url", "imap_host", "smtp_host", "headers"),
)
"""Settings that say where words, keys and memory are sent."""
_LETS_IN = (
    *("host", "public_urls", "behind_proxy", "token_only", "shell", "allow", "owners"),
    *("approvers", "pairing", "trusted_authserv", "allow_hosts", "trusted", "vetted"),
    *("approval_policy", "hide_secrets"),
)
"""Settings that let somebody in, or allow more."""
_LOGINS = (".env", "auth.json", "mcp-logins.json")
"""Files with the sender's keys and logins: what is done with them is done in the sender's name."""


class ImportedProfile(msgspec.Struct, frozen=True, kw_only=True):
    """A profile that was imported."""

    profile: Profile
    files: int
    left_out: tuple[str, ...]
    """What was removed because it could run programs or allow something."""


class ArchivedProfile:
    """An archive that is unpacked in a draft folder. `programs` is what its settings would run, `settings` where they
    send something or whom they let in, `logins` which files hold keys of the sender."""

    def __init__(self, source: Path, draft: Path) -> None:
        self.draft = draft
        self.files = unpack(source, draft, (PROFILE_FILE, "state.db"))
        self.left_out = [*disarm_repositories(draft), *self._drop_agreements()]
        self.programs = tuple(self._programs())
        self.settings = tuple(self._settings())
        self.logins = tuple(name for name in _LOGINS if (draft / name).exists())
        if (draft / "state.db").exists():
            with closing(open_store(draft / "state.db")) as store:
                self.left_out += hold_back(store)

    def _drop_agreements(self) -> Iterator[str]:
        for name in _AGREEMENTS:
            if (self.draft / name).exists():
                (self.draft / name).unlink()
                yield name
        for name, aside in _ASIDE.items():
            if (self.draft / name).exists():
                if (self.draft / aside).is_dir():  # of an earlier import
                    shutil.rmtree(self.draft / aside)
                (self.draft / name).rename(self.draft / aside)
                yield t.logged("{name} (kept as {aside})", name=name, aside=aside)

    def _programs(self) -> Iterator[str]:
        try:
            text = (self.draft / "config.yaml").read_text()
            yield from _named_programs(parse_yaml(text))
        except FileNotFoundError:
            pass
        except ValueError as error:
            yield t.logged(
                "config.yaml can't be read: {error}",
                error=str(error).splitlines()[0],
            )
        for folder in ("hooks", "plugins"):
            found = sorted(one.name for one in self.draft.glob(f"{folder}/*/"))
            if found:
                yield t.logged(
                    "{folder}: {names} (off until you enable them)",
                    folder=folder,
                    names=", ".join(found),
                )

    def _settings(self) -> Iterator[str]:
        try:
            tree = parse_yaml((self.draft / "config.yaml").read_text())
        except (FileNotFoundError, ValueError):  # `programs` says that it can't be read
            return
        yield from _named_settings(tree, (*_LEADS_OUT, *_LETS_IN))


def hold_back(store: Store) -> Iterator[str]:
    """Lets nothing in a session log run by itself: jobs are paused and deliver nowhere, cards wait in triage, goals are
    not waited for, nothing is on its way to or from a chat, and chats have no known people."""
    yield from _pause_jobs(store)
    cards = store.boards.change(_to_triage)[0] if store.has_cards else 0
    if cards:
        yield t.logged(
            "{count} card (moved to triage)",
            "{count} cards (moved to triage)",
            count=cards,
        )
    people = store.people.every()
    for one in people:
        store.people.remove(one.platform, one.id)
    if people:
        yield t.logged(
            "{count} person of chat apps",
            "{count} people of chat apps",
            count=len(people),
        )
    if store.forget_surroundings():
        yield t.logged("chats, messages to and from them, and goals that wait")


def _pause_jobs(store: Store) -> Iterator[str]:
    jobs = store.schedules.jobs()
    for job in jobs:
        reason = job.paused or _IMPORTED
        paused = msgspec.structs.replace(job, paused=reason, deliver=NOWHERE)
        store.schedules.put(paused, dropped=_IMPORTED, following=None)
    if jobs:
        yield t.logged("{count} job (paused)", "{count} jobs (paused)", count=len(jobs))
    targets = dict.fromkeys(job.deliver for job in jobs if job.deliver != NOWHERE)
    if targets:
        yield t.logged(
            "where jobs deliver: {targets} (removed)",
            targets=", ".join(map(mask, targets)),
        )


def _to_triage(tx: BoardTransaction) -> int:
    for run in tx.open_runs():
        tx.put_run(msgspec.structs.replace(run, outcome="stopped", reason=_IMPORTED))
    waiting: tuple[CardStatus, ...] = ("todo", "ready", "running", "review", "blocked")
    cards = tx.cards(statuses=waiting)
    for card in cards:
        move(tx, card, "triage", by="hermes", reason=_IMPORTED, tells=False, run="")
    return len(cards)


def _named_programs(node: Any, place: str = "") -> Iterator[str]:
    """The settings that name a program, each with its value."""
    if not isinstance(node, dict):
        return
    for key, value in node.items():
        name = f"{place}.{key}".removeprefix(".")
        if key in _RUNS and value:
            words = value if isinstance(value, list) else [value, *node.get("args", ())]
            yield f"{name}: {' '.join(map(str, words))}"
        yield from _named_programs(value, name)


def _named_settings(
    node: Any, names: tuple[str, ...], place: str = ""
) -> Iterator[str]:
    """The settings with one of these names, each with its value; of headers, which may hold keys, only the name."""
    if not isinstance(node, dict):
        return
    for key, value in node.items():
        name = f"{place}.{key}".removeprefix(".")
        if key in names and value not in (None, "", [], {}):
            yield name if key == "headers" else f"{name}: {mask(str(value))}"
        else:
            yield from _named_settings(value, names, name)


def export_profile(
    profile: Profile, target: Path, *, secrets: bool, history: bool
) -> Backup:
    """Writes a profile to one file. Raises HermesError."""
    if not profile.home.profile:  # the base home has no such file of its own
        raise HermesError(
            t.later(
                "The default profile is exported by: hermes backup --without-secrets"
            ),
            hint=t.later("Or clone it first: hermes profile clone default NAME"),
        )
    return back_up(profile.home, target, secrets=secrets, history=history)


def finish_import(
    profiles: Profiles, archive: ArchivedProfile, name: str
) -> ImportedProfile:
    """Describes the profile, once its draft has become it."""
    return ImportedProfile(
        profile=profiles.find(name),
        files=archive.files,
        left_out=tuple(archive.left_out),
    )


def describe_draft(archive: ArchivedProfile) -> None:
    """A backup of a base home becomes a profile, too."""
    if not (archive.draft / PROFILE_FILE).is_file():
        write_description(archive.draft, "")
    Home(archive.draft).ensure()
