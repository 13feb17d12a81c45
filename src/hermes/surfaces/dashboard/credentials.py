"""Credentials of a home's dashboards: signed tokens and cookies, and one-time codes.

Signed credentials carry their scopes and their expiry themselves, so they survive a restart, and `hermes dashboard
--print-token` needs no running dashboard. The key is in a file that only this user can read; a new key invalidates
everything that was signed before.
"""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Generic, Literal, TypeAlias, TypeVar, get_args

import msgspec

from hermes.errors import SettingsError
from hermes.primitives.recent import RecentDict
from hermes.settings import Home, atomic
from hermes.text.translation import translator

t = translator(__name__)


Scope: TypeAlias = Literal[
    "observe", "chat", "approve", "terminal", "publish", "relay", "admin"
]
SCOPES: tuple[Scope, ...] = get_args(Scope)
Kind: TypeAlias = Literal["token", "cookie"]
T = TypeVar("T")

_PREFIX = "hd_"
_MAX_CREDENTIAL_CHARACTERS = 4096
_MAX_UNUSED_CODES = 1000


class Pass(msgspec.Struct, frozen=True):
    """The contents of a signed credential."""

    kind: Kind
    scopes: tuple[Scope, ...]
    expires: float
    id: str
    channel: str = ""
    """For publishers: the only channel it is valid for; empty for any."""


class _File(msgspec.Struct):
    key: str
    revoked: dict[str, float] = {}


class Keyring:
    """Signs and checks credentials. Its file is created on first use."""

    def __init__(self, home: Home, clock: Callable[[], float]) -> None:
        self._home = home
        self._clock = clock
        self._path = dashboard_folder(home) / "keys.json"
        self._file: _File | None = None
        self._stamp = (0, 0)

    def mint(
        self,
        kind: Kind,
        scopes: tuple[Scope, ...],
        *,
        seconds: float,
        channel: str = "",
    ) -> str:
        """A new credential."""
        made = Pass(
            kind, scopes, self._clock() + seconds, secrets.token_urlsafe(12), channel
        )
        body = _text(msgspec.json.encode(made))
        return f"{_PREFIX}{body}.{_text(self._sign(body))}"

    def read(self, credential: str, kind: Kind) -> Pass | None:
        """The contents of a credential; None if it is not ours, has expired or is of another kind."""
        body, _, mark = credential.removeprefix(_PREFIX).partition(".")
        if (
            not credential.startswith(_PREFIX)
            or len(credential) > _MAX_CREDENTIAL_CHARACTERS
            or not credential.isascii()
        ):
            return None
        if not hmac.compare_digest(_text(self._sign(body)), mark):
            return None
        found = msgspec.json.decode(_bytes(body), type=Pass)
        return found if found.kind == kind and self.is_good(found) else None

    @property
    def serial(self) -> str:
        """Identifies this key without revealing anything of it."""
        return hashlib.sha256(self._load().key.encode()).hexdigest()

    def is_good(self, found: Pass) -> bool:
        """Whether a credential that was read before has neither expired nor been revoked."""
        return found.expires > self._clock() and found.id not in self._load().revoked

    def revoke(self, found: Pass) -> None:
        """Revokes one credential permanently."""
        with atomic.locked(self._path) as target:
            file = self._read(target) or self._load()
            now = self._clock()
            file.revoked = {
                name: end for name, end in file.revoked.items() if end > now
            } | {found.id: found.expires}
            self._write(target, file)
            self._keep(target, file)

    def renew(self) -> None:
        """Creates a new key, which invalidates everything that the old one signed."""
        self._prepare()
        with atomic.locked(self._path) as target:
            file = _File(secrets.token_hex(32))
            self._write(target, file)
            self._keep(target, file)

    def _sign(self, body: str) -> bytes:
        return hmac.new(
            bytes.fromhex(self._load().key), body.encode(), hashlib.sha256
        ).digest()

    def _load(self) -> _File:
        """The file as it is now: another process may have made a new key or revoked a credential."""
        if self._file is not None and self._stamp == _stamp(self._path):
            return self._file
        self._prepare()
        with atomic.locked(self._path) as target:
            file = self._read(target)
            if file is None:
                file = _File(secrets.token_hex(32))
                self._write(target, file)
            self._keep(target, file)
        return file

    def _keep(self, target: Path, file: _File) -> None:
        self._file, self._stamp = file, _stamp(target)

    def _prepare(self) -> None:
        self._home.ensure(dashboard_folder(self._home))

    def _read(self, target: Path) -> _File | None:
        try:
            return msgspec.json.decode(target.read_bytes(), type=_File)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.MsgspecError) as error:
            raise SettingsError(
                t(
                    "The dashboard's key can't be read: {target} ({error}).",
                    target=target,
                    error=error,
                ),
                hint=t(
                    "Remove the file. Hermes makes a new key, and everybody has to sign in again."
                ),
            ) from error

    def _write(self, target: Path, file: _File) -> None:
        atomic.replace(target, msgspec.json.encode(file).decode(), mode=0o600)


class OneTimeCodes(Generic[T]):
    """Issues codes that stand for a value and work once. Only their hashes are kept.

    A code is void as soon as `epoch` returns something else than when it was issued.
    """

    def __init__(
        self,
        lifetime_s: float,
        clock: Callable[[], float],
        epoch: Callable[[], str] = str,
    ) -> None:
        self.lifetime_s = lifetime_s
        self._clock = clock
        self._epoch = epoch
        self._unused: RecentDict[str, tuple[float, str, T]] = RecentDict(
            _MAX_UNUSED_CODES
        )

    def issue(self, value: T) -> str:
        """A new code; the oldest is dropped when there are very many."""
        now = self._clock()
        expired = [name for name, code in self._unused.items() if code[0] <= now]
        for name in expired:
            del self._unused[name]
        code = secrets.token_urlsafe(24)
        self._unused[_digest(code)] = (now + self.lifetime_s, self._epoch(), value)
        return code

    def redeem(self, code: str) -> T | None:
        """The value of a code, the first time and while it lasts."""
        expires, epoch, value = self._unused.pop(_digest(code), (0.0, "", None))
        if expires > self._clock() and epoch == self._epoch():
            return value
        return None


def dashboard_folder(home: Home) -> Path:
    """The folder of a home that belongs to its dashboard."""
    return home.root / "dashboard"


def _stamp(path: Path) -> tuple[int, int]:
    """Identifies a version of a file: it is always replaced, so each one has another inode."""
    try:
        info = path.stat()
    except OSError:
        return (0, 0)
    return (info.st_ino, info.st_mtime_ns)


def _digest(code: str) -> str:
    return hashlib.sha256(code.encode(errors="replace")).hexdigest()


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
