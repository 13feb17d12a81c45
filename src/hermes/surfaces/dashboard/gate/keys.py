"""The key of a home's dashboards, and the tokens and cookies signed with it.

They carry their scopes and their end themselves, so they outlive a restart, and `hermes dashboard --print-token` needs
no running dashboard. The key lies in a file for this user only; a new key makes everything signed before void.
"""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from hermes.errors import SettingsError
from hermes.settings import Home, atomic
from hermes.surfaces.dashboard.gate.scopes import Scope

Kind: TypeAlias = Literal["token", "cookie"]

_PREFIX = "hd_"
_LONGEST = 4096  # characters of a credential that is looked at


class Pass(msgspec.Struct, frozen=True):
    """What a signed credential says."""

    kind: Kind
    scopes: tuple[Scope, ...]
    expires: float
    id: str
    channel: str = ""
    """For publishers: the only channel it is good for; empty for any."""


class _File(msgspec.Struct):
    key: str
    revoked: dict[str, float] = {}


class Keyring:
    """Signs and checks. The file is made on first use."""

    def __init__(self, home: Home, clock: Callable[[], float]) -> None:
        self._home = home
        self._clock = clock
        self._path = folder(home) / "keys.json"
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
        """What a credential of that kind says; None if it is not ours, not valid any more, or of another kind."""
        body, _, mark = credential.removeprefix(_PREFIX).partition(".")
        if (
            not credential.startswith(_PREFIX)
            or len(credential) > _LONGEST
            or not credential.isascii()
        ):
            return None
        if not hmac.compare_digest(_text(self._sign(body)), mark):
            return None
        found = msgspec.json.decode(_bytes(body), type=Pass)
        return found if found.kind == kind and self.is_good(found) else None

    @property
    def serial(self) -> str:
        """Tells this key from the one before; it gives nothing of it away."""
        return hashlib.sha256(self._load().key.encode()).hexdigest()

    def is_good(self, found: Pass) -> bool:
        """Whether a credential that was read before has neither ended nor been revoked since."""
        return found.expires > self._clock() and found.id not in self._load().revoked

    def revoke(self, found: Pass) -> None:
        """Makes one credential void, for good."""
        with atomic.locked(self._path) as target:
            file = self._read(target) or self._load()
            now = self._clock()
            file.revoked = {
                name: end for name, end in file.revoked.items() if end > now
            } | {found.id: found.expires}
            self._write(target, file)
            self._keep(target, file)

    def renew(self) -> None:
        """A new key: whatever was signed with the old one is void."""
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
        """What the file says now: another process may have made a new key, or signed somebody out."""
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
        self._home.ensure(folder(self._home))

    def _read(self, target: Path) -> _File | None:
        try:
            return msgspec.json.decode(target.read_bytes(), type=_File)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.MsgspecError) as error:
            raise SettingsError(
                f"The dashboard's key can't be read: {target} ({error}).",
                hint="Remove the file; a new key is made, and everybody has to sign in again.",
            ) from error

    def _write(self, target: Path, file: _File) -> None:
        atomic.replace(target, msgspec.json.encode(file).decode(), mode=0o600)


def folder(home: Home) -> Path:
    """Where a home keeps what belongs to its dashboard."""
    return home.root / "dashboard"


def _stamp(path: Path) -> tuple[int, int]:
    """Tells one version of a file from the next; each has another inode, as it is replaced and never rewritten."""
    try:
        info = path.stat()
    except OSError:
        return (0, 0)
    return (info.st_ino, info.st_mtime_ns)


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
