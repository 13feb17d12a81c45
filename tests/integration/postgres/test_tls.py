"""Encryption and credentials on the way to PostgreSQL, with a server that has a certificate."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fakes.postgres_server import LocalPostgres, running_postgres

from hermes.errors import StoreError
from hermes.store.postgres.options import PostgresOptions, TlsMode
from hermes.store.postgres.postgres_store import open_postgres

PASSWORD = "correct horse battery"  # noqa: S105 - a test

pytestmark = pytest.mark.skipif(
    shutil.which("openssl") is None, reason="needs openssl to make a certificate"
)


class EncryptedServer:
    """A server on a port of this machine. Its certificate is for `localhost`."""

    def __init__(self, server: LocalPostgres) -> None:
        self.server = server
        self.certificate, key = self.make("localhost", "server")
        self.client, self.client_key = self.make("certified", "client")
        server.own(key)
        self.port = server.listen(
            [
                "hostssl all certified 127.0.0.1/32 cert",
                "hostssl all all 127.0.0.1/32 scram-sha-256",
            ],
            ssl="on",
            ssl_cert_file=str(self.certificate),
            ssl_key_file=str(key),
            ssl_ca_file=str(self.client),
        )
        server.stop()
        server.start()
        server.sql(f"ALTER ROLE hermes PASSWORD '{PASSWORD}'")
        server.sql("CREATE ROLE certified LOGIN SUPERUSER")

    def make(self, name: str, file: str) -> tuple[Path, Path]:
        """A certificate that vouches for itself, and its key."""
        folder = self.server.folder
        certificate, key = folder / f"{file}.crt", folder / f"{file}.key"
        command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt"]
        command += ["ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
        command += ["-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}"]
        command += ["-keyout", str(key), "-out", str(certificate)]
        subprocess.run(command, check=True, capture_output=True)
        return certificate, key

    def options(
        self,
        tls: TlsMode,
        *,
        host: str = "localhost",
        user: str = "hermes",
        ca: Path | None = None,
        password: str = PASSWORD,
        certificate: bool = False,
    ) -> PostgresOptions:
        return PostgresOptions(
            f"postgresql://{user}@{host}:{self.port}/postgres",
            password=password,
            tls=tls,
            tls_ca=str(ca or ""),
            tls_certificate=str(self.client) if certificate else "",
            tls_private_key_file=str(self.client_key) if certificate else "",
            outage_timeout_s=5.0,
        )


@pytest.fixture(scope="module")
def encrypted() -> Iterator[EncryptedServer]:
    with running_postgres() as server:
        yield EncryptedServer(server)


def encryption(options: PostgresOptions) -> str:
    """Opens the store, and returns what it says about its encryption."""
    with open_postgres(options) as store:
        return dict(store.describe()[1])["encryption"]


def test_a_server_whose_certificate_fits_is_used(encrypted: EncryptedServer) -> None:
    ca = encrypted.certificate
    assert encryption(encrypted.options("verify-full", ca=ca)) == "TLS"
    assert encryption(encrypted.options("require")) == "TLS"
    assert encryption(encrypted.options("auto")) == "TLS"


def test_a_certificate_nobody_vouches_for_is_refused(
    encrypted: EncryptedServer,
) -> None:
    with pytest.raises(StoreError, match=r"certificate .* is not accepted") as refused:
        open_postgres(encrypted.options("verify-full"))
    assert "store.tls_ca" in refused.value.hint


def test_a_certificate_for_another_name_is_refused(encrypted: EncryptedServer) -> None:
    options = encrypted.options(
        "verify-full", host="127.0.0.1", ca=encrypted.certificate
    )
    with pytest.raises(StoreError, match=r"certificate .* is not accepted"):
        open_postgres(options)


def test_a_client_is_known_by_its_certificate(encrypted: EncryptedServer) -> None:
    ca = encrypted.certificate
    known = encrypted.options("verify-full", user="certified", ca=ca, certificate=True)
    assert encryption(known) == "TLS"
    unknown = encrypted.options("verify-full", user="certified", ca=ca, password="")
    with pytest.raises(StoreError, match="refused the connection"):
        open_postgres(unknown)


def test_a_wrong_password_is_named_and_not_shown(encrypted: EncryptedServer) -> None:
    wrong = encrypted.options("require", password="wrong staple")  # noqa: S106 - a test
    with pytest.raises(StoreError, match="refused the connection") as refused:
        open_postgres(wrong)
    assert "STORE_PASSWORD" in refused.value.hint
    assert "wrong staple" not in f"{refused.value} {refused.value.hint} {wrong!r}"


def test_a_server_without_encryption_is_refused_unless_that_is_allowed() -> None:
    with running_postgres() as server:
        port = server.listen(["host all all 127.0.0.1/32 trust"])
        server.stop()
        server.start()
        url = f"postgresql://hermes@localhost:{port}/postgres"
        with pytest.raises(StoreError, match="does not encrypt") as refused:
            open_postgres(PostgresOptions(url, tls="verify-full"))
        assert "ssl = on" in refused.value.hint
        assert encryption(PostgresOptions(url)) == "none"
