"""The lease on the remote of memory and skills: only one of the processes that share a store pulls and pushes at a
time.

A process that lost its lease can't undo what its successor pushed, because git moves the remote's branch only
forward.
"""

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from hermes.errors import StoreError
from hermes.learning.change import LearningError
from hermes.learning.learning_service import ExclusiveRemote
from hermes.primitives.backoff import Backoff
from hermes.store.leases import LEASE_TTL_S, shown
from hermes.store.role_leases import HeldRole
from hermes.text.translation import translator

t = translator(__name__)

if TYPE_CHECKING:
    from hermes.settings import Settings
    from hermes.store import Store

log = logging.getLogger("hermes.learning")

LEARNING_ROLE = "learning:remote"
"""The role of the process that exchanges memory and skills."""
_LEASE_TIMEOUT_S = (
    20.0  # for others to finish; a change waits at most this long and is pushed later
)
_FIRST_RETRY_S = 0.05
_MAX_RETRY_S = 1.0
_LATER = t.later(
    "Your changes are kept and are pushed with the next one, or by: hermes memory sync"
)


def remote_lease(
    settings: "Settings",
    store: Callable[[], "Store"],
    *,
    wait_s: float = _LEASE_TIMEOUT_S,
) -> ExclusiveRemote:
    """Returns a function that opens the lease as a context. Without a shared store, the home's locks are enough."""
    if not settings.store.url:
        return contextlib.nullcontext

    @contextlib.contextmanager
    def held() -> Iterator[None]:
        try:
            role = _take(store(), wait_s)
        except StoreError as error:
            raise LearningError(
                t.later(
                    "Memory and skills were not synced: {message}",
                    message=error.message,
                ),
                hint=_LATER,
            ) from error
        is_over = threading.Event()
        renewal = threading.Thread(
            target=_renew, args=(store(), role, is_over), daemon=True
        )
        renewal.start()
        try:
            yield
        finally:
            is_over.set()
            renewal.join()
            with contextlib.suppress(StoreError):  # then it expires
                store().roles.release(role)

    return held


def _take(store: "Store", wait_s: float) -> HeldRole:
    backoff = Backoff(_FIRST_RETRY_S, _MAX_RETRY_S)
    until = time.monotonic() + wait_s
    while (role := store.roles.take(LEARNING_ROLE)) is None:
        if time.monotonic() >= until:
            holders = [shown(one.owner) for one in store.roles.held(LEARNING_ROLE)]
            raise LearningError(
                t.later(
                    "Another process ({holders}) is syncing memory and skills.",
                    holders=", ".join(holders),
                ),
                hint=_LATER,
            )
        time.sleep(backoff.next_s())
    return role


def _renew(store: "Store", role: HeldRole, is_over: threading.Event) -> None:
    while not is_over.wait(LEASE_TTL_S / 3):
        try:
            if not store.roles.renew(role):
                log.warning("another process exchanges memory and skills now")
                return
        except StoreError as error:
            log.warning("the lease on memory and skills was not renewed: %s", error)
