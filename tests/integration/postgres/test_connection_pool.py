"""The pool of connections to PostgreSQL."""

import asyncio
from collections.abc import AsyncIterator

import asyncpg
import pytest
from tests.fakes.postgres_server import LocalPostgres

from hermes.store.postgres.connection_pool import ConnectionPool

TIMEOUT_S = 60.0


@pytest.fixture
async def pool(postgres: LocalPostgres) -> AsyncIterator[ConnectionPool]:
    url = postgres.new_url().partition("?options")[0]
    made = ConnectionPool(lambda: asyncpg.connect(url), 2)
    yield made
    await made.close()


async def test_a_connection_is_lent_again(pool: ConnectionPool) -> None:
    async with pool.lend(TIMEOUT_S) as first:
        assert await first.fetchval("SELECT 1") == 1
    async with pool.lend(TIMEOUT_S) as again:
        assert again is first


async def test_whoever_comes_while_all_are_lent_waits_so_long(
    pool: ConnectionPool,
) -> None:
    async with pool.lend(TIMEOUT_S) as first, pool.lend(TIMEOUT_S) as second:
        with pytest.raises(TimeoutError):
            async with pool.lend(0.01):
                pass
        waiting = asyncio.create_task(_borrow(pool))
        await asyncio.sleep(0)
        assert not waiting.done()
    async with asyncio.timeout(TIMEOUT_S):
        assert await waiting in {first, second}


async def test_a_pool_that_is_only_busy_is_waited_for(pool: ConnectionPool) -> None:
    async def work() -> None:
        async with pool.lend(1.5) as one:
            await one.execute("SELECT pg_sleep(0.3)")

    async with pool.lend(TIMEOUT_S):
        await asyncio.gather(*(work() for _ in range(8)))  # one after the other


async def test_one_with_an_open_transaction_is_not_lent_again(
    pool: ConnectionPool,
) -> None:
    async with pool.lend(TIMEOUT_S) as left:
        await left.execute("BEGIN")
    assert left.is_closed()
    assert await _borrow(pool) is not left


async def test_one_whose_statement_was_cancelled_is_not_lent_again(
    pool: ConnectionPool,
) -> None:
    async with pool.lend(TIMEOUT_S) as connection:
        pass

    async def sleep() -> None:
        async with pool.lend(TIMEOUT_S) as one:
            await one.execute("SELECT pg_sleep(600)")

    sleeping = asyncio.create_task(sleep())
    for _ in range(5):
        await asyncio.sleep(0)
    sleeping.cancel()
    await asyncio.wait([sleeping])
    assert connection.is_closed()
    assert await _borrow(pool) is not connection


async def test_a_closed_pool_lends_nothing(pool: ConnectionPool) -> None:
    connection = await _borrow(pool)
    await pool.close()
    assert connection.is_closed()
    with pytest.raises(asyncpg.InterfaceError, match="closed"):
        await _borrow(pool)


async def _borrow(pool: ConnectionPool) -> asyncpg.Connection:
    async with pool.lend(TIMEOUT_S) as connection:
        return connection
