"""The keys of the API: made by `hermes api key add`, shown once, stored as hashes.

A key has 256 random bits, so a plain hash is safe. The key's id is part of it, and of the
sessions that belong to it.
"""

import hashlib
import hmac
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Literal, TypeAlias, get_args

import msgspec

from hermes.errors import NotFound, SettingsError, UsageError
from hermes.settings import Home, Secrets, atomic
from hermes.text.translation import translator

t = translator(__name__)


Scope: TypeAlias = Literal["chat", "models", "sessions", "mcp", "memory", "tools"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
DEFAULT_SCOPES: tuple[Scope, ...] = ("chat", "models")
SECRET = "GATEWAY_API_KEY"  # noqa: S105 - the name of the secret

_PREFIX = "sk-hermes-"
_MAX_KEY_CHARACTERS = 512


class ApiKey(msgspec.Struct, frozen=True):
    """A key. The scope `sessions` lets it continue any session of this home, `chat` only its own.
    With `mcp` it may use `hermes mcp serve`: sessions with `sessions`, memory with `memory`, tools with `tools`."""

    id: str
    name: str
    digest: str
    scopes: tuple[Scope, ...]
    created: float
    expires: float = 0.0


class _File(msgspec.Struct):
    keys: list[ApiKey] = []


class ApiKeys:
    """The keys of one home. Changes take effect at once, also in a running server."""

    def __init__(self, home: Home, clock: Callable[[], float]) -> None:
        self._home = home
        self._clock = clock
        self._path = keys_file(home)
        self._known: list[ApiKey] = []
        self._stamp = (0, 0)

    def add(
        self, name: str, scopes: tuple[Scope, ...], *, seconds: float = 0.0
    ) -> tuple[ApiKey, str]:
        """Makes a key; returns it with its text, which is stored nowhere."""
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
        """Removes a key, by its id or name."""
        if not self._path.exists():
            raise NotFound(
                t("There is no key {which!r}.", which=which),
                hint=t("There are no keys yet. Make one with: hermes api key add NAME"),
            )
        with atomic.locked(self._path) as target:
            keys = self._read(target)
            found = [key for key in keys if which in (key.id, key.name)]
            hint = t("See: hermes api key list")
            if not found:
                raise NotFound(t("There is no key {which!r}.", which=which), hint=hint)
            if len(found) > 1:
                what = t(
                    "There are several keys named {which!r}. Use the id.", which=which
                )
                raise UsageError(what, hint=hint)
            self._write(target, [key for key in keys if key != found[0]])
        return found[0]

    def all(self) -> list[ApiKey]:
        """All keys, the oldest first."""
        stamp = _stamp(self._path)
        if stamp != self._stamp:
            self._known, self._stamp = self._read(self._path), stamp
        return list(self._known)

    def check(self, text: str) -> ApiKey | None:
        """The key with this text; None if it is unknown or has expired."""
        if len(text) > _MAX_KEY_CHARACTERS or not text.startswith(_PREFIX):
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
                t(
                    "The API keys can't be read: {path} ({error}).",
                    path=path,
                    error=error,
                ),
                hint=t("Remove the file and make new keys."),
            ) from error

    def _write(self, target: Path, keys: list[ApiKey]) -> None:
        atomic.replace(target, msgspec.json.encode(_File(keys)).decode(), mode=0o600)


def environment_key(secrets_: Secrets, text: str) -> ApiKey | None:
    """The key of GATEWAY_API_KEY, if the text is its value; None otherwise."""
    wanted = secrets_.get(SECRET) or ""
    if not wanted or not hmac.compare_digest(
        wanted.encode(), text.encode(errors="replace")
    ):
        return None
    return ApiKey("env", SECRET, "", DEFAULT_SCOPES, 0.0)


def keys_file(home: Home) -> Path:
    """The file of the keys."""
    return home.root / "gateway" / "api_keys.json"


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode(errors="replace")).hexdigest()


def _stamp(path: Path) -> tuple[int, int]:
    """Identifies a version of a file: it is always replaced, so each one has another inode."""
    try:
        info = path.stat()
    except OSError:
        return (0, 0)
    return (info.st_ino, info.st_mtime_ns)
