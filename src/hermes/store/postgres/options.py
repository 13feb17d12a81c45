"""The address of a PostgreSQL store and its connection options. Displayed forms never contain a password."""

import ssl
from pathlib import Path
from typing import Any, Literal
from urllib.parse import parse_qs, urlsplit

import msgspec

from hermes.errors import StoreError
from hermes.text.translation import translator

t = translator(__name__)


SCHEMES = ("postgresql", "postgres")
TlsMode = Literal["auto", "prefer", "require", "verify-full", "disable"]
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


class PostgresOptions(msgspec.Struct, frozen=True):
    """The settings of a connection. `outage_timeout_s` is how long a request waits for an unreachable server."""

    url: str
    password: str = ""
    tls: TlsMode = "auto"
    tls_ca: str = ""
    tls_certificate: str = ""
    tls_private_key_file: str = ""
    outage_timeout_s: float = 300.0
    connect_timeout_s: float = 10.0

    def __repr__(self) -> str:
        return f"PostgresOptions({self.shown})"

    @property
    def database(self) -> str:
        """The name of the database."""
        return urlsplit(self.url).path.lstrip("/") or "hermes"

    @property
    def shown(self) -> str:
        """The address for people: database and host."""
        parts = urlsplit(self.url)
        host = parts.hostname or "".join(
            parse_qs(parts.query).get("host", ["localhost"])
        )
        port = f":{parts.port}" if parts.port else ""
        return f"{self.database} on {host}{port}"

    def connect_arguments(self) -> dict[str, Any]:
        """Returns the arguments for asyncpg's connect."""
        parts = urlsplit(self.url)
        if parts.scheme not in SCHEMES:
            raise StoreError(
                t.later(
                    "{scheme!r} is no address of a store",
                    scheme=parts.scheme or self.url,
                ),
                hint=t.later(
                    "Use postgresql://USER@HOST/DATABASE, or leave `store.url` empty for SQLite."
                ),
            )
        names = parse_qs(parts.query, keep_blank_values=True)
        if parts.password or "password" in names or "sslpassword" in names:
            raise StoreError(
                t.later("the address of the store must not hold a password"),
                hint=t.later(
                    "Leave it out of `store.url`, and run: hermes config set STORE_PASSWORD"
                ),
            )
        if tls_name := next((name for name in names if name.startswith("ssl")), ""):
            raise StoreError(
                t.later(
                    "{tls_name} in the address of the store would have no effect",
                    tls_name=tls_name,
                ),
                hint=t.later(
                    "Leave it out of `store.url`, and set `store.tls`, for example to verify-full."
                ),
            )
        arguments: dict[str, Any] = {
            "dsn": self.url,
            "ssl": self._tls(),
            "timeout": self.connect_timeout_s,
            "server_settings": {"application_name": "hermes"},
        }
        return arguments | ({"password": self.password} if self.password else {})

    @property
    def tls_mode(self) -> TlsMode:
        """The meaning of `auto` for this address. Several hosts, or an unnamed one, count as another machine."""
        if self.tls != "auto":
            return self.tls
        parts = urlsplit(self.url)
        hosts = parse_qs(parts.query).get("host", [])
        netloc = parts.netloc.rpartition("@")[2]
        if netloc and "," not in netloc and parts.hostname:
            hosts.append(parts.hostname)
        elif netloc:
            hosts.append(netloc)
        is_here = all(host.startswith("/") or host in _LOOPBACK for host in hosts)
        return "prefer" if hosts and is_here else "verify-full"

    def _tls(self) -> ssl.SSLContext | str:
        own, mode = self.tls_ca or self.tls_certificate, self.tls_mode
        if mode == "disable" or not (own or mode == "verify-full"):
            return mode
        try:
            context = ssl.create_default_context(
                cafile=str(Path(self.tls_ca).expanduser()) if self.tls_ca else None
            )
            if mode != "verify-full":
                context.check_hostname = False
                context.verify_mode = (
                    ssl.CERT_REQUIRED if self.tls_ca else ssl.CERT_NONE
                )
            if self.tls_certificate:
                key = (
                    str(Path(self.tls_private_key_file).expanduser())
                    if self.tls_private_key_file
                    else None
                )
                context.load_cert_chain(Path(self.tls_certificate).expanduser(), key)
        except OSError as error:
            hint = "Check `store.tls_ca`, `store.tls_certificate` and `store.tls_private_key_file`."
            raise StoreError(
                t.later(
                    "a certificate of the store can't be read: {strerror}",
                    strerror=error.strerror,
                ),
                hint=hint,
            ) from error
        return context
