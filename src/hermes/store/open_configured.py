"""Opens the store that the settings name. This is the only place that decides which database to use."""

from pathlib import Path

from hermes.core.ports import Clock
from hermes.errors import StoreError
from hermes.settings.home import Home
from hermes.settings.sections import StoreSettings
from hermes.store.sqlite.opener import open_store
from hermes.store.store import Store
from hermes.text.translation import translator

t = translator(__name__)


PASSWORD = "STORE_PASSWORD"  # noqa: S105 - the name of a variable


def open_configured(
    settings: StoreSettings,
    home: Home,
    *,
    clock: Clock | None = None,
    may_migrate: bool = True,
) -> Store:
    """Opens PostgreSQL at `store.url`, or `state.db` in the home. Only checks turn off `may_migrate`."""
    if settings.url:
        return open_address(
            settings.url, settings, home, clock=clock, may_migrate=may_migrate
        )
    return open_store(home.state, clock=clock, busy_timeout=settings.busy_timeout)


def open_address(
    address: str,
    settings: StoreSettings,
    home: Home,
    *,
    clock: Clock | None = None,
    may_migrate: bool = True,
) -> Store:
    """Opens `postgresql://...`, or `sqlite://` with an absolute path; `sqlite://` alone is the home's own database."""
    if address.startswith("sqlite://"):
        path = Path(address.removeprefix("sqlite://") or home.state)
        return open_store(path, clock=clock, busy_timeout=settings.busy_timeout)
    from hermes.settings.load import load_secrets

    try:
        from hermes.store.postgres.options import PostgresOptions
        from hermes.store.postgres.postgres_store import open_postgres
    except ImportError as error:
        from hermes.text.install_words import install_hint

        raise StoreError(
            t.later(
                "PostgreSQL needs asyncpg, which can't be loaded: {error}", error=error
            ),
            hint=install_hint("postgres"),
        ) from error
    options = PostgresOptions(
        url=address,
        password=load_secrets(home=home).get(PASSWORD) or "",
        tls=settings.tls,
        tls_ca=settings.tls_ca,
        tls_certificate=settings.tls_certificate,
        tls_private_key_file=settings.tls_private_key_file,
        outage_timeout_s=settings.outage_timeout,
    )
    return open_postgres(options, clock=clock, may_migrate=may_migrate)
