"""The health of a PostgreSQL server: version, latency, encryption, clock, rights, writers that hold back readers."""

import time

import msgspec

from hermes.core.ports import Clock
from hermes.store.postgres.database import PostgresDatabase
from hermes.text.translation import to_translate, translator

t = translator(__name__)


_MIN_VERSION = 14
_MAX_LATENCY_S = 0.05
_MAX_CLOCK_SKEW_S = 5.0
_MAX_LAG_S = 60.0
_MAX_NOTICE_S = 0.5
_LATENCY_SAMPLES = 5
_NO_NOTICES = to_translate(
    "Connect to the server itself: a pooler in transaction mode does not pass NOTIFY on."
)
_FACTS = """
SELECT current_setting('server_version'), current_setting('server_version_num')::int / 10000,
  (SELECT version FROM hermes_store),
  coalesce((SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()), false), inet_server_addr() IS NULL,
  has_schema_privilege(current_schema(), 'CREATE'), has_table_privilege('events', 'INSERT, UPDATE, DELETE'),
  pg_is_in_recovery(), current_setting('fsync') = 'on' AND current_setting('synchronous_commit') != 'off',
  pg_database_size(current_database()),
  coalesce((SELECT extract(epoch FROM max(clock_timestamp() - xact_start)) FROM pg_stat_activity
    WHERE backend_xid IS NOT NULL AND pid != pg_backend_pid()), 0)::float8,
  (SELECT count(*) FROM pg_stat_replication),
  coalesce((SELECT extract(epoch FROM max(replay_lag)) FROM pg_stat_replication), 0)::float8
"""


class ServerHealth(msgspec.Struct, frozen=True):
    """The findings: facts, and problems with a remedy for each."""

    details: tuple[tuple[str, str], ...]
    problems: tuple[tuple[str, str], ...]


def server_health(database: PostgresDatabase, clock: Clock) -> ServerHealth:
    """Queries the server's state, in several round trips."""
    (facts,) = database.select(_FACTS)
    version, major, schema, tls, is_local, may_create, may_write, is_standby, *more = facts  # fmt: skip
    is_durable, size, oldest, standbys, standby_lag = more
    latency, skew = _measured(database, clock)
    notify_lag = database.notice_lag()
    replication = f"{standbys} standbys, {standby_lag:.1f} s behind" if standbys else ""
    encryption = "TLS" if tls else "none"
    if is_local:
        encryption = "local socket"
    details = (
        ("version", str(version)),
        ("schema", str(schema)),
        ("size", f"{size / 1024**2:,.1f} MiB"),
        ("latency", f"{latency * 1000:.1f} ms"),
        ("encryption", encryption),
        ("clock", t.logged("{skew:+.1f} s from this machine's", skew=skew)),
        (
            "notices",
            f"{notify_lag * 1000:.1f} ms" if notify_lag is not None else "none",
        ),
        ("replication", replication),
    )
    details = tuple((name, value) for name, value in details if value)
    checks = (
        (
            major < _MIN_VERSION,
            t.logged("PostgreSQL {version} is too old", version=version),
            t.logged("Use version {min_version} or newer.", min_version=_MIN_VERSION),
        ),
        (
            encryption == "none",
            t.logged("the connection is not encrypted"),
            t.logged("Set store.tls to verify-full."),
        ),
        (
            is_standby,
            t.logged("this server only reads: it is a standby"),
            t.logged("Connect to the primary server."),
        ),
        (
            not may_write,
            t.logged("this user may not write"),
            t.logged("Grant it rights on the tables, or make it their owner."),
        ),
        (
            not may_create,
            t.logged("this user may not create tables, so an upgrade will fail"),
            t.logged("Make it the owner of the schema."),
        ),
        (
            not is_durable,
            t.logged("the server acknowledges what is not on disk"),
            t.logged("Set fsync and synchronous_commit to on."),
        ),
        (
            latency > _MAX_LATENCY_S,
            t.logged("a round trip takes {latency:.0f} ms", latency=latency * 1000),
            t.logged("Move the server closer: a turn needs many."),
        ),
        (
            abs(skew) > _MAX_CLOCK_SKEW_S,
            t.logged("the clocks differ by {skew:.0f} s", skew=abs(skew)),
            t.logged("Synchronise both with NTP."),
        ),
        (
            notify_lag is None or notify_lag > _MAX_NOTICE_S,
            t.logged("notices of new rows arrive late or not at all"),
            _NO_NOTICES,
        ),
        (
            standby_lag > _MAX_LAG_S,
            t.logged(
                "a standby is {standby_lag:.0f} s behind", standby_lag=standby_lag
            ),
            t.logged("Check the standby and its network."),
        ),
        (
            oldest > _MAX_LAG_S,
            t.logged(
                "a transaction has been open for {oldest:.0f} s and delays what other machines see",
                oldest=oldest,
            ),
            t.logged("End it."),
        ),
    )
    problems = tuple((text, to_do) for is_wrong, text, to_do in checks if is_wrong)
    return ServerHealth(details, problems)


def _measured(database: PostgresDatabase, clock: Clock) -> tuple[float, float]:
    """Returns the shortest round trip, and how far the server's clock is ahead."""
    samples: list[tuple[float, float]] = []
    for _ in range(_LATENCY_SAMPLES):
        began, here = time.perf_counter(), clock.now()
        ((there,),) = database.select(
            "SELECT extract(epoch FROM clock_timestamp())::float8"
        )
        took = time.perf_counter() - began
        samples.append((took, there - here - took / 2))
    return min(samples)
