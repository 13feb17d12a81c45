"""Keys of the API: made by `hermes api key add`, shown once, kept as hashes.

A key has 256 random bits, so a plain hash of it can't be guessed; its id is part of it, and names whose sessions are
whose.
"""

import hashlib
import hmac
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Literal, TypeAlias, get_args

import msgspec

from hermes.errors import SettingsError, UsageError
from hermes.settings import Home, Secrets, atomic

Scope: TypeAlias = Literal["chat", "models", "sessions"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
DEFAULT: tuple[Scope, ...] = ("chat", "models")
SECRET = "GATEWAY_API_KEY"  # noqa: S105 - the name of the secret

_PREFIX = "sk-hermes-"
_LONGEST = 512  # characters of a key that is looked at


class ApiKey(msgspec.Struct, frozen=True):
    """What is known of a key. `sessions` lets it go on with any session of this home, `chat` only with its own."""

    id: str
    name: str
    digest: str
    scopes: tuple[Scope, ...]
    created: float
    expires: float = 0.0


class _File(msgspec.Struct):
    keys: list[ApiKey] = []


class ApiKeys:
    """The keys of one home. Changes count at once, also for a server that runs."""

    def __init__(self, home: Home, clock: Callable[[], float]) -> None:
        self._home = home
        self._clock = clock
        self._path = keys_file(home)
        self._known: list[ApiKey] = []
        self._stamp = (0, 0)

    def add(
        self, name: str, scopes: tuple[Scope, ...], *, seconds: float = 0.0
    ) -> tuple[ApiKey, str]:
        """Makes a key; returns it with its text, which is nowhere else."""
        secret = secrets.token_urlsafe(32)
        now = self._clock()
        made = ApiKey(
            secrets.token_hex(4),
            name,
            _digest(secret),
            scopes,
            now,
            expires=now + seconds if seconds else 0.0,
        )
        self._home.ensure(self._path.parent)
        with atomic.locked(self._path) as target:
            self._write(target, [*self._read(target), made])
        return made, f"{_PREFIX}{made.id}-{secret}"

    def remove(self, which: str) -> ApiKey:
        """Makes a key void, by its id or name."""
        if not self._path.exists():
            raise UsageError(
                f"There is no key {which!r}.",
                hint="There are none yet: hermes api key add NAME",
            )
        with atomic.locked(self._path) as target:
            keys = self._read(target)
            found = [key for key in keys if which in (key.id, key.name)]
            if len(found) != 1:
                what = "is no key" if not found else "may be several keys; give the id"
                raise UsageError(f"{which!r} {what}.", hint="See: hermes api key list")
            self._write(target, [key for key in keys if key != found[0]])
        return found[0]

    def all(self) -> list[ApiKey]:
        """Every key, the oldest first."""
        stamp = _stamp(self._path)
        if stamp != self._stamp:
            self._known, self._stamp = self._read(self._path), stamp
        return list(self._known)

    def check(self, text: str) -> ApiKey | None:
        """The key that this is; None if it is none, or void."""
        if len(text) > _LONGEST or not text.startswith(_PREFIX):
            return None
        name, _, secret = text.removeprefix(_PREFIX).partition("-")
        digest = _digest(secret)
        now = self._clock()
        for key in self.all():
            if hmac.compare_digest(key.digest, digest) and key.id == name:
                return key if not key.expires or key.expires > now else None
        return None

    def _read(self, path: Path) -> list[ApiKey]:
        try:
            return msgspec.json.decode(path.read_bytes(), type=_File).keys
        except FileNotFoundError:
            return []
        except (OSError, msgspec.MsgspecError) as error:
            raise SettingsError(
                f"The keys of the API can't be read: {path} ({error}).",
                hint="Remove the file, and make new keys.",
            ) from error

    def _write(self, target: Path, keys: list[ApiKey]) -> None:
        atomic.replace(target, msgspec.json.encode(_File(keys)).decode(), mode=0o600)


def environment_key(secrets_: Secrets, text: str) -> ApiKey | None:
    """The key that GATEWAY_API_KEY holds, if this is it."""
    wanted = secrets_.get(SECRET) or ""
    if not wanted or not hmac.compare_digest(
        wanted.encode(), text.encode(errors="replace")
    ):
        return None
    return ApiKey("env", SECRET, "", DEFAULT, 0.0)


def keys_file(home: Home) -> Path:
    """Where they are kept."""
    return home.root / "gateway" / "api_keys.json"


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode(errors="replace")).hexdigest()


def _stamp(path: Path) -> tuple[int, int]:
    """Tells one version of a file from the next; each has another inode, as it is replaced and never rewritten."""
    try:
        info = path.stat()
    except OSError:
        return (0, 0)
    return (info.st_ino, info.st_mtime_ns)
