"""What `store.tls` means for an address when nothing is set."""

import pytest

from hermes.store.postgres.options import PostgresOptions


@pytest.mark.parametrize(
    ("url", "mode"),
    [
        ("postgresql://hermes@db.example/hermes", "verify-full"),
        ("postgresql://hermes@10.0.0.7:5433/hermes", "verify-full"),
        ("postgresql://hermes@a.example,b.example/hermes", "verify-full"),
        ("postgresql://hermes@localhost,b.example/hermes", "verify-full"),
        ("postgresql://hermes@localhost/hermes?host=b.example", "verify-full"),
        ("postgresql:///hermes", "verify-full"),
        ("postgresql://hermes@localhost/hermes", "prefer"),
        ("postgresql://hermes@127.0.0.1:5432/hermes", "prefer"),
        ("postgresql://hermes@[::1]/hermes", "prefer"),
        ("postgresql://hermes@/hermes?host=/run/postgresql", "prefer"),
    ],
)
def test_another_machine_is_verified_and_this_one_is_not(url: str, mode: str) -> None:
    assert PostgresOptions(url).tls_mode == mode
    assert PostgresOptions(url, tls="disable").tls_mode == "disable"
