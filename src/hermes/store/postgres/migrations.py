"""Creates and migrates the tables of a PostgreSQL store, one process at a time."""

from collections.abc import Sequence

import asyncpg

from hermes.errors import StoreError, StoreTooNew
from hermes.store.postgres.schema import BITS, VERSION_TABLE
from hermes.text.translation import translator

t = translator(__name__)


_MIGRATION_LOCK = 0x48524D53  # "HRMS"
_TABLES = """
SELECT count(*) FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relname IN ('events', 'sessions')
"""
_OLDEST = "SELECT coalesce((to_jsonb(hermes_store) ->> 'oldest')::int, version) FROM hermes_store"
# Transaction numbers restart in a restored database; ids must not.
_RAISE_OFFSET = f"""
UPDATE hermes_store SET id_offset = 1 + last - pg_current_xact_id()::text::bigint
FROM (SELECT max(id) >> {BITS} AS last FROM events) AS newest
WHERE last >= pg_current_xact_id()::text::bigint + id_offset
"""  # noqa: S608 - our own names


async def migrate(
    connection: "asyncpg.Connection",
    migrations: Sequence[str],
    oldest: int,
    where: str,
) -> None:
    """Brings the tables up to date.

    Raises for tables of another program, or of a newer version that this one can't use. `oldest` is the version of the
    oldest program that can use the tables afterwards.
    """
    encoding = await connection.fetchval("SHOW server_encoding")
    if encoding != "UTF8":
        hint = t.later(
            "Create one with: createdb --encoding UTF8 --template template0 hermes"
        )
        raise StoreError(
            t.later(
                "{where} has the encoding {encoding}, not UTF8",
                where=where,
                encoding=encoding,
            ),
            hint=hint,
        )
    if await _version(connection, len(migrations), where) < len(migrations):
        await connection.execute(f"SELECT pg_advisory_lock({_MIGRATION_LOCK})")
        try:
            await _migrate(connection, migrations, oldest, where)
        finally:
            await connection.execute(f"SELECT pg_advisory_unlock({_MIGRATION_LOCK})")
    if await connection.fetchval("SELECT NOT pg_is_in_recovery()"):
        await connection.execute(_RAISE_OFFSET)


async def require_current(
    connection: "asyncpg.Connection", migrations: Sequence[str], where: str
) -> None:
    """Raises unless the tables exist and are up to date. Changes nothing."""
    found = await _version(connection, len(migrations), where)
    if found < len(migrations):
        hint = t.later("The first session creates or migrates them.")
        if found < 0:
            raise StoreError(
                t.later("{where} has no tables yet", where=where), hint=hint
            )
        raise StoreError(
            t.later("{where} has the older schema {found}", where=where, found=found),
            hint=hint,
        )


async def _migrate(
    connection: "asyncpg.Connection",
    migrations: Sequence[str],
    oldest: int,
    where: str,
) -> None:
    found = await _version(connection, len(migrations), where)
    async with connection.transaction():
        if found < 0:
            await connection.execute(VERSION_TABLE)
            found = 0
        for step in migrations[found:]:
            await connection.execute(step)
        query = "UPDATE hermes_store SET version = $1, oldest = greatest(oldest, $2)"
        await connection.execute(query, len(migrations), oldest)


async def _version(connection: "asyncpg.Connection", known: int, where: str) -> int:
    """Returns the database's version; -1 for an empty one."""
    if await connection.fetchval("SELECT to_regclass('hermes_store')") is None:
        if await connection.fetchval(_TABLES):
            hint = t.later("Nothing was changed. Give Hermes a separate database.")
            raise StoreError(
                t.later("{where} holds tables of another program", where=where),
                hint=hint,
            )
        return -1
    found = int(await connection.fetchval("SELECT version FROM hermes_store") or 0)
    if found > known and known < int(await connection.fetchval(_OLDEST) or found):
        hint = t.later(
            "Nothing was changed. Upgrade Hermes on this machine, or use another database."
        )
        raise StoreTooNew(
            t.later(
                "{where} was written by a newer Hermes (version {found}; this is {known})",
                where=where,
                found=found,
                known=known,
            ),
            hint=hint,
        )
    return found
