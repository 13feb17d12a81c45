"""`AccountStore`: the accounts that somebody signed in with, in `auth.json`, for this user alone.

Every change is made under a lock, on what the file holds at that moment, and is on the disk before it is used. What other
programs keep in the file stays in it.
"""

import contextlib
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec

from hermes.errors import NotFound, SettingsError, os_reason
from hermes.primitives.file_lock import FileLock
from hermes.primitives.files import make_private_folder, replace_file
from hermes.text.translation import translator

t = translator(__name__)

_LOCK_TIMEOUT_S = 10.0
_REFRESH_TIMEOUT_S = 60.0

Kind: TypeAlias = Literal[
    "oauth", "key", "codex", "copilot", "azure", "vertex", "bedrock"
]
"""How an account's headers are made: see `credential.py`."""


class Tokens(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an account is let in with. Times are seconds since 1970, on this machine's clock."""

    access: str = ""
    refresh: str = ""
    expires_at: float | None = None
    received_at: float = 0.0

    def __repr__(self) -> str:
        return f"Tokens(expires_at={self.expires_at})"


class Account(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One account of one service. Accounts with a lower priority number are used first."""

    id: str
    service: str
    kind: Kind = "oauth"
    label: str = ""
    priority: int = 0
    added_at: float = 0.0
    tokens: Tokens = Tokens()
    facts: Mapping[str, str] = {}
    """What is not secret: ids, regions, addresses."""
    problem: str = ""
    """Why the login is dead; empty while it works."""

    @property
    def name(self) -> str:
        """What people call it."""
        return f"{self.id} ({self.label})" if self.label else self.id


class AccountStore:
    """Reads and changes `auth.json`. Reading takes no lock: the file is replaced in one step."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._read_at: tuple[int, int, int] | None = None
        self._accounts: tuple[Account, ...] = ()

    def accounts(self, service: str = "") -> tuple[Account, ...]:
        """Returns the accounts by priority; those of one service if it is named. Reads the file if it has changed."""
        stamp = self._stamp()
        if stamp is None or stamp != self._read_at:
            self._accounts = _accounts_in(self._document())
            self._read_at = stamp
        return tuple(
            one for one in self._accounts if not service or one.service == service
        )

    def usable(self, service: str = "") -> tuple[Account, ...]:
        """Returns the accounts whose login is not dead. One that another program keeps may be alive again."""
        return tuple(
            one
            for one in self.accounts(service)
            if not one.problem or one.kind == "codex"
        )

    def get(self, name: str) -> Account | None:
        return next((one for one in self.accounts() if one.id == name), None)

    def require(self, name: str) -> Account:
        """Returns an account by its id, or the only one of a service. Raises NotFound."""
        found = self.get(name)
        of_service = self.accounts(name)
        if found is None and len(of_service) == 1:
            found = of_service[0]
        if found is None:
            names = ", ".join(one.id for one in self.accounts())
            hint = (
                t.later("There are: {names}.", names=names)
                if names
                else t.later("Nobody is signed in. Sign in: hermes auth add SERVICE")
            )
            raise NotFound(
                t.later("There is no account {name!r}.", name=name), hint=hint
            )
        return found

    def add(self, account: Account) -> Account:
        """Adds an account behind those of its service, or replaces the one with the same service and label."""
        added = account

        def change(accounts: dict[str, Account]) -> None:
            nonlocal added
            of_service = [
                one for one in accounts.values() if one.service == account.service
            ]
            known = (one for one in of_service if _is_same(one, account))
            old = next(known, None)
            numbers = (f"{account.service}-{number}" for number in range(1, 10_000))
            free = (one for one in numbers if one not in accounts)
            own_id = old.id if old else next(free)
            last = max((one.priority for one in of_service), default=0)
            following = last + 1 if of_service else 0
            priority = old.priority if old else following
            added = msgspec.structs.replace(account, id=own_id, priority=priority)
            accounts[own_id] = added

        self._change(change)
        return added

    def update(self, name: str, **fields: Any) -> Account:
        """Changes fields of an account. Raises NotFound if it is gone."""
        changed: list[Account] = []

        def change(accounts: dict[str, Account]) -> None:
            if name not in accounts:
                raise NotFound(t.later("The account {name} was removed.", name=name))
            accounts[name] = msgspec.structs.replace(accounts[name], **fields)
            changed.append(accounts[name])

        self._change(change)
        return changed[0]

    def mark_dead(
        self, name: str, problem: str, used: Tokens, facts: Mapping[str, str]
    ) -> bool:
        """Notes that a login is dead, unless its tokens have changed. Returns whether this call was the one to note it."""
        was_first = False

        def change(accounts: dict[str, Account]) -> None:
            nonlocal was_first
            account = accounts.get(name)
            if account is None or account.problem or _differ(account.tokens, used):
                return
            accounts[name] = msgspec.structs.replace(
                account, problem=problem, facts={**account.facts, **facts}
            )
            was_first = True

        self._change(change)
        return was_first

    def remove(self, name: str) -> None:
        def change(accounts: dict[str, Account]) -> None:
            accounts.pop(name, None)

        self._change(change)

    @contextlib.asynccontextmanager
    async def refreshing(self, name: str) -> AsyncIterator[None]:
        """Holds the lock under which one account is refreshed: one process at a time. Raises TimeoutError."""
        with FileLock(self._beside(f"refresh-{name}")) as lock:
            if not await lock.acquire_async(_REFRESH_TIMEOUT_S):
                raise TimeoutError
            yield

    def _change(self, change: Callable[[dict[str, Account]], None]) -> None:
        """Applies a change to what the file holds now, under its lock, and writes it."""
        try:
            make_private_folder(self.path.parent)
            with self._locked():
                document = self._document()
                accounts = {one.id: one for one in _accounts_in(document)}
                change(accounts)
                document["accounts"] = msgspec.to_builtins(list(accounts.values()))
                content = msgspec.json.format(msgspec.json.encode(document), indent=1)
                replace_file(self.path, content, mode=0o600)
        except OSError as error:
            raise SettingsError(
                t.later(
                    "{path} can't be written: {os_reason}",
                    path=self.path,
                    os_reason=os_reason(error),
                ),
                hint=t.later("Nothing was changed."),
            ) from error

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        with FileLock(self._beside("write")) as lock:
            if not lock.acquire(_LOCK_TIMEOUT_S):
                raise SettingsError(
                    t.later("Another process holds {name}.", name=self.path.name),
                    hint=t.later("Nothing was changed. Try again."),
                )
            yield

    def _beside(self, what: str) -> Path:
        return self.path.with_name(f".{self.path.name}.{what}.lock")

    def _stamp(self) -> tuple[int, int, int] | None:
        try:
            info = self.path.stat()
        except FileNotFoundError:
            return None
        return info.st_mtime_ns, info.st_ino, info.st_size

    def _document(self) -> dict[str, Any]:
        """Returns the whole content; empty if there is no file. Raises SettingsError for a broken one."""
        try:
            content = self.path.read_bytes()
            return msgspec.json.decode(content, type=dict[str, Any]) if content else {}
        except FileNotFoundError:
            return {}
        except (OSError, msgspec.DecodeError) as error:
            raise SettingsError(
                t.later("{path} can't be read: {error}", path=self.path, error=error),
                hint=t.later("Repair or remove it; it was not changed."),
            ) from error


def _differ(stored: Tokens, used: Tokens) -> bool:
    """Whether other tokens are stored than those that were used. An access token alone may have been renewed."""
    if used.refresh or stored.refresh:
        return stored.refresh != used.refresh
    return stored.access != used.access


def _is_same(old: Account, new: Account) -> bool:
    """Whether somebody signs in again with an account, and not with another one."""
    if old.label and new.label:
        return old.label == new.label and old.kind == new.kind
    return bool(old.problem)


def _accounts_in(document: Mapping[str, Any]) -> tuple[Account, ...]:
    try:
        found = msgspec.convert(document.get("accounts", []), tuple[Account, ...])
    except msgspec.ValidationError as error:
        raise SettingsError(
            t.later("auth.json is not as Hermes writes it: {error}", error=error),
            hint=t.later("Repair it, or remove `accounts` from it and sign in again."),
        ) from error
    return tuple(sorted(found, key=lambda one: (one.priority, one.added_at, one.id)))


def now() -> float:
    """Returns the time that tokens expire by."""
    return time.time()
